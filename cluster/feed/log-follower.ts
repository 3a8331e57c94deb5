// A follower of the feed: takes the committed entries of the shards that its member owns, in the
// order of each shard's log. It goes on from an offset of its own, which it keeps, or begins at the
// head and keeps none. What a batch is to an index an entry is here; when it runs, sleeps and tries
// again is ConsumerLoop's, as with the index. Source: PROTOCOL 3.13.9.

import { type AnyEntry, decodeEntry, splitEntries } from '../../protocol/entry/entry.ts'
import { LIMITS } from '../../config/limits.ts'
import type { DerivedReader, LogReader, LogRow, Maybe } from '../../storage/journal.ts'
import type { CommittedEntry } from '../committed-entry.ts'
import { ConsumerLoop, type Next } from './consumer-loop.ts'
import { FreshEntries } from './fresh-entries.ts'

/** A committed entry and where it lies. */
export interface FeedEntry {
  readonly shard: number
  readonly offset: number
  readonly entry: AnyEntry
  /** As it is stored. */
  readonly bytes: number
  /**
   * Where it was committed here a moment ago, as the runtime has it; then `entry` is the runtime's,
   * too. What it holds can be part of actors' states: it is looked at, never folded or changed.
   */
  readonly fresh?: CommittedEntry | null
}

/** Thrown by `take`: this one can never be taken. It is set aside, and the others go on. */
export class UntakableEntry extends Error {}

/** Where a follower keeps its offsets, under a name that is its own. */
export interface FollowerOffsets {
  /** Done up to and including; null: it has not begun with this shard, and does so at its head. */
  load(shard: number): Maybe<number | null>
  /** After `take` has had what it stands for. A crash in between has that taken again. */
  save(shard: number, offset: number): Maybe<void>
}

export interface LogFollowerOptions {
  readonly log: Pick<LogReader, 'read'>
  readonly derived: Pick<DerivedReader, 'consumer'>
  /**
   * Takes one entry; the next one of any shard comes when it is done, which is the back-pressure.
   * What it throws has the same entry come again after a growing pause; UntakableEntry has it
   * parked. An entry can come twice: its effect is idempotent by shard and offset.
   */
  readonly take: (taken: FeedEntry) => Maybe<void>
  /** It wants entries as the runtime has them, as far as they are at hand. */
  readonly takesFresh: boolean
  /** Null: none are kept. It begins at the head with each shard, also with one that comes back. */
  readonly offsets: FollowerOffsets | null
  /** Sets an entry aside, durably where offsets are kept, before the offset passes it. */
  readonly park: (taken: FeedEntry, reason: string) => Maybe<void>
  /** The log begins above its offset: entries up to `trimmedTo` never come. It goes on behind. */
  readonly onGap: (gap: { readonly shard: number; readonly trimmedTo: number }) => void
  /** It could not go on, and tries again. */
  readonly onFailure: (error: unknown) => void
  /** Runs after a while, unless it is called off by what it gives. */
  readonly after: (ms: number, run: () => void) => () => void
  /** Runs as soon as what has arrived was handled. */
  readonly defer: (run: () => void) => void
}

interface Followed {
  head: number
  /** Taken up to here; null: what was kept has not been read yet. */
  offset: number | null
  /** Kept up to here. */
  saved: number
}

/** Nobody waits for it, and it does not gather: what is told late is told for nothing. */
const GATHER_STEP_MS = 10

export class LogFollower {
  readonly #options: LogFollowerOptions
  readonly #shards = new Map<number, Followed>()
  readonly #fresh = new FreshEntries(LIMITS.feed.followerFreshBytesMax)
  readonly #loop: ConsumerLoop
  readonly #ended: Promise<void>
  #isPaused = false

