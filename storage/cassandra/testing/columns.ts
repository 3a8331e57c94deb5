// The tables of the twin as statements define them: columns with their types, and what a column
// takes and gives back, as cassandra-driver does it (a bigint is a Long, a uuid is an Uuid).

import { errors, types } from 'cassandra-driver'

export interface Column {
  readonly name: string
  readonly type: string
  readonly part: 'partition' | 'clustering' | 'static' | 'regular'
}

/** Cassandra has understood a statement and says that it is wrong. */
export function invalid(message: string): Error {
  return new errors.ResponseError(types.responseErrorCodes.invalid, message)
}

/** The columns of `CREATE TABLE name (...)`. */
export function columnsOf(body: string): Map<string, Column> {
  const keys = keysOf(body)
  const columns = new Map<string, Column>()
  for (const text of body.replace(/, PRIMARY KEY .*$/, '').split(',')) {
    const [name, type] = text.trim().split(' ') as [string, string]
    const part = keys.partition.includes(name)
      ? 'partition'
      : keys.clustering.includes(name)
        ? 'clustering'
        : text.endsWith(' STATIC')
          ? 'static'
          : 'regular'
    columns.set(name, { name, type, part })
  }
  // In the order of the key, whatever theirs is in the statement.
  const all = [...keys.partition, ...keys.clustering].map((name) => columns.get(name)!)
  return new Map([...all.map((column) => [column.name, column] as const), ...columns])
}

function keysOf(body: string): { partition: string[]; clustering: string[] } {
  const composed = /PRIMARY KEY \(\(([^)]*)\)(?:, ([^)]*))?\)/.exec(body)
  if (composed) return { partition: names(composed[1]), clustering: names(composed[2]) }
  const [first, ...clustering] = names(/PRIMARY KEY \(([^)]*)\)/.exec(body)?.[1])
  if (first !== undefined) return { partition: [first], clustering }
  return { partition: names(/(\w+) \w+ PRIMARY KEY/.exec(body)?.[1]), clustering: [] }
}

function names(list: string | undefined): string[] {
  return list === undefined ? [] : list.split(',').map((name) => name.trim())
}

/** A value as it is kept: text and numbers, a blob of its own. Throws TypeError as the driver. */
export function kept({ name, type }: Column, value: unknown): unknown {
  if (value === null) return null
  switch (type) {
    case 'uuid':
      return types.Uuid.fromString((value as string | types.Uuid).toString()).toString()
    case 'blob':
      if (Buffer.isBuffer(value)) return Buffer.from(value)
      break
    case 'int':
      if (Number.isInteger(value) && Math.abs(value as number) < 2 ** 31) return value
      break
    case 'bigint':
      if (Number.isSafeInteger(value)) return value
      if (value instanceof types.Long) return value.toNumber()
      break
    case 'boolean':
      if (typeof value === 'boolean') return value
      break
    default:
      if (typeof value === 'string') return value
  }
  throw new TypeError(`${name}, of ${type}, takes no ${typeof value}`)
}

/** A value as the driver gives it. */
export function given(type: string, value: unknown): unknown {
  if (value === null || value === undefined) return null
  if (type === 'uuid') return types.Uuid.fromString(value as string)
  if (type === 'bigint') return types.Long.fromNumber(value as number)
  return type === 'blob' ? Buffer.from(value as Buffer) : value
}
