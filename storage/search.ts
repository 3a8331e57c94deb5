// The graph index port: rows of graph nodes, written by the projector, read by running plans.
// Drivers: memory/, sqlite/, elastic/. Writing and reading are ports of their own: embedded, they
// live in different worker threads. Every driver passes conformance/search.ts. Source: ARCHITECTURE
// 5, PROTOCOL 3.13.

import type { NodeDoc } from '../protocol/behaviour.ts'
import type { Position } from '../protocol/ids.ts'
import type { Explained } from '../protocol/graph/explain/trace.ts'
import type { GraphPlan, GraphResult } from '../protocol/graph/plan.ts'
import type { Maybe } from './journal.ts'

/** One node's newest content; `doc` null removes it. Keyed by (actorId, node, id). */
export interface IndexWrite {
  /** A node type that is kept as rows. */
  readonly node: string
  readonly actorId: string
  readonly id: string
  /** The actor's version: an older write than what is there changes nothing, removals included. */
  readonly version: number
  readonly doc: Readonly<Record<string, unknown>> | null
  /**
   * Place among the actor's nodes of its type: with every write for drivers that ask for it
   * (`placed`). For others where nodes don't stand as they came: all of the actor's that are there
   * are then written, each with its place. Absent of removals.
   */
  readonly place?: number
  /**
   * Of an actor's own node (its id is the actor's), with places: all its other nodes that are kept
   * as rows, in its order. Who reads that one document then reads the actor in one state. Absent
   * where there are more than LIMITS.storage.indexWholeNodesMax.
   */
  readonly whole?: readonly NodeDoc[]
}

/**
 * How far a shard of an index has been filled from its actors (PROTOCOL 3.13.5). What was written
 * is in the index: after any failure, and with another owner of the shard, it goes on from here.
 */
export interface Fill {
  readonly shard: number
  /**
   * Where the very first attempt began in the log, and following it begins after the fill: what was
   * removed since may be in the index, and only the log says so.
   */
  readonly begun: number
  /** The last actor that is done, in the store's own order; null: none is. */
  readonly after: string | null
  /** From 1, rising with each step: of two the higher is further. */
  readonly step: number
}

export interface GraphWriter {
  /**
   * True: the driver has no transactions, and can't tell in which order an actor's nodes came. So
   * writes name their places, a node whose place changes is written again, and with any of an
   * actor's nodes its own one is, which holds them all (IndexWrite.whole). False: it keeps nodes in
   * the order in which they came, one that was removed behind all others when it comes again, and
   * moves those that come with places.
   */
  readonly placed: boolean
  /**
   * Applies the writes, then moves the offsets, which end a shard's fill, and keeps the fills:
   * never before what they stand for is in.
   * Where there are transactions both are in or neither; else a repeat is harmless. Removed nodes
   * are remembered by their version (PROTOCOL 3.13.3), so that an older write that comes late can't
   * bring them back. Throws RefusedWrites, IndexAway or IndexGone where the driver can tell; any
   * other failure may mean either of the first two.
   */
  apply(
    writes: readonly IndexWrite[],
    offsets: readonly Position[],
    fills?: readonly Fill[],
  ): Maybe<void>
  /** Offsets up to which this index holds the log, by shard. */
  offsets(): ReadonlyMap<number, number>
  /** Shards that are being filled from their actors. */
  fills(): ReadonlyMap<number, Fill>
  /**
   * Store generation the index was filled from. Null when it is new, or was made for other node
   * types than these and has to be filled again.
   */
  generation(): string | null
  /** Empties the index and ties it to a generation. */
  reset(generation: string): Maybe<void>
  close(): Maybe<void>
}

export interface GraphReader {
  /**
   * Runs a plan: on one consistent state of the index where there are transactions, else each of
   * its steps on a state that is no older than when the plan began; an actor's own node and what is
   * reached from it inside the actor are of one state of it (up to
   * LIMITS.storage.indexWholeNodesMax nodes and LIMITS.storage.indexWholeCharsMax). Throws
   * RequestError: 503 UNAVAILABLE when it takes longer than `budgetMs` or the index is away, 400
   * INVALID_QUERY past LIMITS.graph.resultNodesMax.
   */
  query(plan: GraphPlan, budgetMs: number): Maybe<GraphResult>
  /** Runs a plan as `query` does, and tells of its steps what they took instead of the answer. */
  explain(plan: GraphPlan, budgetMs: number): Maybe<Explained>
  close(): Maybe<void>
}

/** Both in one, as the memory twin has it. */
export interface GraphIndex extends GraphWriter, GraphReader {}

/** The index can't take what these actors have; everything else that was written is in. */
export class RefusedWrites extends Error {
  /** Why, by actor. */
  readonly reasons: ReadonlyMap<string, string>

  constructor(reasons: ReadonlyMap<string, string>) {
    const [first] = reasons
    super(`${reasons.size} actors were refused by the index; ${first?.join(': ') ?? ''}`)
    this.name = 'RefusedWrites'
    this.reasons = reasons
  }
}

/** The index takes nothing now, of any writer: send the same writes later. */
export class IndexAway extends Error {
  constructor(why: string, options?: ErrorOptions) {
    super(`the graph index can't be used now: ${why}`, options)
    this.name = 'IndexAway'
  }
}

/** The index is not there any more, or can't be what the log says: it has to be made anew. */
export class IndexGone extends Error {
  /** The one shard that it is about; null: all. */
  readonly shard: number | null

  constructor(why: string, shard: number | null = null) {
    super(`the graph index has to be made anew: ${why}`)
    this.name = 'IndexGone'
    this.shard = shard
  }
}
