// What the derived tables of a run hold, decoded: rows that are there now, as a reader at quorum
// would find them.

import { decodeBlob } from '../../../storage/cassandra/derived/rows.ts'
import type { AliasClaim, AliasRow, EntryRow } from '../../../storage/journal.ts'
import type { DerivedTables, TableRow } from './tables.ts'

function blobOf(row: TableRow): { readonly number: number; readonly content: Buffer } {
  return decodeBlob(row['body'] as Buffer, () => JSON.stringify(row))
}

/** Entries by actor, by their number. */
export function storedEntries(tables: DerivedTables): ReadonlyMap<string, readonly EntryRow[]> {
  const found = new Map<string, EntryRow[]>()
  for (const row of tables.all('actor_entry')) {
    const { number, content } = blobOf(row)
    const entry = { n: row['n'] as number, offset: number, body: content }
    const list = found.get(String(row['pid']))
    if (list) list.push(entry)
    else found.set(String(row['pid']), [entry])
  }
  for (const list of found.values()) list.sort((a, b) => a.n - b.n)
  return found
}

export function storedAliases(tables: DerivedTables): readonly AliasRow[] {
  return [...tables.all('alias')].map((row) => ({
    keyType: String(row['type']),
    key: String(row['key']),
    claims: JSON.parse(blobOf(row).content.toString()) as AliasClaim[],
  }))
}

export function storedAlias(tables: DerivedTables, keyType: string, key: string): AliasRow | null {
  const found = storedAliases(tables).find((row) => row.keyType === keyType && row.key === key)
  return found ?? null
}

export function storedConsumer(
  tables: DerivedTables,
  shard: number,
  consumer: string,
): number | null {
  const query = `SELECT off FROM simulated.consumer_offset WHERE shard = ? AND consumer = ?`
  const [row] = tables.select(query, [shard, consumer])
  return row === undefined ? null : (row['off'] as number)
}
