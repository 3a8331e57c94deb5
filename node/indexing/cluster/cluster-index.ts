// The graph index of a member in a cluster: follows the shards that it owns into the search engine,
// waits for what others have written, and runs plans. The member gains and loses shards. All of it
// runs on the member's own clock and thread: what it costs is bounded by small batches that give
// way. Source: PROTOCOL 3.11, 3.13.

import type { Behaviour } from '../../../protocol/behaviour.ts'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import type { Log } from '../../../protocol/log.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { Clock } from '../../../cluster/clock.ts'
import type { DecodeSnapshot } from '../../../cluster/feed/actor-states.ts'
import { type Lag, LagMeter } from '../../../cluster/feed/lag.ts'
import { RecentRows } from '../../../cluster/feed/recent-rows.ts'
import { decodeSnapshot as decodeOwnSnapshot } from '../../../cluster/sharding/turn/activation.ts'
import type { OnCommitted } from '../../../cluster/sharding/core.ts'
import type { SearchEngine } from '../../../storage/elastic/engine.ts'
import { type Generation, Generations } from '../../../storage/elastic/generations.ts'
import { type Layout, layoutOf } from '../../../storage/elastic/layout.ts'
import { ElasticReader } from '../../../storage/elastic/reader.ts'
import type { Journal, Maybe } from '../../../storage/journal.ts'
import type { IndexWatch, PlanRunner } from '../../graph/graph.ts'
import type { LiveSchema, SchemaVersion } from '../../graph/live-schema.ts'
import { cursorSeal } from '../../graph/cursors.ts'
import { remoteHistory } from '../../graph/history.ts'
import { type FeedStats, IndexFeed } from './index-feed.ts'
import { IndexKeeper, type IndexView } from './index-keeper.ts'
import { IndexRegisters } from './index-registers.ts'
import { IndexWaiting } from './index-waiting.ts'
import type { IndexRebuild } from '../rebuild.ts'
import { ClusterRebuild } from './cluster-rebuild.ts'
import { ServedSchema } from '../served-schema.ts'
import { FoundVersions } from './found-versions.ts'
import { PlanPool, type PlanStats } from '../../graph/plans/plan-pool.ts'

export interface ClusterIndexOptions {
  readonly journal: Pick<Journal, 'identity' | 'log' | 'derived'>
  /** Closed with the index. */
  readonly engine: SearchEngine
  /** Put before every index name. */
  readonly prefix: string
  /** A change of it that lays the index out anew has a generation made for it. */
  readonly schema: LiveSchema
  readonly behaviours: ReadonlyMap<string, Behaviour>
  readonly clock: Clock
  readonly log: Log
  /** Offset up to which an own shard's derived rows are written; null: not an own one. */
  readonly flushed: (shard: number) => number | null
  /** True while this member serves the shard under its lease: nobody else can have committed. */
  readonly serves: (shard: number) => boolean
  /** How snapshots are read; the runtime's own by default. */
  readonly decodeSnapshot?: DecodeSnapshot
}

/** What the member tells its index, and what others ask of it. */
export interface ClusterIndex {
  /**
   * The shard is served here from now, in this epoch; its log is committed up to `head`. Who has
   * `system` also sees to it that the index is the right one for all (PROTOCOL 3.13.5).
   */
  gained(shard: number, epoch: number, head: number): void
  /** It is no longer ours; what is under way for it is harmless. */
  lost(shard: number): void
  /** A group of an own shard, in order, at once. */
  readonly committed: OnCommitted
  /** Offset up to which the index, and one that is filled beside it, hold an own shard. */
  applied(shard: number): number
  /** An own shard's log may be trimmed up to here for all that they need of it (PROTOCOL 3.12). */
  doneWith(shard: number): number
  /** Offset up to which the index that is read holds any shard; null: unknown. */
  indexed(shard: number): Maybe<number | null>
  readonly watch: IndexWatch
  readonly rebuild: IndexRebuild
  readonly runner: PlanRunner
  /** Version of the schema that the generation that is read was made for. */
  readonly served: SchemaVersion
  /** The engine can't be asked: graph requests are refused, everything else goes on. */
  readonly isAway: boolean
  /** How far the index is behind the own shards' logs. */
  lag(): Lag
  readonly numbers: IndexNumbers
  /** Lets parked actors be projected again: all, or one (PROTOCOL 3.11). */
  retryParked(actorId?: string): void
  close(): Promise<void>
}

