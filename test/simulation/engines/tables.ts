// The derived tables of the simulated Cassandra, under the engine's own rules for a cell: the
// greater timestamp stays; of two equal ones what expires or is deleted; what has expired shadows
// older and equal writes until its grace is over; rows expire by the engine's clock. They take the
// very statements that the driver sends, and know their keys from the driver's schema. They go by
// the clock of a run's engine. Source: PROTOCOL 3.0; Cassandra 5, `db.rows.Cells.resolveRegular`,
// `gc_grace_seconds`.

import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '../../../protocol/errors.ts'
import type { Statement } from '../../../storage/cassandra/session/session.ts'

/** `gc_grace_seconds`, as the engine has it unless it is told otherwise. */
const GRACE_MS = 10 * 86_400_000
/** What an engine adds to a mutation's values, bytes. */
const STATEMENT_BYTES = 100

export type TableRow = Readonly<Record<string, unknown>>

interface Cell {
  readonly stamp: number
  readonly value: unknown
  /** Infinity: it stays. */
  readonly expiresAtMs: number
}

interface Partition {
  readonly key: readonly unknown[]
  /** By clustering columns, as text. */
  readonly rows: Map<string, { readonly key: readonly unknown[]; cell: Cell }>
  /** Cells up to this timestamp were deleted with their partition. */
  deletedUpTo: number
}

interface Table {
  readonly partitionColumns: readonly string[]
  readonly clusteringColumns: readonly string[]
  readonly partitions: Map<string, Partition>
}

/** A statement with its parts named; the same for the same text. */
interface Parsed {
  readonly kind: 'update' | 'delete' | 'select'
  readonly table: string
  readonly hasTtl: boolean
  readonly column: string
  readonly columns: readonly string[]
  readonly isDistinct: boolean
  readonly conditions: readonly { readonly column: string; readonly operator: string }[]
  readonly isTokenRange: boolean
  readonly order: 'ascending' | 'descending'
  readonly hasLimit: boolean
}

const SCHEMA = join(import.meta.dirname, '../../..', 'storage', 'cassandra', 'schema')

export class DerivedTables {
  readonly #nowMs: () => number
  readonly #tables = newTables()

  /** `nowMs`: the engine's wall clock. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Statements of one mutation: an UPDATE or DELETE of one partition each. */
  write({ query, params }: Statement): void {
    const parsed = parse(query)
    const [stamp] = params as [number]
    const table = this.#table(parsed.table)
    if (parsed.kind === 'delete') {
      const partition = partitionOf(table, params.slice(1))
      partition.deletedUpTo = Math.max(partition.deletedUpTo, stamp)
      for (const [name, { cell }] of partition.rows) {
        if (cell.stamp <= stamp) partition.rows.delete(name)
      }
      return
    }
    assert(parsed.kind === 'update', 'registers are updated')
    const at = parsed.hasTtl ? 2 : 1
    const seconds = parsed.hasTtl ? (params[1] as number) : 0
    const named = namedBy(parsed, params.slice(at + 1))
    const partition = partitionOf(
      table,
      table.partitionColumns.map((column) => named[column]),
    )
    if (stamp <= partition.deletedUpTo) return
    const key = table.clusteringColumns.map((column) => named[column])
    const expiresAtMs = seconds > 0 ? this.#nowMs() + seconds * 1_000 : Infinity
    this.#put(partition, key, { stamp, value: params[at], expiresAtMs })
  }

