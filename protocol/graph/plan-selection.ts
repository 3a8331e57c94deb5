// The planner's view of one navigation's nodes: which of them, in which order, and how many.
// Source: CONTRACT 1.4, Appendix A.

import { RequestError } from '../errors.ts'
import { FieldMistake, resolveField } from './filter/fields.ts'
import { fieldsOf } from './filter/filter-fields.ts'
import { SyntaxMistake } from './filter/lexer.ts'
import { parseOrderBy } from './filter/parser.ts'
import type { Condition, SortKey, Step } from './plan.ts'
import { placeOfText } from './cursor.ts'
import type { NavigationBody } from './navigation-body.ts'
import type { GraphNode } from './schema.ts'
import { historyActors } from './history.ts'
import { typeFilter } from './filter/typing.ts'
import {
  type GraphAccess,
  type Planning,
  type Place,
  type StepSpot,
  forbidden,
  attempt,
  mayNameOf,
  invalid,
  shownName,
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
    const mayName = mayNameOf(node, planning.access)
    condition = typeFilter(filter, { node, nowMs, depthMax: limits.filterDepthMax, mayName })
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
      const { path, type, isMember } = resolveField(expr, node, mayNameOf(node, access))
      const own = SORTED_AS[type]
      // Members are of one kind here, and in the order of that kind.
      const as = own !== undefined && isMember ? 'any' : own
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

/** How the rest of a nested list is asked for. */
function insteadOf(
  { type, fields }: GraphNode,
  { node, edge }: NonNullable<StepSpot['parent']>,
  access: GraphAccess,
): string {
  const { from, to, through } = edge
  const isTold = access.mayField(type.name, [to]) && access.mayField(node.type.name, [from])
  if (through !== undefined || !fields.has(to) || !isTold) return 'narrow this list by a filter'
  const asked = { edge: type.set, filter: `${to} == '<${from}>'`, cursor: 'last' }
  return `the list of one ${node.type.name} by its ${from}: ${JSON.stringify(asked)}`
}

/** What a step needs for cursors; empty where none was asked for. */
export function planCursor(
  body: NavigationBody,
  spot: StepSpot,
  tie: { readonly allowed: unknown; readonly orderBy: readonly SortKey[] },
  { options, access }: Planning,
): Pick<Step, 'cursor' | 'after'> {
  const { cursor, after } = body
  if ((cursor === undefined || cursor === false) && after === undefined) return {}
  const { place, node, parent } = spot
  if (
    cursor !== undefined &&
    typeof cursor !== 'boolean' &&
    cursor !== 'last' &&
    cursor !== 'each'
  ) {
    throw invalid(place, `cursor must be last or each, found ${shownName(cursor)}`)
  }
  if (parent !== null) {
    throw invalid(place, `cursors are of base sets; ${insteadOf(node, parent, access)}`)
  }
  if (options.cursors === undefined) throw invalid(place, 'there are no cursors here')
  const { filter = '', phrase = '' } = body
  // The filter as it was written: what `now` stands for moves on between two pages.
  const of = JSON.stringify([node.type.name, filter.trim(), phrase, tie.orderBy, tie.allowed])
  const asked = { of, each: cursor === 'each' }
  if (after === undefined) return { cursor: asked }
  const below = under(place, 'after')
  const text = after.length > options.limits.cursorCharsMax ? null : options.cursors.open(after, of)
  if (text !== null) return { cursor: asked, after: placeOfText(text) }
  throw invalid(
    below,
    'this is no cursor of this query: it goes with the set, filter, phrase, orderBy and ' +
      'permissions that it was made with; begin again without it',
  )
}
