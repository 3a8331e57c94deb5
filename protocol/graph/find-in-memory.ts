// The finder over nodes in memory: filters, semi-joins, order and limits on plain documents. The
// source is one actor (a `query` message) or the index's twin. Source: CONTRACT 1.4.

import { behindTest } from './cursor.ts'
import {
  compareDocs,
  compareIds,
  compareRanks,
  compileCondition,
  placeOf,
  type Doc,
  type Test,
} from './evaluate.ts'
import { executeNodes, type Budget, type Found, type GraphRow, type NodeFinder } from './execute.ts'
import type { HistorySource } from './history.ts'
import type { Link, NodePlan, Step } from './plan.ts'
import { NO_RANK, rankOf } from './search/phrase-rank.ts'
import type { EdgeNodes } from './search/search-document.ts'
import { SEARCH_LIMITS } from './search/search-index.ts'

/** Nodes at hand. */
export interface NodeSource {
  /**
   * All nodes of a row-stored type, of one actor or (`actorId` null) of all; those of one actor in
   * the order in which it made them. A source of one actor's nodes has no others: edges that leave
   * the actor then lead nowhere.
   */
  rows(node: string, actorId: string | null): Iterable<GraphRow>
  /** Nodes that an actor keeps as rows. */
  count(actorId: string): number
}

/**
 * Answers a `query` message: a node plan asked of one actor's own node, with that actor's nodes
 * alone. Null when a semi-join (`require`) doesn't let the node through.
 */
export function queryNode(
  plan: NodePlan,
  root: GraphRow,
  source: NodeSource,
  options: { readonly history: HistorySource; readonly budget: Budget },
): Record<string, unknown> | null {
  const finder = new MemoryFinder(source, options.budget)
  if (!finder.passes(plan, root)) return null
  return executeNodes(plan, [root], { finder, ...options })[0]!
}

export class MemoryFinder implements NodeFinder {
  readonly #source: NodeSource
  readonly #budget: Budget
  readonly #tests = new Map<Step, Test | null>()
  readonly #linkTests = new Map<Link, Test>()
  readonly #byValue = new Map<string, Map<unknown, GraphRow[]>>()
  #looked = 0

  constructor(source: NodeSource, budget: Budget) {
    this.#source = source
    this.#budget = budget
  }

