// One connection to Redis that is made again whenever it is lost. ioredis' own ways of queueing and
// resending are all off: what a lost connection had taken is for the edge to send again. Source:
// PROTOCOL 3.6.

import { isIP } from 'node:net'
import { Redis } from 'ioredis'
import { faultOf, loginFault, silentFault } from '../../config/engine-faults.ts'
import { LIMITS } from '../../config/limits.ts'
import type { ClusterSettings, EngineTls } from '../../config/settings.ts'
import type { Log } from '../../protocol/log.ts'
import type { Clock } from '../clock.ts'

/** One Redis, and who this process is to it. */
export interface RedisAddress {
  /** Tried in turn: `redis://` or `rediss://`. */
  readonly urls: readonly string[]
  /** null: none, or they are in the addresses. username null: Redis's user `default`. */
  readonly credentials?: ClusterSettings['redis']['credentials']
  /** How it is known where it is spoken to over TLS. */
  readonly tls?: EngineTls | null
}

export interface ConnectionOptions extends RedisAddress {
  /** Shown by CLIENT LIST. */
  readonly name: string
  readonly clock: Clock
  readonly log: Log
  readonly onUp: (client: Redis) => void
  readonly onDown: () => void
}

export type { Redis }

const REDIS_PORT = 6_379
const RECONNECT_MS = 20
/** A Redis that stays away is told of this often. */
const TELL_EVERY_MS = 60_000

export class Connection {
  readonly #options: ConnectionOptions
  #client: Redis | null = null
  #isUp = false
  #stopped = false
  /** Of `urls`: the next one after each loss. */
  #turn = 0
  #attempts = 0
  #upMs = 0
  #toldMs = -Infinity

  constructor(options: ConnectionOptions) {
    this.#options = options
  }

  /** The client while it can take commands; else null. */
  get client(): Redis | null {
    return this.#isUp && this.#client?.status === 'ready' ? this.#client : null
  }

  start(): void {
    const { urls, name } = this.#options
    const url = urls[this.#turn++ % urls.length]!
    const client = new Redis({
      ...addressOptions(url, this.#options),
      connectionName: name,
      lazyConnect: true,
      protocol: 2,
      disableClientInfo: true,
      connectTimeout: LIMITS.redis.silentMs,
      socketTimeout: LIMITS.redis.silentMs,
      retryStrategy: null,
      maxRetriesPerRequest: null,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
    })
    this.#client = client
    let problem: Error | null = null
    client.on('error', (error: Error) => (problem = error))
    client.on('ready', () => this.#up(client))
    client.on('end', () => this.#down(problem, url))
    client.connect().catch((error: Error) => (problem ??= error))
  }

  /** This server can't be written to, or not yet: another address, or the same a bit later. */
  drop(): void {
    this.#client?.disconnect()
  }

  stop(): void {
    this.#stopped = true
    this.#client?.disconnect()
  }

  #up(client: Redis): void {
    if (this.#stopped) return
    this.#isUp = true
    this.#upMs = this.#options.clock.monotonicMs()
    this.#options.onUp(client)
  }

  #down(problem: Error | null, url: string): void {
    const { clock, log, name, onDown } = this.#options
    const wasUp = this.#isUp
    this.#isUp = false
    this.#client = null
    if (this.#stopped) return
    const nowMs = clock.monotonicMs()
    // One that could be reached but not used is no better than one that can't be reached.
    if (wasUp && nowMs - this.#upMs >= LIMITS.redis.reconnectMsMax) {
      this.#attempts = 0
      this.#toldMs = -Infinity
    }
    if (nowMs - this.#toldMs >= TELL_EVERY_MS) {
      this.#toldMs = nowMs
      const { host } = new URL(url)
      const fields = { err: problem ?? undefined, redis: host, connection: name }
      const text = wasUp ? 'the connection to Redis is lost' : 'Redis can not be used'
      log.warn(fields, `${text}${wasUp ? '' : reasonOf(problem, url)}`)
    }
    if (wasUp) onDown()
    const waitMs = Math.min(RECONNECT_MS * 2 ** this.#attempts, LIMITS.redis.reconnectMsMax)
    this.#attempts++
    clock.after(waitMs, () => (this.#stopped ? undefined : this.start()))
  }
}

/** Where and as whom: parts of an address are escaped, what ioredis is given isn't. */
function addressOptions(url: string, { credentials, tls }: RedisAddress) {
  const { hostname, port, username, password, pathname, protocol } = new URL(url)
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const user = decodeURIComponent(username) || credentials?.username
  const secret = decodeURIComponent(password) || credentials?.password
  return {
    host,
    port: Number(port || REDIS_PORT),
    db: Number(pathname.slice(1)),
    ...(user && { username: user }),
    ...(secret && { password: secret }),
    ...(protocol === 'rediss:' && { tls: tlsOptions(host, tls ?? null) }),
  }
}

function tlsOptions(host: string, tls: EngineTls | null) {
  const { ca, cert, key } = tls ?? {}
  return {
    ...(isIP(host) === 0 && { servername: host }),
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
  }
}

/** Why it can't be used, as far as a setting is to blame. */
function reasonOf(problem: Error | null, url: string): string {
  const { code } = (problem ?? {}) as NodeJS.ErrnoException
  // A Redis without TLS waits for the end of what it takes for a command.
  const isMute = code === 'ETIMEDOUT' && url.startsWith('rediss:')
  if (problem === null || code === 'ECONNRESET' || isMute) return silentFault('REDIS')
  return isLogin(problem) ? loginFault('REDIS') : faultOf('REDIS', problem)
}

function isLogin({ message }: Error): boolean {
  return /^(WRONGPASS|NOAUTH|NOPERM|ERR AUTH|ERR invalid password)/.test(message)
}

/**
 * True for an answer of the server: the command was not done. Anything else that a command fails
 * with leaves open whether it was.
 */
export function isRefusal(error: Error): boolean {
  return error.name === 'ReplyError'
}

/** This server is none to write to: a replica, or one that still loads its data. */
export function isWrongServer(error: Error): boolean {
  return isRefusal(error) && /^(READONLY|LOADING|MASTERDOWN|CLUSTERDOWN)/.test(error.message)
}
