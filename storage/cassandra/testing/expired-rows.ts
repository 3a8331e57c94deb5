// Takes away every row that carries a TTL, as the engine itself does once that is over: with a
// tombstone of the row's own timestamp. For tests that can't wait two days. Source: PROTOCOL 3.12
// "What expires".

import type { Session } from '../session/session.ts'

const TABLES: readonly (readonly [table: string, key: readonly string[]])[] = [
  ['actor_entry', ['pid', 'bucket', 'n']],
  ['actor_snap', ['pid']],
  ['alias', ['type', 'key']],
  ['mark', ['pid', 'day', 'id']],
  ['parked', ['shard', 'consumer', 'pid']],
]

/** Answers how many rows went. */
export async function expireRows(session: Session, keyspace: string): Promise<number> {
  let gone = 0
  for (const [table, key] of TABLES) {
    const columns = [...key, 'TTL(body) AS ttl', 'WRITETIME(body) AS at'].join(', ')
    const where = key.map((column) => `${column} = ?`).join(' AND ')
    for (const row of await session.read(`SELECT ${columns} FROM ${keyspace}.${table}`, [])) {
      if (row['ttl'] === null) continue
      const query = `DELETE FROM ${keyspace}.${table} USING TIMESTAMP ? WHERE ${where}`
      const params = [Number(row['at']), ...key.map((column) => row[column] as unknown)]
      await session.put([{ query, params }])
      gone++
    }
  }
  return gone
}
