// The graph index port: rows of graph nodes, written by the projector, read by the planner's
// executions. It stands between node/graph and the drivers (memory/, embedded/ on SQLite, later
// elastic/). Every driver passes conformance/search.ts. Source: ARCHITECTURE 5, PROTOCOL 3.13.

import type { Position } from '../protocol/ids.ts'
import type { GraphPlan, GraphResult } from '../protocol/graph/plan.ts'

/** One node's newest content; `doc` null removes it. Keyed by (actorId, node, id). */
export interface IndexWrite {
  readonly node: string
  readonly actorId: string
  readonly id: string
  /** The actor's version: an older write than what is there changes nothing. */
  readonly version: number
  readonly doc: Readonly<Record<string, unknown>> | null
}

export interface GraphIndex {
  /**
   * Applies the writes and moves the offsets in one step: after a crash both are there or neither.
   */
  apply(writes: readonly IndexWrite[], offsets: readonly Position[]): void
  /** Offsets up to which this index holds the log, by shard. */
  offsets(): ReadonlyMap<number, number>
  /** Store generation the index was filled from, or null when it is new. */
  generation(): string | null
  /** Empties the index and ties it to a generation. */
  reset(generation: string): void
  /** Runs a plan on one consistent state of the index. Throws RequestError past the deadline. */
  query(plan: GraphPlan, deadlineMs: number): GraphResult
  close(): void
}
