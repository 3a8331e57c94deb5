// Waiting for the graph index of a cluster: a request that names positions sleeps until the index
// has come there and was refreshed since. Own shards tell by themselves; those of other members are
// asked of the journal, where their offsets stand. Source: PROTOCOL 3.13.6.

import { RequestError } from '../../../protocol/errors.ts'
import { type Position, SYSTEM_SHARD } from '../../../protocol/ids.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { Clock } from '../../../cluster/clock.ts'
import type { IndexWatch } from '../../graph/graph.ts'
import { LackingPositions } from '../lacking-positions.ts'

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

interface Waiter {
  readonly positions: readonly Position[]
  readonly end: (isThere: boolean) => void
}

/** What those who wait want of a shard. */
interface Wanted {
  positions: number
  /** The highest offset that a waiting request wants. */
  highest: number
}

/** Offsets of the generation that is read: as they were last read, and as they are refreshed. */
interface Known {
  readonly generation: number
  readonly stored: Map<number, number>
  readonly refreshed: Map<number, number>
}

export class IndexWaiting implements IndexWatch {
  readonly #options: IndexWaitingOptions
  /** Each is here once, from when it comes until it is answered. */
  readonly #waiters = new Set<Waiter>()
  /** Those of them that lack something in the index; the others are covered by a refresh. */
  #lacking: LackingPositions<Waiter>
  /** All is in the index: the next refresh covers them. */
  #due = new Set<Waiter>()
  readonly #wanted = new Map<number, Wanted>()
  #known: Known = { generation: 0, stored: new Map(), refreshed: new Map() }
  /** Shards whose stored offsets are being read. */
  readonly #reading = new Set<number>()
  /** One look serves all that wait, and ends when none does. */
  #isLooking = false
  #isRefreshDue = false
  #refreshedAtMs = Number.NEGATIVE_INFINITY

  constructor(options: IndexWaitingOptions) {
    this.#options = options
    this.#lacking = this.#none()
  }

  #none(): LackingPositions<Waiter> {
    return new LackingPositions((shard) => this.#offsetOf(shard))
  }

  /** Requests that wait. */
  get waiting(): number {
    return this.#waiters.size
  }