  constructor(options: LogFollowerOptions) {
    this.#options = options
    const { after, defer } = options
    this.#loop = new ConsumerLoop({
      ...{ after, defer, gatherStepMs: GATHER_STEP_MS },
      consumer: { step: () => this.#step(), isAwaited: () => true },
    })
    this.#ended = this.#loop.run()
  }

  /** The shard is ours, its log committed up to `head`; one that was not lost goes on. */
  gained(shard: number, head: number): void {
    const known = this.#shards.get(shard)
    if (known !== undefined) return this.#reached(known, head)
    const offset = this.#options.offsets === null ? head : null
    this.#shards.set(shard, { head, offset, saved: 0 })
    return this.#loop.wake()
  }

  /** It is no longer ours: an entry that is being taken is the last of it. */
  lost(shard: number): void {
    this.#shards.delete(shard)
    this.#fresh.forget(shard)
  }

  /** A group of an own shard, in order; `first` is the offset of its first entry. */
  committed(shard: number, first: number, group: readonly CommittedEntry[]): void {
    const followed = this.#shards.get(shard)
    if (followed === undefined) return
    if (this.#options.takesFresh) this.#fresh.add(shard, first, group)
    this.#reached(followed, first + group.length - 1)
  }

  #reached(followed: Followed, head: number): void {
    followed.head = head
    this.#loop.wake()
  }

  /** Taken up to and including; null: not an own shard, or not known yet. */
  offset(shard: number): number | null {
    return this.#shards.get(shard)?.offset ?? null
  }

  /** Of all shards that it follows, as `offset`. */
  *positions(): Generator<readonly [shard: number, offset: number]> {
    for (const [shard, { offset }] of this.#shards) if (offset !== null) yield [shard, offset]
  }

  /** The shard's log may be trimmed up to here for all that it needs of it (PROTOCOL 3.12). */
  doneWith(shard: number): number {
    if (this.#options.offsets === null) return Number.POSITIVE_INFINITY
    return this.#shards.get(shard)?.saved ?? 0
  }

  /** Takes nothing until `resume`; an entry that is being taken is the last before. */
  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#loop.wake()
  }

  /** Ends behind the entry that is being taken. */
  async stop(): Promise<void> {
    this.#loop.stop()
    await this.#ended
  }

  async #step(): Promise<Next> {
    let next: Next = 'idle'
    try {
      for (const [shard, followed] of [...this.#shards]) {
        if (this.#isHeld(shard, followed)) continue
        const reached = await this.#follow(shard, followed)
        if (reached === 'now' || next === 'idle') next = reached
      }
      return this.#isPaused ? 'idle' : next
    } catch (error) {
      this.#options.onFailure(error)
      return 'failed'
    }
  }

  #isHeld(shard: number, followed: Followed): boolean {
    return this.#isPaused || this.#loop.isStopped || this.#shards.get(shard) !== followed
  }

  /** One read of one shard. */
  async #follow(shard: number, followed: Followed): Promise<Next> {
    const { offsets, log } = this.#options
    if (followed.offset === null) {
      const loaded = await offsets!.load(shard)
      const offset = loaded ?? followed.head
      // Where it begins is durable first: a loss before the next save must not begin higher.
      if (loaded === null) await offsets!.save(shard, offset)
      followed.offset = offset
      followed.saved = offset
    }
    if (followed.offset < followed.head) {
      const rows = await log.read(shard, followed.offset, LIMITS.feed.followerReadBytes)
      if (rows.length === 0 && !(await this.#isTrimmed(shard, followed))) return 'later'
      for (const row of rows) await this.#takeRow(row, followed)
    }
    if (offsets !== null && followed.saved < followed.offset) {
      const { offset } = followed
      await offsets.save(shard, offset)
      followed.saved = offset
    }
    return followed.offset < followed.head ? 'now' : 'idle'
  }

  /** Nothing of what is lacking is in the log; false: it is still under way. */
  async #isTrimmed(shard: number, followed: Followed): Promise<boolean> {
    const { head } = followed
    if (((await this.#options.derived.consumer(shard, 'flush')) ?? 0) < head) return false
    this.#skip(shard, followed, head)
    return true
  }

  #skip(shard: number, followed: Followed, trimmedTo: number): void {
    followed.offset = trimmedTo
    this.#options.onGap({ shard, trimmedTo })
  }

  async #takeRow(row: LogRow, followed: Followed): Promise<void> {
    const { shard } = row
    const before = row.offset - row.count
    // Above the head it may be visible without being durable yet.
    if (row.offset > followed.head || this.#isHeld(shard, followed)) return
    if (before > followed.offset!) this.#skip(shard, followed, before)
    let bodies: readonly Uint8Array[] | null = null
    for (let offset = followed.offset! + 1; offset <= row.offset; offset++) {
      if (this.#isHeld(shard, followed)) return
      const fresh = this.#fresh.find(shard, offset)
      if (fresh === null) bodies ??= splitEntries(row.body)
      const body = fresh?.bytes ?? bodies![offset - before - 1]!
      const entry = fresh?.entry ?? decodeEntry(body)
      await this.#take({ shard, offset, entry, bytes: body.length, fresh })
      followed.offset = offset
    }
    this.#fresh.passed(shard, row.offset)
  }

  async #take(taken: FeedEntry): Promise<void> {
    const { take, park } = this.#options
    try {
      await take(taken)
    } catch (error) {
      if (!(error instanceof UntakableEntry)) throw error
      await park(taken, error.message)
    }
  }
}
