// A real node in a process of its own, with plain verbs: start, kill, stop, ask. Waiting is polling
// with a deadline, never a sleep.

import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { clusterSettings, onCluster } from './driver.ts'
import { Patience, tick } from './patience.ts'
import { AHEAD_VARIABLE, LEAP_VARIABLE, LIMITS_VARIABLE } from './lowered-limits.ts'

/** What a node is started by. */
export const MAIN = fileURLToPath(new URL('../../cli/node.mjs', import.meta.url))
/** What one with other bounds or clocks is started by: its modules are not packed. */
const SOURCES = fileURLToPath(new URL('../../node/main.ts', import.meta.url))
/** What lowers the bounds of a program that `env` names other ones for; else nothing. */
export function limitFlags(env: Readonly<Record<string, string>>): string[] {
  const isOther = [LIMITS_VARIABLE, LEAP_VARIABLE, AHEAD_VARIABLE].some((name) => name in env)
  return isOther ? ['--import', new URL('./lowered-limits.ts', import.meta.url).href] : []
}

const START_MS = 60_000
/** Of the client `bootstrap` on every node here. */
export const SECRET = 'a-secret-for-tests-only-0123456789'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  /** Parsed body; throws when it is no JSON. */
  json<T = Record<string, unknown>>(): T
}

export interface RuntimeCall {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: unknown
  /** Bytes as they are, instead of a JSON body. */
  readonly raw?: string | Buffer
  /** Another token than the owner's. */
  readonly token?: string
  /** Rejects when there is no whole answer by then. */
  readonly timeoutMs?: number
}

