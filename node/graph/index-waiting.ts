// Waiting for the graph index of a cluster: a request that names positions sleeps until the index
// has come there and was refreshed since. Own shards tell by themselves; those of other members are
// asked of the journal, where their offsets stand. It stands between the graph and the feeds.
// Source: PROTOCOL 3.13.6.

import { RequestError } from '../../protocol/errors.ts'
import type { Position } from '../../protocol/ids.ts'
import { LIMITS } from '../../config/limits.ts'
import type { Clock } from '../../cluster/clock.ts'
import type { IndexWatch } from './graph.ts'

export interface IndexWaitingOptions {
  readonly clock: Clock
  /** Generation that is read; null: none can be read now. */
  readonly live: () => number | null
  /** Offset of an own shard in the live generation; null: it is not ours, or not known. */
  readonly applied: (shard: number) => number | null
  /** The same of any shard, as the journal has it. */
  readonly stored: (generation: number, shard: number) => Promise<number | null>
  /** What was written before is found by searches after it. */
  readonly refresh: (generation: number) => Promise<void>
  /** False for a shard that brings nothing to the graph: it need not be waited for. */
  readonly follows: (shard: number) => boolean
  /** Newest committed offset of an own shard; null: not ours, or not for sure. */
  readonly head: (shard: number) => number | null
  /** Offset up to which a shard's derived rows are written. */
  readonly flushed: (shard: number) => Promise<number>
}

export class IndexWaiting implements IndexWatch {
  readonly #options: IndexWaitingOptions
  #waiting = 0
  /** Of the generation that is read: offsets as they were last read, and as they are refreshed. */
  #generation = 0
  readonly #stored = new Map<number, number>()
  readonly #refreshed = new Map<number, number>()
  readonly #reads = new Map<number, Promise<void>>()
  /** The refresh that has not begun yet: it covers what is in the index when it begins. */
  #nextRefresh: Promise<void> | null = null
  #refreshedAtMs = Number.NEGATIVE_INFINITY
  /** Resolves when an own shard's offset moves; null: nobody has asked. */
  #move: { readonly moved: Promise<void>; readonly tell: () => void } | null = null

  constructor(options: IndexWaitingOptions) {
    this.#options = options
  }

  /** Requests that wait. */
  get waiting(): number {
    return this.#waiting
  }

  get life(): number {
    return this.#options.live() ?? 0
  }

