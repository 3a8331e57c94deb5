// The runtime's numbers for GET /metrics: commits and what they carried, heads, what waits.

import type { Member } from '../../cluster/member.ts'
import type { Metrics, Sample } from '../metrics.ts'

export function collectRuntimeMetrics(metrics: Metrics, member: Member): void {
  metrics.collect(() => [...totals(member), ...shards(member)])
}

function* totals(member: Member): Generator<Sample> {
  const { stats } = member.committer
  const counter = (name: string, help: string, value: number): Sample => ({
    name: `kontor_${name}`,
    help,
    type: 'counter',
    value,
  })
  yield counter('commits_total', 'Appends to the journal, a flush each.', stats.commits)
  yield counter('commit_groups_total', 'Groups of shards in those appends.', stats.groups)
  yield counter('commit_entries_total', 'Entries in those appends.', stats.entries)
  yield counter('commit_bytes_total', 'Bytes of those groups.', stats.bytes)
  yield counter('commit_seconds_total', 'Time spent in appends.', stats.appendMs / 1_000)
  yield counter(
    'commit_throttled_seconds_total',
    'Time that appends were held back because the graph index was behind.',
    stats.throttledMs / 1_000,
  )
  yield {
    name: 'kontor_requests_pending',
    help: 'Requests to actors under way at this edge.',
    type: 'gauge',
    value: member.edge.pending,
  }
}

function* shards(member: Member): Generator<Sample> {
  let activations = 0
  let slow = 0
  let outbox = 0
  let unflushed = 0
  for (const [number, shard] of member.shards) {
    const labels = { shard: String(number) }
    const { head } = shard.gate
    yield gauge('shard_head_offset', 'Newest committed offset.', head, labels)
    yield gauge(
      'shard_flushed_offset',
      'Offset up to which derived rows are written.',
      shard.flusher.flushed,
      labels,
    )
    yield gauge('shard_epoch', 'Fencing number of the owner.', shard.epoch, labels)
    activations += shard.activations.size
    slow += shard.turns.slow
    outbox += shard.outbox.size
    unflushed += shard.flusher.tailBytes
  }
  yield gauge('activations', 'Actors in memory.', activations)
  yield gauge('outbox_entries', 'Entries with effects that are not taken yet.', outbox)
  yield gauge('unflushed_bytes', 'Committed entries whose derived rows are not durable.', unflushed)
  yield {
    name: 'kontor_slow_turns_total',
    help: 'Turns that took longer than 50 ms.',
    type: 'counter',
    value: slow,
  }
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
