// What a step selects, as one query: where its nodes lie, which documents can hold them, what is
// still to be asked of each, and which members of the documents are needed for it. finder.ts runs
// the searches. Source: CONTRACT 1.4, ARCHITECTURE 5.

import { compileCondition, type Test } from '../../protocol/graph/evaluate.ts'
import { assert } from '../../protocol/errors.ts'
import type { Condition, Operand, Step } from '../../protocol/graph/plan.ts'
import type { GraphSchema } from '../../protocol/graph/schema.ts'
import type { Query, Sort } from './engine.ts'
import {
  ACTOR,
  DELETED,
  FIND,
  ID,
  NODES,
  PLACE,
  REST,
  WHOLE,
  type Layout,
  type NodeLayout,
} from './layout.ts'
import { ALL, allOf, conditionQueryOf, sortsOf, type ConditionQuery, type Place } from './query.ts'
import { phraseQueryOf } from './phrase.ts'
import { insideOf } from './whole.ts'

export interface Selection {
  readonly layout: NodeLayout
  readonly place: Place
  /** Filter of the step; removed nodes are left out by `searchOf`. */
  readonly compiled: ConditionQuery
  /** Hits of a phrase come in their order, by what they score. */
  readonly isRanked: boolean
  /** To be asked of what is found; null: nothing. */
  readonly test: Test | null
  readonly sort: readonly Sort[]
  readonly source: readonly string[]
  /** Nodes are elements of this member of the documents; null: they are the documents. */
  readonly within: string | null
  /** What their actors' documents hold of other nodes is read along: they are large. */
  readonly isWhole: boolean
}

/** Unique, so that pages never overlap. */
export const BY_ID: readonly Sort[] = [
  { [ID]: { order: 'asc', missing: '_last' } },
  { [ACTOR]: { order: 'asc', missing: '_last' } },
]

const BY_RANK: readonly Sort[] = [{ _score: { order: 'desc', missing: '_last' } }]

/** Removed nodes stay as what they were removed by (PROTOCOL 3.13.3). */
export function livingOf(parts: readonly ConditionQuery[]): Query {
  const { query } = allOf(parts)
  const removed: Query = { term: { [DELETED]: { value: true } } }
  return { bool: { ...(query !== ALL && { filter: [query] }), must_not: [removed] } }
}

export function placeOfStep(
  step: Pick<Step, 'storage' | 'plan'>,
  layout: Layout,
  schema: GraphSchema,
): Place & {
  readonly layout: NodeLayout
} {
  const { storage, plan } = step
  const embedded = storage.kind === 'embedded'
  const found = layout.nodes.get(embedded ? storage.node : plan.node)
  assert(found !== undefined, `node type ${plan.node} has a place in the index`)
  const fields = schema.nodes.get(plan.node)?.type.fields ?? []
  return {
    layout: found,
    properties: found.properties,
    within: embedded ? storage.member : null,
    lists: new Set(fields.filter(({ type }) => type === '[text]').map(({ name }) => name)),
  }
}

export function selectionOf(step: Step, layout: Layout, schema: GraphSchema): Selection {
  const { layout: own, ...place } = placeOfStep(step, layout, schema)
  const { phrase } = step
  const filtered =
    step.filter === null ? { query: ALL, exact: true } : conditionQueryOf(step.filter, place)
  const found = phrase === null || place.within !== null ? null : phraseQueryOf(phrase)
  const compiled = found === null ? filtered : allOf([filtered, found])
  // Elements of a document that is at hand are found without a search, so without the query.
  const isSettled = filtered.exact && place.within === null
  const test = step.filter === null || isSettled ? null : compileCondition(step.filter)
  const isRanked = found?.exact === true
  const sort =
    place.within === null
      ? [...(isRanked ? BY_RANK : sortsOf(step.orderBy, place)), ...BY_ID]
      : BY_ID
  const whole = place.within === null && own.type.root ? wholeOf(step) : []
  const words = found === null ? [] : [FIND]
  return {
    layout: own,
    place,
    compiled,
    isRanked,
    test,
    sort,
    source: [
      ACTOR,
      ID,
      PLACE,
      REST,
      ...membersOf(step, place.within, test !== null),
      ...whole,
      ...words,
    ],
    within: place.within,
    isWhole: whole.length > 0,
  }
}

/** What the steps below need of an actor's document, when all of them is taken from there. */
function wholeOf({ plan }: Step): string[] {
  const { types, back } = insideOf(plan, plan.node)
  if (types.size === 0) return []
  const members = back.flatMap((step) => {
    const { storage } = step
    return membersOf(step, storage.kind === 'embedded' ? storage.member : null, true)
  })
  return [NODES, ...Array.from(types, (type) => `${WHOLE}.${type}`), ...new Set(members)]
}

/** Members whose values the answer, the order, the semi-joins, the links or the test need. */
function membersOf(step: Step, within: string | null, isTested: boolean): string[] {
  if (within !== null) return [within]
  const { plan, orderBy, source, position, filter } = step
  const members = new Set(plan.fields.map((path) => path[0]!))
  for (const { path } of orderBy) members.add(path[0]!)
  if (source.kind === 'edge') members.add(source.to)
  for (const { source: below, storage } of plan.steps) {
    if (below.kind === 'edge') members.add(below.from)
    if (storage.kind === 'embedded' && storage.node === plan.node) members.add(storage.member)
  }
  if (position !== null) members.add(position)
  if (isTested && filter !== null) for (const member of membersRead(filter)) members.add(member)
  return [...members]
}

/** Members that a condition reads. */
export function membersRead(condition: Condition): string[] {
  switch (condition.kind) {
    case 'constant':
      return []
    case 'and':
    case 'or':
      return condition.of.flatMap(membersRead)
    case 'not':
      return membersRead(condition.of)
    case 'compare':
    case 'text':
      return [...readByOperand(condition.left), ...readByOperand(condition.right)]
    case 'missing':
    case 'array':
      return [condition.path[0]!]
    case 'in':
    case 'true':
      return readByOperand(condition.operand)
  }
}

function readByOperand(operand: Operand): string[] {
  switch (operand.kind) {
    case 'value':
      return []
    case 'field':
      return [operand.path[0]!]
    case 'sum':
      return [...readByOperand(operand.left), ...readByOperand(operand.right)]
    case 'millis':
    case 'midnight':
      return readByOperand(operand.of)
    case 'truth':
      return membersRead(operand.of)
  }
}
