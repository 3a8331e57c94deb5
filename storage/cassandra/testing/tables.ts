// The tables of a Cassandra in memory: statements of one request, evaluated at once. Conditions see
// all that was written before them, as on one partition at the serial level. Source: PROTOCOL 3.0,
// 3.1.

import { types } from 'cassandra-driver'
import { Partition, MARKER, type Cell, type PartitionRow } from './cells.ts'
import { columnsOf, given, invalid, kept, type Column } from './columns.ts'
import type { Condition, Operator, Select, Value, Write } from './cql.ts'

/** The driver's own, which has methods beside its columns; its types leave the maker out. */
const { Row: DriverRow } = types as unknown as { Row: new (columns: object[]) => types.Row }

/** What one mutation may weigh, as the settings of the twin have it. */
export const MUTATION_BYTES_MAX = 16 * 1024 * 1024

interface Table {
  readonly columns: Map<string, Column>
  readonly partitions: Map<string, Partition>
}

interface Fitting {
  readonly of: Column
  readonly operator: Operator
  readonly value: unknown
}

interface Target {
  readonly partition: Partition
  /** null: a write of statics alone. */
  readonly row: PartitionRow | null
}

export interface Request<Q> {
  readonly query: Q
  readonly params: readonly unknown[]
}

export class TwinTables {
  readonly keyspaces = new Map<string, Readonly<Record<string, string>>>()
  readonly #tables = new Map<string, Table>()
  readonly #nowMs: () => number
  #stamp = 0

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  has(table: string): boolean {
    return this.#tables.has(table)
  }

  /** A statement that changes the schema, or empties a table. */
  define(statement: string): void {
    const text = statement.replaceAll(/\s+/g, ' ').trim()
    const [, keyspace, copies] = /^CREATE KEYSPACE IF NOT EXISTS (\w+) .*{(.*)}$/.exec(text) ?? []
    const [, made, body] = /^CREATE TABLE IF NOT EXISTS (\S+) \((.*)\)/.exec(text) ?? []
    const [, changed, mayBe, name, type] =
      /^ALTER TABLE (\S+) ADD (IF NOT EXISTS )?(\w+) (\w+)$/.exec(text) ?? []
    const [, dropped] = /^DROP KEYSPACE IF EXISTS (\w+)$/.exec(text) ?? []
    const [, emptied] = /^TRUNCATE (\S+)$/.exec(text) ?? []
    if (keyspace !== undefined) {
      const pairs = [...copies!.matchAll(/'([^']*)': '?([^',]*)/g)]
      const replication = Object.fromEntries(pairs.map(([, key, value]) => [key!, value!]))
      if (!this.keyspaces.has(keyspace)) this.keyspaces.set(keyspace, replication)
    } else if (made !== undefined) {
      if (!this.keyspaces.has(made.split('.')[0]!)) throw invalid(`no keyspace of ${made}`)
      const table = { columns: columnsOf(body!), partitions: new Map() }
      if (!this.#tables.has(made)) this.#tables.set(made, table)
    } else if (changed !== undefined) {
      const { columns } = this.#table(changed)
      if (columns.has(name!) && mayBe === undefined) throw invalid(`${name} is there already`)
      columns.set(name!, { name: name!, type: type!, part: 'regular' })
    } else if (dropped !== undefined) {
      this.keyspaces.delete(dropped)
      for (const one of this.#tables.keys()) {
        if (one.startsWith(`${dropped}.`)) this.#tables.delete(one)
      }
    } else if (emptied !== undefined) this.#table(emptied).partitions.clear()
    else throw new Error(`the twin of Cassandra doesn't know: ${text}`)
  }

  #table(name: string): Table {
    const table = this.#tables.get(name.toLowerCase())
    if (table === undefined) throw invalid(`table ${name} does not exist`)
    return table
  }

  select({ query, params }: Request<Select>): types.Row[] {
    const table = this.#table(query.table)
    const fitting = query.where.map((condition) => fittingOf(table, condition, params))
    const partitions = this.#partitions(table, fitting, query.behind, params)
    const byRow = fitting.filter(({ of }) => of.part !== 'partition')
    const found = partitions.flatMap((partition) => {
      const all = query.isDistinct
        ? [partition.rows()[0] ?? partition.statics]
        : rowsOf(table, partition, byRow)
      return all.map((row) => this.#shown(table, query, { partition, row }))
    })
    const limit = query.limit === null ? Infinity : (valueOf(query.limit, params) as number)
    return (query.isDescending ? found.toReversed() : found).slice(0, limit)
  }

  /** The one that is named, or all of which something is there, by their tokens. */
  #partitions(
    { columns, partitions }: Table,
    fitting: readonly Fitting[],
    behind: readonly Value[] | null,
    params: readonly unknown[],
  ): Partition[] {
    const key = keyOf(columns, 'partition', fitting)
    if (fitting.length > 0) {
      if (key === null) throw invalid('the whole key of a partition is needed')
      const one = partitions.get(nameOf(key))
      return one !== undefined && isLiving(one) ? [one] : []
    }
    const all = [...partitions.values()].filter(isLiving)
    const token = (of: readonly unknown[]): string => tokenOf(nameOf(of))
    const parts = [...columns.values()].filter(({ part }) => part === 'partition')
    const from = behind?.map((value, i) => kept(parts[i]!, valueOf(value, params))) ?? null
    const after = from === null ? '' : token(from)
    return all
      .filter((one) => token(one.key) > after)
      .toSorted((a, b) => (token(a.key) < token(b.key) ? -1 : 1))
  }

  #shown(
    { columns }: Table,
    query: Select,
    { partition, row }: { readonly partition: Partition; readonly row: PartitionRow },
  ): types.Row {
    const selected =
      query.columns.length > 0
        ? query.columns
        : [...columns.keys()].map((name) => ({ column: name, of: 'value', name }) as const)
    const shown = new DriverRow([])
    for (const { column, of, name } of selected) {
      const one = columnIn(columns, column)
      if (one.part === 'partition') {
        shown[name] = given(one.type, partition.key[placeIn(columns, one)])
      } else if (one.part === 'clustering') {
        shown[name] = given(one.type, row.key[placeIn(columns, one)])
      } else {
        const { cells } = one.part === 'static' ? partition.statics : row
        shown[name] = this.#cell(partition.living(cells.get(column)), of, one)
      }
    }
    return shown
  }

  #cell(cell: Cell | null, of: 'value' | 'ttl' | 'writetime', { type }: Column): unknown {
    if (cell === null) return null
    if (of === 'value') return given(type, cell.value)
    if (of === 'writetime') return given('bigint', cell.stamp)
    const leftMs = cell.expiresAtMs - this.#nowMs()
    return leftMs === Infinity ? null : Math.ceil(leftMs / 1_000)
  }

