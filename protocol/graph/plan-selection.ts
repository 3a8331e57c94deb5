// The planner's view of one navigation's nodes: which of them, in which order, and how many.
// Source: CONTRACT 1.4, Appendix A.

import { RequestError } from '../errors.ts'
import { FieldMistake, resolveField } from './fields.ts'
import { fieldsOf } from './filter-fields.ts'
import { SyntaxMistake } from './lexer.ts'
import { parseOrderBy } from './parser.ts'
import type { Condition, SortKey, Step } from './plan.ts'
import type { GraphNode } from './schema.ts'
import { historyActors } from './history.ts'
import { typeFilter } from './typing.ts'
import {
  type Planning,
  type Place,
  type StepSpot,
  forbidden,
  attempt,
  invalid,
  under,
  at,
} from './planning.ts'

export function planFilter(
  filter: string | undefined,
  node: GraphNode,
  place: Place,
  planning: Planning,
): Condition | null {
  if (filter === undefined || filter.trim() === '') return null
  const { nowMs, limits } = planning.options
  const path = `/${under(place, 'filter')}`
  if (filter.length > limits.filterCharsMax) {
    throw new RequestError(
      'INVALID_FILTER',
      `The filter ${at(place)} is longer than ${limits.filterCharsMax} characters`,
      { position: limits.filterCharsMax, path },
    )
  }
  planning.filterChars += filter.length
  if (planning.filterChars > limits.filtersCharsMax) {
    throw new RequestError(
      'INVALID_QUERY',
      `The query's filters are longer than ${limits.filtersCharsMax} characters together`,
      { path },
    )
  }
  let condition: Condition
  try {
    condition = typeFilter(filter, { node, nowMs, depthMax: limits.filterDepthMax })
  } catch (mistake) {
    if (!(mistake instanceof SyntaxMistake)) throw mistake
    const { position, message } = mistake
    throw new RequestError(
      'INVALID_FILTER',
      `The filter ${at(place)} is wrong at position ${position}: ${message}`,
      { position, path },
    )
  }
  for (const field of fieldsOf(condition)) {
    if (!planning.access.mayFilter(node.type.name, field)) throw forbidden(node, field, path)
  }
  return condition
}

export function planLimit(limit: number | undefined, spot: StepSpot, planning: Planning): number {
  const { limitMax, limitDefault, nestedLimitDefault } = planning.options.limits
  if (limit === undefined) return spot.parent === null ? limitDefault : nestedLimitDefault
  if (limit > limitMax) {
    throw invalid(spot.place, `limit is at most ${limitMax}, found ${limit}`)
  }
  return limit
}

const SORTED_AS: Readonly<Record<string, SortKey['as']>> = {
  text: 'text',
  uuid: 'text',
  enum: 'text',
  instant: 'text',
  date: 'text',
  number: 'number',
  boolean: 'boolean',
  member: 'any',
}

/** Rows in the order of a field tell the field: sorting by it takes what reading it takes. */
export function planOrder(
  orderBy: string | undefined,
  node: GraphNode,
  place: Place,
  { access }: Planning,
): SortKey[] {
  if (orderBy === undefined) return []
  const below = under(place, 'orderBy')
  const keys = attempt(below, () =>
    parseOrderBy(orderBy).map(({ path: expr, direction }) => {
      const { path, type } = resolveField(expr, node)
      const as = SORTED_AS[type]
      if (as === undefined) throw new FieldMistake(`${path.join('.')} has no order`)
      return { path, direction, as }
    }),
  )
  for (const { path } of keys) {
    if (!access.mayField(node.type.name, path)) throw forbidden(node, path, `/${below}`)
  }
  return keys
}

export function planHistory(storage: Step['storage'], filter: Condition | null, place: Place) {
  if (storage.kind !== 'history') return null
  const actors = historyActors(filter, storage.parentField)
  if (actors !== null) return actors
  throw invalid(
    place,
    `this set is read from its ${storage.parent}'s records: follow an edge from ` +
      `${storage.parent}, or filter by ${storage.parentField} == '...'`,
  )
}
