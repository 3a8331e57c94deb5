// Reads the inbox stream of one incarnation, on a connection of its own: makes it, keeps it alive,
// takes what is in it, and makes it again when Redis has lost it. Source: PROTOCOL 3.6 "Wire".

import { crc32 } from 'node:zlib'
import { LIMITS } from '../../config/limits.ts'
import type { Log } from '../../protocol/log.ts'
import type { Clock } from '../clock.ts'
import { Connection, isWrongServer } from './connection.ts'
import type { Redis, RedisAddress } from './connection.ts'
import { EMPTY_ENTRY } from './entry.ts'
import { KnownIds } from './known-ids.ts'

export interface InboxOptions extends RedisAddress {
  readonly key: string
  readonly clock: Clock
  readonly log: Log
  /** Fields of one entry, and for how long it has waited in the stream. */
  readonly take: (fields: readonly string[], ageMs: number) => void
  /** The stream is there, for the first time or again. */
  readonly onUp: () => void
  /** What was in the stream, or on its way, may be lost. */
  readonly onDown: () => void
}

type StreamEntry = readonly [id: string, fields: readonly string[]]
/** A command's error or answer, of each command of a pipeline. */
type Answers = readonly (readonly [Error | null, unknown])[]

/** What one round brings. */
interface Round {
  readonly entries: readonly StreamEntry[]
  readonly nowMs: number
}

/** Of each field of an entry. */
const CHECKED_CHARS = 1_024

export class InboxReader {
  readonly #options: InboxOptions
  readonly #connection: Connection
  readonly #known = new KnownIds(LIMITS.redis.entriesKnownMax)
  #stopped = false
  #isThere = false

  constructor(options: InboxOptions) {
    this.#options = options
    const { key, clock, log, urls, credentials = null, tls = null } = options
    this.#connection = new Connection({
      name: key,
      urls,
      credentials,
      tls,
      clock,
      log,
      onUp: (client) => void this.#readOn(client),
      onDown: () => this.#lost(),
    })
  }

  /** The stream is there as far as this reader knows. */
  get isUp(): boolean {
    return this.#isThere
  }

  start(): void {
    this.#connection.start()
  }

  stop(): void {
    this.#stopped = true
    this.#isThere = false
    this.#connection.stop()
  }

  /** Round after round while this connection lasts. */
  async #readOn(client: Redis): Promise<void> {
    // Only what this connection has read is trimmed over it: after a failover ids may go back, and
    // an older mark would take unread entries along.
    let taken: string | null = null
    try {
      while (!this.#stopped && this.#connection.client === client) {
        if (!this.#isThere) await this.#makeStream(client)
        const { entries, nowMs } = await this.#round(client, taken)
        this.#takeAll(entries, nowMs)
        taken = entries.at(-1)?.[0] ?? null
      }
    } catch (error) {
      if (this.#stopped || this.#connection.client !== client) return
      const fields = { err: error, stream: this.#options.key }
      if (!isWrongServer(error as Error)) this.#options.log.warn(fields, 'an inbox can not be read')
      this.#connection.drop()
    }
  }

  async #makeStream(client: Redis): Promise<void> {
    const { key, onUp } = this.#options
    const keep = () => client.pexpire(key, LIMITS.redis.streamMs)
    if ((await keep()) === 0) {
      await client.xadd(key, '*', ...EMPTY_ENTRY)
      await keep()
    }
    if (this.#stopped) return
    this.#isThere = true
    onUp()
  }

  async #round(client: Redis, taken: string | null): Promise<Round> {
    const { key } = this.#options
    const pipeline = client.pipeline()
    if (taken !== null) pipeline.xtrim(key, 'MINID', following(taken))
    const first = pipeline.length
    pipeline.xread(
      ...(['COUNT', LIMITS.redis.readEntriesMax, 'BLOCK', LIMITS.redis.readBlockMs] as const),
      ...(['STREAMS', key, '0-0'] as const),
    )
    // Behind the wait: whether the stream is still there is known as soon as it is over.
    pipeline.pexpire(key, LIMITS.redis.streamMs)
    pipeline.time()
    const answers = ((await pipeline.exec()) ?? []) as Answers
    for (const [error] of answers) if (error) throw error
    const [read, isThere, time] = answers.slice(first).map(([, value]) => value)
    if (isThere === 0) this.#lost()
    const streams = read as readonly [string, readonly StreamEntry[]][] | null
    const [seconds, micros] = (time as readonly unknown[]).map(Number)
    return { entries: streams?.[0]?.[1] ?? [], nowMs: seconds! * 1_000 + micros! / 1_000 }
  }

  #takeAll(entries: readonly StreamEntry[], nowMs: number): void {
    const { take } = this.#options
    for (const [id, fields] of entries) {
      // A failover to a Redis whose clock is behind gives ids out again, for other entries.
      if (!this.#known.isNew(`${id} ${checksumOf(fields)}`)) continue
      const ageMs = Math.max(0, nowMs - Number(id.slice(0, id.indexOf('-'))))
      if (ageMs <= LIMITS.redis.entryAgeMs) take(fields, ageMs)
    }
  }

  #lost(): void {
    if (!this.#isThere) return
    this.#isThere = false
    this.#options.onDown()
  }
}

/**
 * Tells one entry from another of the same id, at a cost that doesn't grow with it: what they hold
 * first has a number of its own, a copy's.
 */
function checksumOf(fields: readonly string[]): number {
  return crc32(fields.map((field) => `${field.length} ${field.slice(0, CHECKED_CHARS)}`).join(''))
}

/** The smallest id above this one. */
function following(id: string): string {
  const [ms, sequence] = id.split('-')
  return `${ms}-${BigInt(sequence!) + 1n}`
}
