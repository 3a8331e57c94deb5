// Pieces of SQL with their parameters, and conditions of a plan written as such. Nothing a caller
// wrote becomes SQL text: names come from the layout, everything else is bound.
//
// SQL knows a third truth, NULL; a plan doesn't. A condition without `not` is TRUE in SQL exactly
// when it is true in the plan, so it is enough that `not` asks IS NOT TRUE.

import { compareText } from '../../protocol/graph/evaluate.ts'
import type {
  CompareOperator,
  Condition,
  FieldPath,
  Operand,
  Scalar,
  ValueKind,
} from '../../protocol/graph/plan.ts'
import { keyBytes, NODES_PER_ACTOR, storedId, type Column, type NodeLayout } from './layout.ts'
import { patternOf, storedName } from './stored-json.ts'

/** A value to bind; `first`, `last` and `value` are filled in for each parent of a nested step. */
export type Param =
  | string
  | number
  | Uint8Array
  | null
  | { readonly of: 'first' | 'last' | 'value' | 'key' }

export interface Sql {
  readonly text: string
  readonly params: readonly Param[]
}

/** SQL by template: pieces are put in with their parameters, plain strings are trusted text. */
export function sql(strings: TemplateStringsArray, ...parts: readonly (Sql | string)[]): Sql {
  let text = strings[0]!
  const params: Param[] = []
  for (const [i, part] of parts.entries()) {
    if (typeof part === 'string') text += part
    else {
      text += part.text
      params.push(...part.params)
    }
    text += strings[i + 1]!
  }
  return { text, params }
}

export const param = (value: Param): Sql => ({ text: '?', params: [value] })

/** Terms side by side: SQLite picks indexes by the terms of the outermost AND. */
export function conjunction(terms: readonly Sql[]): Sql {
  return {
    text: terms.map((term) => term.text).join(' AND '),
    params: terms.flatMap((term) => term.params),
  }
}

/** Name of the SQL function that throws when the query's time is over. */
export const TICK = 'budget_tick'
const NODE_BITS = Math.log2(NODES_PER_ACTOR)

/** Always true; asks at rows of every 64th actor, by their keys, whether time is over. */
export const tick = (key: string): Sql => ({
  text: `((${key} >> ${NODE_BITS}) & 63 OR ${TICK}())`,
  params: [],
})

/** Pieces joined as a balanced tree: SQLite bounds how deep an expression may nest. */
export function joined(pieces: readonly Sql[], word: 'AND' | 'OR'): Sql {
  if (pieces.length === 1) return pieces[0]!
  if (pieces.length === 0) return { text: word === 'AND' ? '1' : '0', params: [] }
  const middle = pieces.length >> 1
  return sql`(${joined(pieces.slice(0, middle), word)} ${word} ${joined(pieces.slice(middle), word)})`
}

/**
 * True when there is such a row. The limit says nothing new, but it keeps SQLite 3.51 from making a
 * join of it ("EXISTS-to-JOIN"), which loses rows: with an OR whose sides an index serves, one of
 * them a list, nothing is found behind the first outer row that has such a row.
 */
export const exists = (from: Sql | string, where: Sql): Sql =>
  sql`EXISTS (SELECT 1 FROM ${from} WHERE ${where} LIMIT 1)`

/** Where a statement finds nodes of one type: a table, or the elements of an array in its rows. */
export interface Relation {
  readonly layout: NodeLayout
  /** Alias of the table. */
  readonly table: string
  /** null: nodes are the table's rows. Else alias of json_each over the array. */
  readonly element: string | null
  /** Slot of the array that holds embedded nodes. */
  readonly slot: number
  /** Member with the node's id. */
  readonly idField: string
}

/** Lists longer than this are bound as one JSON value. */
const LIST_PARAMS_MAX = 16

type Kind = ValueKind | 'any'

