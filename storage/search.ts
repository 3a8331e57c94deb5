// The graph index port: rows of graph nodes, written by the projector, read by running plans. It
// stands between node/graph and the drivers (memory/, embedded/ on SQLite, later elastic/). Writing
// and reading are ports of their own: embedded, they live in different worker threads. Every driver
// passes conformance/search.ts. Source: ARCHITECTURE 5, PROTOCOL 3.13.

import type { Position } from '../protocol/ids.ts'
import type { GraphPlan, GraphResult } from '../protocol/graph/plan.ts'

/** One node's newest content; `doc` null removes it. Keyed by (actorId, node, id). */
export interface IndexWrite {
  /** A node type that is kept as rows. */
  readonly node: string
  readonly actorId: string
  readonly id: string
  /** The actor's version: an older write than what is there changes nothing, removals included. */
  readonly version: number
  readonly doc: Readonly<Record<string, unknown>> | null
}

export interface GraphWriter {
  /**
   * Applies the writes and moves the offsets in one step: after a crash both are there or neither.
   * Removed nodes are remembered by their version (PROTOCOL 3.13.3), so that an older write that
   * comes late can't bring them back.
   */
  apply(writes: readonly IndexWrite[], offsets: readonly Position[]): void
  /** Offsets up to which this index holds the log, by shard. */
  offsets(): ReadonlyMap<number, number>
  /**
   * Store generation the index was filled from. Null when it is new, or was made for other node
   * types than these and has to be filled again.
   */
  generation(): string | null
  /** Empties the index and ties it to a generation. */
  reset(generation: string): void
  close(): void
}

export interface GraphReader {
  /**
   * Runs a plan on one consistent state of the index. Throws RequestError: 503 UNAVAILABLE when it
   * takes longer than `budgetMs`, 400 INVALID_QUERY past LIMITS.graphResultNodesMax.
   */
  query(plan: GraphPlan, budgetMs: number): GraphResult
  close(): void
}

/** Both in one, as the memory twin has it. */
export interface GraphIndex extends GraphWriter, GraphReader {}
