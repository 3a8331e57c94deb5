// Conditions and sort keys of a plan as queries of the search engine. A query finds all that can
// match; `exact` says whether it finds nothing else. What the engine can't say (a field compared
// with another, a sum, a part of a text in the middle of `dynamic`) is asked of the documents
// themselves afterwards, among the few that the rest of the condition leaves. Source: CONTRACT 1.4,
// Appendix A.

import type {
  CompareOperator,
  Condition,
  FieldPath,
  Operand,
  Scalar,
  SortKey,
} from '../../protocol/graph/plan.ts'
import type { FieldMapping, Query, RangeQuery, Sort, Term } from './engine.ts'
import { LONG, MEMBERS, TERM_CHARS_MAX } from './layout.ts'
import { ELEMENT, keyOf, LIST, valueOf } from './members.ts'

export interface ConditionQuery {
  readonly query: Query
  /** True: whatever the query finds matches. */
  readonly exact: boolean
}

/** Where the nodes are: documents of their own, or elements of a list in documents. */
export interface Place {
  readonly properties: Readonly<Record<string, FieldMapping>>
  /** Member that holds the elements; null: nodes are documents. */
  readonly within: string | null
  /** Fields that hold lists of text: an empty one is there, though nothing is found by it. */
  readonly lists: ReadonlySet<string>
}

export const ALL: Query = { match_all: {} }
export const NONE: Query = { match_none: {} }

export const EVERYTHING: ConditionQuery = { query: ALL, exact: true }
const NOTHING: ConditionQuery = { query: NONE, exact: true }
const UNKNOWN: ConditionQuery = { query: ALL, exact: false }

/** The engine refuses queries that nest deeper than 30. */
const DEPTH_MAX = 20

export function conditionQueryOf(condition: Condition, place: Place, depth = 0): ConditionQuery {
  const compiled = depth > DEPTH_MAX ? UNKNOWN : queryOfKind(condition, place, depth)
  // What one element has and another has looks like one that has both.
  return place.within === null || isNothing(compiled) ? compiled : { ...compiled, exact: false }
}

const isNothing = ({ query }: ConditionQuery): boolean => 'match_none' in query

function queryOfKind(condition: Condition, place: Place, depth: number): ConditionQuery {
  switch (condition.kind) {
    case 'constant':
      return condition.value ? EVERYTHING : NOTHING
    case 'and':
      return allOf(condition.of.map((part) => conditionQueryOf(part, place, depth + 1)))
    case 'or':
      return anyOf(condition.of.map((part) => conditionQueryOf(part, place, depth + 1)))
    case 'not': {
      const compiled = conditionQueryOf(condition.of, place, depth + 1)
      // Without what can match, some would be lost that don't.
      return compiled.exact ? exactly({ bool: { must_not: [compiled.query] } }) : UNKNOWN
    }
    case 'compare':
      return compare(condition, place)
    case 'missing':
      return missing(condition.path, place)
    case 'in':
      return among(condition, place)
    case 'array':
      return list(condition, place)
    case 'text':
      return text(condition, place)
    case 'true':
      return truth(condition.operand, place)
  }
}

const exactly = (query: Query): ConditionQuery => ({ query, exact: true })
const roughly = (query: Query): ConditionQuery => ({ query, exact: false })

export function allOf(parts: readonly ConditionQuery[]): ConditionQuery {
  const queries = parts.map(({ query }) => query).filter((query) => !('match_all' in query))
  const exact = parts.every((part) => part.exact)
  if (queries.length === 0) return { query: ALL, exact }
  return { query: queries.length === 1 ? queries[0]! : { bool: { filter: queries } }, exact }
}

export function anyOf(parts: readonly ConditionQuery[]): ConditionQuery {
  const queries = parts.map(({ query }) => query).filter((query) => !('match_none' in query))
  const exact = parts.every((part) => part.exact)
  if (queries.length === 0) return { query: NONE, exact }
  if (queries.length === 1) return { query: queries[0]!, exact }
  return { query: { bool: { should: queries, minimum_should_match: 1 } }, exact }
}

export const term = (field: string, value: Term): Query => ({ term: { [field]: { value } } })
const terms = (field: string, values: readonly Term[]): Query => ({ terms: { [field]: values } })
export const range = (field: string, of: RangeQuery): Query => ({ range: { [field]: of } })
export const prefix = (field: string, value: string): Query => ({ prefix: { [field]: { value } } })
export const exists = (field: string): Query => ({ exists: { field } })
const except = (query: Query, without: Query): Query => ({
  bool: { filter: [query], must_not: [without] },
})

/** Longer texts may be cut to the same term as it: one short of a term, where a character ends. */
const isLong = (value: Scalar): boolean =>
  typeof value === 'string' && value.length >= TERM_CHARS_MAX - 1

/** Kind of a field's mapping: what can be asked of it. */
type Kind = 'keyword' | 'double' | 'boolean' | 'date' | 'none'

interface Field {
  readonly name: string
  readonly kind: Kind
}