export function conditionSql(condition: Condition, on: Relation): Sql {
  switch (condition.kind) {
    case 'constant':
      return { text: condition.value ? '1' : '0', params: [] }
    case 'and':
    case 'or':
      return joined(
        condition.of.map((part) => conditionSql(part, on)),
        condition.kind === 'and' ? 'AND' : 'OR',
      )
    case 'not':
      return sql`(${conditionSql(condition.of, on)} IS NOT TRUE)`
    case 'compare':
      return compareSql(condition, on)
    case 'missing':
      return sql`(${anyValue(condition.path, on)} IS NULL)`
    case 'in':
      return inSql(condition, on)
    case 'array':
      return arraySql(condition, on)
    case 'text':
      return textSql(condition, on)
    case 'true':
      return sql`(${operandSql(condition.operand, 'boolean', on)} = 1)`
  }
}

const OPERATORS: Readonly<Record<CompareOperator, string>> = {
  '==': '=',
  '!=': '<>',
  '<': '<',
  '<=': '<=',
  '>': '>',
  '>=': '>=',
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

function compareSql(condition: Compare, on: Relation): Sql {
  const { operator, as, left, right } = condition
  const own =
    right.kind === 'value'
      ? storedCompare(left, operator, right.value, on)
      : left.kind === 'value'
        ? storedCompare(right, MIRRORED[operator], left.value, on)
        : null
  if (own !== null) return own
  const word = OPERATORS[operator]
  if (as !== 'any') {
    const looked = operator === '==' ? lookedFor(left, right, 'is', on) : ''
    return sql`(${looked}${operandSql(left, as, on)} ${word} ${operandSql(right, as, on)})`
  }
  const kinds: ValueKind[] = ['text', 'number']
  if (operator === '==' || operator === '!=') kinds.push('boolean')
  return joined(
    kinds.map(
      (kind) => sql`(${operandSql(left, kind, on)} ${word} ${operandSql(right, kind, on)})`,
    ),
    'OR',
  )
}

/** A field that is stored in a form of its own, compared with a constant in that form. */
function storedCompare(
  operand: Operand,
  operator: CompareOperator,
  value: Scalar,
  on: Relation,
): Sql | null {
  if (operand.kind !== 'field' || operand.path.length !== 1 || on.element !== null) return null
  const member = operand.path[0]!
  const stored = storedForm(member, value, on)
  return stored && sql`(${stored.name} ${OPERATORS[operator]} ${param(stored.value)})`
}

function storedForm(
  member: string,
  value: Scalar,
  { layout, table }: Relation,
): { name: string; value: Param } | null {
  if (typeof value !== 'string') return null
  if (member === layout.type.idField) {
    const id = storedId(layout, value)
    // A UUID in another spelling is not the id that is stored.
    return layout.uuidIds && typeof id === 'string' ? null : { name: `${table}.id`, value: id }
  }
  if (layout.actorMembers.has(member)) {
    const actor = keyBytes(value)
    return actor && { name: `${table}.actor`, value: actor }
  }
  const column = layout.columnOf.get(member)
  return column?.kind === 'instant'
    ? { name: columnName(table, column), value: Date.parse(value) }
    : null
}

export const columnName = (table: string, column: Column): string => `${table}.${column.name}`

function inSql(condition: Extract<Condition, { kind: 'in' }>, on: Relation): Sql {
  const { as, operand, values } = condition
  if (operand.kind === 'field' && operand.path.length === 1 && on.element === null) {
    const stored = values.map((value) => storedForm(operand.path[0]!, value, on))
    if (stored[0] && stored.every((form) => form !== null)) {
      return sql`(${stored[0].name} IN ${listSql(stored.map((form) => form.value))})`
    }
  }
  return sql`(${operandSql(operand, as, on)} IN ${listSql(values.map(bound))})`
}

export function bound(value: Scalar): string | number {
  return typeof value === 'boolean' ? Number(value) : value
}

function listSql(values: readonly Param[]): Sql {
  if (values.length <= LIST_PARAMS_MAX || !values.every(isSameInJson)) {
    return { text: `(${values.map(() => '?').join(', ')})`, params: values }
  }
  return { text: '(SELECT value FROM json_each(?))', params: [JSON.stringify(values)] }
}

/**
 * True: SQLite reads the value out of JSON as it is. A larger integer would be another one, as its
 * last digits are not written; parts are read as exactly as its own reading goes.
 */
function isSameInJson(value: Param): boolean {
  return typeof value === 'string' || Number.isSafeInteger(value)
}

/** JSON text of the node, and the JSON path of one of its members. */
export function jsonOf(path: FieldPath, on: Relation): { doc: string; path: Sql } {
  const names = on.element === null ? path.slice(1) : path
  const start = on.element === null ? `$[${on.layout.slots.get(path[0]!)!}]` : '$'
  const doc = on.element === null ? `${on.table}.doc` : `${on.element}.value`
  if (names.length === 0) return { doc, path: { text: `'${start}'`, params: [] } }
  // Names are compared as they stand in the JSON text, escapes included.
  const steps = names.map((name) => `.${JSON.stringify(storedName(name))}`)
  return { doc, path: param(start + steps.join('')) }
}

function extract(path: FieldPath, on: Relation): Sql {
  const json = jsonOf(path, on)
  return sql`json_extract(${json.doc}, ${json.path})`
}

/** A value of any type, NULL when it is missing. */
function anyValue(path: FieldPath, on: Relation): Sql {
  const column = path.length === 1 && on.element === null ? on.layout.columnOf.get(path[0]!) : null
  return column ? sql`${columnName(on.table, column)}` : extract(path, on)
}

/** An operand as a value of a kind, NULL when it is missing or of another kind. */
export function operandSql(operand: Operand, as: ValueKind, on: Relation): Sql {
  switch (operand.kind) {
    case 'value':
      return param(bound(operand.value))
    case 'field':
      return fieldSql(operand.path, operand.type, as, on)
    case 'sum': {
      const left = operandSql(operand.left, 'number', on)
      const right = operandSql(operand.right, 'number', on)
      return sql`(${left} ${operand.operator} ${right})`
    }
    case 'millis':
      return millisSql(operand.of, on)
    case 'midnight':
      return sql`(${operandSql(operand.of, 'text', on)} || 'T00:00:00.000Z')`
    case 'truth':
      return sql`(${conditionSql(operand.of, on)} IS TRUE)`
  }
}

type FieldType = Extract<Operand, { kind: 'field' }>['type']

export function fieldSql(path: FieldPath, type: FieldType, as: ValueKind, on: Relation): Sql {
  if (type === 'dynamic') return dynamicSql(path, as, on)
  const column = path.length === 1 && on.element === null ? on.layout.columnOf.get(path[0]!) : null
  // Instants as text come from the document: the column holds milliseconds.
  if (column && column.kind === as) return sql`${columnName(on.table, column)}`
  const value = extract(path, on)
  return as === 'number' ? sql`CAST(${value} AS REAL)` : value
}

/** Any JSON, read as one kind. */
export function dynamicSql(path: FieldPath, as: Kind, on: Relation): Sql {
  const json = jsonOf(path, on)
  const type = sql`json_type(${json.doc}, ${json.path})`
  const value = extract(path, on)
  switch (as) {
    case 'text':
      return sql`(CASE ${type} WHEN 'text' THEN ${value} END)`
    case 'number':
      return sql`(CASE WHEN ${type} IN ('integer', 'real') THEN CAST(${value} AS REAL) END)`
    case 'boolean':
      return sql`(CASE ${type} WHEN 'true' THEN 1 WHEN 'false' THEN 0 END)`
    case 'any':
      return sql`(CASE WHEN ${type} IN ('true', 'false', 'integer', 'real', 'text') THEN ${value} END)`
  }
}

function millisSql(of: Operand, on: Relation): Sql {
  const column =
    of.kind === 'field' && of.path.length === 1 && on.element === null
      ? on.layout.columnOf.get(of.path[0]!)
      : undefined
  if (column?.kind === 'instant') return sql`${columnName(on.table, column)}`
  const text = operandSql(of, 'text', on)
  // The canonical form has its milliseconds in three digits behind the seconds; a date has none.
  return sql`(unixepoch(${text}) * 1000.0 + CAST(substr(${text}, 21, 3) AS REAL))`
}

function arraySql(condition: Extract<Condition, { kind: 'array' }>, on: Relation): Sql {
  const { operator, path, as, values } = condition
  const json = jsonOf(path, on)
  const isArray = sql`json_type(${json.doc}, ${json.path}) = 'array'`
  if (values.length === 0) return operator === 'allof' ? sql`(${isArray})` : sql`0`
  const each = sql`json_each(${json.doc}, ${json.path}) AS m`
  const match = elementSql(as, values)
  const test =
    operator === 'anyof'
      ? exists(each, match)
      : sql`(SELECT count(DISTINCT m.value) FROM ${each} WHERE ${match}) = ${param(values.length)}`
  return sql`(${isArray} AND ${test})`
}

function elementSql(as: ValueKind, values: readonly Scalar[]): Sql {
  const list = listSql(values.map(bound))
  switch (as) {
    case 'text':
      return sql`m.type = 'text' AND m.value IN ${list}`
    case 'number':
      return sql`m.type IN ('integer', 'real') AND CAST(m.value AS REAL) IN ${list}`
    case 'boolean':
      return sql`m.type IN ('true', 'false') AND m.value IN ${list}`
  }
}

function textSql(condition: Extract<Condition, { kind: 'text' }>, on: Relation): Sql {
  const { operator, left, right } = condition
  const text = operandSql(left, 'text', on)
  const part = operandSql(right, 'text', on)
  if (operator === 'contains')
    return sql`(${lookedFor(left, right, 'holds', on)}instr(${text}, ${part}) > 0)`
  if (operator === 'startsWith' && right.kind === 'value') {
    const range = prefixSql(text, String(right.value))
    if (range !== null) return range
  }
  // substr would do it with less reading, but of an empty text it makes NULL.
  if (operator === 'startsWith') return sql`(instr(${text}, ${part}) = 1)`
  // As bytes: a part of a text is a part of its UTF-8, and lengths count what is compared.
  const bytes = sql`CAST(${part} AS BLOB)`
  const end = sql`substr(CAST(${text} AS BLOB), -length(${bytes}))`
  return sql`(CASE WHEN length(${bytes}) = 0 THEN ${text} IS NOT NULL ELSE ${end} = ${bytes} END)`
}

/** What the text of each document has in which a field, that is read from it, has this value. */
function lookedFor(field: Operand, other: Operand, how: 'is' | 'holds', on: Relation): Sql | '' {
  if (field.kind !== 'field' || other.kind !== 'value' || on.element !== null) return ''
  if (field.path.length === 1 && on.layout.columnOf.has(field.path[0]!)) return ''
  const { value } = other
  const pattern = typeof value === 'boolean' ? null : patternOf(value, how)
  return pattern === null ? '' : sql`${on.table}.doc GLOB ${param(pattern)} AND `
}

/** Texts that start with a prefix are a range, which an index can serve. */
function prefixSql(text: Sql, prefix: string): Sql | null {
  const behind = textBehind(prefix)
  if (prefix === '' || behind === null) return null
  return sql`(${text} >= ${param(prefix)} AND ${text} < ${param(behind)})`
}

/** The smallest text above all texts that start with `prefix`; null when there is none. */
export function textBehind(prefix: string): string | null {
  const points = Array.from(prefix)
  for (let i = points.length - 1; i >= 0; i--) {
    const point = points[i]!.codePointAt(0)!
    if (point === 0x10ffff) continue
    // Surrogates are no characters of their own.
    const next = String.fromCodePoint(point === 0xd7ff ? 0xe000 : point + 1)
    const behind = points.slice(0, i).join('') + next
    return compareText(behind, prefix) > 0 ? behind : null
  }
  return null
}
