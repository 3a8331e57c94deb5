// By which index the nodes of a base set are found: by that of a part of the filter, whose rows are
// then sorted, or by that of the order, whose rows are looked at until there are enough. SQLite
// chooses by how selective an index is in general; how many rows a part has, looked at up to a
// bound, says what this query costs. With the bound at the root of (rows shown x rows of the table)
// neither way looks at many more. Source: ARCHITECTURE 5.

import type { Condition, Operand, Step } from '../../protocol/graph/plan.ts'
import type { Column, NodeLayout } from './layout.ts'
import { columnName, conditionSql, joined, type Relation, type Sql } from './sql.ts'

/** A part of a filter that an index serves. */
export interface FilterPart {
  /** As they stand in statements: of the index, as far as the part has them. */
  readonly columns: readonly string[]
  readonly condition: Sql
}

/** Columns whose indexes a statement may not use, for another is better. */
export type Masked = ReadonlySet<string>

/** What of a statement can be found by an index. */
export interface Ways {
  readonly parts: readonly FilterPart[]
  /** Column that the order begins with, where it has an index; null: rows have to be sorted. */
  readonly order: string | null
}

export function conjuncts(filter: Condition): readonly Condition[] {
  return filter.kind === 'and' ? filter.of.flatMap(conjuncts) : [filter]
}

interface Served {
  readonly column: Column
  readonly isEqual: boolean
  readonly condition: Sql
}

/** Of a base set; null: there is nothing to choose. */
export function waysOf(step: Step, on: Relation): Ways | null {
  const { filter, source } = step
  if (source.kind !== 'set' || filter === null || on.element !== null) return null
  const { layout } = on
  const served: Served[] = []
  for (const part of conjuncts(filter)) {
    const found = memberOf(part)
    if (found === null) continue
    const { member, isEqual } = found
    // Those find a row, or those of one actor.
    if (isEqual && (member === layout.type.idField || layout.actorMembers.has(member))) return null
    const column = indexedColumn(member, layout)
    if (column === null) continue
    const condition = conditionSql(part, on)
    const isBare = condition.text.includes(columnName(on.table, column))
    if (isBare) served.push({ column, isEqual, condition })
  }
  return served.length === 0 ? null : { parts: partsOf(served, on), order: orderColumn(step, on) }
}

/** What of the filter each index serves: that of a text goes on by the node's time (layout.ts). */
function partsOf(served: readonly Served[], { layout, table }: Relation): FilterPart[] {
  const time = layout.columns.find(
    (column) => column.kind === 'instant' && isIndexed(layout, column),
  )
  const timed = served.filter(({ column }) => column === time)
  return served.map(({ column, isEqual, condition }) => {
    const goesOn = isEqual && column.kind === 'text' && time !== undefined
    const names = goesOn ? [column, time] : [column]
    const all = goesOn ? [condition, ...timed.map((one) => one.condition)] : [condition]
    return {
      columns: names.map((one) => columnName(table, one)),
      condition: joined(all, 'AND'),
    }
  })
}

function orderColumn({ orderBy }: Step, { layout, table }: Relation): string | null {
  const [first] = orderBy
  if (first === undefined) return `${table}.id`
  const column = first.path.length === 1 ? indexedColumn(first.path[0]!, layout) : null
  return column === null ? null : columnName(table, column)
}

function indexedColumn(member: string, layout: NodeLayout): Column | null {
  const column = layout.columnOf.get(member)
  return column !== undefined && isIndexed(layout, column) ? column : null
}

const isIndexed = ({ type, indexes }: NodeLayout, { member }: Column): boolean =>
  indexes.some(({ name }) => name === `by_${type.name}_${member}`)

/** The member that a condition holds against constants in a way that an index serves. */
function memberOf(condition: Condition): { member: string; isEqual: boolean } | null {
  switch (condition.kind) {
    case 'compare': {
      const { operator, left, right } = condition
      const field = right.kind === 'value' ? left : left.kind === 'value' ? right : null
      return field === null || operator === '!=' ? null : named(field, operator === '==')
    }
    case 'in':
      return named(condition.operand, condition.values.length === 1)
    case 'text':
      return condition.operator === 'startsWith' ? named(condition.left, false) : null
    default:
      return null
  }
}

function named(field: Operand, isEqual: boolean): { member: string; isEqual: boolean } | null {
  if (field.kind !== 'field' || field.path.length !== 1) return null
  return { member: field.path[0]!, isEqual }
}

/**
 * Columns to be masked; null: SQLite chooses. `rowsOf` counts the rows of a part up to `bound`.
 */
export function maskedOf(
  { parts, order }: Ways,
  bound: number,
  rowsOf: (part: FilterPart) => number,
): Masked | null {
  const isSorted = ({ columns }: FilterPart): boolean => columns.at(-1) === order
  // One index does it all, or there is no other.
  if (parts.some(isSorted) && parts.every((part) => part.columns.includes(order!))) return null
  if (order === null && parts.length === 1) return null
  let used: readonly string[] | null = order === null ? null : [order]
  let least = bound
  for (const part of parts) {
    const rows = rowsOf(part)
    if (rows >= least) continue
    least = rows
    used = part.columns
  }
  if (used === null) return null
  const masked = new Set(parts.flatMap(({ columns }) => columns))
  if (order !== null) masked.add(order)
  for (const column of used) masked.delete(column)
  return masked
}

/** The same without those indexes: SQLite takes none for what is no bare column. */
export function masking(sql: Sql, masked: Masked | null): Sql {
  let { text } = sql
  for (const column of masked ?? []) text = text.replaceAll(column, `+${column}`)
  return { text, params: sql.params }
}

/** True when an index finds the few rows that can match. */
export function findsFew(filter: Condition, on: Relation): boolean {
  if (on.element !== null) return false
  return conjuncts(filter).some((part) => {
    if (part.kind === 'in') return isKey(part.operand, on)
    if (part.kind !== 'compare' || part.operator !== '==') return false
    const { left, right } = part
    if (left.kind === 'value') return isKey(right, on)
    return right.kind === 'value' && isKey(left, on)
  })
}

function isKey(operand: Operand, { layout }: Relation): boolean {
  if (operand.kind !== 'field' || operand.path.length !== 1) return false
  const member = operand.path[0]!
  if (member === layout.type.idField) return true
  const field = layout.type.fields.find((f) => f.name === member)
  if (field?.indexed !== true || !layout.columnOf.has(member)) return false
  // Values of an enum, and quantities, are shared by very many rows.
  return field.type !== 'enum' && (field.type !== 'number' || field.custom === true)
}
