// The simulated tables by the rules of Cassandra's cells: which of two stays, what expires when,
// and what an expired cell still shadows.

import t from 'tap'
import { DerivedTables, mutationBytes, nameOf, placeOf } from './tables.ts'

const HOUR_MS = 3_600_000
const KEY = ['actor', 0, 1]
const WHERE = 'WHERE pid = ? AND bucket = ? AND n = ?'
const FOREVER = `UPDATE k.actor_entry USING TIMESTAMP ? SET body = ? ${WHERE}`
const PASSING = `UPDATE k.actor_entry USING TIMESTAMP ? AND TTL ? SET body = ? ${WHERE}`
const ROWS = 'SELECT n, body FROM k.actor_entry WHERE pid = ? AND bucket = ? AND n > ?'

function scene() {
  const time = { nowMs: 0 }
  const tables = new DerivedTables(() => time.nowMs)
  const put = (stamp: number, text: string, n = 1): void =>
    tables.write({ query: FOREVER, params: [stamp, Buffer.from(text), 'actor', 0, n] })
  const pass = (stamp: number, text: string, seconds = 3_600): void =>
    tables.write({ query: PASSING, params: [stamp, seconds, Buffer.from(text), ...KEY] })
  const shown = (): string =>
    tables
      .select(ROWS, ['actor', 0, 0])
      .map(({ body }) => String(body))
      .join()
  return { time, tables, put, pass, shown }
}

t.test('the greater timestamp stays, and of equal ones the greater bytes', async (t) => {
  const { put, shown } = scene()
  put(5, 'b')
  put(4, 'z')
  t.equal(shown(), 'b')
  put(5, 'a')
  t.equal(shown(), 'b')
  put(5, 'c')
  t.equal(shown(), 'c')
  put(6, 'a')
  t.equal(shown(), 'a')
})

t.test('what expires wins over what stays, at one timestamp', async (t) => {
  const { time, put, pass, shown } = scene()
  put(5, 'stays')
  pass(5, 'passes')
  t.equal(shown(), 'passes')
  put(5, 'stays')
  t.equal(shown(), 'passes', 'nor can it be made to stay')
  time.nowMs = HOUR_MS
  t.equal(shown(), '')
})

t.test('what has expired shadows until its grace is over', async (t) => {
  const { time, put, pass, shown } = scene()
  pass(5, 'passes')
  time.nowMs = HOUR_MS - 1
  t.equal(shown(), 'passes')
  time.nowMs = HOUR_MS
  put(4, 'older')
  put(5, 'as old')
  pass(5, 'again')
  t.equal(shown(), '')
  put(6, 'newer')
  t.equal(shown(), 'newer')
  pass(7, 'passes')
  time.nowMs += 11 * 24 * HOUR_MS
  put(5, 'as old')
  t.equal(shown(), 'as old')
})

t.test('rows come in the order of their numbers, partitions in that of their tokens', async (t) => {
  const { tables, put, shown } = scene()
  for (const n of [3, 1, 2]) put(1, `row ${n}`, n)
  t.equal(shown(), 'row 1,row 2,row 3')
  const newest = `SELECT n FROM k.actor_entry WHERE pid = ? AND bucket = ? ORDER BY n DESC LIMIT 1`
  t.equal(tables.select(newest, ['actor', 0])[0]!['n'], 3)
  for (let i = 0; i < 9; i++) {
    tables.write({ query: FOREVER, params: [1, Buffer.from('x'), `other-${i}`, 0, 1] })
  }
  const page = 'SELECT DISTINCT pid, bucket FROM k.actor_entry LIMIT ?'
  const next =
    'SELECT DISTINCT pid, bucket FROM k.actor_entry WHERE token(pid, bucket) > token(?, ?) LIMIT ?'
  const found: unknown[] = []
  for (let rows = tables.select(page, [4]); rows.length > 0;) {
    found.push(...rows.map(({ pid }) => pid))
    rows = tables.select(next, [found.at(-1), 0, 4])
  }
  t.equal(new Set(found).size, 10)
  t.equal(found.length, 10)
})

t.test('a deleted partition takes what is not newer with it, also late', async (t) => {
  const { tables } = scene()
  const image = `UPDATE k.system_image USING TIMESTAMP ? SET body = ?
                 WHERE at = ? AND part = ? AND chunk = ?`
  const put = (stamp: number): void =>
    tables.write({ query: image, params: [stamp, Buffer.from('x'), 7, 0, 0] })
  const left = (): number => [...tables.all('system_image')].length
  put(7)
  tables.write({
    query: 'DELETE FROM k.system_image USING TIMESTAMP ? WHERE at = ?',
    params: [7, 7],
  })
  t.equal(left(), 0)
  put(7)
  t.equal(left(), 0)
  put(8)
  t.equal(left(), 1)
})

t.test('a statement says where it goes and what it weighs', async (t) => {
  const statement = { query: PASSING, params: [9, 60, Buffer.alloc(50), ...KEY] }
  t.equal(nameOf(statement), 'actor_entry actor 0 1@9 for 60 s')
  t.strictSame(placeOf(statement), { table: 'actor_entry', partition: ['actor', 0].join('\0') })
  t.equal(mutationBytes([statement, statement]), 300)
  t.throws(() => scene().tables.select('SELECT x FROM y ALLOW FILTERING', []), /doesn't know/)
})