  #put({ rows }: Partition, key: readonly unknown[], cell: Cell): void {
    const name = textOf(key)
    const there = rows.get(name)
    const nowMs = this.#nowMs()
    if (there === undefined || nowMs >= there.cell.expiresAtMs + GRACE_MS) {
      rows.set(name, { key, cell })
    } else if (winner(there.cell, cell, nowMs) === cell) there.cell = cell
  }

  /** Rows that are there, in the order in which the engine hands them out. */
  select(query: string, params: readonly unknown[]): TableRow[] {
    const parsed = parse(query)
    const table = this.#table(parsed.table)
    const given = [...params]
    const limit = parsed.hasLimit ? (given.pop() as number) : Infinity
    if (parsed.isTokenRange || parsed.conditions.length === 0) {
      return this.#partitionsBehind(table, given, parsed.columns).slice(0, limit)
    }
    const name = textOf(given.slice(0, table.partitionColumns.length))
    const partition = table.partitions.get(name)
    if (partition === undefined) return []
    const found: TableRow[] = []
    const nowMs = this.#nowMs()
    for (const { key, cell } of partition.rows.values()) {
      if (nowMs >= cell.expiresAtMs) continue
      const row = rowOf(table, partition, key, cell)
      if (parsed.conditions.every((condition, i) => fits(row, condition, given[i]))) found.push(row)
    }
    const way = parsed.order === 'ascending' ? 1 : -1
    const columns = table.clusteringColumns
    found.sort((a, b) => way * compareBy(columns, a, b))
    return found.slice(0, limit)
  }

  /** Distinct partitions with rows, in the order of their tokens. */
  #partitionsBehind(table: Table, after: readonly unknown[], columns: readonly string[]) {
    const nowMs = this.#nowMs()
    const from = after.length === 0 ? null : tokenOf(after)
    const living = [...table.partitions.values()].filter(({ rows }) =>
      [...rows.values()].some(({ cell }) => nowMs < cell.expiresAtMs),
    )
    const placed = living
      .map(({ key }) => ({ key, token: tokenOf(key) }))
      .filter(({ token }) => from === null || token > from)
      .toSorted((a, b) => (a.token < b.token ? -1 : 1))
    return placed.map(({ key }): TableRow => {
      const all = Object.fromEntries(table.partitionColumns.map((column, i) => [column, key[i]]))
      return Object.fromEntries(columns.map((column) => [column, all[column]]))
    })
  }

  /** Every row that is there of a table. */
  *all(name: string): Iterable<TableRow> {
    const table = this.#table(name)
    const nowMs = this.#nowMs()
    for (const partition of table.partitions.values()) {
      for (const { key, cell } of partition.rows.values()) {
        if (nowMs < cell.expiresAtMs) yield rowOf(table, partition, key, cell)
      }
    }
  }

  #table(name: string): Table {
    const table = this.#tables.get(name)
    assert(table !== undefined, `the schema has the table ${name}`)
    return table
  }
}

/** About how many bytes a mutation of these statements takes in the engine. */
export function mutationBytes(statements: readonly Statement[]): number {
  let bytes = 0
  for (const { params } of statements) {
    bytes += STATEMENT_BYTES
    for (const param of params) if (param instanceof Uint8Array) bytes += param.length
  }
  return bytes
}

/** Table, and partition as text, of a statement. */
export function placeOf({ query, params }: Statement): { table: string; partition: string } {
  const parsed = parse(query)
  const key = params.slice(parsed.kind === 'delete' ? 1 : parsed.hasTtl ? 3 : 2)
  const columns = columnsOf().get(parsed.table)!.partitionColumns
  return { table: parsed.table, partition: textOf(key.slice(0, columns.length)) }
}

/** What a statement or query is about, for rules and for the trace. */
export function nameOf({ query, params }: Statement): string {
  const parsed = parse(query)
  if (parsed.kind === 'select') return `${parsed.table} ${shownOf(params)}`
  const key = params.slice(parsed.kind === 'delete' ? 1 : parsed.hasTtl ? 3 : 2)
  const ttl = parsed.hasTtl ? ` for ${String(params[1])} s` : ''
  return `${parsed.table} ${shownOf(key)}@${String(params[0])}${ttl}`
}

function shownOf(params: readonly unknown[]): string {
  return params.map(String).join(' ')
}

/** Of two cells of one place the one that stays, whichever came first. */
function winner(left: Cell, right: Cell, nowMs: number): Cell {
  if (left.stamp !== right.stamp) return left.stamp > right.stamp ? left : right
  const passes = (cell: Cell): boolean => cell.expiresAtMs !== Infinity
  if (passes(left) !== passes(right)) return passes(left) ? left : right
  // What has expired may have become a tombstone, which stays.
  if (nowMs >= left.expiresAtMs) return left
  if (left.expiresAtMs !== right.expiresAtMs) {
    return left.expiresAtMs > right.expiresAtMs ? left : right
  }
  if (!(left.value instanceof Uint8Array) || !(right.value instanceof Uint8Array)) return right
  return Buffer.compare(left.value, right.value) >= 0 ? left : right
}

function rowOf(
  table: Table,
  { key: partition }: Partition,
  clustering: readonly unknown[],
  { value }: Cell,
): TableRow {
  const row: Record<string, unknown> = { body: value, off: value }
  table.partitionColumns.forEach((column, i) => (row[column] = partition[i]))
  table.clusteringColumns.forEach((column, i) => (row[column] = clustering[i]))
  return row
}

function fits(row: TableRow, condition: Parsed['conditions'][number], value: unknown): boolean {
  const there = row[condition.column]
  if (condition.operator === '=') return there === value
  return condition.operator === '>'
    ? (there as number) > (value as number)
    : (there as number) < (value as number)
}

/** The order of rows in a partition. */
export function compareBy(columns: readonly string[], a: TableRow, b: TableRow): number {
  for (const column of columns) {
    const [one, other] = [a[column], b[column]] as [number, number]
    if (one !== other) return one < other ? -1 : 1
  }
  return 0
}

