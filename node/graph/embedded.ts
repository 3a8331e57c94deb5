// The graph of an embedded node, put together: the index's worker thread, the reader thread, the
// graph and its routes. It stands between node/node.ts, which has the journal and the runtime, and
// the parts of this folder. Source: ARCHITECTURE 2, 5, PROTOCOL 3.13, 3.16.

import type { Behaviour } from '../../protocol/behaviour.ts'
import type { Position } from '../../protocol/ids.ts'
import { graphSchema, type GraphSchema } from '../../protocol/graph/schema.ts'
import type { Clock } from '../../cluster/clock.ts'
import type { DerivedRow, Maybe, StoreIdentity } from '../../storage/journal.ts'
import type { Operation } from '../http/operation.ts'
import type { Sample } from '../metrics.ts'
import { type ConsistencyTokens, consistencyTokens } from './consistency.ts'
import { Graph } from './graph.ts'
import { IndexThread, type ThreadLog } from './index-thread.ts'
import { graphNumbers } from './numbers.ts'
import { ReaderThread } from './reader-thread.ts'
import { graphRoutes } from './routes.ts'
import { BEHAVIOUR_TABLE } from './table.ts'

export interface EmbeddedGraphOptions {
  /** Directory of the store, made and opened by the journal before. */
  readonly dir: string
  readonly identity: StoreIdentity
  readonly behaviours: readonly Behaviour[]
  /** Module from which the threads load the same types; node/behaviours.ts by default. */
  readonly table?: string
  /** Newest committed offset of every shard: the graph answers once its index has come there. */
  readonly heads: readonly Position[]
  /** Writes derived rows of a shard under the epoch it is owned with; rejects if it failed. */
  readonly writeRows: (shard: number, rows: readonly DerivedRow[]) => Promise<void>
  /** Offset up to which the shard's derived rows are written. */
  readonly flushed: (shard: number) => Maybe<number>
  readonly clock: Clock
  readonly log: ThreadLog
}

export interface EmbeddedGraph {
  readonly graph: Graph
  readonly schema: GraphSchema
  readonly operations: readonly Operation[]
  readonly tokens: ConsistencyTokens
  /** The shard's log is committed up to here: call it once per committed group. */
  committed(shard: number, head: number): void
  /** How long the next append should wait for the index, milliseconds (ARCHITECTURE 8). */
  throttleMs(): number
  /** Offset up to which the index holds a shard: the log must be kept above it. */
  applied(shard: number): number
  /** Null, or why graph requests are not answered now. */
  unready(): string | null
  /** For GET /metrics. */
  numbers(): Iterable<Sample>
  /** Lets parked actors be projected again: all, or one. */
  retryParked(actorId?: string): void
  close(): Promise<void>
}

/** Starts the threads and waits until the index can be read (not until it is complete). */
export async function openEmbeddedGraph(options: EmbeddedGraphOptions): Promise<EmbeddedGraph> {
  const { dir, identity, clock, log, heads, writeRows, flushed } = options
  const schema = graphSchema(options.behaviours.flatMap(({ nodeTypes }) => nodeTypes))
  const tokens = consistencyTokens(identity)
  const { shards, generation } = identity
  const table = options.table ?? BEHAVIOUR_TABLE
  const index = new IndexThread({
    dir,
    table,
    shards,
    generation,
    clock,
    log,
    heads,
    writeRows,
    flushed,
  })
  await index.opened()
  const reader = new ReaderThread({ dir, table, clock, log })
  const graph = new Graph({
    schema,
    runner: reader,
    index: index.watch,
    tokens,
    nowMs: () => clock.nowMs(),
    monotonicMs: () => clock.monotonicMs(),
  })
  return {
    graph,
    schema,
    operations: graphRoutes(graph),
    tokens,
    committed: (shard, head) => index.committed(shard, head),
    throttleMs: () => index.throttleMs(),
    applied: (shard) => index.progress.applied(shard),
    unready: () => index.watch.unready(),
    numbers: () => graphNumbers(index, reader),
    retryParked: (actorId) => index.retryParked(actorId ?? null),
    async close() {
      await reader.close()
      await index.close()
    },
  }
}
