// How graph nodes lie in the search engine: an index for each row-stored node type, with a strict
// mapping made from the graph schema. writer.ts writes by it, query.ts and finder.ts read by it. A
// document is the node's own, so that people and tools can read it, and beside it a member
// `kontor`:
//
// - `actor`, `id`, `place` (among the actor's nodes of the type), `deleted` and `deletedAt`.
// - `members`: what `dynamic` fields hold, as one flattened field whose keys are paths and whose
//   values are texts that sort like what they stand for (members.ts). A mapping can't know callers'
//   members, and one field a member would end in thousands of fields.
// - `whole` and `nodes`: in an actor's own node all its other nodes, by type, each type's list as
//   JSON text, and how many they are. One document is changed at once, several are not: an answer
//   that starts at an actor's own node takes the rest of the actor from there. Actors with very
//   many nodes go without.
// - `rest` and `long`: texts that are longer than a term may be. The field itself holds as much as
//   fits; the whole is in `rest`, and `long` names the field.
// - `find`: the search document, a text field for each column; texts are words that are ready.
//
// Source: PROTOCOL 3.13, CONTRACT 1.4.

import { createHash } from 'node:crypto'
import type { FieldDef, FieldType, NodeType } from '../../protocol/graph/node-type.ts'
import { actorFields, type GraphNode, type GraphSchema } from '../../protocol/graph/schema.ts'
import { type SearchColumns, searchColumns } from '../../protocol/graph/search/search-columns.ts'
import type { FieldMapping } from './engine.ts'

/** Changes whenever this folder would lay out the same schema in another way. */
const LAYOUT_FORMAT = 4

/** UTF-16 units of a text that a term holds: no more than 32,766 bytes of UTF-8. */
export const TERM_CHARS_MAX = 8_191

/** Own members of a document: no node type may have one of that name. */
export const OWN = 'kontor'

export const ACTOR = `${OWN}.actor`
export const ID = `${OWN}.id`
export const PLACE = `${OWN}.place`
export const DELETED = `${OWN}.deleted`
export const DELETED_AT = `${OWN}.deletedAt`
export const MEMBERS = `${OWN}.members`
export const LONG = `${OWN}.long`
export const REST = `${OWN}.rest`
export const NODES = `${OWN}.nodes`
export const WHOLE = `${OWN}.whole`
export const FIND = `${OWN}.find`

/** A member of a document, and of elements in it, as it is written. */
export interface Member {
  readonly name: string
  readonly kind: 'text' | 'texts' | 'plain' | 'object' | 'dynamic' | 'elements'
  /** Members of an object, or of each element of a list. */
  readonly members: readonly Member[]
}

export interface NodeLayout {
  readonly type: NodeType
  /** Types of the nodes that its documents hold. */
  readonly embedded: readonly NodeType[]
  /** Name of the node type in names of indexes, which are lower case. */
  readonly name: string
  readonly members: readonly Member[]
  readonly properties: Readonly<Record<string, FieldMapping>>
  /** Of custom fields whose mappings can't tell it: `title`, `skus.title`. */
  readonly definitions: Readonly<Record<string, string>>
  /** Members that always hold the actor's UUID. */
  readonly actorMembers: ReadonlySet<string>
  /** Null: no phrase finds such nodes. */
  readonly search: SearchColumns | null
}

export interface Layout {
  /** All node types that it was made for, in their order. */
  readonly types: readonly NodeType[]
  readonly nodes: ReadonlyMap<string, NodeLayout>
  /** Another one means: made for other node types, to be filled again. */
  readonly fingerprint: string
}

/** The layout of all row-stored node types of a schema. */
export function layoutOf(schema: GraphSchema): Layout {
  const nodes = new Map<string, NodeLayout>()
  for (const node of schema.nodes.values()) {
    if (node.type.storage.kind === 'row') nodes.set(node.type.name, nodeLayout(node, schema))
  }
  const shape = Array.from(nodes.values(), ({ name, properties, definitions, search }) => {
    const isTold = Object.keys(definitions).length === 0
    return isTold ? [name, properties, search] : [name, properties, search, definitions]
  })
  const text = JSON.stringify([LAYOUT_FORMAT, shape])
  const types = Array.from(schema.nodes.values(), ({ type }) => type)
  const fingerprint = createHash('sha256').update(text).digest('hex').slice(0, 32)
  return { types, nodes, fingerprint }
}

function nodeLayout(node: GraphNode, schema: GraphSchema): NodeLayout {
  const { type } = node
  const search = searchColumns(node, schema)
  const fields = fieldsOf(type, schema)
  const embedded: NodeType[] = []
  for (const { type: other } of schema.nodes.values()) {
    const { storage } = other
    if (storage.kind !== 'embedded' || storage.node !== type.name) continue
    fields.push({ name: storage.member, kind: 'elements', of: fieldsOf(other, schema) })
    embedded.push(other)
  }
  return {
    type,
    embedded,
    name: type.name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
    members: fields.map(memberOf),
    properties: { ...propertiesOf(fields), [OWN]: ownMapping(search?.count ?? 0) },
    definitions: Object.fromEntries(untold(fields)),
    actorMembers: actorFields(schema, type),
    search,
  }
}

