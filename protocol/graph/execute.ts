// The walk of a plan that all executions share: level by level, all parents of a level at once, and
// the shape of the answer. The finder knows where nodes are kept. History nodes come from the
// history source, whatever the finder. The walk is a generator that yields what it needs: it runs
// at once on what is at hand and waits for what is elsewhere. Source: CONTRACT 1.4.

import { RequestError } from '../errors.ts'
import { Collected } from './collected-history.ts'
import { addCursors, type CursorSeal, NO_CURSORS } from './cursor.ts'
import { withFields } from './custom-fields.ts'
import { compileCondition, pickFields } from './evaluate.ts'
import type { NodeDoc } from '../behaviour.ts'
import {
  ReadAhead,
  type HistoryRequest,
  type HistoryPiece,
  type HistorySource,
  type RemoteHistory,
} from './history.ts'
import type { Trace } from './explain/trace.ts'
import type { GraphPlan, GraphResult, NodePlan, Step } from './plan.ts'
import { NO_RANK, rankOf } from './search/phrase-rank.ts'
import { NO_NODES } from './search/search-document.ts'
import { lookUpFor } from './seen.ts'

/** A graph node as executions hand it on. */
export interface GraphRow {
  readonly actorId: string
  readonly id: string
  readonly doc: Readonly<Record<string, unknown>>
  /** How well a phrase found it (search/phrase-rank.ts). */
  readonly rank?: number
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

/** Finds the nodes of a step, its filter and the semi-joins below it applied. */
export interface NodeFinder {
  /** One Found for each parent, in their order; `parents` null: a base set, exactly one Found. */
  find(step: Step, parents: readonly GraphRow[] | null): readonly Found[]
}

/** The same where nodes have to be waited for. */
export interface RemoteFinder {
  find(step: Step, parents: readonly GraphRow[] | null): Promise<readonly Found[]>
}

/** Time and size that one request may take. */
export class Budget {
  readonly #now: () => number
  readonly #endsAt: number
  readonly #budgetMs: number
  readonly #nodesMax: number
  #nodes = 0

  /** `now` in milliseconds, monotonic; `nodesMax` is LIMITS.graph.resultNodesMax. */
  constructor(now: () => number, budgetMs: number, nodesMax: number) {
    this.#now = now
    this.#budgetMs = budgetMs
    this.#endsAt = now() + budgetMs
    this.#nodesMax = nodesMax
  }

  get over(): boolean {
    return this.#now() >= this.#endsAt
  }