/** What it shows of itself; totals since the start. */
export interface IndexNumbers {
  readonly feed: Readonly<FeedStats>
  readonly plans: Readonly<PlanStats>
  /** Generation that is read; 0: none. */
  readonly generation: number
  /** Actors of own shards that can't be shown. */
  readonly parked: number
  /** Requests that wait for the index. */
  readonly waiting: number
  /** Plans that run or wait. */
  readonly planned: number
}

/** Starts it with no shards. Nothing has to be there yet: the engine may be away. */
export function startClusterIndex(options: ClusterIndexOptions): ClusterIndex {
  return new MemberIndex(options)
}

interface Own {
  readonly epoch: number
  head: number
}

class MemberIndex implements ClusterIndex {
  readonly watch: IndexWaiting
  readonly rebuild: ClusterRebuild
  readonly runner: PlanPool
  readonly #options: ClusterIndexOptions
  #layout: Layout
  #generations: Generations
  readonly #served: ServedSchema
  readonly #found: FoundVersions
  readonly #unfollow: () => void
  readonly #registers: IndexRegisters
  readonly #recent: RecentRows
  readonly #meter: LagMeter
  readonly #keeper: IndexKeeper
  readonly #own = new Map<number, Own>()
  readonly #feeds = new Map<number, IndexFeed>()
  readonly #ending = new Set<Promise<void>>()
  readonly #readers = new Map<number, ElasticReader>()
  readonly #stats: FeedStats = {
    entries: 0,
    writes: 0,
    batches: 0,
    batchMs: 0,
    failures: 0,
    actors: 0,
    gone: 0,
  }
  #live: number | null = null
  #liveFingerprint: string | null = null
  #closed = false

  constructor(options: ClusterIndexOptions) {
    const { journal, engine, prefix, schema, clock } = options
    this.#unfollow = schema.follow((version) => this.#follow(version))
    this.#options = options
    this.#layout = layoutOf(schema.current.schema)
    this.#served = new ServedSchema(schema.current, this.#layout.fingerprint)
    this.#found = new FoundVersions(this.#served, schema)
    const store = journal.identity.generation
    this.#generations = new Generations({ engine, prefix, layout: this.#layout, store })
    this.#registers = new IndexRegisters(journal.derived, (s) => this.#own.get(s)?.epoch ?? null)
    this.#recent = new RecentRows(journal.log, LIMITS.indexing.recentRowsBytesMax)
    const progress = {
      applied: (shard: number) => this.#liveFeed?.applied(shard) ?? 0,
      appliedTimeMs: (shard: number) => this.#liveFeed?.appliedTimeMs(shard) ?? 0,
    }
    this.#meter = new LagMeter(progress, () => clock.nowMs())
    this.watch = this.#makeWatch()
    this.rebuild = new ClusterRebuild({
      registers: this.#registers,
      journal: journal.log,
      shards: journal.identity.shards,
      own: () => [...this.#own.keys()].filter((shard) => this.#follows(shard)),
      nowMs: () => clock.nowMs(),
    })
    this.runner = new PlanPool({ readerOf: (generation) => this.#readerOf(generation), clock })
    this.#keeper = this.#makeKeeper(store)
  }

  get #decodeSnapshot(): DecodeSnapshot {
    return this.#options.decodeSnapshot ?? decodeOwnSnapshot
  }

  get #liveFeed(): IndexFeed | null {
    return this.#live === null ? null : (this.#feeds.get(this.#live) ?? null)
  }

  #follows(shard: number): boolean {
    return shard >= SYSTEM_SHARD && shard < this.#options.journal.identity.shards
  }

  #makeWatch(): IndexWaiting {
    const { clock, flushed, journal, engine } = this.#options
    return new IndexWaiting({
      clock,
      live: () => this.#live,
      applied: (shard) => this.#liveFeed?.applied(shard) ?? null,
      stored: (generation, shard) => this.#registers.offset(generation, shard),
      refresh: (generation) =>
        engine.refresh(this.#indexes(generation), { timeoutMs: LIMITS.indexing.consistencyWaitMs }),
      follows: (shard) => this.#follows(shard),
      head: (shard) => this.#headOf(shard),
      flushed: async (shard) =>
        flushed(shard) ?? (await journal.derived.consumer(shard, 'flush')) ?? 0,
    })
  }

  /**
   * Newest offset of a shard; null: not known here. Who has lost a shard and not heard of it must
   * not take for made up what its next owner has acknowledged.
   */
  #headOf(shard: number): number | null {
    const { serves } = this.#options
    if (!this.#follows(shard) || !serves(shard)) return null
    return this.#own.get(shard)?.head ?? null
  }

  #makeKeeper(store: string): IndexKeeper {
    const { engine, journal, clock, log } = this.#options
    return new IndexKeeper({
      generations: this.#generations,
      registers: this.#registers,
      engine,
      journal: journal.log,
      layout: this.#layout,
      store,
      shards: journal.identity.shards,
      isInCharge: () => this.#own.has(SYSTEM_SHARD),
      clock,
      log,
      onView: (view) => this.#view(view),
    })
  }

  /** All indexes of a generation; node types that another version doesn't know have none. */
  #indexes(generation: number): string[] {
    const layout = this.#feeds.get(generation)?.layout ?? this.#layout
    const indexOf = (name: string): string => this.#generations.indexOf(generation, name)
    return Array.from(layout.nodes.values(), ({ name }) => indexOf(name))
  }

  #readerOf(generation: number): ElasticReader {
    const known = this.#readers.get(generation)
    if (known !== undefined) return known
    const { engine, behaviours, journal, clock } = this.#options
    const { schema } = this.served
    const isForeign = layoutOf(schema).fingerprint !== this.#liveFingerprint
    const reader = new ElasticReader({
      ...{ engine, schema, isForeign },
      indexOf: (name) => this.#generations.indexOf(generation, name),
      history: remoteHistory({
        behaviours,
        derived: journal.derived,
        decodeSnapshot: this.#decodeSnapshot,
      }),
      now: () => clock.monotonicMs(),
      cursors: cursorSeal(journal.identity.secret),
    })
    this.#readers.clear()
    this.#readers.set(generation, reader)
    return reader
  }

  get served(): SchemaVersion {
    return this.#served.version
  }

  /** The index that is read goes on as it is, until its successor has all that it had. */
  #follow(version: SchemaVersion): void {
    const { engine, prefix, journal } = this.#options
    const before = this.#layout.fingerprint
    this.#layout = layoutOf(version.schema)
    this.#served.keep(version, this.#layout.fingerprint)
    if (this.#layout.fingerprint === before) return this.#serve(this.#liveFingerprint)
    const store = journal.identity.generation
    this.#generations = new Generations({ engine, prefix, layout: this.#layout, store })
    return this.#keeper.follow({ layout: this.#layout, generations: this.#generations })
  }

  #serve(fingerprint: string | null): void {
    const isOther = fingerprint !== this.#liveFingerprint
    this.#liveFingerprint = fingerprint
    if ((fingerprint !== null && this.#served.serve(fingerprint)) || isOther) this.#readers.clear()
  }

  /** Fills what is to be filled, reads what is to be read. */
  #view({ live, filled }: IndexView): void {
    if (this.#closed) return
    const numbers = new Set(filled.map(({ number }) => number))
    for (const generation of filled) {
      if (!this.#feeds.has(generation.number)) this.#startFeed(generation)
    }
    this.#live = live
    this.#serve(filled.find(({ number }) => number === live)?.fingerprint ?? null)
    for (const [number, feed] of this.#feeds) {
      if (numbers.has(number)) continue
      this.#feeds.delete(number)
      this.#end(feed)
    }
  }

  #startFeed(generation: Generation): void {
    const { number } = generation
    const { engine, behaviours, journal, clock, log } = this.#options
    const feed = new IndexFeed({
      generation: number,
      engine,
      layout: this.#found.learn(generation) ?? this.#generations.layoutFor(generation),
      rows: new Set(this.#layout.nodes.keys()),
      writeAliasOf: (name) => this.#generations.writeAliasOf(number, name),
      behaviours,
      decodeSnapshot: this.#decodeSnapshot,
      derived: journal.derived,
      recent: this.#recent,
      registers: this.#registers,
      shards: journal.identity.shards,
      headOf: (shard) => this.#own.get(shard)?.head ?? 0,
      serves: (shard) => this.#options.serves(shard),
      clock,
      log,
      stats: this.#stats,
      onApplied: () => {
        if (number === this.#live) this.watch.applied()
      },
      isAwaited: () => this.watch.waiting > 0,
    })
    this.#feeds.set(number, feed)
    for (const shard of this.#own.keys()) if (this.#follows(shard)) feed.gained(shard)
  }

  #end(feed: IndexFeed): void {
    const ended = feed.stop().finally(() => this.#ending.delete(ended))
    this.#ending.add(ended)
  }

  gained(shard: number, epoch: number, head: number): void {
    this.#own.set(shard, { epoch, head })
    if (shard === SYSTEM_SHARD) this.#keeper.lookNow()
    this.#recent.forget(shard)
    this.#meter.committed(shard, head)
    for (const feed of this.#feeds.values()) feed.gained(shard)
    return undefined
  }

  lost(shard: number): void {
    this.#own.delete(shard)
    this.#recent.forget(shard)
    this.#meter.forget(shard)
    for (const feed of this.#feeds.values()) feed.lost(shard)
  }

  readonly committed: OnCommitted = (shard, entries, first, body) => {
    const own = this.#own.get(shard)
    if (own === undefined || !this.#follows(shard)) return
    own.head = first + entries.length - 1
    this.#recent.add(shard, { first, count: entries.length, body })
    this.#meter.committed(shard, own.head)
    for (const feed of this.#feeds.values()) feed.wake()
  }

  applied(shard: number): number {
    if (!this.#follows(shard)) return Number.POSITIVE_INFINITY
    if (this.#feeds.size === 0) return 0
    return Math.min(...Array.from(this.#feeds.values(), (feed) => feed.applied(shard) ?? 0))
  }

  doneWith(shard: number): number {
    if (!this.#follows(shard)) return Number.POSITIVE_INFINITY
    if (this.#feeds.size === 0) return 0
    return Math.min(...Array.from(this.#feeds.values(), (feed) => feed.doneWith(shard)))
  }

  indexed(shard: number): Maybe<number | null> {
    const own = this.#liveFeed?.applied(shard) ?? null
    if (own !== null || this.#live === null) return own
    return this.#registers.offset(this.#live, shard)
  }

  get isAway(): boolean {
    return this.#keeper.isAway
  }

  lag(): Lag {
    return this.#meter.lag()
  }

  get numbers(): IndexNumbers {
    return {
      feed: this.#stats,
      plans: this.runner.stats,
      generation: this.#live ?? 0,
      parked: this.#liveFeed?.parkedCount ?? 0,
      waiting: this.watch.waiting,
      planned: this.runner.waiting,
    }
  }

  retryParked(actorId?: string): void {
    for (const feed of this.#feeds.values()) feed.retryParked(actorId)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#unfollow()
    await this.#keeper.stop()
    for (const feed of this.#feeds.values()) this.#end(feed)
    this.#feeds.clear()
    await Promise.all(this.#ending)
    await this.#options.engine.close()
  }
}
