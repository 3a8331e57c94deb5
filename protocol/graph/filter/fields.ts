// Field paths resolved against a node type: what a path of the grammar reads and which type it has.
// The parser knows only names. Source: CONTRACT 1.4.

import type { Dimensions, FieldDef, FieldType } from '../node-type.ts'
import type { PathExpr } from './parser.ts'
import type { FieldPath } from '../plan.ts'
import type { GraphNode } from '../schema.ts'
import { suggestion } from '../../near-names.ts'

export interface ResolvedField {
  readonly path: FieldPath
  /** `member`: a member of a `dynamic`, any JSON; `dimensions`: all or many of their values. */
  readonly type: FieldType | 'member' | 'dimensions'
  /** It is of this type, and kept as a member of a `dynamic`. */
  readonly isMember?: true
  /** All that an `enum` may be. */
  readonly values?: readonly string[]
}

/** What is wrong with a path; the caller of `resolveField` makes INVALID_QUERY or _FILTER of it. */
export class FieldMistake extends Error {}

/** Which fields may be named to somebody who has not named them. */
export type MayName = (path: FieldPath) => boolean

/** Throws FieldMistake for a name that is not there, with the names near it that may be told. */
export function resolveField(expr: PathExpr, node: GraphNode, mayName: MayName): ResolvedField {
  const [first, ...rest] = expr.names
  const isTold = (of: FieldPath, { name, members = [] }: FieldDef): boolean =>
    mayName([...of, name]) || members.some((member) => isTold([...of, name], member))
  let field = find(first!, node.fields, {
    message: `${node.type.name} has no field ${first}`,
    isTold: (def) => isTold([], def),
  })
  const path = [first!]
  const { dimensions } = field
  if (dimensions !== undefined)
    return ofDimensions(field.name, dimensions, [...rest, ...expr.members])
  for (const name of rest) {
    const owner = path.join('.')
    if (field.type === 'dynamic') {
      throw new FieldMistake(`${owner} has no fixed members; write ${owner}->'${name}'`)
    }
    if (field.type !== 'object') {
      throw new FieldMistake(`${owner} is ${article(field.type)}, it has no member ${name}`)
    }
    const members = new Map((field.members ?? []).map((m) => [m.name, m]))
    field = find(name, members, {
      message: `${owner} has no member ${name}`,
      isTold: (def) => isTold(path, def),
    })
    path.push(name)
  }
  if (expr.members.length === 0) {
    const { type } = field
    // What a custom one may be is offered, not enforced: a node may hold what was offered before.
    const values = field.custom ? undefined : field.values
    return values === undefined ? { path, type } : { path, type, values }
  }
  if (field.type !== 'dynamic') {
    const right = field.type === 'object' ? `; write ${path.join('.')}.${expr.members[0]!}` : ''
    throw new FieldMistake(`${path.join('.')} is ${article(field.type)}, -> is for dynamic${right}`)
  }
  path.push(...expr.members.map(checkedMember))
  return { path, type: 'member' }
}

/** Reading it would find the prototype of every object; no JSON that comes in may hold it. */
function checkedMember(member: string): string {
  if (member === '__proto__') throw new FieldMistake(`${member} can't be the name of a member`)
  return member
}

/** `title.sv`, and `title->'sv-SE'` where a key is no name. */
function ofDimensions(
  field: string,
  { names, of }: Dimensions,
  keys: readonly string[],
): ResolvedField {
  if (keys.length > names.length) {
    const form = [field, ...Array.from(names, (name) => `<${name}>`)].join('.')
    throw new FieldMistake(`${field} has no more dimensions than ${form}`)
  }
  const path = [field, ...keys.map(checkedMember)]
  return keys.length < names.length
    ? { path, type: 'dimensions' }
    : { path, type: of, isMember: true }
}

function find(
  name: string,
  known: ReadonlyMap<string, FieldDef>,
  or: { readonly message: string; readonly isTold: (def: FieldDef) => boolean },
): FieldDef {
  const field = known.get(name)
  if (field !== undefined) return field
  const told = [...known.values()].filter(or.isTold).map((def) => def.name)
  throw new FieldMistake(or.message + suggestion(name, told))
}

const SHOWN: Readonly<Record<string, string>> = {
  '[text]': 'a list of text',
  member: 'a member of dynamic',
  instant: 'a timestamp',
  uuid: 'a UUID',
  text: 'text',
  enum: 'text',
  value: 'a JSON value',
  object: 'an object',
  nothing: 'nothing',
  dimensions: 'a field with dimensions (name one value: field.<locale> or field.<channel>)',
}

/** A type as a message names it: `a number`, `text`, `a timestamp`. */
export function article(type: string): string {
  return SHOWN[type] ?? `a ${type}`
}
