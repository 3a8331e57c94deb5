// What every part of the planner has: what a caller may see, the bounds, the place in the body, and
// how a caller is told what is wrong there. Source: CONTRACT 1.4.

import { fieldPermission } from '../ace-forms.ts'
import { RequestError } from '../errors.ts'
import type { CursorSeal } from './cursor.ts'
import { FieldMistake, type MayName } from './filter/fields.ts'
import { SyntaxMistake } from './filter/lexer.ts'
import type { EdgeDef, NodeType } from './node-type.ts'
import type { Condition, FieldPath, Step } from './plan.ts'
import type { GraphNode, GraphSchema } from './schema.ts'

/** What a caller may see, by node type and field path. node/graph/access.ts makes it of entries. */
export interface GraphAccess {
  /** True: all nodes of the type; a condition: those of which it is true; false: none. */
  sees(type: NodeType): boolean | Condition
  /** `['dynamic', 'x']` is `graph/<node>:field:dynamic:x`. */
  mayField(node: string, path: FieldPath): boolean
  /** May filters, semi-joins and counts look at the field (KONTOR_GRAPH_FILTER_FIELDS)? */
  mayFilter(node: string, path: FieldPath): boolean
}

export const FULL_ACCESS: GraphAccess = {
  sees: () => true,
  mayField: () => true,
  mayFilter: () => true,
}

/** The bounds of config/limits.ts that planning needs; pass LIMITS.graph. */
export interface GraphLimits {
  readonly filterCharsMax: number
  readonly filtersCharsMax: number
  readonly filterDepthMax: number
  readonly navigationDepthMax: number
  readonly navigationsMax: number
  readonly fieldsMax: number
  readonly limitDefault: number
  readonly nestedLimitDefault: number
  readonly limitMax: number
  readonly cursorCharsMax: number
}

export interface PlanOptions {
  /** What `now` stands for, milliseconds since 1970. */
  readonly nowMs: number
  readonly limits: GraphLimits
  /** Absent: cursors are refused. */
  readonly cursors?: CursorSeal
  /** Filled for each step, where somebody asks. */
  readonly notes?: PlanNotes
}

export interface Planning {
  readonly schema: GraphSchema
  readonly access: GraphAccess
  readonly options: PlanOptions
  /** Navigations met so far, all levels. */
  navigations: number
  /** Characters of their filters. */
  filterChars: number
}

/** Where in the body something stands: told to the caller as `details.path`. */
export type Place = string

export interface Spot {
  readonly node: GraphNode
  readonly place: Place
  readonly depth: number
}

export interface StepSpot extends Spot {
  readonly parent: { readonly node: GraphNode; readonly edge: EdgeDef } | null
}

/** What the planner knows of a step beside it, for who explains the plan. */
export interface StepNote {
  readonly spot: StepSpot
  /** What the caller asks, and what permissions add. */
  readonly asked: Condition | null
  readonly allowed: Condition | null
}

export type PlanNotes = Map<Step, StepNote>

export function hidden({ type: { name } }: GraphNode, place: Place): RequestError {
  return new RequestError(
    'FORBIDDEN_NODE',
    `The token doesn't cover graph/${name}:query, which ${place === '' ? 'the query' : at(place)} needs`,
    { node: name, path: `/${place}`, needs: `graph/${name}:query` },
  )
}

export function forbidden(node: GraphNode, field: FieldPath, path: string): RequestError {
  const { name } = node.type
  const needs = `graph/${name}:${fieldPermission(field)}`
  return new RequestError('FORBIDDEN_FIELD', `The token doesn't cover ${needs}`, {
    ...{ node: name, field: field.join('.'), path, needs },
  })
}

/** Messages name the fields that the metadata shows the caller. */
export function mayNameOf({ type }: GraphNode, access: GraphAccess): MayName {
  return (path) => access.mayField(type.name, path)
}

/** Runs `parse`, turning a mistake of the text into INVALID_QUERY. */
export function attempt<T>(place: Place, parse: () => T): T {
  try {
    return parse()
  } catch (mistake) {
    if (mistake instanceof FieldMistake) throw invalid(place, mistake.message)
    if (!(mistake instanceof SyntaxMistake)) throw mistake
    const { position, message } = mistake
    throw new RequestError('INVALID_QUERY', `${at(place)}, position ${position}: ${message}`, {
      position,
      path: `/${place}`,
    })
  }
}

export function invalid(place: Place, message: string): RequestError {
  return new RequestError('INVALID_QUERY', `${capital(at(place))}: ${message}`, {
    path: `/${place}`,
  })
}

export const under = (place: Place, member: string): Place =>
  place === '' ? member : `${place}/${member}`
export const at = (place: Place): string => (place === '' ? 'in the query' : `at /${place}`)
export const capital = (text: string): string => text[0]!.toUpperCase() + text.slice(1)
export const shownName = (name: unknown): string => JSON.stringify(String(name).slice(0, 100))
