// Fills one generation of the graph index from the shards that a member owns, as a consumer of the
// feed. While the search engine or the journal is away writes of orders go on, and what comes then
// is the newest state only. Source: PROTOCOL 3.13.1, 3.13.4.

import type { Behaviour } from '../../../protocol/behaviour.ts'
import type { Log } from '../../../protocol/log.ts'
import { Outage } from '../../../protocol/outage.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { Clock } from '../../../cluster/clock.ts'
import { ConsumerLoop, type Next } from '../../../cluster/feed/consumer-loop.ts'
import type { RecentRows } from '../../../cluster/feed/recent-rows.ts'
import { type ParkedActor, encodeParked } from '../../../cluster/feed/projection-batch.ts'
import { Projector } from '../../../cluster/feed/projector.ts'
import type { ProjectorLimits } from '../../../cluster/feed/projector-options.ts'
import type { DecodeSnapshot } from '../../../cluster/feed/actor-states.ts'
import type { SearchEngine } from '../../../storage/elastic/engine.ts'
import type { Layout } from '../../../storage/elastic/layout.ts'
import { ElasticWriter } from '../../../storage/elastic/writer.ts'
import type { DerivedStore } from '../../../storage/journal.ts'
import { IndexAway, IndexGone } from '../../../storage/search.ts'
import { consumerOf, type IndexRegisters } from './index-registers.ts'

export interface IndexFeedOptions {
  readonly generation: number
  readonly engine: SearchEngine
  /** As far as this generation's mappings go. */
  readonly layout: Layout
  /** Node types that are kept as rows. */
  readonly rows: ReadonlySet<string>
  readonly writeAliasOf: (name: string) => string
  readonly behaviours: ReadonlyMap<string, Behaviour>
  readonly decodeSnapshot: DecodeSnapshot
  readonly derived: DerivedStore
  readonly recent: RecentRows
  readonly registers: IndexRegisters
  /** Number of shards beside `system`. */
  readonly shards: number
  /** Newest committed offset of an own shard. */
  readonly headOf: (shard: number) => number
  /** An own shard is served, and this member's lease stands: nobody else has committed in it. */
  readonly serves: (shard: number) => boolean
  readonly clock: Clock
  readonly log: Log
  readonly stats: FeedStats
  /** The index has moved. */
  readonly onApplied: () => void
  /** Somebody waits for the index: no time is spent on gathering. */
  readonly isAwaited: () => boolean
}

/** Totals since the start, of all generations. */
export interface FeedStats {
  entries: number
  writes: number
  batches: number
  batchMs: number
  failures: number
  /** From which it was filled. */
  actors: number
  /** Shards that a generation could not go on with: it is made anew. */
  gone: number
}

/** One of the shards whose content is written has, or may have, another owner by now. */
class NotServed extends IndexAway {}

/** Small enough that requests in between don't notice. */
const BATCH: Partial<ProjectorLimits> = {
  entries: LIMITS.indexing.clusterBatchEntries,
  ms: LIMITS.indexing.clusterBatchMs,
}

/** How often the feed looks whether a request has begun to wait. */
const GATHER_STEP_MS = 10

export class IndexFeed {
  readonly generation: number
  readonly #options: IndexFeedOptions
  readonly #projector: Projector
  /** Shards that are ours; `gone`: this generation can't go on with it. */
  readonly #shards = new Map<number, 'gained' | 'followed' | 'gone'>()
  /** Of which the step that is under way writes. */
  #writing: readonly number[] = []
  readonly #loop: ConsumerLoop
  readonly #outage: Outage
  readonly #ended: Promise<void>

