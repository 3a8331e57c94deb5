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

/** What adds the custom fields of these node types to documents; the given ones are not changed. */
export function completing(types: readonly NodeType[]): <K extends Kept>(kept: K) => K {
  const custom = new Map<string, readonly FieldDef[]>()
  for (const { name, fields } of types) {
    const own = fields.filter(({ source }) => source !== undefined)
    if (own.length > 0) custom.set(name, own)
  }
  if (custom.size === 0) return (kept) => kept
  return function complete<K extends Kept>(kept: K): K {
    const { node, doc, whole } = kept
    const fields = custom.get(node)
    const isSame = fields === undefined || doc === null
    const own = isSame ? kept : { ...kept, doc: withFields(doc, fields) }
    return whole === undefined ? own : { ...own, whole: whole.map((one) => complete(one)) }
  }
}

function withFields(doc: Doc, fields: readonly FieldDef[]): Doc {
  const complete: Record<string, unknown> = { ...doc }
  for (const { name, type, source } of fields) {
    const value = valueAs(type, memberAt(doc, source!))
    if (value === undefined) delete complete[name]
    else complete[name] = value
  }
  return complete
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