  /** Milliseconds that are left. */
  get leftMs(): number {
    return Math.max(0, this.#endsAt - this.#now())
  }

  get nodesMax(): number {
    return this.#nodesMax
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
  /** For plans that ask for cursors. */
  readonly cursors?: CursorSeal
  /** For who wants to know what it took. */
  readonly trace?: Trace
}

export interface RemoteExecution {
  readonly finder: RemoteFinder
  readonly history: RemoteHistory
  readonly budget: Budget
  readonly cursors?: CursorSeal
  readonly trace?: Trace
}

/** What a walk needs on its way. */
type WalkRequest =
  | { readonly request: 'find'; readonly step: Step; readonly parents: readonly GraphRow[] | null }
  | ({ readonly request: 'history' } & HistoryRequest)

type Walk<T> = Generator<WalkRequest, T, readonly Found[] | HistoryPiece>

/** Runs a whole request on what is at hand. */
export function executePlan(plan: GraphPlan, execution: Execution): GraphResult {
  return runNow(walkPlan(plan, execution), execution)
}

/** Runs a whole request on what has to be waited for. */
export async function executeRemotely(
  plan: GraphPlan,
  { finder, history, ...context }: RemoteExecution,
): Promise<GraphResult> {
  const walk = walkPlan(plan, context)
  const readAhead = new ReadAhead(history)
  for (let next = walk.next(); ;) {
    if (next.done) return next.value
    const { value } = next
    next = walk.next(
      value.request === 'find'
        ? await finder.find(value.step, value.parents)
        : await readAhead.read(value),
    )
  }
}

/** Runs a node plan on nodes at hand: their fields and all that is asked for below them. */
export function executeNodes(
  plan: NodePlan,
  rows: readonly GraphRow[],
  execution: Execution,
): Record<string, unknown>[] {
  return runNow(walkNodes(plan, rows, execution), execution)
}

function runNow<T>(walk: Walk<T>, { finder, history }: Execution): T {
  for (let next = walk.next(); ;) {
    if (next.done) return next.value
    const { value } = next
    next = walk.next(
      value.request === 'find' ? finder.find(value.step, value.parents) : pieceNow(history, value),
    )
  }
}

/** Nodes that are asked of a history at hand at once: no more than a page of its entries has. */
const PIECE_NODES = 32

/** The rest of a history at hand is its iterator. */
function pieceNow(history: HistorySource, of: HistoryRequest): HistoryPiece {
  const iterator = (of.rest ??
    history.read(of.actorId, of.node)[Symbol.iterator]()) as Iterator<NodeDoc>
  const nodes: NodeDoc[] = []
  while (nodes.length < PIECE_NODES) {
    const next = iterator.next()
    if (next.done) return { nodes, rest: null }
    nodes.push(next.value)
  }
  return { nodes, rest: iterator }
}

interface WalkContext {
  readonly budget: Budget
  readonly cursors?: CursorSeal
  readonly trace?: Trace
}

function* walkPlan(plan: GraphPlan, context: WalkContext): Walk<GraphResult> {
  const answer: Record<string, unknown> = {}
  for (const step of plan.steps) {
    const [found] = yield* answerStep(step, { parents: null, answers: [answer] }, context)
    addCursors(answer, step, found!, context.cursors ?? NO_CURSORS)
  }
  return answer
}

function* walkNodes(
  plan: NodePlan,
  rows: readonly GraphRow[],
  context: WalkContext,
): Walk<Record<string, unknown>[]> {
  context.budget.check()
  const answers = rows.map((row) => pickFields(row.doc, plan.fields))
  if (rows.length === 0) return answers
  for (const step of plan.steps) {
    if (step.returns !== 'nothing') yield* answerStep(step, { parents: rows, answers }, context)
  }
  return answers
}

/** True when every semi-join (`require some` / `none`) below a node lets it through. */
function* passesSemiJoins(plan: NodePlan, row: GraphRow): Walk<boolean> {
  for (const step of plan.steps) {
    if (step.require === 'any') continue
    const found = yield* find(semiJoinProbe(step), [row])
    if (found[0]!.rows.length > 0 !== (step.require === 'some')) return false
  }
  return true
}

/** One matching child is enough to know whether a semi-join lets its parent through. */
export function semiJoinProbe(step: Step): Step {
  return { ...step, returns: 'nodes', limit: 1, orderBy: [] }
}

function* find(step: Step, parents: readonly GraphRow[] | null): Walk<readonly Found[]> {
  return (yield { request: 'find', step, parents }) as readonly Found[]
}

interface Answering {
  /** null: a base set. */
  readonly parents: readonly GraphRow[] | null
  /** Of each parent, to which what is found is added. */
  readonly answers: readonly Record<string, unknown>[]
}

function* answerStep(
  step: Step,
  { parents, answers }: Answering,
  context: WalkContext,
): Walk<readonly Found[]> {
  const { budget, trace } = context
  trace?.begin(step, parents?.length ?? null)
  const founds =
    step.storage.kind === 'history'
      ? yield* findHistory(step, parents, budget)
      : yield* find(step, parents)
  trace?.end(founds.reduce((sum, { rows }) => sum + rows.length, 0))
  const nodes = step.returns === 'count' ? [] : yield* below(step, founds, context)
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
  return founds
}

/** The answers of all nodes that were found, in one list: the next level works on all at once. */
function* below(
  step: Step,
  founds: readonly Found[],
  context: WalkContext,
): Walk<Record<string, unknown>[]> {
  const rows = founds.length === 1 ? founds[0]!.rows : founds.flatMap((found) => found.rows)
  context.budget.add(rows.length)
  return yield* walkNodes(step.plan, rows, context)
}

function* findHistory(
  step: Step,
  parents: readonly GraphRow[] | null,
  budget: Budget,
): Walk<Found[]> {
  if (parents === null) {
    const asked = [...new Set(step.historyOf)].toSorted()
    const seen = yield* seenActors(step, asked)
    const actors = asked.filter((actorId) => seen?.has(actorId) !== false)
    return [yield* collectHistory(step, actors, { keep: () => true, budget, ahead: [] })]
  }
  const { source } = step
  const founds: Found[] = []
  const seen = yield* seenActors(step, [...new Set(parents.map(({ actorId }) => actorId))])
  for (const [i, parent] of parents.entries()) {
    const ahead = parents.slice(i + 1, i + 1 + HISTORIES_AHEAD).map(({ actorId }) => actorId)
    const value = source.kind === 'edge' ? parent.doc[source.from] : undefined
    const to = source.kind === 'edge' ? source.to : ''
    const keep = (row: GraphRow): boolean => row.doc[to] === value
    founds.push(
      value === undefined || value === null || seen?.has(parent.actorId) === false
        ? NOTHING_FOUND
        : yield* collectHistory(step, [parent.actorId], { keep, budget, ahead }),
    )
  }
  return founds
}

/** Of these actors those whose history the caller sees; null: all. */
function* seenActors(
  { historySeen }: Step,
  actors: readonly string[],
): Walk<ReadonlySet<string> | null> {
  if (historySeen === null) return null
  if (actors.length === 0) return new Set()
  const found = yield* find(lookUpFor(historySeen, actors), null)
  return new Set(found[0]!.rows.map(({ actorId }) => actorId))
}

/** A node with its rank, where it is looked for by a phrase. */
function rankedHistory({ phrase }: Step, row: GraphRow): GraphRow {
  return phrase === null ? row : { ...row, rank: rankOf(phrase, row.doc, NO_NODES) }
}

/** Histories read ahead of the one that is looked at. */
const HISTORIES_AHEAD = 15

interface Collecting {
  readonly keep: (row: GraphRow) => boolean
  readonly budget: Budget
  /** Actors whose history is read next. */
  readonly ahead: readonly string[]
}

/**
 * The newest matching nodes up to the limit, of several actors one after the other; with `orderBy`
 * the first of that order, ties by their place in the journal. Reading stops as soon as the answer
 * is known.
 */
function* collectHistory(
  step: Step,
  actors: readonly string[],
  { keep, budget, ahead }: Collecting,
): Walk<Found> {
  const test = step.filter === null ? null : compileCondition(step.filter)
  const collected = new Collected(step)
  const { historyFields: custom } = step
  for (const actorId of actors) {
    for (let rest: unknown = null; ;) {
      const request = { request: 'history', actorId, node: step.plan.node, rest, ahead } as const
      const piece = (yield request) as HistoryPiece
      for (const { id, doc: kept } of piece.nodes) {
        if (++collected.age % 64 === 0) budget.check()
        const doc = custom === undefined ? kept : withFields(kept, custom)
        const row = rankedHistory(step, { actorId, id, doc })
        const isBehind = collected.meets(row)
        if (row.rank === NO_RANK || !keep(row) || (test !== null && !test(doc))) continue
        if (!(yield* passesSemiJoins(step.plan, row))) continue
        collected.add(row, isBehind)
        if (collected.isDone) return collected.found()
      }
      rest = piece.rest
      if (rest === null) break
      budget.check()
    }
  }
  return collected.found()
}
