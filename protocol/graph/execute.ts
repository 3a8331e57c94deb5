// The walk of a plan that all executions share: level by level, all parents of a level at once, and
// the shape of the answer. It stands between a plan and a finder, which knows where nodes are kept.
// History nodes come from the history source, whatever the finder. Source: CONTRACT 1.4.

import { RequestError } from '../errors.ts'
import { compareDocs, compareText, compileCondition, pickFields } from './evaluate.ts'
import type { HistorySource } from './history.ts'
import type { GraphPlan, GraphResult, NodePlan, Step } from './plan.ts'

/** A graph node as executions hand it on. */
export interface GraphRow {
  readonly actorId: string
  readonly id: string
  readonly doc: Readonly<Record<string, unknown>>
}

/** What a step found for one parent (or for the request, as a base set). */
export interface Found {
  /** In order, at most the step's limit; empty when the step doesn't return nodes. */
  readonly rows: readonly GraphRow[]
  /** True: the list was cut at the limit. */
  readonly more: boolean
  /** All that match, whatever the limit; only meaningful when the step returns a count. */
  readonly count: number
}

export const NOTHING_FOUND: Found = { rows: [], more: false, count: 0 }

/** Finds the nodes of a step, its filter and the gates below it applied. */
export interface NodeFinder {
  /** One Found for each parent, in their order; `parents` null: a base set, exactly one Found. */
  find(step: Step, parents: readonly GraphRow[] | null): readonly Found[]
}

/** Time and size that one request may take. */
export class Budget {
  readonly #now: () => number
  readonly #endsAt: number
  readonly #budgetMs: number
  readonly #nodesMax: number
  #nodes = 0

  /** `now` in milliseconds, monotonic; `nodesMax` is LIMITS.graphResultNodesMax. */
  constructor(now: () => number, budgetMs: number, nodesMax: number) {
    this.#now = now
    this.#budgetMs = budgetMs
    this.#endsAt = now() + budgetMs
    this.#nodesMax = nodesMax
  }

  get over(): boolean {
    return this.#now() >= this.#endsAt
  }

  /** Throws 503 when the time is over. */
  check(): void {
    if (this.over) throw this.timeout()
  }

  timeout(): RequestError {
    return new RequestError(
      'UNAVAILABLE',
      `The query took longer than ${Math.round(this.#budgetMs)} ms; narrow its filters, lower its ` +
        'limits, or sort and filter by indexed fields',
    )
  }