  /** Statements of one request. Whether conditions held; null: there were none. */
  write(requests: readonly Request<Write>[]): boolean | null {
    checkBytes(requests)
    const planned = requests.map((request) => ({ request, target: this.#target(request) }))
    const conditional = planned.filter(({ request }) => request.query.given !== null)
    if (conditional.length > 0 && new Set(planned.map((p) => p.target.partition)).size > 1) {
      throw invalid('a conditional batch is of one partition')
    }
    if (!conditional.every((one) => this.#holds(one.request, one.target))) return false
    this.#stamp = Math.max(this.#stamp + 1, Math.floor(this.#nowMs() * 1_000))
    for (const { request, target } of planned) this.#apply(request, target)
    return conditional.length > 0 ? true : null
  }

  #target({ query, params }: Request<Write>): Target {
    const { columns, partitions } = this.#table(query.table)
    const table = { columns, partitions }
    const named: Condition[] =
      query.kind === 'insert'
        ? query.set.map(({ column, value }) => ({ column, operator: '=', value }))
        : [...query.where]
    const fitting = named
      .filter(({ column }) => /partition|clustering/.test(columnIn(columns, column).part))
      .map((condition) => fittingOf(table, condition, params))
    const key = keyOf(columns, 'partition', fitting)
    if (key === null) throw invalid('the whole key of a partition is needed')
    const name = nameOf(key)
    let partition = partitions.get(name)
    if (partition === undefined) {
      partitions.set(name, (partition = new Partition(key, this.#nowMs)))
    }
    const clustering = keyOf(columns, 'clustering', fitting)
    const isOfRow = query.set.some(({ column }) => columnIn(columns, column).part === 'regular')
    if (clustering === null && isOfRow) throw invalid('the whole key of a row is needed')
    return { partition, row: clustering === null ? null : partition.row(clustering) }
  }

  #holds({ query, params }: Request<Write>, { partition, row }: Target): boolean {
    const { given: conditions } = query
    if (query.stamp !== null) throw invalid('no timestamp of ones own with a condition')
    if (conditions === null) return true
    if (conditions === 'exists') return row !== null && partition.isThere(row)
    if (conditions === 'not exists') return !partition.isThere(row ?? partition.statics)
    const table = this.#table(query.table)
    return conditions.every((condition) => {
      const { of, operator, value } = fittingOf(table, condition, params)
      const { cells } = of.part === 'static' ? partition.statics : row!
      const there = partition.living(cells.get(of.name))?.value ?? null
      if (there === null || value === null) return operator === '=' && there === value
      return fits(there, operator, value)
    })
  }

  #apply({ query, params }: Request<Write>, { partition, row }: Target): void {
    const table = this.#table(query.table)
    const stamp = query.stamp === null ? this.#stamp : (valueOf(query.stamp, params) as number)
    const seconds = query.ttl === null ? 0 : (valueOf(query.ttl, params) as number)
    const expiresAtMs = seconds === 0 ? Infinity : this.#nowMs() + seconds * 1_000
    if (query.kind === 'delete') {
      const all = query.where.map((condition) => fittingOf(table, condition, params))
      const byRow = all.filter(({ of }) => of.part === 'clustering')
      const covers = (key: readonly unknown[]): boolean =>
        byRow.every(({ of, operator, value }) => {
          return key.length > 0 && fits(key[placeIn(table.columns, of)], operator, value)
        })
      return partition.remove({ stamp, covers })
    }
    if (query.kind === 'insert' && row !== null) {
      partition.put(row, MARKER, { stamp, value: true, expiresAtMs })
    }
    for (const { column, value } of query.set) {
      const of = columnIn(table.columns, column)
      if (of.part === 'partition' || of.part === 'clustering') continue
      const to = of.part === 'static' ? partition.statics : row!
      const cell = { stamp, value: kept(of, valueOf(value, params)), expiresAtMs }
      partition.put(to, column, cell)
    }
  }
}

function checkBytes(requests: readonly Request<Write>[]): void {
  const params = requests.flatMap((request) => request.params)
  const bytes = params.reduce<number>(
    (sum, one) => sum + (Buffer.isBuffer(one) ? one.length : 0),
    0,
  )
  if (bytes >= MUTATION_BYTES_MAX) throw invalid('the mutation is too large')
}

function isLiving(partition: Partition): boolean {
  return partition.isThere(partition.statics) || partition.rows().length > 0
}

/** Its rows that fit; where none are asked for by their keys and there are none, its statics. */
function rowsOf(
  { columns }: Table,
  partition: Partition,
  fitting: readonly Fitting[],
): PartitionRow[] {
  const rows = partition.rows()
  if (fitting.length === 0 && rows.length === 0) return [partition.statics]
  return rows.filter(({ key }) => {
    return fitting.every(({ of, operator, value }) => {
      if (of.part !== 'clustering') throw invalid(`${of.name} is no part of the key`)
      return fits(key[placeIn(columns, of)], operator, value)
    })
  })
}

function valueOf(value: Value, params: readonly unknown[]): unknown {
  if ('literal' in value) return value.literal
  const found = params[value.bind]
  if (found === undefined) throw new TypeError(`parameter ${value.bind} is missing`)
  return found
}

function fittingOf(
  { columns }: Table,
  { column, operator, value }: Condition,
  params: readonly unknown[],
): Fitting {
  const of = columnIn(columns, column)
  return { of, operator, value: kept(of, valueOf(value, params)) }
}

function columnIn(columns: Table['columns'], name: string): Column {
  const column = columns.get(name)
  if (column === undefined) throw invalid(`undefined column ${name}`)
  return column
}

/** Values of a key's columns; null: not all are given as they are. */
function keyOf(
  columns: Table['columns'],
  part: 'partition' | 'clustering',
  fitting: readonly Fitting[],
): unknown[] | null {
  const key: unknown[] = []
  for (const column of columns.values()) {
    if (column.part !== part) continue
    const found = fitting.find(({ of, operator }) => of === column && operator === '=')
    if (found === undefined) return null
    key.push(found.value)
  }
  return key
}

/** Place of a column among those of its part of the key. */
function placeIn(columns: Table['columns'], column: Column): number {
  return [...columns.values()].filter(({ part }) => part === column.part).indexOf(column)
}

function fits(there: unknown, operator: Operator, value: unknown): boolean {
  const [a, b] = [there as number, value as number]
  switch (operator) {
    case '=':
      return a === b
    case '<':
      return a < b
    case '<=':
      return a <= b
    case '>':
      return a > b
    case '>=':
      return a >= b
  }
}

function nameOf(key: readonly unknown[]): string {
  return JSON.stringify(key)
}

/** A place on the ring, as even as the engine's. */
function tokenOf(text: string): string {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return `${(hash >>> 0).toString(16).padStart(8, '0')} ${text}`
}
