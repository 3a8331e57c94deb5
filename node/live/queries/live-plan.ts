// What a live query asks: the graph's own plan of it, held to what can be followed from the changes
// of one actor at a time, and what is shown of a node. Source: CONTRACT 1.10.

import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { compileCondition, pickFields, readPath } from '../../../protocol/graph/evaluate.ts'
import type { Doc } from '../../../protocol/graph/evaluate.ts'
import { Budget } from '../../../protocol/graph/execute.ts'
import type { GraphRow } from '../../../protocol/graph/execute.ts'
import { queryNode } from '../../../protocol/graph/find-in-memory.ts'
import { NO_HISTORY } from '../../../protocol/graph/history.ts'
import { planNavigations } from '../../../protocol/graph/navigation.ts'
import type { FieldDef } from '../../../protocol/graph/node-type.ts'
import { actorFieldOf } from '../../../protocol/graph/own-actor.ts'
import type { FieldPath, NodePlan, Step } from '../../../protocol/graph/plan.ts'
import type { GraphAccess } from '../../../protocol/graph/planning.ts'
import type { GraphSchema } from '../../../protocol/graph/schema.ts'
import type { ReadyPlan } from '../../graph/plans/plan-cache.ts'
import type { LiveNode } from './live-window.ts'
import type { OwnNodes } from './own-nodes.ts'

/** What it takes to follow the nodes of a step, beside that. */
interface Following {
  /** Says whose a node is. */
  readonly actorField: string
  /** The caller may see the ids of nodes: changes name them. */
  readonly showsId: boolean
  readonly schema: GraphSchema
}

const MEMBERS = new Set(['edge', 'filter', 'orderBy', 'limit', 'node'])
const READ = 'nodes'

export class LivePlan {
  /** Two of the same text ask and show the same. */
  readonly text: string
  readonly step: Step
  /** Node types that its nodes are made of. */
  readonly types: ReadonlySet<string>
  readonly limit: number
  readonly margin: number
  /** Reads the first nodes that match from the index, with what they are sorted by. */
  readonly read: ReadyPlan
  /** Two of the same shape make the same of a node that matches. */
  readonly #shape: string
  readonly #shown: Step
  readonly #showsId: boolean
  readonly #actorField: string
  readonly #test: (doc: Doc) => boolean

  constructor(step: Step, { actorField, showsId, schema }: Following) {
    const { limit, orderBy, idField, filter } = step
    this.types = typesOf(step)
    const asked = JSON.stringify(step)
    this.text = JSON.stringify([step, showsId, customIn(asked, this.types, schema)])
    this.#shown = step
    this.#showsId = showsId
    this.limit = Math.min(limit, LIMITS.live.queryLimitMax)
    this.margin = Math.ceil(this.limit / 2) + LIMITS.live.queryMarginMin
    const hidden = [...orderBy.map(({ path }) => path), [idField], [actorField]]
    this.step = {
      ...step,
      name: READ,
      limit: this.limit + this.margin,
      plan: readable(step.plan, hidden),
    }
    const { plan: shown } = this.step
    const shape = [shown, step.plan.fields, orderBy, idField, names(step), showsId]
    this.#shape = JSON.stringify(shape)
    const plan = { steps: [this.step] }
    this.read = { plan, json: JSON.stringify(plan), usesHistory: false }
    this.#actorField = actorField
    this.#test = filter === null ? () => true : compileCondition(filter)
  }

  get node(): string {
    return this.step.plan.node
  }