export const columnOf = (n: number): string => `c${n}`

const WORDS: FieldMapping = { type: 'text', analyzer: 'whitespace', norms: false }

function ownMapping(columns: number): FieldMapping {
  const names = Array.from({ length: columns }, (_, i) => columnOf(i))
  const find = Object.fromEntries(names.map((name) => [name, WORDS]))
  return strict({ ...OWN_PROPERTIES, ...(columns > 0 && { find: strict(find) }) })
}

const strict = (properties: Readonly<Record<string, FieldMapping>>): FieldMapping => ({
  dynamic: 'strict',
  properties,
})

const OWN_PROPERTIES: Readonly<Record<string, FieldMapping>> = {
  actor: { type: 'keyword' },
  id: { type: 'keyword' },
  place: { type: 'long', index: false },
  deleted: { type: 'boolean' },
  deletedAt: { type: 'date' },
  members: { type: 'flattened' },
  long: { type: 'keyword' },
  rest: { type: 'object', enabled: false },
  nodes: { type: 'long', index: false },
  whole: { type: 'object', enabled: false },
}

/** A field as it lies: the schema's, or a list of embedded nodes. */
type Laid =
  | {
      readonly name: string
      readonly kind: FieldType
      readonly find: boolean
      /** Of a custom field: what it holds goes by its definition. */
      readonly definition?: string
      of: readonly Laid[]
    }
  | { readonly name: string; readonly kind: 'elements'; readonly of: readonly Laid[] }

/** Fields, what edges go by, and the position. */
function fieldsOf(type: NodeType, schema: GraphSchema): Laid[] {
  const laid = new Map<string, Laid>()
  const add = (field: FieldDef, find = false): void => {
    const { name, type: kind, members, indexed } = field
    if (laid.has(name)) return
    const of = (members ?? []).map((m): Laid => ({
      name: m.name,
      kind: m.type,
      find: false,
      of: [],
    }))
    const own = { name, kind, find: find || indexed === true, of }
    laid.set(name, field.custom ? { ...own, definition: definitionOf(field) } : own)
  }
  const links = linksOf(type, schema)
  for (const field of type.fields) add(field, links.get(field.name))
  // Members that are no fields hold ids.
  for (const [name, find] of links) add({ name, type: 'text' }, find)
  if (type.position !== undefined) add({ name: type.position, type: 'number' })
  return [...laid.values()]
}

function* untold(fields: readonly Laid[]): Generator<[name: string, definition: string]> {
  for (const field of fields) {
    if (field.kind === 'elements') {
      for (const [name, definition] of untold(field.of)) yield [`${field.name}.${name}`, definition]
    } else if (field.kind === 'dynamic' && field.definition !== undefined) {
      yield [field.name, field.definition]
    }
  }
}

function definitionOf({ type, source, dimensions }: FieldDef): string {
  const text = JSON.stringify(dimensions ? [type, source, dimensions] : [type, source])
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}

/** Members that edges go by, from either end; true: nodes are found by it from another actor. */
function linksOf(type: NodeType, schema: GraphSchema): ReadonlyMap<string, boolean> {
  const links = new Map<string, boolean>()
  for (const { type: other, edges } of schema.nodes.values()) {
    for (const { node, from, to, sameActor, through } of edges.values()) {
      if (other === type) links.set(from, links.get(from) ?? false)
      if (through?.node === type.name) {
        links.set(through.from, true)
        links.set(through.to, true)
      }
      if (node === type.name) links.set(to, links.get(to) === true || !sameActor)
    }
  }
  return links
}

const KINDS: Readonly<Record<FieldType | 'elements', Member['kind']>> = {
  text: 'text',
  enum: 'text',
  uuid: 'text',
  '[text]': 'texts',
  number: 'plain',
  boolean: 'plain',
  instant: 'plain',
  date: 'plain',
  value: 'plain',
  object: 'object',
  dynamic: 'dynamic',
  elements: 'elements',
}

function memberOf({ name, kind, of }: Laid): Member {
  return { name, kind: KINDS[kind], members: of.map(memberOf) }
}

function propertiesOf(fields: readonly Laid[]): Record<string, FieldMapping> {
  return Object.fromEntries(fields.map((field) => [field.name, mappingOf(field)]))
}

/** What isn't for finding is not in an index of its own: it is read column by column. */
function mappingOf(field: Laid): FieldMapping {
  switch (field.kind) {
    case 'elements':
    case 'object':
      return { dynamic: false, properties: propertiesOf(field.of) }
    case 'dynamic':
    case 'value':
      return { type: 'object', enabled: false }
    case 'number':
      return column('double', field)
    case 'boolean':
      return column('boolean', field)
    case 'instant':
    case 'date':
      return column('date', field)
    default:
      return column('keyword', field)
  }
}

function column(
  type: 'double' | 'boolean' | 'date' | 'keyword',
  { find, definition }: Exclude<Laid, { readonly kind: 'elements' }>,
): FieldMapping {
  return {
    type,
    ...(find ? null : { index: false }),
    ...(definition === undefined ? null : { meta: { definition } }),
  }
}
