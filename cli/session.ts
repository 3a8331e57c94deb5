// Which node a command of cli/ speaks to, and as whom. The access token of a run is fetched when it
// is first needed, again when a node refuses it. Source: CONTRACT 0 (Bootstrap), 1.11.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Credentials {
  readonly clientId: string
  readonly clientSecret: string
}

const TOKEN_TIMEOUT_MS = 10_000

/** The node can't be used with what we have: told to the user, not tried again. */
export class FatalError extends Error {}

export class Session {
  readonly url: string
  readonly #credentials: Credentials
  #token: Promise<string> | null = null
  /**
   * The node's clock when the token was given, from the UUIDv7 of its request id; our own clock
   * when it sends none. Orders with an older UUID were there before this run.
   */
  startedMs: number

  constructor(url: string, credentials: Credentials, nowMs: number) {
    this.url = url
    this.#credentials = credentials
    this.startedMs = nowMs
  }

  /** The token; rejects when the node is away, with `FatalError` when it refuses us. */
  token(): Promise<string> {
    this.#token ??= this.#fetch().catch((error: unknown) => {
      this.#token = null
      throw error
    })
    return this.#token
  }

  /** A node has refused this token: the next request gets a new one. */
  forget(token: string): void {
    void this.#token?.then((current) => {
      if (current === token) this.#token = null
    })
  }

  async #fetch(): Promise<string> {
    const response = await fetch(`${this.url}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: this.#credentials.clientId,
        client_secret: this.#credentials.clientSecret,
      }),
      signal: AbortSignal.timeout(TOKEN_TIMEOUT_MS),
    })
    const text = await response.text()
    if (response.status >= 400 && response.status < 500 && response.status !== 429) {
      throw new FatalError(
        `the node gives no token to client ${this.#credentials.clientId}: ` +
          `${response.status} ${text.slice(0, 300)}`,
      )
    }
    if (!response.ok) throw new Error(`${response.status} from /oauth/token`)
    const requestMs = timeOfUuid7(response.headers.get('x-request-id') ?? '')
    if (requestMs !== null && !this.#started) this.startedMs = requestMs
    this.#started = true
    return (JSON.parse(text) as { access_token: string }).access_token
  }

  #started = false
}

/** What is behind an error of `fetch`, whose own message says only that it failed. */
export function reasonOf(error: Error): string {
  const { cause } = error
  return cause instanceof Error ? `${error.message}: ${cause.message}` : error.message
}

/** Milliseconds since 1970 in a UUIDv7, or null. */
export function timeOfUuid7(id: string): number | null {
  if (!/^[0-9a-f]{8}-[0-9a-f]{4}-7/.test(id)) return null
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

/** Credentials of the environment, or of the data directory of a node on this machine. */
export function findCredentials(
  env: Readonly<Record<string, string | undefined>>,
): Credentials | { problem: string } {
  const secret = env['KONTOR_BOOTSTRAP_SECRET']
  if (secret) return { clientId: 'bootstrap', clientSecret: secret }
  const path = join(env['KONTOR_DATA_DIR'] || './data', 'bootstrap.json')
  try {
    const { clientId, clientSecret } = JSON.parse(readFileSync(path, 'utf8')) as Credentials
    if (clientId && clientSecret) return { clientId, clientSecret }
    return { problem: `${path} holds no clientId and clientSecret` }
  } catch (error) {
    return {
      problem:
        `no credentials: give --client-id and --client-secret, set KONTOR_BOOTSTRAP_SECRET, or ` +
        `run where ${path} can be read (${(error as Error).message})`,
    }
  }
}

/** A node's address without a slash at the end; null: it is none. */
export function readUrl(text: string): string | null {
  const url = URL.parse(text)
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return null
  return url.href.replace(/\/+$/, '')
}
