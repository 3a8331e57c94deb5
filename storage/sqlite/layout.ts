// How graph nodes lie in SQLite: a table for each row-stored node type, made from the graph schema.
// writer.ts writes by it, select.ts reads by it.
//
// A row's key is `actor number << 20 | number within the actor`: all nodes of one type of one actor
// are neighbours, so that following an edge inside an actor is a range of the table itself and
// needs no index; a caller's child ids never clash across actors; new actors append. The document
// is a JSON array with a slot for each member, which halves its size. Members people find nodes by
// (`indexed`) and members that edges go by are columns as well.
//
// Table, pages, checkpoints and transactions are as they are cheapest: bench/README "Measured
// choices".

import { createHash } from 'node:crypto'
import type { FieldDef, NodeType } from '../../protocol/graph/node-type.ts'
import type { FieldPath } from '../../protocol/graph/plan.ts'
import { actorFields, type GraphNode, type GraphSchema } from '../../protocol/graph/schema.ts'
import { searchDdl, searchedPaths, type SearchLayout, searchLayoutOf } from './search-layout.ts'

/** Changes whenever this file would lay out the same schema in another way. */
const LAYOUT_FORMAT = 3

/** Nodes of one type that an actor may have had: the low bits of a row's key. */
export const NODES_PER_ACTOR = 2 ** 20

export type ColumnKind = 'text' | 'number' | 'boolean' | 'instant'

export interface Column {
  /** Member of the document. */
  readonly member: string
  /** Quoted, ready for SQL. */
  readonly name: string
  /** `instant` columns hold milliseconds. */
  readonly kind: ColumnKind
}

export interface NodeLayout {
  readonly type: NodeType
  /** Quoted, ready for SQL. */
  readonly table: string
  /** Place of each member in the document's array. */
  readonly slots: ReadonlyMap<string, number>
  readonly columns: readonly Column[]
  readonly columnOf: ReadonlyMap<string, Column>
  /** Members that always hold the actor's UUID: told by the row itself. */
  readonly actorMembers: ReadonlySet<string>
  /** Ids are stored as 16 bytes. */
  readonly uuidIds: boolean
  readonly indexes: readonly IndexLayout[]
  /** Null: no phrase finds such nodes. */
  readonly search: SearchLayout | null
  /** What search documents are made of; empty: nothing, and no row says when it changes. */
  readonly searched: readonly FieldPath[]
}

interface IndexLayout {
  readonly ddl: string
  /** Row of sqlite_stat1: rows, then rows for each value of the first column, of the first two. */
  readonly name: string
  readonly stat: string
}

