// The cluster's numbers for GET /metrics: who is there, whose the shards are, how moves and
// takeovers went.

import type { Overview } from '../../cluster/placement/ownership.ts'
import type { PlacementStats } from '../../cluster/placement/placement-options.ts'
import type { RedisWire } from '../../cluster/redis/wire.ts'
import type { Metrics, Sample } from '../metrics.ts'

/** What placement.ts has to tell. */
export interface ClusterNumbers {
  overview(): Overview
  readonly stats: PlacementStats
  mayServe(): boolean
}

export function collectClusterMetrics(metrics: Metrics, numbers: ClusterNumbers): void {
  metrics.collect(() => samples(numbers))
}

function* samples(numbers: ClusterNumbers): Generator<Sample> {
  const { members, shards, moves } = numbers.overview()
  for (const state of ['up', 'leaving', 'dead', 'left']) {
    const value = members.filter((member) => member.state === state).length
    yield gauge('cluster_members', 'Members by their state.', value, { state })
  }
  const unowned = shards.filter(({ owner }) => owner === null).length
  yield gauge('cluster_shards_unowned', 'Shards without a living owner.', unowned)
  yield gauge('cluster_moves', 'Planned moves under way or due.', moves.length)
  yield gauge('lease_held', '1 while this member may serve.', numbers.mayServe() ? 1 : 0)
  const { claims, handoffs, joins, pauseMs, pausesMs } = numbers.stats
  yield counter('claims_total', 'Shards that this member took over.', claims)
  yield counter('handoffs_total', 'Shards that this member handed over.', handoffs)
  yield counter('joins_total', 'Times that this process joined the cluster.', joins)
  yield counter(
    'handoff_pause_seconds_total',
    'Time from the seal of a shard until its next owner served.',
    pauseMs / 1e3,
  )
  const sorted = pausesMs.toSorted((a, b) => a - b)
  const p99 = sorted[Math.floor(sorted.length * 0.99)] ?? 0
  yield gauge('handoff_pause_p99_seconds', 'Pause of a handoff, p99 of the last 1,000.', p99 / 1e3)
}

/** What went over Redis; `unanswered` is now, the others since the start. */
export function collectWireMetrics(metrics: Metrics, wire: RedisWire): void {
  metrics.collect(() => {
    const { entries, parcels, replies, unsent, dropped, losses, unanswered } = wire.figures
    return [
      counter('wire_entries_total', 'Entries written to streams of other members.', entries),
      counter('wire_parcels_total', 'Envelopes sent to other members.', parcels),
      counter('wire_replies_total', 'Answers sent to other members.', replies),
      counter('wire_unsent_total', 'Envelopes that certainly have not left.', unsent),
      counter('wire_dropped_total', 'Answers and hints dropped while Redis was away.', dropped),
      counter('wire_losses_total', 'Times that a connection or a stream was lost.', losses),
      gauge('wire_unanswered', 'Envelopes on their way.', unanswered),
      gauge('wire_up', '1 while Redis can be used.', wire.isUp ? 1 : 0),
    ]
  })
}

function gauge(
  name: string,
  help: string,
  value: number,
  labels?: Readonly<Record<string, string>>,
): Sample {
  const sample: Sample = { name: `kontor_${name}`, help, type: 'gauge', value }
  return labels ? { ...sample, labels } : sample
}

function counter(name: string, help: string, value: number): Sample {
  return { name: `kontor_${name}`, help, type: 'counter', value }
}
