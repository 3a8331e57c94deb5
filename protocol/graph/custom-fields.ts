// Custom fields: fields of a node that the registry defines. Their values are taken from the node's
// document when it is shown or kept, so that all that reads documents knows them by their names.
// Source: CONTRACT 1.1 "Custom fields".

import { toUuid } from '../ids.ts'
import { dateMs, instantMs, instantText } from './filter/instants.ts'
import type { FieldDef, FieldType, NodeType } from './node-type.ts'

type Doc = Readonly<Record<string, unknown>>

/** A node's document, under its actor's own node with those of the others. */
interface Kept {
  readonly node: string
  readonly doc: Doc | null
  readonly whole?: readonly { readonly node: string; readonly doc: Doc }[]
}

/**
 * What adds the custom fields of these node types to documents, and to the nodes that are kept in
 * them; the given ones are not changed.
 */
export function completing(types: readonly NodeType[]): <K extends Kept>(kept: K) => K {
  const custom = new Map<string, Custom>()
  for (const { name, fields, storage } of types) {
    const own = fields.filter(({ source }) => source !== undefined)
    if (own.length === 0) continue
    if (storage.kind === 'history') continue
    const node = storage.kind === 'embedded' ? storage.node : name
    const known = custom.get(node) ?? { fields: [], lists: [] }
    if (storage.kind === 'row') custom.set(node, { ...known, fields: own })
    else {
      const list = { member: storage.member, fields: own }
      custom.set(node, { ...known, lists: [...known.lists, list] })
    }
  }
  if (custom.size === 0) return (kept) => kept
  return function complete<K extends Kept>(kept: K): K {
    const { node, doc, whole } = kept
    const added = custom.get(node)
    const isSame = added === undefined || doc === null
    const own = isSame ? kept : { ...kept, doc: withCustom(doc, added) }
    return whole === undefined ? own : { ...own, whole: whole.map((one) => complete(one)) }
  }
}

/** Custom fields of a node, and of the nodes that lists in its document hold. */
interface Custom {
  readonly fields: readonly FieldDef[]
  readonly lists: readonly { readonly member: string; readonly fields: readonly FieldDef[] }[]
}

function withCustom(doc: Doc, { fields, lists }: Custom): Doc {
  if (lists.length === 0) return withFields(doc, fields)
  const inside: Record<string, unknown> = {}
  for (const { member, fields: own } of lists) {
    const list = doc[member]
    if (Array.isArray(list)) inside[member] = list.map((one) => withFields(one as Doc, own))
  }
  return withFields({ ...doc, ...inside }, fields)
}

/** The document with the fields as their sources have them; it is not changed. */
export function withFields(doc: Doc, fields: readonly FieldDef[]): Doc {
  const complete: Record<string, unknown> = { ...doc }
  for (const { name, type, source, dimensions } of fields) {
    const found = memberAt(doc, source!)
    const value =
      dimensions === undefined
        ? valueAs(type, found)
        : byDimension(dimensions.of, dimensions.names.length, found)
    if (value === undefined) delete complete[name]
    else complete[name] = value
  }
  return complete
}

/** Values by their keys, those alone that are of the type; undefined: there is none. */
function byDimension(of: FieldType, depth: number, value: unknown): unknown {
  if (depth === 0) return valueAs(of, value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const kept = Object.entries(value).flatMap(([key, inner]) => {
    const one = byDimension(of, depth - 1, inner)
    return one === undefined ? [] : [[key, one] as const]
  })
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}

function memberAt(doc: Doc, path: readonly string[]): unknown {
  let value: unknown = doc
  for (const name of path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    if (!Object.hasOwn(value, name)) return undefined
    value = (value as Doc)[name]
  }
  return value
}

/** The value as a field of this type has it; undefined: it is of another type, so it is missing. */
export function valueAs(type: FieldType, value: unknown): unknown {
  switch (type) {
    case 'text':
    case 'enum':
      return typeof value === 'string' ? value : undefined
    case 'number':
      return Number.isFinite(value) ? value : undefined
    case 'boolean':
      return typeof value === 'boolean' ? value : undefined
    case 'uuid':
      return typeof value === 'string' ? (toUuid(value) ?? undefined) : undefined
    case 'date':
      return typeof value === 'string' && dateMs(value) !== null ? value : undefined
    case 'instant':
      return typeof value === 'string' ? canonicalInstant(value) : undefined
    case '[text]':
      return Array.isArray(value) && value.every((one) => typeof one === 'string')
        ? [...new Set(value)]
        : undefined
    default:
      return undefined
  }
}

/** A date is an instant too, its midnight (UTC), as in filters. */
function canonicalInstant(text: string): string | undefined {
  const ms = instantMs(text) ?? dateMs(text)
  return ms === null ? undefined : (instantText(ms) ?? undefined)
}