  constructor(options: IndexFeedOptions) {
    this.#options = options
    this.generation = options.generation
    const { clock, isAwaited } = options
    this.#loop = new ConsumerLoop({
      after: (ms, run) => clock.after(ms, run),
      defer: (run) => clock.defer(run),
      gatherStepMs: GATHER_STEP_MS,
      consumer: { step: () => this.#step(), isAwaited },
    })
    this.#projector = this.#makeProjector()
    this.#outage = new Outage({
      log: options.log,
      now: () => options.clock.monotonicMs(),
      failing: 'the graph index could not go on; it tries again',
      back: 'the graph index goes on',
    })
    this.#ended = this.#loop.run()
  }

  #makeProjector(): Projector {
    const { generation, engine, layout, rows, writeAliasOf, registers, clock } = this.#options
    const { behaviours, decodeSnapshot, derived, recent, shards } = this.#options
    const writer = new ElasticWriter({
      engine,
      layout,
      rows,
      writeAliasOf,
      nowMs: () => clock.nowMs(),
      pause: (ms) => this.#loop.pause(ms),
      beforeBulk: () => this.#checkServed(),
      async saveOffsets(offsets) {
        const save = offsets.map((at) => registers.setOffset(generation, at.shard, at.offset))
        await Promise.all(save)
      },
      async saveFills(fills) {
        await Promise.all(fills.map((fill) => registers.setFill(generation, fill)))
      },
    })
    return new Projector({
      behaviours,
      log: recent,
      derived,
      index: writer,
      decodeSnapshot,
      shards,
      park: (parked) => this.#park(parked),
      unpark: (parked) => this.#keepRow(parked, null),
      pause: () => new Promise((resolve) => clock.defer(resolve)),
      sliceMs: LIMITS.indexing.clusterSliceMs,
      clock: () => clock.monotonicMs(),
      limits: BATCH,
      consumer: consumerOf(generation),
      shared: true,
    })
  }

  /** As far as the generation's mappings go. */
  get layout(): Layout {
    return this.#options.layout
  }

  gained(shard: number): void {
    this.#shards.set(shard, 'gained')
    this.wake()
  }

  lost(shard: number): void {
    this.#shards.delete(shard)
    this.#projector.lost(shard)
  }

  /** Done up to and including, durably; null: it isn't known yet. */
  applied(shard: number): number | null {
    if (this.#shards.get(shard) !== 'followed') return null
    return this.#projector.offsets.get(shard) ?? null
  }

  /** The shard's log may go up to here for all that this generation needs of it. */
  doneWith(shard: number): number {
    const state = this.#shards.get(shard)
    if (state === 'gone') return Number.POSITIVE_INFINITY
    return state === 'followed' ? this.#projector.doneWith(shard) : 0
  }

  appliedTimeMs(shard: number): number {
    return this.#projector.timesMs.get(shard) ?? 0
  }

  get parkedCount(): number {
    return this.#projector.parkedCount
  }

  retryParked(actorId?: string): void {
    this.#projector.retryParked(actorId)
    this.wake()
  }

  /** There are new heads, or something to try again. */
  wake(): void {
    this.#loop.wake()
  }

  /** Ends after the batch that is under way. */
  async stop(): Promise<void> {
    this.#loop.stop()
    await this.#ended
  }

  async #step(): Promise<Next> {
    const { clock, stats } = this.#options
    const startedMs = clock.monotonicMs()
    try {
      await this.#follow()
      const heads = this.#heads()
      this.#writing = [...heads.keys()]
      const step = await this.#projector.step(heads)
      stats.actors += step.actors
      if (step.entries > 0) {
        stats.entries += step.entries
        stats.writes += step.writes
        stats.batches++
        this.#outage.answered()
        stats.batchMs += clock.monotonicMs() - startedMs
      }
      this.#options.onApplied()
      return step.next === 'idle' && this.#isHeld ? 'later' : step.next
    } catch (error) {
      if (error instanceof NotServed) return 'later'
      await this.#failed(error)
      return 'failed'
    }
  }

  /** Shards that were gained are followed from where the index has them. */
  async #follow(): Promise<void> {
    const { registers, generation, headOf } = this.#options
    for (const [shard, state] of this.#shards) {
      if (state !== 'gained') continue
      const offset = await registers.offset(generation, shard)
      const fill = offset === null ? await registers.fill(generation, shard) : null
      if (this.#shards.get(shard) !== 'gained') continue
      await this.#projector.gained(shard, offset, headOf(shard), fill)
      if (this.#shards.has(shard)) this.#shards.set(shard, 'followed')
      else this.#projector.lost(shard)
    }
  }

  #heads(): Map<number, number> {
    const heads = new Map<number, number>()
    for (const shard of this.#shards.keys()) {
      if (this.#isServed(shard)) heads.set(shard, this.#options.headOf(shard))
    }
    return heads
  }

  #isServed(shard: number): boolean {
    return this.#shards.get(shard) === 'followed' && this.#options.serves(shard)
  }

  /** A shard is ours and can't be served now: nobody tells when it can. */
  get #isHeld(): boolean {
    const { serves } = this.#options
    return [...this.#shards].some(([shard, is]) => is === 'followed' && !serves(shard))
  }

  /**
   * A member that slept for a day would write what another has removed since, and of removals so
   * old the index may know nothing any more (PROTOCOL 3.13.3).
   */
  #checkServed(): void {
    if (!this.#writing.every((shard) => this.#isServed(shard)))
      throw new NotServed('a shard is not served here now')
  }

  async #failed(error: unknown): Promise<void> {
    const { log, stats, generation } = this.#options
    if (this.#loop.isStopped) return
    stats.failures++
    if (!(error instanceof IndexGone)) {
      this.#outage.failed({ err: error, generation })
      return
    }
    stats.gone++
    log.error({ err: error, generation }, 'the graph index could not go on; another one is filled')
    await this.#tellGone(error.shard)
  }

  /** Who sees to the index has to make another: this one has a hole, or is not there. */
  async #tellGone(only: number | null): Promise<void> {
    const { registers, generation, log } = this.#options
    const shards = only === null ? [...this.#shards.keys()] : [only]
    try {
      for (const shard of shards) {
        await registers.setGone(generation, shard)
        if (only !== null && this.#shards.has(shard)) this.#shards.set(shard, 'gone')
      }
    } catch (error) {
      log.warn({ err: error, generation }, 'could not tell that the graph index is gone')
    }
  }

  async #park(parked: ParkedActor): Promise<void> {
    const { actorId: actor, shard, offset, reason } = parked
    this.#options.log.error(
      { actor, shard, offset, reason },
      'an actor can not be shown in the graph; it is parked, the others go on',
    )
    await this.#keepRow(parked, encodeParked(parked))
  }

  async #keepRow(parked: ParkedActor, body: Uint8Array | null): Promise<void> {
    const { actorId, shard, offset } = parked
    const { registers, generation } = this.#options
    // The row moves forward only, by offset: what clears it must not be older than what wrote it.
    const at = Math.max(offset, this.#projector.offsets.get(shard) ?? 0)
    const consumer = consumerOf(generation)
    await registers.write(shard, [{ kind: 'parked', consumer, actorId, body, offset: at }])
  }
}
