// The order of a step's nodes in SQL, and where in it a cursor stands: nodes behind it are found by
// a range of the first key, which an index serves however deep the page lies. Source: CONTRACT 1.4
// "orderBy", "Cursors".

import type { CursorPlace, Scalar, SortKey, Step } from '../../protocol/graph/plan.ts'
import { keyBytes, storedId } from './layout.ts'
import {
  bound,
  columnName,
  dynamicSql,
  fieldSql,
  joined,
  jsonOf,
  param,
  sql,
  type Param,
  type Relation,
  type Sql,
} from './sql.ts'

/** What nodes are ordered by, first to last. */
export interface OrderTerm {
  readonly value: Sql
  readonly direction: 'asc' | 'desc'
  /** Some have none: they come last in both directions. */
  readonly isOptional: boolean
}

/** The keys, then what tells all nodes apart. */
export function orderTerms({ orderBy }: Step, on: Relation): OrderTerm[] {
  const { table, element, idField } = on
  const id =
    element === null
      ? sql`${table}.id`
      : sql`json_extract(${element}.value, ${param(`$.${JSON.stringify(idField)}`)})`
  const last = { direction: 'asc', isOptional: false } as const
  return [
    ...orderBy.flatMap((key) =>
      keyValues(key, on).map((value) => ({
        value,
        direction: key.direction,
        isOptional: true,
      })),
    ),
    { value: id, ...last },
    { value: sql`${table}.actor`, ...last },
  ]
}

/** `any`: by kind, then by value. */
function keyValues({ path, as }: SortKey, on: Relation): Sql[] {
  if (as === 'any') {
    const json = jsonOf(path, on)
    const rank = sql`(CASE json_type(${json.doc}, ${json.path})
      WHEN 'true' THEN 0 WHEN 'false' THEN 0 WHEN 'integer' THEN 1 WHEN 'real' THEN 1
      WHEN 'text' THEN 2 END)`
    return [rank, dynamicSql(path, 'any', on)]
  }
  const { layout, table, element } = on
  if (path.length === 1 && element === null) {
    const member = path[0]!
    const column = layout.columnOf.get(member)
    // Milliseconds sort as the text does, and so do ids as bytes.
    if (column) return [sql`${columnName(table, column)}`]
    if (member === layout.type.idField) return [sql`${table}.id`]
    if (layout.actorMembers.has(member)) return [sql`${table}.actor`]
  }
  return [fieldSql(path, as === 'number' ? 'number' : 'text', as, on)]
}

export function orderSql(terms: readonly OrderTerm[]): Sql {
  return {
    text: terms
      .map(({ value, direction, isOptional }) => {
        const way = direction === 'asc' ? 'ASC' : 'DESC'
        return `${value.text} ${way}${isOptional ? ' NULLS LAST' : ''}`
      })
      .join(', '),
    params: terms.flatMap(({ value }) => value.params),
  }
}

/**
 * What nodes behind a place are, as conditions of one statement after the other: those of the
 * second are behind all of the first.
 */
export function behindSql(step: Step, place: CursorPlace, on: Relation): Sql[] {
  const terms = orderTerms(step, on)
  const values = placeValues(step, place, on)
  const [first] = terms
  const behind = behindFrom(0, terms, values)
  const value = values[0]!
  if (value === null) return [behind]
  // The first key alone says where to begin; behind all that have it come those that miss it.
  const range = sql`${first!.value} ${first!.direction === 'asc' ? '>=' : '<='} ${param(value)}`
  const pages = [sql`${range} AND ${behind}`]
  if (first!.isOptional) pages.push(sql`${first!.value} IS NULL`)
  return pages
}

function behindFrom(i: number, terms: readonly OrderTerm[], values: readonly Param[]): Sql {
  const term = terms[i]
  if (term === undefined) return sql`0`
  const value = values[i]!
  const next = behindFrom(i + 1, terms, values)
  if (value === null) return sql`(${term.value} IS NULL AND ${next})`
  const ways = [
    sql`${term.value} ${term.direction === 'asc' ? '>' : '<'} ${param(value)}`,
    sql`(${term.value} = ${param(value)} AND ${next})`,
  ]
  // Of the first key they are a statement of their own.
  if (term.isOptional && i > 0) ways.push(sql`${term.value} IS NULL`)
  return joined(ways, 'OR')
}

/** A place's values in the form in which the terms read them. */
function placeValues({ orderBy }: Step, place: CursorPlace, on: Relation): Param[] {
  const keys = orderBy.flatMap((key, i) => storedValues(key, place.values[i] ?? null, on))
  const id = on.element === null ? storedId(on.layout, place.id) : place.id
  return [...keys, id, keyBytes(place.actorId) ?? place.actorId]
}

const RANKS: Readonly<Record<string, number>> = { boolean: 0, number: 1, string: 2 }

function storedValues({ path, as }: SortKey, value: Scalar | null, on: Relation): Param[] {
  if (as === 'any') return value === null ? [null, null] : [RANKS[typeof value]!, bound(value)]
  if (value === null) return [null]
  const { layout, element } = on
  if (typeof value === 'string' && path.length === 1 && element === null) {
    const member = path[0]!
    const column = layout.columnOf.get(member)
    if (column?.kind === 'instant') return [Date.parse(value)]
    if (column === undefined && member === layout.type.idField) return [storedId(layout, value)]
    if (column === undefined && layout.actorMembers.has(member)) return [keyBytes(value)]
  }
  return [bound(value)]
}