export function fieldOf(path: FieldPath, { properties, within }: Place): Field {
  const names = within === null ? path : [within, ...path]
  let known = properties
  let mapping: FieldMapping | undefined
  for (const [i, name] of names.entries()) {
    mapping = Object.hasOwn(known, name) ? known[name] : undefined
    if (mapping === undefined) break
    if (i === names.length - 1) break
    if (!('properties' in mapping)) return { name: '', kind: 'none' }
    known = mapping.properties
  }
  const type = mapping !== undefined && 'type' in mapping ? mapping.type : 'none'
  const kind = type === 'keyword' || type === 'double' || type === 'boolean' || type === 'date'
  return { name: names.join('.'), kind: kind ? type : 'none' }
}

type FieldOperand = Extract<Operand, { kind: 'field' }>

/** Field of a member of `dynamic`, by what is there. */
export const memberField = (shape: 'S' | 'A' | 'O', path: FieldPath): string =>
  `${MEMBERS}.${keyOf(shape, path)}`

/** Something of the operand's is there: else nothing compared with it is true. */
function present(operand: Operand, place: Place): Query {
  switch (operand.kind) {
    case 'value':
    case 'truth':
      return ALL
    case 'field': {
      if (operand.type === 'dynamic') {
        return place.within === null ? exists(memberField('S', operand.path)) : ALL
      }
      const { name, kind } = fieldOf(operand.path, place)
      return kind === 'none' ? ALL : exists(name)
    }
    case 'sum':
      return allOf([roughly(present(operand.left, place)), roughly(present(operand.right, place))])
        .query
    case 'millis':
    case 'midnight':
      return present(operand.of, place)
  }
}

const MIRRORED: Readonly<Record<CompareOperator, CompareOperator>> = {
  '==': '==',
  '!=': '!=',
  '<': '>',
  '<=': '>=',
  '>': '<',
  '>=': '<=',
}

type Compare = Extract<Condition, { kind: 'compare' }>

function compare({ operator, left, right }: Compare, place: Place): ConditionQuery {
  // That one element has the value says nothing of the others.
  const isOpen = place.within !== null && operator === '!='
  const compiled = isOpen
    ? null
    : right.kind === 'value'
      ? compareConstant(left, operator, right.value, place)
      : left.kind === 'value'
        ? compareConstant(right, MIRRORED[operator], left.value, place)
        : null
  if (compiled !== null) return compiled
  return roughly(allOf([roughly(present(left, place)), roughly(present(right, place))]).query)
}

/** An operand against a constant; null: the engine can't say it. */
function compareConstant(
  operand: Operand,
  operator: CompareOperator,
  value: Scalar,
  place: Place,
): ConditionQuery | null {
  if (typeof value === 'number' && !Number.isFinite(value)) return null
  if (isLong(value)) return null
  if (typeof value === 'boolean' && operator !== '==' && operator !== '!=') return NOTHING
  if (operand.kind === 'field') {
    if (operand.type === 'dynamic') return compareMember(operand, operator, value, place)
    return compareField(fieldOf(operand.path, place), operator, value)
  }
  return typeof value === 'number' ? compareMillis(operand, operator, value, place) : null
}

function compareField({ name, kind }: Field, operator: CompareOperator, value: Scalar) {
  switch (kind) {
    case 'none':
      return null
    case 'boolean':
      return typeof value === 'boolean' ? compared(name, operator, value) : null
    case 'double':
      return typeof value === 'number' ? compared(name, operator, value) : null
    case 'keyword':
      return typeof value === 'string' ? compared(name, operator, value) : null
    case 'date':
      if (typeof value !== 'string' || Number.isNaN(Date.parse(value))) return null
      return compared(name, operator, value)
  }
}

function compared(name: string, operator: CompareOperator, value: Term): ConditionQuery {
  switch (operator) {
    case '==':
      return exactly(term(name, value))
    case '!=':
      return exactly(except(exists(name), term(name, value)))
    default:
      return exactly(range(name, bound(operator, value)))
  }
}

function bound(operator: '<' | '<=' | '>' | '>=', value: Term): RangeQuery {
  switch (operator) {
    case '<':
      return { lt: value }
    case '<=':
      return { lte: value }
    case '>':
      return { gt: value }
    case '>=':
      return { gte: value }
  }
}

/** A member of `dynamic`: only values of the constant's own kind count. */
function compareMember(
  { path }: FieldOperand,
  operator: CompareOperator,
  value: Scalar,
  place: Place,
): ConditionQuery | null {
  if (place.within !== null) return null
  const name = memberField('S', path)
  const own = valueOf(value)
  const kind = own[0]!
  const ofKind: RangeQuery = { gte: kind, lt: String.fromCodePoint(kind.codePointAt(0)! + 1) }
  switch (operator) {
    case '==':
      return exactly(term(name, own))
    case '!=':
      return exactly(except(range(name, ofKind), term(name, own)))
    case '<':
    case '<=':
      return exactly(range(name, { gte: kind, ...bound(operator, own) }))
    default:
      return exactly(range(name, { lt: ofKind.lt!, ...bound(operator, own) }))
  }
}

