// The memory twin of the graph index: the same promises as the drivers, on maps. It stands in for
// them in tests and simulations, and passes the same conformance suite.

import { LIMITS } from '../../config/limits.ts'
import { assert } from '../../protocol/errors.ts'
import { type CursorSeal, NO_CURSORS } from '../../protocol/graph/cursor.ts'
import { completing } from '../../protocol/graph/custom-fields.ts'
import { Budget, executePlan, type GraphRow } from '../../protocol/graph/execute.ts'
import { type Explained, Trace, told } from '../../protocol/graph/explain/trace.ts'
import { MemoryFinder, type NodeSource } from '../../protocol/graph/find-in-memory.ts'
import { NO_HISTORY, type HistorySource } from '../../protocol/graph/history.ts'
import type { GraphPlan, GraphResult } from '../../protocol/graph/plan.ts'
import type { GraphSchema } from '../../protocol/graph/schema.ts'
import type { Position } from '../../protocol/ids.ts'
import type { Fill, GraphIndex, IndexWrite } from '../search.ts'

interface Kept {
  readonly version: number
  /** null: removed, remembered by its version. */
  readonly row: GraphRow | null
}

export interface MemoryIndexOptions {
  readonly schema: GraphSchema
  /** Where history nodes come from; none without it. */
  readonly history?: HistorySource
  /** Monotonic milliseconds, for budgets. */
  readonly now?: () => number
  /** For plans that ask for cursors. */
  readonly cursors?: CursorSeal
}

export class MemoryGraphIndex implements GraphIndex, NodeSource {
  readonly placed = false
  readonly #schema: GraphSchema
  readonly #complete: (write: IndexWrite) => IndexWrite
  readonly #history: HistorySource
  readonly #now: () => number
  readonly #cursors: CursorSeal
  readonly #offsets = new Map<number, number>()
  readonly #fills = new Map<number, Fill>()
  /** By node type, then actor, then node id. */
  readonly #nodes = new Map<string, Map<string, Map<string, Kept>>>()
  #generation: string | null = null

  constructor(options: MemoryIndexOptions) {
    this.#schema = options.schema
    this.#complete = completing(Array.from(options.schema.nodes.values(), ({ type }) => type))
    this.#history = options.history ?? NO_HISTORY
    this.#now = options.now ?? (() => performance.now())
    this.#cursors = options.cursors ?? NO_CURSORS
  }

  apply(
    writes: readonly IndexWrite[],
    offsets: readonly Position[],
    fills: readonly Fill[] = [],
  ): void {
    const moved = new Map<Map<string, Kept>, IndexWrite[]>()
    for (const given of writes) {
      const write = this.#complete(given)
      const { node, actorId, id, version, doc } = write
      const kind = this.#schema.nodes.get(node)?.type.storage.kind
      assert(kind === 'row', `node type ${node} has no rows in the index`)
      const kept = this.#ofActor(node, actorId)
      const there = kept.get(id)
      if (there !== undefined && there.version > version) continue
      // A copy, as a driver has one: what is kept must not change with the state it was made of.
      const copy = doc === null ? null : (structuredClone(doc) as Record<string, unknown>)
      // What comes again comes behind the others.
      if (there?.row === null && copy !== null) kept.delete(id)
      kept.set(id, { version, row: copy === null ? null : { actorId, id, doc: copy } })
      if (write.place !== undefined) moved.set(kept, [...(moved.get(kept) ?? []), write])
    }
    for (const [kept, some] of moved) arrange(kept, some)
    for (const { shard, offset } of offsets) {
      this.#offsets.set(shard, offset)
      this.#fills.delete(shard)
    }
    for (const fill of fills) this.#fills.set(fill.shard, fill)
  }

  #ofActor(node: string, actorId: string): Map<string, Kept> {
    const byActor = this.#nodes.get(node) ?? new Map<string, Map<string, Kept>>()
    this.#nodes.set(node, byActor)
    const kept = byActor.get(actorId) ?? new Map<string, Kept>()
    byActor.set(actorId, kept)
    return kept
  }

  offsets(): ReadonlyMap<number, number> {
    return this.#offsets
  }

  fills(): ReadonlyMap<number, Fill> {
    return this.#fills
  }

  generation(): string | null {
    return this.#generation
  }

  reset(generation: string): void {
    this.#nodes.clear()
    this.#offsets.clear()
    this.#fills.clear()
    this.#generation = generation
  }

  *rows(node: string, actorId: string | null): Generator<GraphRow> {
    const byActor = this.#nodes.get(node)
    if (!byActor) return
    const actors = actorId === null ? byActor.values() : [byActor.get(actorId) ?? new Map()]
    for (const kept of actors as Iterable<Map<string, Kept>>) {
      for (const { row } of kept.values()) if (row !== null) yield row
    }
  }

  count(actorId: string): number {
    let count = 0
    for (const node of this.#nodes.keys()) for (const _ of this.rows(node, actorId)) count++
    return count
  }

  query(plan: GraphPlan, budgetMs: number): GraphResult {
    return this.#run(plan, budgetMs)
  }

  explain(plan: GraphPlan, budgetMs: number): Explained {
    const trace = new Trace(this.#now)
    this.#run(plan, budgetMs, trace)
    return told(plan.steps, trace, { engine: 'memory' })
  }

  #run(plan: GraphPlan, budgetMs: number, trace?: Trace): GraphResult {
    const budget = new Budget(this.#now, budgetMs, LIMITS.graph.resultNodesMax)
    const finder = new MemoryFinder(this, budget)
    const [history, cursors] = [this.#history, this.#cursors]
    return executePlan(plan, { finder, history, budget, cursors, ...(trace && { trace }) })
  }

  close(): void {
    this.#nodes.clear()
  }
}

/** Puts nodes into the order of their places, among the entries that they have. */
function arrange(kept: Map<string, Kept>, writes: readonly IndexWrite[]): void {
  const places = new Map(writes.map(({ id, place }) => [id, place!]))
  const ids = [...places.keys()].toSorted((a, b) => places.get(a)! - places.get(b)!)
  const ordered = [...kept.keys()].map((id) => (places.has(id) ? ids.shift()! : id))
  const entries = ordered.map((id) => [id, kept.get(id)!] as const)
  kept.clear()
  for (const [id, one] of entries) kept.set(id, one)
}