  /** Nodes found; throws 400 when the answer grows past its bound. */
  add(nodes: number): void {
    this.#nodes += nodes
    if (this.#nodes <= this.#nodesMax) return
    throw new RequestError(
      'INVALID_QUERY',
      `The answer would have more than ${this.#nodesMax} nodes; lower the limits`,
    )
  }
}

export interface Execution {
  readonly finder: NodeFinder
  readonly history: HistorySource
  readonly budget: Budget
}

/** Runs a whole request. */
export function executePlan(plan: GraphPlan, execution: Execution): GraphResult {
  const answer: Record<string, unknown> = {}
  for (const step of plan.steps) answerStep(step, null, [answer], execution)
  return answer
}

/** Runs a node plan on nodes at hand: their fields and all that is asked for below them. */
export function executeNodes(
  plan: NodePlan,
  rows: readonly GraphRow[],
  execution: Execution,
): Record<string, unknown>[] {
  execution.budget.check()
  const answers = rows.map((row) => pickFields(row.doc, plan.fields))
  if (rows.length === 0) return answers
  for (const step of plan.steps) {
    if (step.returns !== 'nothing') answerStep(step, rows, answers, execution)
  }
  return answers
}

/** True when every gate (`require some` / `none`) below a node lets it through. */
export function passesGates(plan: NodePlan, row: GraphRow, execution: Execution): boolean {
  return plan.steps.every((step) => {
    if (step.require === 'any') return true
    // One matching child is enough to know.
    const probe: Step = { ...step, returns: 'nodes', limit: 1, orderBy: [] }
    const found = execution.finder.find(probe, [row])[0]!.rows.length > 0
    return found === (step.require === 'some')
  })
}

function answerStep(
  step: Step,
  parents: readonly GraphRow[] | null,
  answers: readonly Record<string, unknown>[],
  execution: Execution,
): void {
  const founds =
    step.storage.kind === 'history'
      ? findHistory(step, parents, execution)
      : execution.finder.find(step, parents)
  const nodes = step.returns === 'count' ? [] : below(step, founds, execution)
  let at = 0
  for (const [i, found] of founds.entries()) {
    const answer = answers[i]!
    if (step.returns === 'count') {
      answer[step.name] = found.count
      continue
    }
    const list = nodes.slice(at, at + found.rows.length)
    at += found.rows.length
    if (step.returns === 'both') answer[step.name] = { count: found.count, nodes: list }
    else answer[step.name] = step.cardinality === 'single' ? (list[0] ?? null) : list
    if (found.more && (step.cardinality === 'many' || step.returns === 'both')) {
      answer[`${step.name}HasMore`] = true
    }
  }
}

/** The answers of all nodes that were found, in one list: the next level works on all at once. */
function below(
  step: Step,
  founds: readonly Found[],
  execution: Execution,
): Record<string, unknown>[] {
  const rows = founds.length === 1 ? founds[0]!.rows : founds.flatMap((found) => found.rows)
  execution.budget.add(rows.length)
  return executeNodes(step.plan, rows, execution)
}

function findHistory(
  step: Step,
  parents: readonly GraphRow[] | null,
  execution: Execution,
): Found[] {
  if (parents !== null) {
    const { source } = step
    return parents.map((parent) => {
      const value = source.kind === 'edge' ? parent.doc[source.from] : undefined
      const to = source.kind === 'edge' ? source.to : ''
      const keep = (row: GraphRow): boolean =>
        value !== undefined && value !== null && row.doc[to] === value
      return collectHistory(step, historyRows(step, [parent.actorId], execution), keep, execution)
    })
  }
  const actors = [...new Set(step.historyOf)].toSorted()
  return [collectHistory(step, historyRows(step, actors, execution), () => true, execution)]
}

function* historyRows(
  step: Step,
  actors: readonly string[],
  execution: Execution,
): Generator<GraphRow> {
  for (const actorId of actors) {
    for (const { id, doc } of execution.history.read(actorId, step.plan.node)) {
      yield { actorId, id, doc }
    }
  }
}

/**
 * The newest matching nodes up to the limit, of several actors one after the other; with `orderBy`
 * the first of that order, ties by their place in the journal. Reading stops as soon as the answer
 * is known.
 */
function collectHistory(
  step: Step,
  rows: Iterable<GraphRow>,
  keep: (row: GraphRow) => boolean,
  execution: Execution,
): Found {
  const test = step.filter === null ? null : compileCondition(step.filter)
  const counts = step.returns === 'count' || step.returns === 'both'
  const sorts = step.orderBy.length > 0
  const room = step.limit + 1
  let kept: Aged[] = []
  let count = 0
  let age = 0
  for (const row of rows) {
    if (++age % 64 === 0) execution.budget.check()
    if (!keep(row) || (test !== null && !test(row.doc))) continue
    if (!passesGates(step.plan, row, execution)) continue
    count++
    if (sorts || kept.length < room) kept.push({ row, age })
    if (kept.length === room && !sorts && !counts) break
    if (kept.length >= 4 * room) kept = sorted(step, kept).slice(0, room)
  }
  if (sorts) kept = sorted(step, kept)
  const rowsFound = step.returns === 'count' ? [] : kept.slice(0, step.limit).map((k) => k.row)
  return { rows: rowsFound, more: kept.length > step.limit, count }
}

/** A history node, and how many were read before it. */
interface Aged {
  readonly row: GraphRow
  readonly age: number
}

function sorted(step: Step, kept: readonly Aged[]): Aged[] {
  return kept.toSorted(
    (a, b) =>
      compareDocs(step.orderBy, a.row.doc, b.row.doc) ||
      compareText(a.row.actorId, b.row.actorId) ||
      // Younger entries are read first: the greater age has the earlier place in the journal.
      b.age - a.age,
  )
}