const living = new Set<ChildProcess>()
const folders = new Set<string>()
// A test that is ended from outside takes its nodes and their data along.
process.on('exit', () => {
  for (const child of living) child.kill('SIGKILL')
  for (const dir of folders) rmSync(dir, { recursive: true, force: true })
})
for (const signal of ['SIGALRM', 'SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => process.exit(1))
}

/** The part of a test that a node needs: to be told when it is over. */
interface Owner {
  teardown(end: () => Promise<void>): void
}

/** A node in a folder of its own, started; it ends with the test. */
export async function startNode(t: Owner, env: Record<string, string> = {}): Promise<NodeProcess> {
  const cluster = await clusterSettings()
  if (cluster !== null) {
    const peer = new NodeProcess({ ...env, ...cluster, KONTOR_MEMBER_ID: 'peer' })
    t.teardown(() => peer.clear())
    await peer.start()
  }
  const member = cluster && { ...cluster, KONTOR_MEMBER_ID: 'asked' }
  const node = new NodeProcess({ ...env, ...member })
  t.teardown(() => node.clear())
  await node.start()
  if (cluster !== null) await hasItsShare(node)
  return node
}

/** Waits until what is asked has become the owner of some of the shards, and nothing moves. */
async function hasItsShare(node: NodeProcess): Promise<void> {
  const patience = new Patience(START_MS)
  for (;;) {
    // A new token each time: they may be short-lived.
    const answer = await node.ask('/resources/cluster', { token: await node.token() })
    const isTold = answer.status === 200
    const { shards, moves } = isTold
      ? answer.json<{ shards: { owner: string }[]; moves: unknown[] }>()
      : { shards: [], moves: [] }
    if (moves.length === 0 && shards.some(({ owner }) => owner === 'asked')) return
    if (patience.isOver()) throw new Error(`got no shards in time: ${answer.text}\n${node.output}`)
    await tick()
  }
}

export class NodeProcess {
  readonly dir: string
  port = 0
  /** All that it printed. */
  output = ''
  /** null while it runs; -1 when a signal ended it. */
  exitCode: number | null = null
  /** The signal that ended it. */
  exitSignal: string | null = null
  #child: ChildProcess | null = null
  #token = ''
  #ended: Promise<void> = Promise.resolve()
  readonly #env: Record<string, string>
  readonly #written = new Map<string, { offset: number; token: string }>()
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256 })

  constructor(env: Record<string, string> = {}, dir?: string) {
    this.dir = dir ?? mkdtempSync(join(tmpdir(), 'kontor-'))
    if (dir === undefined) folders.add(this.dir)
    this.#env = env
  }

  get pid(): number {
    return this.#child!.pid!
  }

  /** Starts it and waits until it is ready. Rejects when it ends before. */
  async start(args: readonly string[] = []): Promise<this> {
    this.launch(args)
    return this.ready()
  }

  /** Waits until a launched one is ready. Rejects when it ends before. */
  async ready(): Promise<this> {
    const patience = new Patience(START_MS)
    let problem = ''
    for (;;) {
      if (this.exitCode !== null) {
        throw new Error(`ended with ${this.exitSignal ?? this.exitCode}:\n${this.output}`)
      }
      if (patience.isOver()) throw new Error(`not ready in time: ${problem}\n${this.output}`)
      this.port ||= Number(/is up at https?:\/\/[^:]+:(\d+)/.exec(this.output)?.[1] ?? 0)
      if (this.port > 0 && (await this.#isReady())) {
        // The owner of its session may have died since, as any other.
        const token = await this.token().catch((error: Error) => void (problem = error.message))
        if (token !== undefined) {
          this.#token = token
          return this
        }
      }
      await tick()
    }
  }

  /** Starts it without waiting. */
  launch(args: readonly string[] = []): void {
    this.exitCode = null
    this.output = ''
    this.port = 0
    const flags = limitFlags(this.#env)
    const program = flags.length > 0 ? [...flags, SOURCES] : [MAIN]
    const child = spawn(process.execPath, [...program, ...args], {
      env: {
        PATH: process.env['PATH'] ?? '',
        KONTOR_DATA_DIR: this.dir,
        KONTOR_HTTP_PORT: '0',
        KONTOR_SAMPLE: 'false',
        KONTOR_LOG_LEVEL: 'warn',
        KONTOR_BOOTSTRAP_SECRET: SECRET,
        // Tests ask for tokens as they like; those of the rates say otherwise.
        KONTOR_RATE_SIGN_IN_ADDRESS: '0',
        KONTOR_RATE_SIGN_IN_CLIENT: '0',
        ...this.#env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    living.add(child)
    const hear = (text: Buffer): void => void (this.output += text.toString())
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    this.#ended = new Promise((resolve) => {
      child.on('exit', (code, signal) => {
        this.exitCode = code ?? -1
        this.exitSignal = signal
        living.delete(child)
        resolve()
      })
    })
  }

  async ended(): Promise<number> {
    await this.#ended
    return this.exitCode!
  }

  /** True while the process runs. */
  get isUp(): boolean {
    return this.#child !== null && this.exitCode === null
  }

  /** kill -9: it gets no chance to tidy up. */
  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL')
    await this.#ended
  }

  /** SIGTERM: drains and ends. */
  async stop(): Promise<number> {
    this.#child?.kill('SIGTERM')
    await this.#ended
    return this.exitCode!
  }

  /** Kills it if it still runs, and removes its data. */
  async clear(): Promise<void> {
    await this.kill()
    this.#agent.destroy()
    rmSync(this.dir, { recursive: true, force: true })
    folders.delete(this.dir)
  }

  async #isReady(): Promise<boolean> {
    try {
      return (await this.send('/health/ready')).status === 200
    } catch {
      return false
    }
  }

  /** A new token: the owner's, or one that may do no more than `scope` says. */
  async token(scope?: string): Promise<string> {
    const answer = await this.form('/oauth/token', {
      grant_type: 'client_credentials',
      client_id: 'bootstrap',
      client_secret: SECRET,
      ...(scope === undefined ? {} : { scope }),
    })
    if (answer.status !== 200) throw new Error(`no token: ${answer.status} ${answer.text}`)
    return answer.json<{ access_token: string }>().access_token
  }

  /** Sends a form. */
  form(path: string, members: Record<string, string>): Promise<Answer> {
    return this.send(path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      raw: new URLSearchParams(members).toString(),
    })
  }

  /** A request with a token, the owner's by default. Rejects when the connection breaks. */
  ask(path: string, ask: RuntimeCall = {}): Promise<Answer> {
    const { token = this.#token } = ask
    return this.send(path, {
      ...ask,
      headers: { Authorization: `Bearer ${token}`, ...ask.headers },
    })
  }

  /** A request as it is. */
  send(path: string, ask: RuntimeCall = {}): Promise<Answer> {
    const body = ask.raw ?? (ask.body === undefined ? undefined : JSON.stringify(ask.body))
    const headers: Record<string, string> = { ...ask.headers }
    if (body !== undefined) {
      headers['Content-Type'] ??= 'application/json'
      headers['Content-Length'] ??= String(Buffer.byteLength(body))
    }
    const method = ask.method ?? (body === undefined ? 'GET' : 'POST')
    const patience =
      ask.timeoutMs === undefined ? null : { signal: AbortSignal.timeout(ask.timeoutMs) }
    const to = { host: '127.0.0.1', port: this.port, agent: this.#agent }
    return new Promise((resolve, reject) => {
      const sent = request({ ...to, path, method, headers, ...patience }, (response) => {
        const parts: Buffer[] = []
        response.on('data', (part: Buffer) => parts.push(part))
        response.on('error', reject)
        response.on('end', () => {
          const text = Buffer.concat(parts).toString()
          const token = response.headers['x-consistency']
          if (typeof token === 'string') this.#remember(token)
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            json: <T>() => JSON.parse(text) as T,
          })
        })
      })
      sent.on('error', reject)
      sent.end(body)
    })
  }

  /** Messages to an order. */
  order(id: string, messages: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.ask(`/resources/actors/order/${id}`, { body: messages, headers })
  }

  /** Lines of bulk: texts as they are, anything else as JSON. */
  bulk(lines: readonly unknown[], ask: RuntimeCall = {}): Promise<Answer> {
    const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)))
    return this.ask('/resources/actors/order', {
      raw: text.join('\n'),
      ...ask,
      headers: { 'Content-Type': 'application/x-ndjson', ...ask.headers },
    })
  }

  /**
   * The answer of the graph, once it has what `after` (an answer with X-Consistency) wrote; of a
   * cluster, where each shard's part comes by itself, also what was written before.
   */
  async graph<T>(navigations: unknown, after?: Answer): Promise<T> {
    const token = after?.headers['x-consistency']
    const tokens = typeof token !== 'string' ? [] : onCluster ? this.#tokens() : [token]
    const headers = tokens.length > 0 ? { 'X-Consistency': tokens.join(', ') } : {}
    const answer = await this.ask('/resources/graph', { body: navigations, headers })
    if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
    return answer.json<T>()
  }

  #tokens(): readonly string[] {
    return [...new Set(Array.from(this.#written.values(), ({ token }) => token))]
  }

  /** Keeps of each shard the token that reaches furthest: answers come in any order. */
  #remember(token: string): void {
    const [, , pairs = ''] = Buffer.from(token, 'base64url').toString().split('.')
    for (const pair of pairs.split(',')) {
      const [shard = '', offset] = pair.split(':')
      const known = this.#written.get(shard)
      if (known === undefined || Number(offset) > known.offset) {
        this.#written.set(shard, { offset: Number(offset), token })
      }
    }
  }

  /** One number of /metrics; 0 when it is not there. */
  async metric(name: string): Promise<number> {
    const all = await this.ask('/metrics')
    // The owner's token may have ended; what anybody may see needs none.
    const { text } = all.status === 200 ? all : await this.send('/metrics')
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? 0)
  }
}