export interface IndexLayoutOfAll {
  readonly nodes: ReadonlyMap<string, NodeLayout>
  /** Another one means: made for other node types, to be filled again. */
  readonly fingerprint: string
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** The layout of all row-stored node types of a schema. */
export function layoutOf(schema: GraphSchema): IndexLayoutOfAll {
  const nodes = new Map<string, NodeLayout>()
  for (const node of schema.nodes.values()) {
    if (node.type.storage.kind === 'row') nodes.set(node.type.name, nodeLayout(node, schema))
  }
  const shape = Array.from(nodes.values(), ({ table, slots, columns, indexes, ...rest }) => [
    table,
    [...slots],
    columns,
    indexes,
    rest.uuidIds,
    [...rest.actorMembers],
    rest.search,
    rest.searched,
    ...definitionsOf(rest.type),
    ...embeddedIn(rest.type, schema).flatMap(definitionsOf),
  ])
  const text = JSON.stringify([LAYOUT_FORMAT, shape])
  return { nodes, fingerprint: createHash('sha256').update(text).digest('hex') }
}

/** What custom fields hold goes by their definitions. */
function definitionsOf({ fields }: NodeType): unknown[] {
  return fields.flatMap(({ custom, name, type, source, dimensions }) =>
    custom ? [dimensions ? [name, type, source, dimensions] : [name, type, source]] : [],
  )
}

function nodeLayout(node: GraphNode, schema: GraphSchema): NodeLayout {
  const { type } = node
  const table = quoted(`node_${type.name}`)
  const links = linksOf(type, schema)
  const names = new Set(type.fields.map((field) => field.name))
  for (const member of [...links.keys(), ...embeddedMembers(type, schema)]) names.add(member)
  if (type.position !== undefined) names.add(type.position)
  const slots = new Map(Array.from(names, (name, slot) => [name, slot]))
  const actorMembers = actorFields(schema, type)
  const columns = columnsOf(type, links, actorMembers)
  return {
    type,
    table,
    slots,
    columns,
    columnOf: new Map(columns.map((column) => [column.member, column])),
    actorMembers,
    uuidIds: type.fields.find((field) => field.name === type.idField)?.type === 'uuid',
    indexes: indexesOf(type, table, columns, links),
    search: searchLayoutOf(node, schema),
    searched: searchedPaths(node, schema),
  }
}

/**
 * Members of a node type that edges go by, from either end; true: it takes an index, for an edge
 * from another actor arrives at it, or it is found by and no key of the actor's own.
 */
function linksOf(type: NodeType, schema: GraphSchema): ReadonlyMap<string, boolean> {
  const links = new Map<string, boolean>()
  const leave = (member: string, isInside: boolean): void => {
    const isFoundBy = !isInside && fieldOf(type, member)?.indexed === true
    links.set(member, links.get(member) ?? isFoundBy)
  }
  for (const { type: other, edges } of schema.nodes.values()) {
    for (const edge of edges.values()) {
      if (other === type) leave(edge.from, edge.sameActor)
      if (edge.through?.node === type.name) {
        links.set(edge.through.from, true)
        leave(edge.through.to, false)
      }
      if (edge.node !== type.name) continue
      links.set(edge.to, links.get(edge.to) === true || !edge.sameActor)
    }
  }
  return links
}

/** Nodes that this node's document holds. */
function embeddedIn({ name }: NodeType, schema: GraphSchema): NodeType[] {
  return Array.from(schema.nodes.values(), ({ type }) => type).filter(
    ({ storage }) => storage.kind === 'embedded' && storage.node === name,
  )
}

/** Array members of the document that hold them. */
function embeddedMembers(type: NodeType, schema: GraphSchema): string[] {
  return embeddedIn(type, schema).flatMap(({ storage }) =>
    storage.kind === 'embedded' ? storage.member : [],
  )
}

const KINDS: Readonly<Record<string, ColumnKind>> = {
  text: 'text',
  enum: 'text',
  uuid: 'text',
  date: 'text',
  number: 'number',
  boolean: 'boolean',
  instant: 'instant',
}

function columnsOf(
  type: NodeType,
  links: ReadonlyMap<string, boolean>,
  actorMembers: ReadonlySet<string>,
): Column[] {
  const columns: Column[] = []
  const add = (member: string, kind: ColumnKind | undefined): void => {
    // The id and the actor are told by columns of their own.
    if (kind === undefined || member === type.idField || actorMembers.has(member)) return
    if (columns.some((column) => column.member === member)) return
    columns.push({ member, name: quoted(`f_${member}`), kind })
  }
  for (const field of type.fields) if (field.indexed) add(field.name, KINDS[field.type])
  for (const member of links.keys()) {
    const field = type.fields.find((f) => f.name === member)
    // Members that are no fields hold ids: text.
    add(member, field === undefined ? 'text' : KINDS[field.type])
  }
  if (type.position !== undefined) add(type.position, 'number')
  return columns
}

/** Rows that the planner is told a table has; only the proportions matter. */
const STAT_ROWS = 1_000_000
const ROWS_PER_VALUE: Readonly<Record<string, number>> = { enum: STAT_ROWS / 4, boolean: 500_000 }

/**
 * The fewest indexes that serve: by id; each indexed text with the node's time behind it (the
 * newest of a customer, of a state); each indexed time, date and number by itself.
 */
function indexesOf(
  type: NodeType,
  table: string,
  columns: readonly Column[],
  links: ReadonlyMap<string, boolean>,
): IndexLayout[] {
  const time = columns.find((c) => c.kind === 'instant' && fieldOf(type, c.member)?.indexed)
  const indexes = [index(type, table, { on: 'id', columns: 'id', stat: '1' })]
  for (const column of columns) {
    const field = fieldOf(type, column.member)
    const link = links.get(column.member)
    // A link inside an actor is found in the actor's own range.
    if (link === undefined ? !field?.indexed : !link) continue
    const perValue = ROWS_PER_VALUE[field?.type ?? 'text'] ?? 10
    const on = column.member
    if (column.kind === 'text' && field?.type !== 'date') {
      const columnsOfIt = time === undefined ? column.name : `${column.name}, ${time.name}`
      const stat = time === undefined ? `${perValue}` : `${perValue} 1`
      const where = `${column.name} IS NOT NULL`
      indexes.push(index(type, table, { on, columns: columnsOfIt, stat, where }))
    } else {
      indexes.push(index(type, table, { on, columns: column.name, stat: `${perValue}` }))
    }
  }
  return indexes
}

function fieldOf(type: NodeType, member: string): FieldDef | undefined {
  return type.fields.find((field) => field.name === member)
}

function index(
  type: NodeType,
  table: string,
  of: { on: string; columns: string; stat: string; where?: string },
): IndexLayout {
  const name = `by_${type.name}_${of.on}`
  const where = of.where === undefined ? '' : ` WHERE ${of.where}`
  return {
    name,
    ddl: `CREATE INDEX ${quoted(name)} ON ${table} (${of.columns})${where}`,
    stat: `${STAT_ROWS} ${of.stat}`,
  }
}

const SQL_TYPES: Readonly<Record<ColumnKind, string>> = {
  text: 'TEXT',
  number: 'REAL',
  boolean: 'INTEGER',
  instant: 'INTEGER',
}

/** Statements that make an empty index. */
export function ddlOf(layout: IndexLayoutOfAll): string[] {
  const ddl = [
    'CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID',
    'CREATE TABLE shard_offset (shard INTEGER PRIMARY KEY, offset INTEGER NOT NULL)',
    'CREATE TABLE actor (id BLOB PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID',
    'CREATE TABLE tombstone (node TEXT, k INTEGER, at INTEGER, PRIMARY KEY (node, k)) WITHOUT ROWID',
    'CREATE INDEX tombstone_at ON tombstone (at)',
    // Makes sqlite_stat1, so that the planner can be told how selective each index is.
    'ANALYZE sqlite_schema',
  ]
  for (const { type, table, columns, indexes, search, searched } of layout.nodes.values()) {
    const own = columns.map(({ name, kind }) => `, ${name} ${SQL_TYPES[kind]}`).join('')
    const words = searched.length === 0 ? '' : ', words INTEGER'
    if (search !== null) ddl.push(searchDdl(search))
    ddl.push(
      `CREATE TABLE ${table} (k INTEGER PRIMARY KEY, actor BLOB NOT NULL, id NOT NULL, ` +
        `version INTEGER NOT NULL${words}${own}, doc TEXT)`,
    )
    const tableName = `node_${type.name}`.replaceAll("'", "''")
    for (const { name, ddl: create, stat } of indexes) {
      ddl.push(
        create,
        `INSERT INTO sqlite_stat1 VALUES ('${tableName}', '${name.replaceAll("'", "''")}', '${stat}')`,
      )
    }
  }
  return ddl
}

const DIGITS = new Int8Array(128).fill(-1)
for (let i = 0; i < 16; i++) DIGITS['0123456789abcdef'.charCodeAt(i)] = i

/**
 * The sixteen bytes of a canonical UUID, null when it is none: looked at once for every row, so
 * without a pattern or text made on the way.
 */
export function keyBytes(uuid: string): Uint8Array | null {
  if (uuid.length !== 36) return null
  const bytes = new Uint8Array(16)
  let at = 0
  for (let i = 0; i < 36; i += 2) {
    if (i === 8 || i === 13 || i === 18 || i === 23) {
      if (uuid.charCodeAt(i) !== 0x2d) return null
      i++
    }
    const high = DIGITS[uuid.charCodeAt(i)] ?? -1
    const low = DIGITS[uuid.charCodeAt(i + 1)] ?? -1
    if ((high | low) < 0) return null
    bytes[at++] = (high << 4) | low
  }
  return bytes
}

/** A node id as it is stored: byte order and text order are the same for canonical UUIDs. */
export function storedId(layout: NodeLayout, id: string): Uint8Array | string {
  return (layout.uuidIds ? keyBytes(id) : null) ?? id
}

/** A column's value of a document, null when it is missing. */
export function storedValue(column: Column, value: unknown): string | number | null {
  switch (column.kind) {
    case 'text':
      return typeof value === 'string' ? value : null
    case 'number':
      return typeof value === 'number' ? value : null
    case 'boolean':
      return typeof value === 'boolean' ? Number(value) : null
    case 'instant': {
      const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
      return Number.isNaN(ms) ? null : ms
    }
  }
}