  get generation(): number {
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

  /** Offsets of own shards have moved. */
  applied(): void {
    if (this.#waiters.size > 0) this.#serve()
  }

  reached(positions: readonly Position[], waitMs: number): Promise<boolean> | true {
    this.#follow()
    const awaited = positions.filter(({ shard }) => this.#options.follows(shard))
    if (this.#isRefreshed(awaited)) return true
    if (this.#waiters.size >= LIMITS.indexing.consistencyWaitersMax) {
      throw new RequestError(
        'TOO_BUSY',
        `${LIMITS.indexing.consistencyWaitersMax} requests wait for the graph index already`,
      )
    }
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(Math.max(0, waitMs), () => this.#end(waiter, false))
      const waiter: Waiter = {
        positions: awaited,
        end: (isThere) => {
          cancel()
          resolve(isThere)
        },
      }
      this.#waiters.add(waiter)
      this.#want(awaited)
      this.#place(waiter)
      if (!this.#isLooking) this.#look()
    })
  }

  #end(waiter: Waiter, isThere: boolean): void {
    this.#waiters.delete(waiter)
    this.#lacking.remove(waiter)
    this.#due.delete(waiter)
    for (const { shard } of waiter.positions) {
      if (--this.#wanted.get(shard)!.positions === 0) this.#wanted.delete(shard)
    }
    waiter.end(isThere)
  }

  #want(positions: readonly Position[]): void {
    for (const { shard, offset } of positions) {
      const wanted = this.#wanted.get(shard)
      if (wanted === undefined) this.#wanted.set(shard, { positions: 1, highest: offset })
      else {
        wanted.positions++
        wanted.highest = Math.max(wanted.highest, offset)
      }
    }
  }

  /** What is known of a generation says nothing of the next one: all who wait begin again. */
  #follow(): void {
    const generation = this.#options.live() ?? 0
    if (generation === this.#known.generation) return
    this.#known = { generation, stored: new Map(), refreshed: new Map() }
    this.#lacking = this.#none()
    this.#due = new Set()
    for (const waiter of this.#waiters) this.#place(waiter)
  }

  /** By what it waits for: a position, the next refresh, or that an index can be read at all. */
  #place(waiter: Waiter): void {
    if (this.#isRefreshed(waiter.positions)) this.#end(waiter, true)
    else if (this.#known.generation !== 0 && !this.#lacking.add(waiter)) this.#indexed(waiter)
  }

  #indexed(waiter: Waiter): void {
    if (this.#isRefreshed(waiter.positions)) return this.#end(waiter, true)
    this.#due.add(waiter)
    this.#refreshSoon()
  }

  #isRefreshed(positions: readonly Position[]): boolean {
    const { generation, refreshed } = this.#known
    if (generation === 0) return false
    return positions.every(({ shard, offset }) => (refreshed.get(shard) ?? 0) >= offset)
  }

  #offsetOf(shard: number): number {
    return Math.max(this.#options.applied(shard) ?? 0, this.#known.stored.get(shard) ?? 0)
  }

  #serve(): void {
    this.#follow()
    for (const waiter of this.#lacking.moved()) this.#indexed(waiter)
  }

  /** Own shards tell by themselves; of others the offsets are read again, for all who wait. */
  #look(): void {
    this.#serve()
    this.#isLooking = this.#waiters.size > 0
    if (!this.#isLooking) return
    this.#options.clock.after(LIMITS.indexing.pollMs, () => this.#look())
    const reads = Array.from(this.#missing(), (shard) => this.#read(shard))
    if (reads.length > 0) void Promise.all(reads).then(() => this.#serve())
  }

  /** Shards of others that somebody waits for. */
  #missing(): number[] {
    const missing: number[] = []
    if (this.#known.generation === 0) return missing
    for (const [shard, { highest }] of this.#wanted) {
      if (this.#reading.has(shard) || this.#options.applied(shard) !== null) continue
      if (this.#offsetOf(shard) < highest) missing.push(shard)
    }
    return missing
  }

  /** Never rejects: what fails is read again with the next look. */
  async #read(shard: number): Promise<void> {
    const { generation, stored } = this.#known
    this.#reading.add(shard)
    try {
      stored.set(shard, (await this.#options.stored(generation, shard)) ?? 0)
    } catch {
      // The journal is away: the offset stays unknown.
    } finally {
      this.#reading.delete(shard)
    }
  }

  /** A refresh that begins from now on; not too soon after the one before. */
  #refreshSoon(): void {
    if (this.#isRefreshDue) return
    this.#isRefreshDue = true
    const { clock } = this.#options
    const restMs = this.#refreshedAtMs + LIMITS.indexing.refreshGapMs - clock.monotonicMs()
    // Never at once: who asks in this tick is still in time for it.
    if (restMs > 0) clock.after(restMs, () => void this.#refresh())
    else clock.defer(() => void this.#refresh())
  }

  /** Never rejects: who waited for one that failed asks for another. */
  async #refresh(): Promise<void> {
    const { clock, refresh } = this.#options
    this.#follow()
    this.#isRefreshDue = false
    // Those who wanted it have gone.
    if (this.#due.size === 0) return
    this.#refreshedAtMs = clock.monotonicMs()
    const known = this.#known
    const { generation, refreshed } = known
    const waiters = this.#due
    this.#due = new Set()
    const covered = this.#offsets()
    try {
      await refresh(generation)
      for (const [shard, offset] of covered) {
        refreshed.set(shard, Math.max(offset, refreshed.get(shard) ?? 0))
      }
    } catch {
      // The engine is away: nothing is known to be seen.
    }
    this.#follow()
    // Where another generation is read by now all have their places in it.
    if (known === this.#known) {
      for (const waiter of waiters) if (this.#waiters.has(waiter)) this.#place(waiter)
    }
    this.#serve()
  }

  /** All that is known to be in the index now. */
  #offsets(): Map<number, number> {
    const offsets = new Map<number, number>()
    for (let shard = SYSTEM_SHARD; this.#options.follows(shard); shard++) {
      offsets.set(shard, this.#offsetOf(shard))
    }
    return offsets
  }

  async recorded(positions: readonly Position[], waitMs: number): Promise<boolean> {
    const { clock, flushed, follows } = this.#options
    const endMs = clock.monotonicMs() + waitMs
    for (const { shard, offset } of positions) {
      if (!follows(shard)) continue
      while ((await flushed(shard)) < offset) {
        if (clock.monotonicMs() >= endMs) return false
        await new Promise<void>((resolve) => void clock.after(LIMITS.indexing.pollMs, resolve))
      }
    }
    return true
  }
}