function partitionOf({ partitions }: Table, key: readonly unknown[]): Partition {
  const name = textOf(key)
  let found = partitions.get(name)
  if (!found) partitions.set(name, (found = { key, rows: new Map(), deletedUpTo: -Infinity }))
  return found
}

function textOf(key: readonly unknown[]): string {
  return key.map(String).join('\0')
}

/** A place on the ring, as even as the engine's. */
function tokenOf(key: readonly unknown[]): string {
  let hash = 0x811c9dc5
  const text = textOf(key)
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return `${(hash >>> 0).toString(16).padStart(8, '0')} ${text}`
}

function namedBy(parsed: Parsed, params: readonly unknown[]): TableRow {
  return Object.fromEntries(parsed.conditions.map(({ column }, i) => [column, params[i]]))
}

const parsedBefore = new Map<string, Parsed>()

function parse(query: string): Parsed {
  let parsed = parsedBefore.get(query)
  if (!parsed) parsedBefore.set(query, (parsed = parseAnew(query.replaceAll(/\s+/g, ' ').trim())))
  return parsed
}

const UPDATE = /^UPDATE \w+\.(\w+) USING TIMESTAMP \?( AND TTL \?)? SET (\w+) = \? WHERE (.+)$/
const DELETE = /^DELETE FROM \w+\.(\w+) USING TIMESTAMP \? WHERE (.+)$/
const SELECT =
  /^SELECT (DISTINCT )?([\w, ]+) FROM \w+\.(\w+)(?: WHERE (.+?))?( ORDER BY \w+ DESC)?( LIMIT (?:\?|1))?$/

function parseAnew(query: string): Parsed {
  const none = { column: '', columns: [], isDistinct: false, hasTtl: false, hasLimit: false }
  const plain = { ...none, isTokenRange: false, order: 'ascending' } as const
  const update = UPDATE.exec(query)
  if (update) {
    const [, table, ttl, column, where] = update
    const conditions = conditionsOf(where)
    return { ...plain, kind: 'update', table: table!, hasTtl: !!ttl, column: column!, conditions }
  }
  const removal = DELETE.exec(query)
  if (removal) {
    return { ...plain, kind: 'delete', table: removal[1]!, conditions: conditionsOf(removal[2]) }
  }
  const select = SELECT.exec(query)
  if (!select) throw new Error(`the simulated Cassandra doesn't know: ${query}`)
  const [, distinct, columns, table, where, order, limit] = select
  const isTokenRange = where?.startsWith('token(') === true
  return {
    ...plain,
    kind: 'select',
    table: table!,
    columns: columns!.split(', '),
    isDistinct: distinct !== undefined,
    conditions: isTokenRange ? [] : conditionsOf(where),
    isTokenRange,
    order: order === undefined ? 'ascending' : 'descending',
    hasLimit: limit === ' LIMIT ?',
  }
}

function conditionsOf(where = ''): Parsed['conditions'] {
  if (where === '') return []
  return where.split(' AND ').map((text) => {
    const [column, operator] = text.split(' ') as [string, string]
    return { column, operator }
  })
}

type Columns = Pick<Table, 'partitionColumns' | 'clusteringColumns'>

let columnsKnown: ReadonlyMap<string, Columns> | null = null

/** The keys of all tables, as the driver's schema has them. */
function columnsOf(): ReadonlyMap<string, Columns> {
  if (columnsKnown !== null) return columnsKnown
  const found = new Map<string, Columns>()
  for (const file of readdirSync(SCHEMA).toSorted()) {
    const text = readFileSync(join(SCHEMA, file), 'utf8').replaceAll(/--.*$/gm, '')
    for (const [, name, body] of text.matchAll(
      /CREATE TABLE IF NOT EXISTS \$keyspace\.(\w+) \(([^;]*)\)[^;]*;/g,
    )) {
      found.set(name!, keysOf(body!))
    }
  }
  return (columnsKnown = found)
}

function keysOf(body: string): Columns {
  const composed = /PRIMARY KEY \(\(([\w, ]+)\)(?:, ([\w, ]+))?\)/.exec(body)
  if (composed) return columnsIn(composed[1]!.split(', '), composed[2]?.split(', ') ?? [])
  const several = /PRIMARY KEY \(([\w, ]+)\)/.exec(body)
  if (several) {
    const [first, ...others] = several[1]!.split(', ')
    return columnsIn([first!], others)
  }
  return columnsIn([/(\w+) \w+ PRIMARY KEY/.exec(body)![1]!], [])
}

function columnsIn(partitionColumns: string[], clusteringColumns: string[]): Columns {
  return { partitionColumns, clusteringColumns }
}

function newTables(): Map<string, Table> {
  const tables = new Map<string, Table>()
  for (const [name, columns] of columnsOf()) tables.set(name, { ...columns, partitions: new Map() })
  return tables
}
