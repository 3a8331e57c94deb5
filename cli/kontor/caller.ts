// Requests of a command to its node, with a token that is renewed where it is over.

import { EXIT, Failure, failureOf } from './failure.ts'
import { urlOfEnvironment } from './node-url.ts'
import type { Profile, Profiles } from './profiles.ts'
import { SignIn } from './sign-in.ts'
import type { World } from './world.ts'

const REQUEST_MS = 30_000
/** A token is renewed so long before its end: clocks differ. */
const EARLY_MS = 30_000

export interface Answer {
  readonly body: unknown
  readonly etag: string | null
}

export interface CallOptions {
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
}

/** Where requests go, and the token that they carry; `again`: another one, as this was refused. */
interface Access {
  readonly url: string
  token(isRefused: string | null): Promise<string>
}

export class Caller {
  readonly #world: World
  readonly #access: Access

  constructor(world: World, access: Access) {
    this.#world = world
    this.#access = access
  }

  static async of(world: World, profiles: Profiles, name: string | undefined): Promise<Caller> {
    const token = world.env['KONTOR_TOKEN']
    if (token !== undefined && name === undefined) {
      const url = urlOfEnvironment(world)
      if (url === undefined) {
        throw new Failure('KONTOR_TOKEN needs KONTOR_URL beside it', EXIT.wrongArguments)
      }
      return new Caller(world, { url, token: () => Promise.resolve(token) })
    }
    const found = await profiles.find(name)
    return new Caller(world, kept(world, profiles, found))
  }

  async call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const token = await this.#access.token(null)
    const first = await this.#send(token, { method, path, ...options })
    if (first.status !== 401) return read(first)
    const other = await this.#access.token(token)
    return read(other === token ? first : await this.#send(other, { method, path, ...options }))
  }

  async #send(
    token: string,
    { method, path, body, headers }: CallOptions & { method: string; path: string },
  ): Promise<Response> {
    try {
      return await this.#world.fetch(`${this.#access.url}${path}`, {
        method,
        headers: {
          ...headers,
          Authorization: `Bearer ${token}`,
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(REQUEST_MS),
      })
    } catch (error) {
      const { message, cause } = error as Error
      const why = cause instanceof Error ? `${message}: ${cause.message}` : message
      throw new Failure(`${this.#access.url} can't be reached: ${why}`, EXIT.unavailable)
    }
  }
}

async function read(response: Response): Promise<Answer> {
  const text = await response.text()
  if (!response.ok) throw failureOf(response.status, text)
  const etag = response.headers.get('etag')
  try {
    return { body: text === '' ? null : JSON.parse(text), etag }
  } catch {
    throw new Failure('the answer is no JSON: is this address a node of Kontor?')
  }
}

function kept(
  world: World,
  profiles: Profiles,
  { name, profile }: { readonly name: string; readonly profile: Profile },
): Access {
  const signIn = new SignIn(world)
  let now = profile
  const isOver = (one: Profile, refused: string | null): boolean =>
    one.accessToken === refused || one.expiresAtMs - EARLY_MS <= world.nowMs()
  return {
    url: profile.url,
    async token(refused) {
      if (!isOver(now, refused)) return now.accessToken
      now = await profiles.renewed(name, (one) =>
        isOver(one, refused) ? signIn.renewed(one) : Promise.resolve(one),
      )
      return now.accessToken
    },
  }
}