  unready(): string | null {
    if (this.#options.live() !== null) return null
    return 'the graph index is being filled from the journal; it answers when it is complete'
  }

  head(shard: number): number {
    // Only the owner knows; a made-up position of another's shard is waited for in vain.
    return this.#options.head(shard) ?? Number.POSITIVE_INFINITY
  }

  /** An own shard's offset has moved. */
  applied(): void {
    this.#move?.tell()
    this.#move = null
  }

  reached(positions: readonly Position[], waitMs: number): Promise<boolean> | true {
    const awaited = positions.filter(({ shard }) => this.#options.follows(shard))
    this.#turn()
    if (this.#isRefreshed(awaited)) return true
    if (this.#waiting >= LIMITS.consistencyWaitersMax) {
      throw new RequestError(
        'TOO_BUSY',
        `${LIMITS.consistencyWaitersMax} requests wait for the graph index already`,
      )
    }
    this.#waiting++
    return this.#wait(awaited, waitMs).finally(() => this.#waiting--)
  }

  async #wait(positions: readonly Position[], waitMs: number): Promise<boolean> {
    const { clock } = this.#options
    const endMs = clock.monotonicMs() + waitMs
    for (;;) {
      this.#turn()
      if (this.#isRefreshed(positions)) return true
      const leftMs = endMs - clock.monotonicMs()
      if (leftMs <= 0) return false
      if (this.#isIndexed(positions)) await this.#orAfter(leftMs, this.#refresh())
      else await this.#orAfter(Math.min(leftMs, LIMITS.indexPollMs), this.#look(positions))
    }
  }

  /** Another generation is read: what is known of the one before says nothing of it. */
  #turn(): void {
    const live = this.#options.live() ?? 0
    if (live === this.#generation) return
    this.#generation = live
    this.#stored.clear()
    this.#refreshed.clear()
  }

  #isRefreshed(positions: readonly Position[]): boolean {
    if (this.#options.live() === null) return false
    return positions.every(({ shard, offset }) => (this.#refreshed.get(shard) ?? 0) >= offset)
  }

  #isIndexed(positions: readonly Position[]): boolean {
    if (this.#options.live() === null) return false
    return positions.every(({ shard, offset }) => this.#known(shard) >= offset)
  }

  #known(shard: number): number {
    return Math.max(this.#options.applied(shard) ?? 0, this.#stored.get(shard) ?? 0)
  }

  /** Whatever comes first; never rejects: what fails is tried again a little later. */
  #orAfter(ms: number, first: Promise<void>): Promise<void> {
    const { clock } = this.#options
    return new Promise((resolve) => {
      let cancel = clock.after(ms, resolve)
      first.then(
        () => {
          cancel()
          resolve()
        },
        () => {
          cancel()
          cancel = clock.after(Math.min(ms, LIMITS.indexRefreshGapMs), resolve)
        },
      )
    })
  }

  /** Until an own shard moves; of others the offsets are read again, after a while. */
  async #look(positions: readonly Position[]): Promise<void> {
    const others = positions.filter(
      ({ shard, offset }) => this.#options.applied(shard) === null && this.#known(shard) < offset,
    )
    if (others.length > 0) {
      await Promise.all(others.map(({ shard }) => this.#read(shard)))
      if (this.#isIndexed(positions)) return
    }
    if (this.#move === null) {
      const { promise: moved, resolve: tell } = Promise.withResolvers<void>()
      this.#move = { moved, tell }
    }
    await this.#move.moved
  }

  /** One read of a shard's offset at a time, for all who wait for it. */
  #read(shard: number): Promise<void> {
    const { stored } = this.#options
    const generation = this.#generation
    const read =
      this.#reads.get(shard) ??
      stored(generation, shard)
        .then((offset) => {
          if (generation === this.#generation) this.#stored.set(shard, offset ?? 0)
        })
        .finally(() => this.#reads.delete(shard))
    this.#reads.set(shard, read)
    return read
  }

  /** A refresh that begins from now on; not too soon after the one before. */
  #refresh(): Promise<void> {
    this.#nextRefresh ??= this.#refreshInTime()
    return this.#nextRefresh
  }

  async #refreshInTime(): Promise<void> {
    const { clock, refresh } = this.#options
    const earliestMs = this.#refreshedAtMs + LIMITS.indexRefreshGapMs
    const restMs = earliestMs - clock.monotonicMs()
    // Never at once: who asks in this tick is still in time for it.
    await new Promise<void>((resolve) => {
      if (restMs > 0) clock.after(restMs, resolve)
      else clock.defer(resolve)
    })
    this.#nextRefresh = null
    this.#refreshedAtMs = clock.monotonicMs()
    const generation = this.#generation
    const covered = this.#offsets()
    await refresh(generation)
    if (generation !== this.#generation) return
    for (const [shard, offset] of covered) {
      this.#refreshed.set(shard, Math.max(offset, this.#refreshed.get(shard) ?? 0))
    }
  }

  /** All that is known to be in the index now. */
  #offsets(): Map<number, number> {
    const offsets = new Map<number, number>()
    for (const shard of this.#shards()) offsets.set(shard, this.#known(shard))
    return offsets
  }

  *#shards(): Generator<number> {
    yield* this.#stored.keys()
    for (let shard = 0; this.#options.follows(shard); shard++) yield shard
  }

  async recorded(positions: readonly Position[], waitMs: number): Promise<boolean> {
    const { clock, flushed, follows } = this.#options
    const endMs = clock.monotonicMs() + waitMs
    for (const { shard, offset } of positions) {
      if (!follows(shard)) continue
      while ((await flushed(shard)) < offset) {
        if (clock.monotonicMs() >= endMs) return false
        await new Promise<void>((resolve) => void clock.after(LIMITS.indexPollMs, resolve))
      }
    }
    return true
  }
}
