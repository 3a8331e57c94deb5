// Reading by bytes over pages of rows: as many as were asked for, at least one, and said to be all
// only when nothing is left.

import t from 'tap'
import { readBytes, type BytesRead } from './pages.ts'
import type { Page, Row, Session } from './session.ts'

const QUERY = 'SELECT'

/** A partition of rows with bodies of these lengths. `full`: a full page names a next one. */
function partition(lengths: readonly number[], full: boolean) {
  const rows = lengths.map((length, n) => ({ n, body: Buffer.alloc(length) }) as unknown as Row)
  const asked: number[] = []
  const readPage: Session['readPage'] = async (_, __, page): Promise<Page> => {
    asked.push(page.rows)
    const from = Number(page.from ?? 0)
    const end = from + page.rows
    const isLast = full ? rows.length < end : rows.length <= end
    return { rows: rows.slice(from, end), next: isLast ? null : String(end) }
  }
  const read = async (bytesMax: number): Promise<BytesRead> =>
    readBytes({ readPage } as Session, { query: QUERY, params: [], bytesMax })
  return { asked, read }
}

function numbersOf({ rows }: BytesRead): number[] {
  return rows.map((row) => row['n'] as number)
}

t.test('up to the bytes that were asked for, and never one row more', async (t) => {
  for (const full of [true, false]) {
    for (const count of [1, 7, 8, 9, 64, 100]) {
      for (let wanted = 1; wanted <= count + 1; wanted++) {
        const { read } = partition(Array(count).fill(10), full)
        for (const [bytesMax, most] of [
          [10 * wanted, wanted],
          [10 * wanted + 9, wanted],
        ] as const) {
          const found = await read(bytesMax)
          const rows = Math.min(most, count)
          t.equal(found.rows.length, rows, `${count} rows, ${bytesMax} bytes`)
          t.equal(found.bytes, 10 * rows)
          t.equal(found.isWhole, most >= count, `${count} rows, ${bytesMax} bytes: all`)
          t.same(numbersOf(found), [...Array(rows).keys()])
        }
      }
    }
  }
})

t.test('at least one, however large', async (t) => {
  const { read } = partition([1_000, 1], false)
  const found = await read(5)
  t.same(numbersOf(found), [0])
  t.equal(found.isWhole, false)
  t.equal(found.bytes, 1_000)
  t.same(await partition([], false).read(5), { rows: [], bytes: 0, isWhole: true })
})

t.test('few rows at first, then as many as are likely to hold what is left', async (t) => {
  const small = partition(Array(10_000).fill(1), false)
  t.equal((await small.read(100_000)).rows.length, 10_000)
  t.same(small.asked.slice(0, 5), [8, 64, 512, 1_000, 1_000])
  const large = partition(Array(100).fill(1_000), false)
  t.equal((await large.read(12_000)).rows.length, 12)
  t.same(large.asked, [8, 5])
  const empty = partition(Array(50).fill(0), false)
  t.equal((await empty.read(10)).rows.length, 50, 'rows without bytes')
})