/** `field + 7 days < now`: milliseconds of a date field, moved by a constant. */
function compareMillis(
  operand: Operand,
  operator: CompareOperator,
  value: number,
  place: Place,
): ConditionQuery | null {
  if (operand.kind === 'sum' && operand.right.kind === 'value') {
    const by = operand.right.value as number
    const moved = operand.operator === '+' ? value - by : value + by
    return compareMillis(operand.left, operator, moved, place)
  }
  if (operand.kind !== 'millis' || operand.of.kind !== 'field') return null
  const { name, kind } = fieldOf(operand.of.path, place)
  if (kind !== 'date' || !Number.isSafeInteger(value)) return null
  const at = (of: RangeQuery): Query => range(name, { ...of, format: 'epoch_millis' })
  if (operator === '==') return exactly(at({ gte: value, lte: value }))
  if (operator === '!=') return exactly(except(exists(name), at({ gte: value, lte: value })))
  return exactly(at(bound(operator, value)))
}

function missing(path: FieldPath, place: Place): ConditionQuery {
  if (place.within !== null) return UNKNOWN
  const { name, kind } = fieldOf(path, place)
  const mapping = place.properties[path[0]!]
  const isMember = path.length > 1 && mapping !== undefined && 'enabled' in mapping
  if (isMember) {
    const some = (['S', 'A', 'O'] as const).map((shape) => exists(memberField(shape, path)))
    return exactly({ bool: { must_not: some } })
  }
  // A list may be there and empty, an object without members.
  const compiled: Query = kind === 'none' ? ALL : { bool: { must_not: [exists(name)] } }
  return { query: compiled, exact: kind !== 'none' && !place.lists.has(path[0]!) }
}

function among(condition: Extract<Condition, { kind: 'in' }>, place: Place): ConditionQuery {
  const { operand, values } = condition
  if (operand.kind !== 'field' || values.some(isLong)) return roughly(present(operand, place))
  if (operand.type === 'dynamic') {
    if (place.within !== null) return UNKNOWN
    return exactly(terms(memberField('S', operand.path), values.map(valueOf)))
  }
  const { name, kind } = fieldOf(operand.path, place)
  if (kind === 'none') return UNKNOWN
  const fits = values.every((value) => compareField({ name, kind }, '==', value) !== null)
  return fits ? exactly(terms(name, values)) : roughly(exists(name))
}

function list(condition: Extract<Condition, { kind: 'array' }>, place: Place): ConditionQuery {
  const { operator, path, values } = condition
  if (operator === 'anyof' && values.length === 0) return NOTHING
  const { name, kind } = fieldOf(path, place)
  const isMember = kind === 'none'
  if (place.within !== null && isMember) return UNKNOWN
  const field = isMember ? memberField('A', path) : name
  if (values.some(isLong)) return roughly(exists(field))
  const wanted = isMember ? values.map((value) => ELEMENT + valueOf(value)) : values
  if (operator === 'anyof') return exactly(terms(field, wanted))
  if (wanted.length === 0) return isMember ? exactly(term(field, LIST)) : UNKNOWN
  return allOf(wanted.map((value) => exactly(term(field, value))))
}

function text(condition: Extract<Condition, { kind: 'text' }>, place: Place): ConditionQuery {
  const { operator, left, right } = condition
  const there = allOf([roughly(present(left, place)), roughly(present(right, place))]).query
  if (left.kind !== 'field' || right.kind !== 'value') return roughly(there)
  const part = String(right.value)
  if (isLong(part)) return roughly(there)
  if (left.type === 'dynamic') {
    if (place.within !== null) return UNKNOWN
    const field = memberField('S', left.path)
    return operator === 'startsWith'
      ? exactly(prefix(field, valueOf(part)))
      : roughly(prefix(field, 't'))
  }
  const { name, kind } = fieldOf(left.path, place)
  if (kind !== 'keyword') return roughly(there)
  if (part === '') return exactly(exists(name))
  if (operator === 'startsWith') return exactly(prefix(name, part))
  const literal = part.replaceAll(/[*?\\]/g, '\\$&')
  const pattern = operator === 'contains' ? `*${literal}*` : `*${literal}`
  // Of a long text only the beginning is a term.
  return roughly({
    bool: {
      should: [{ wildcard: { [name]: { value: pattern } } }, term(LONG, longName(left, place))],
    },
  })
}

/** How `long` names a field: elements are kept whole when any text in them is long. */
const longName = ({ path }: FieldOperand, { within }: Place): string => within ?? path.join('.')

function truth(operand: Operand, place: Place): ConditionQuery {
  if (operand.kind !== 'field') return UNKNOWN
  return compareConstant(operand, '==', true, place) ?? roughly(present(operand, place))
}

/** Sorts of documents by a step's keys; missing values come last. */
export function sortsOf(keys: readonly SortKey[], place: Place): Sort[] {
  return keys.map(({ path, direction, as }) => {
    const name = as === 'any' ? memberField('S', path) : fieldOf(path, place).name
    return { [name]: { order: direction, missing: '_last' } }
  })
}
