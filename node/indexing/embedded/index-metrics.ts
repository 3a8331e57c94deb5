// What the graph shows of itself on /metrics. Source: CONTRACT 0 "Operations" (index lag, heads and
// applied offsets).

import type { Metrics, Sample } from '../../metrics.ts'
import type { EmbeddedIndex } from './embedded-index.ts'
import type { ReaderPool } from '../../graph/plans/reader-pool.ts'

type Measure = readonly [name: string, help: string, type: Sample['type'], value: number]

/** Has the graph's numbers shown at every scrape. */
export function collectGraphMetrics(
  metrics: Metrics,
  { index, reader }: { readonly index: EmbeddedIndex; readonly reader: ReaderPool },
): void {
  metrics.collect(() => graphSamples(index, reader))
}

function* graphSamples(index: EmbeddedIndex, reader: ReaderPool): Generator<Sample> {
  for (const [name, help, type, value] of [...indexNumbers(index), ...readerNumbers(reader)]) {
    yield { name: `kontor_${name}`, help, type, value }
  }
  const { progress, heads } = index
  for (const [shard, head] of heads) {
    const labels = { shard: String(shard) }
    yield {
      name: 'kontor_journal_head_offset',
      help: 'Newest committed offset.',
      type: 'gauge',
      labels,
      value: head,
    }
    yield {
      name: 'kontor_index_applied_offset',
      help: 'Offset up to which the graph index holds the journal.',
      type: 'gauge',
      labels,
      value: progress.applied(shard),
    }
  }
}

function indexNumbers(index: EmbeddedIndex): Measure[] {
  const { progress } = index
  const lag = index.lag()
  const count = index.counter.bind(index)
  const { done, total } = index.rebuildProgress()
  return [
    ['index_lag_entries', 'Committed entries not in the graph index.', 'gauge', lag.entries],
    ['index_lag_seconds', 'Age of the oldest entry not in it.', 'gauge', lag.ageMs / 1_000],
    ['index_ready', '0 while the index is filled anew.', 'gauge', progress.ready ? 1 : 0],
    [
      'index_throttle_seconds',
      'Delay of answers for its lag.',
      'gauge',
      index.throttleMs() / 1_000,
    ],
    ['index_entries_total', 'Entries taken into the index.', 'counter', count('entries')],
    ['index_rows_total', 'Rows written to the index.', 'counter', count('writes')],
    ['index_batches_total', 'Batches written to the index.', 'counter', count('batches')],
    ['index_batch_seconds_total', 'Time spent on batches.', 'counter', count('batchUs') / 1e6],
    [
      'index_failures_total',
      'Batches that failed and were repeated.',
      'counter',
      count('failures'),
    ],
    [
      'index_rebuilds_total',
      'Times that the index was emptied and refilled.',
      'counter',
      count('resets'),
    ],
    ['index_beside_entries', 'Entries that an index made anew lacks.', 'gauge', total - done],
    ['index_parked_actors', 'Actors that can not be projected.', 'gauge', count('parked')],
    ['index_waiting_requests', 'Requests waiting for the index.', 'gauge', index.watch.waiting],
    ['index_restarts_total', 'Restarts of the index thread.', 'counter', index.restarts],
  ]
}

function readerNumbers({ stats, waiting }: ReaderPool): Measure[] {
  return [
    ['graph_queries_total', 'Graph queries run.', 'counter', stats.queries],
    ['graph_query_seconds_total', 'Time spent on queries.', 'counter', stats.queryUs / 1e6],
    ['graph_queries_refused_total', 'Queries refused, queue full.', 'counter', stats.refused],
    ['graph_queries_failed_total', 'Queries that ended with an error.', 'counter', stats.failed],
    ['graph_queries_waiting', 'Queries on their way.', 'gauge', waiting],
    ['graph_queries_preempted_total', 'Stops of one for others.', 'counter', stats.gaveWay],
    ['graph_reader_restarts_total', 'Restarts of reader threads.', 'counter', stats.restarts],
  ]
}