  find(step: Step, parents: readonly GraphRow[] | null): Found[] {
    return parents === null
      ? [this.#select(step, null)]
      : parents.map((parent) => this.#select(step, parent))
  }

  #select(step: Step, parent: GraphRow | null): Found {
    const rows: GraphRow[] = []
    for (const row of this.#candidates(step, parent)) {
      const ranked = this.#ranked(step, row)
      if (ranked !== null && this.#matches(step, ranked)) rows.push(ranked)
    }
    const count = rows.length
    if (step.returns === 'count') return { rows: [], more: false, count }
    const shown = step.after === undefined ? rows : rows.filter(behindTest(step, step.after))
    shown.sort((a, b) => order(step, a, b))
    const more = shown.length > step.limit
    return { rows: more ? shown.slice(0, step.limit) : shown, more, count }
  }

  /** The row with its rank; null: the step's phrase doesn't find it. */
  #ranked({ phrase }: Step, row: GraphRow): GraphRow | null {
    if (phrase === null) return row
    const { actorId, id, doc } = row
    const rank = rankOf(phrase, doc, this.#nodesOf(actorId))
    return rank === NO_RANK ? null : { actorId, id, doc, rank }
  }

  #nodesOf(actorId: string): EdgeNodes {
    return ({ node }) => {
      if (this.#source.count(actorId) > SEARCH_LIMITS.searchNodesMax) return []
      return Array.from(this.#source.rows(node, actorId), ({ doc }) => doc)
    }
  }

  #matches(step: Step, row: GraphRow): boolean {
    if (++this.#looked % 256 === 0) this.#budget.check()
    let test = this.#tests.get(step)
    if (test === undefined) {
      test = step.filter === null ? null : compileCondition(step.filter)
      this.#tests.set(step, test)
    }
    return (test === null || test(row.doc)) && this.passes(step.plan, row)
  }

  /** True when every semi-join below a node lets it through. */
  passes(plan: NodePlan, row: GraphRow): boolean {
    return plan.steps.every(
      (step) => step.require === 'any' || this.#hasMatch(step, row) === (step.require === 'some'),
    )
  }

  #hasMatch(step: Step, parent: GraphRow): boolean {
    for (const row of this.#candidates(step, parent)) {
      if (this.#ranked(step, row) !== null && this.#matches(step, row)) return true
    }
    return false
  }

  /** Nodes that the step leads to, before its filter. */
  *#candidates(step: Step, parent: GraphRow | null): Generator<GraphRow> {
    const { source } = step
    if (parent === null || source.kind === 'set') {
      yield* this.#kept(step, null, null)
      return
    }
    const value = parent.doc[source.from]
    if (value === undefined || value === null) return
    if (source.sameActor) {
      for (const row of this.#kept(step, parent.actorId, parent)) {
        if (row.doc[source.to] === value) yield row
      }
      return
    }
    const ends = source.through ? this.#linked(source.through, value) : [value]
    const all = (): Iterable<GraphRow> => this.#kept(step, null, parent)
    for (const end of ends) yield* this.#having(`${step.plan.node} ${source.to}`, end, all)
  }

  /** Values that the links of a value lead to. */
  #linked(through: Link, value: unknown): ReadonlySet<unknown> {
    let test = this.#linkTests.get(through)
    if (test === undefined) {
      test = through.filter === null ? () => true : compileCondition(through.filter)
      this.#linkTests.set(through, test)
    }
    const { node, from, to } = through
    const ends = new Set<unknown>()
    const all = (): Iterable<GraphRow> => this.#source.rows(node, null)
    for (const { doc } of this.#having(`${node} ${from}`, value, all)) {
      if (test(doc)) ends.add(doc[to])
    }
    ends.delete(undefined)
    ends.delete(null)
    return ends
  }

  /** Nodes of any actor by the value of a member, found once for all parents of a plan. */
  #having(key: string, value: unknown, all: () => Iterable<GraphRow>): readonly GraphRow[] {
    let known = this.#byValue.get(key)
    if (known === undefined) {
      known = new Map()
      this.#byValue.set(key, known)
      const member = key.slice(key.indexOf(' ') + 1)
      for (const row of all()) {
        if (++this.#looked % 256 === 0) this.#budget.check()
        const own = known.get(row.doc[member])
        if (own === undefined) known.set(row.doc[member], [row])
        else own.push(row)
      }
    }
    return known.get(value) ?? []
  }

  /** Nodes of the step's type as they are kept, in their holder's order. */
  *#kept(step: Step, actorId: string | null, parent: GraphRow | null): Generator<GraphRow> {
    const { storage, source, idField, plan } = step
    if (storage.kind !== 'embedded') {
      yield* this.#source.rows(plan.node, actorId)
      return
    }
    if (parent !== null && source.kind === 'edge' && source.parent === storage.node) {
      if (source.sameActor) {
        yield* elements(parent, storage.member, idField)
        return
      }
    }
    for (const holder of this.#source.rows(storage.node, actorId)) {
      yield* elements(holder, storage.member, idField)
    }
  }
}

function* elements(holder: GraphRow, member: string, idField: string): Generator<GraphRow> {
  const list = holder.doc[member]
  if (!Array.isArray(list)) return
  for (const doc of list as readonly Doc[]) {
    yield { actorId: holder.actorId, id: String(doc[idField]), doc }
  }
}

/**
 * Order of a step's nodes: its keys, then by id. Without keys nested lists inside an actor are in
 * its own order, which is the order they are found in unless the node type names a position.
 */
function order(step: Step, a: GraphRow, b: GraphRow): number {
  const { orderBy, source, storage, position, phrase } = step
  if (phrase !== null) return compareRanks(a, b) || compareIds(a, b)
  if (orderBy.length > 0) return compareDocs(orderBy, a.doc, b.doc) || compareIds(a, b)
  if (source.kind === 'set' || !source.sameActor) return compareIds(a, b)
  return storage.kind === 'embedded' ? 0 : placeOf(a.doc, position) - placeOf(b.doc, position)
}
