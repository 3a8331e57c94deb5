// Recent groups: what was committed here is read from memory, all else from the log, and no row is
// left out or told twice on the way.

import { deepStrictEqual } from 'node:assert'
import t from 'tap'
import fc from 'fast-check'
import type { LogRow } from '../../storage/journal.ts'
import { RecentRows } from './recent-rows.ts'

/** A log of groups; counts how often it is read. */
class Rows {
  readonly rows: LogRow[] = []
  reads = 0

  commit(
    shard: number,
    count: number,
    bytes: number,
  ): { first: number; count: number; body: Uint8Array } {
    const first = this.head(shard) + 1
    const body = new Uint8Array(bytes)
    this.rows.push({ shard, epoch: 1, offset: first + count - 1, count, commitId: '', body })
    return { first, count, body }
  }

  head(shard: number): number {
    return this.rows.findLast((row) => row.shard === shard)?.offset ?? 0
  }

  read(shard: number, after: number): LogRow[] {
    this.reads++
    return this.rows.filter((row) => row.shard === shard && row.offset > after)
  }
}

/** Bytes of the rows that are read without the log. */
async function held(recent: RecentRows, log: Rows): Promise<number> {
  let bytes = 0
  for (const shard of [0, 1]) {
    for (let after = 0; after < log.head(shard); after++) {
      const { reads } = log
      const rows = await recent.read(shard, after, 1_000)
      if (log.reads > reads) continue
      bytes += rows.reduce((sum, { body }) => sum + body.length, 0)
      break
    }
  }
  return bytes
}

t.test('what was just committed is not read again', async (t) => {
  const log = new Rows()
  const recent = new RecentRows(log, 1_000)
  recent.add(0, log.commit(0, 2, 10))
  recent.add(0, log.commit(0, 1, 10))
  const rows = await recent.read(0, 0, 1_000)
  t.strictSame(
    rows.map(({ offset, count }) => [offset, count]),
    [
      [2, 2],
      [3, 1],
    ],
  )
  t.equal((await recent.read(0, 1, 1_000)).length, 2, 'a row of which a part is known comes whole')
  t.equal((await recent.read(0, 0, 5)).length, 1, 'at least one row, then as many as may be')
  t.equal(log.reads, 0)
  recent.forget(0)
  t.equal(recent.bytes, 0)
  t.equal((await recent.read(0, 0, 1_000)).length, 2)
  t.equal(log.reads, 1)
})

t.test('when the room is full the oldest rows go, until half of it is free', async (t) => {
  const log = new Rows()
  const recent = new RecentRows(log, 1_000)
  for (const shard of [0, 1, 0, 1, 0]) recent.add(shard, log.commit(shard, 1, 200))
  t.equal(recent.bytes, 1_000, 'it may be full')
  recent.add(0, log.commit(0, 1, 200))
  t.equal(recent.bytes, 400)
  t.equal((await recent.read(0, 2, 1_000)).length, 2, 'the newest two')
  t.equal(log.reads, 0)
  t.equal((await recent.read(1, 0, 1_000)).length, 2)
  t.equal(log.reads, 1)
})

t.test('whatever is kept, following reads every row once and in order', async () => {
  const act = fc.record({
    kind: fc.constantFrom('commit', 'commit', 'read', 'elsewhere', 'forget'),
    shard: fc.nat(1),
    count: fc.integer({ min: 1, max: 3 }),
    bytes: fc.integer({ min: 1, max: 40 }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 60 }), async (acts) => {
      const log = new Rows()
      const recent = new RecentRows(log, 100)
      const seen = [0, 0]
      const follow = async (shard: number, bytesMax: number): Promise<void> => {
        for (const row of await recent.read(shard, seen[shard]!, bytesMax)) {
          if (row.offset - row.count !== seen[shard]) throw new Error('a row is out of order')
          seen[shard] = row.offset
        }
      }
      for (const { kind, shard, count, bytes } of acts) {
        if (kind === 'commit') recent.add(shard, log.commit(shard, count, bytes))
        else if (kind === 'elsewhere') log.commit(shard, count, bytes)
        else if (kind === 'forget') recent.forget(shard)
        else await follow(shard, bytes)
        const there = await held(recent, log)
        if (recent.bytes !== there) throw new Error(`${recent.bytes} bytes for ${there}`)
        if (recent.bytes > 140) throw new Error(`${recent.bytes} bytes are kept`)
      }
      for (const shard of [0, 1]) {
        while (seen[shard]! < log.head(shard)) await follow(shard, 1_000)
      }
      deepStrictEqual(seen, [log.head(0), log.head(1)])
    }),
  )
})
