// The graph index of a member in a cluster: follows the shards that it owns into the search engine,
// waits for what others have written, and runs plans. It stands between the member, which gains and
// loses shards, and the index driver. Source: PROTOCOL 3.11, 3.13.

import type { Behaviour } from '../../protocol/behaviour.ts'
import type { GraphSchema } from '../../protocol/graph/schema.ts'
import type { Log } from '../../protocol/log.ts'
import type { Clock } from '../../cluster/clock.ts'
import type { Lag } from '../../cluster/feed/lag.ts'
import type { OnCommitted } from '../../cluster/sharding/core.ts'
import type { SearchEngine } from '../../storage/elastic/engine.ts'
import type { Journal } from '../../storage/journal.ts'
import type { IndexWatch, PlanRunner } from './graph.ts'

export interface ClusterIndexOptions {
  readonly journal: Pick<Journal, 'identity' | 'log' | 'derived'>
  readonly engine: SearchEngine
  /** Put before every index name. */
  readonly prefix: string
  readonly schema: GraphSchema
  readonly behaviours: ReadonlyMap<string, Behaviour>
  readonly clock: Clock
  readonly log: Log
  /** Offset up to which an own shard's derived rows are written; null: not an own one. */
  readonly flushed: (shard: number) => number | null
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
  /** The log may be trimmed up to here for all that the index needs of it. */
  applied(shard: number): number
  readonly watch: IndexWatch
  readonly runner: PlanRunner
  /** How far the index is behind the own shards' logs. */
  lag(): Lag
  /** Lets parked actors be projected again: all, or one (PROTOCOL 3.11). */
  retryParked(actorId?: string): void
  close(): Promise<void>
}

/** Starts it with no shards. Nothing is asked of the engine here: it may be away. */
export type StartClusterIndex = (options: ClusterIndexOptions) => ClusterIndex
