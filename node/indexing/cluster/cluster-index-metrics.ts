// What the graph of a cluster's member shows of itself on /metrics, under the same names as the
// embedded one where they mean the same. Source: CONTRACT 0 "Operations".

import type { Position } from '../../../protocol/ids.ts'
import type { Metrics, Sample } from '../../metrics.ts'
import type { ClusterIndex } from './cluster-index.ts'

type Measure = readonly [name: string, help: string, type: Sample['type'], value: number]

export function collectClusterIndexMetrics(
  metrics: Metrics,
  index: ClusterIndex,
  heads: () => Iterable<Position>,
): void {
  metrics.collect(() => samples(index, heads()))
}

function* samples(index: ClusterIndex, heads: Iterable<Position>): Generator<Sample> {
  for (const [name, help, type, value] of measures(index)) {
    yield { name: `kontor_${name}`, help, type, value }
  }
  for (const { shard, offset } of heads) {
    const labels = { shard: String(shard) }
    yield {
      name: 'kontor_journal_head_offset',
      help: 'Newest committed offset.',
      type: 'gauge',
      labels,
      value: offset,
    }
    yield {
      name: 'kontor_index_applied_offset',
      help: 'Offset up to which the graph index holds the journal.',
      type: 'gauge',
      labels,
      value: index.applied(shard),
    }
  }
}

function measures(index: ClusterIndex): Measure[] {
  const { feed, plans, generation, parked, waiting, planned } = index.numbers
  const lag = index.lag()
  const ready = index.watch.unready() === null ? 1 : 0
  return [
    ['index_lag_entries', 'Committed entries not in the graph index.', 'gauge', lag.entries],
    ['index_lag_seconds', 'Age of the oldest entry not in it.', 'gauge', lag.ageMs / 1_000],
    ['index_ready', '0 while the index is filled anew.', 'gauge', ready],
    ['index_generation', 'Generation of the index that is read.', 'gauge', generation],
    ['index_entries_total', 'Entries taken into the index.', 'counter', feed.entries],
    ['index_rows_total', 'Rows written to the index.', 'counter', feed.writes],
    ['index_batches_total', 'Batches written to the index.', 'counter', feed.batches],
    ['index_batch_seconds_total', 'Time spent on batches.', 'counter', feed.batchMs / 1e3],
    ['index_failures_total', 'Batches that failed and were repeated.', 'counter', feed.failures],
    ['index_filled_actors_total', 'Actors looked at to fill it.', 'counter', feed.actors],
    ['index_rebuilds_total', 'Shards for which it had to be made anew.', 'counter', feed.gone],
    ['index_parked_actors', 'Actors that can not be projected.', 'gauge', parked],
    ['index_waiting_requests', 'Requests waiting for the index.', 'gauge', waiting],
    ['graph_queries_total', 'Graph queries run.', 'counter', plans.queries],
    ['graph_query_seconds_total', 'Time spent on queries.', 'counter', plans.queryMs / 1e3],
    ['graph_queries_refused_total', 'Queries refused, queue full.', 'counter', plans.refused],
    ['graph_queries_failed_total', 'Queries that ended with an error.', 'counter', plans.failed],
    ['graph_queries_waiting', 'Queries on their way.', 'gauge', planned],
  ]
}