  /** The answer to `read`. */
  nodesOf(json: string): { readonly nodes: readonly LiveNode[]; readonly more: boolean } {
    const answer = JSON.parse(json) as Record<string, unknown>
    const nodes = (answer[READ] as Doc[]).map((doc) => this.#nodeOf(doc))
    return { nodes, more: answer[`${READ}HasMore`] === true }
  }

  /** Those of an actor's nodes that match. */
  matching(source: OwnNodes, now: () => number): readonly LiveNode[] {
    const found: LiveNode[] = []
    for (const row of source.rows(this.node)) {
      if (!this.#test(row.doc)) continue
      const node = source.shown(this.#shape, row, () => this.#shownOf(row, source, now))
      if (node !== null) found.push(node)
    }
    return found
  }

  #shownOf(row: GraphRow, source: OwnNodes, now: () => number): LiveNode | null {
    const budget = new Budget(now, LIMITS.graph.actorQueryMs, LIMITS.graph.resultNodesMax)
    const doc = queryNode(this.step.plan, row, source, { history: NO_HISTORY, budget })
    return doc === null ? null : this.#nodeOf(doc)
  }

  #nodeOf(doc: Doc): LiveNode {
    const { plan } = this.#shown
    const shown = pickFields(doc, plan.fields)
    for (const [i, { name }] of plan.steps.entries()) shown[name] = doc[nested(i)] ?? null
    const id = doc[this.step.idField] as string
    const actorId = doc[this.#actorField] as string
    const key = this.step.orderBy.map(({ path }) => readPath(doc, path) ?? null)
    const shownId = this.#showsId ? id : null
    return { actorId, id, shownId, doc, text: JSON.stringify(shown), sorted: JSON.stringify(key) }
  }
}

/** Throws RequestError as the graph does, and for what can't be followed. */
export function planLive(
  query: Readonly<Record<string, unknown>>,
  { schema, access }: { readonly schema: GraphSchema; readonly access: GraphAccess },
): LivePlan {
  const strange = Object.keys(query).find((name) => !MEMBERS.has(name))
  if (strange === 'phrase') throw refused('a live query has no phrase: ask the graph for it')
  if (strange !== undefined) {
    throw refused(`a live query has ${[...MEMBERS].join(', ')}, and no "${strange}"`)
  }
  const planned = (nowMs: number): Step =>
    planNavigations([query], schema, access, { nowMs, limits: LIMITS.graph }).steps[0]!
  const step = planned(0)
  if (JSON.stringify(step) !== JSON.stringify(planned(86_400_000))) {
    throw refused('`now` moves by itself, and a live query goes by changes: use a fixed instant')
  }
  if (step.returns !== 'nodes') throw refused('a live query shows nodes: it needs `node`')
  if (step.limit < 1 || step.limit > LIMITS.live.queryLimitMax) {
    throw refused(`limit is from 1 to ${LIMITS.live.queryLimitMax} in a live query`)
  }
  for (const below of step.plan.steps) checkNested(below)
  const actorField = actorFieldOf(step.plan.node, schema)
  if (actorField === null) {
    throw refused(`${step.name} can not be followed: its nodes don't say whose they are`)
  }
  const showsId = access.mayField(step.plan.node, [step.idField])
  return new LivePlan(step, { actorField, showsId, schema })
}

function checkNested({ name, storage, cardinality, source, plan }: Step): void {
  const isOwn = source.kind === 'edge' && source.sameActor && storage.kind === 'row'
  if (!isOwn || cardinality !== 'single') {
    throw refused(`${name}: a live query follows edges to one node of the same actor only`)
  }
  for (const below of plan.steps) checkNested(below)
}

function readable(plan: NodePlan, hidden: readonly FieldPath[]): NodePlan {
  const fields = [...plan.fields]
  for (const path of hidden) {
    const isThere = fields.some((one) => one.every((name, i) => name === path[i]))
    if (!isThere) fields.push(path)
  }
  const steps = plan.steps.map((step, i) => ({ ...step, name: nested(i) }))
  return { ...plan, fields, steps }
}

/** No field is called so: a nested node and a field that is read beside it are kept apart. */
function nested(i: number): string {
  return `:${i}`
}

/** What nested nodes are called. */
function names({ plan }: Step): readonly string[] {
  return plan.steps.map(({ name }) => name)
}

function typesOf({ plan }: Step, into = new Set<string>()): ReadonlySet<string> {
  into.add(plan.node)
  for (const step of plan.steps) typesOf(step, into)
  return into
}

/** The custom fields that a plan may name: what they hold goes by their definitions. */
function customIn(
  asked: string,
  types: ReadonlySet<string>,
  schema: GraphSchema,
): readonly (readonly [type: string, field: FieldDef])[] {
  return [...types].flatMap((type) =>
    schema.nodes
      .get(type)!
      .type.fields.filter((field) => field.custom && asked.includes(JSON.stringify(field.name)))
      .map((field) => [type, field] as const),
  )
}

function refused(message: string): RequestError {
  return new RequestError('INVALID_QUERY', message)
}
