// What the stations stand on: a member on its journal, and the graph's index. Two ways to make it,
// embedded.ts and clustered.ts, and everything above is the same. Source: ARCHITECTURE 0.

import type { World } from '../cluster/clock.ts'
import type { LogFollowers } from '../cluster/feed/log-followers.ts'
import type { Member } from '../cluster/member.ts'
import type { ActorQuery, HookTable } from '../cluster/sharding/core.ts'
import type { Settings } from '../config/settings.ts'
import type { Behaviour } from '../protocol/behaviour.ts'
import type { Log } from '../protocol/log.ts'
import type { Journal, Maybe } from '../storage/journal.ts'
import type { SecretsKeyNames } from '../storage/secrets-key.ts'
import type { IndexWatch, PlanRunner } from './graph/graph.ts'
import type { LiveSchema, SchemaVersion } from './graph/live-schema.ts'
import type { Check } from './health/routes.ts'
import type { Position, StuckShardWatch } from './health/stuck-shards.ts'
import type { IndexRebuild } from './indexing/rebuild.ts'
import type { Metrics } from './metrics.ts'

export interface FoundationOptions {
  readonly settings: Settings
  readonly log: Log
  readonly version: string
  readonly world: World
  readonly behaviours: readonly Behaviour[]
  readonly schema: LiveSchema
  readonly query: ActorQuery
  /**
   * Follows what is configured, from before an index is laid out by it: the maps may be empty yet,
   * and then tell all that comes.
   */
  readonly learn: (system: Member['system']) => void
  /** The keys that this process has for the store's secrets. */
  readonly secretsKeys: SecretsKeyNames
  /** The process can't go on: a failed flush, a store that another process has taken. */
  readonly onFatal: (error: Error) => void
}

export interface Foundation {
  readonly journal: Journal
  readonly member: Member
  /** Where followers of the feed beside the index are begun (PROTOCOL 3.13.9). */
  readonly followers: LogFollowers
  readonly watch: IndexWatch
  readonly runner: PlanRunner
  /** Version of the schema that the index that is read was filled for. */
  readonly served: () => SchemaVersion
  /** Makes the index anew while it is read (POST /resources/graph/search/<node> `rebuild`). */
  readonly index: IndexRebuild
  /** Offset up to which the index holds a shard; null: unknown. */
  readonly applied: (shard: number) => Maybe<number | null>
  /** Consumer under which the index that is read keeps its parked actors. */
  readonly parkedBy: () => string
  /** What must hold before requests come in (CONTRACT 0 "Operations"). */
  readonly checks: () => readonly Check[]
  readonly collect: (metrics: Metrics) => void
  /** Ends what was begun, within the time. */
  stop(leftMs: () => number): Promise<void>
}

/** What stands still among a member's shards, as a check. `outages`: as in Position. */
export function stuckShardCheck(
  watch: StuckShardWatch,
  member: Member,
  index: { readonly applied: (shard: number) => number; readonly outages: number },
): Check {
  const positions: Position[] = []
  for (const [shard, { state, gate, flusher }] of member.shards) {
    if (state !== 'serving') continue
    const { head } = gate
    positions.push({ follower: 'derived rows', shard, head, applied: flusher.flushed, outages: 0 })
    const { outages } = index
    positions.push({ follower: 'graph index', shard, head, applied: index.applied(shard), outages })
  }
  const stuck = watch.look(positions)
  return stuck.length === 0
    ? { name: 'progress', ok: true }
    : { name: 'progress', ok: false, reason: stuck.join('; ') }
}

/** Rules join later; until then no hook has one (commerce/README.md "Hooks"). */
export const NO_RULES: HookTable = { has: () => false, effects: () => [] }
