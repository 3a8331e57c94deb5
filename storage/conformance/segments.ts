// The one suite that every store of segments passes: a chain of partitions, each guarded by its
// statics. The port is storage/segments.ts. Source: PROTOCOL 3.0 `log`, 3.1, 3.2, 3.5.

import type { Test } from 'tap'
import type { Group } from '../journal.ts'
import type { SegmentId, SegmentStore } from '../segments.ts'
import { freshUuid, group } from './journal-samples.ts'

/** Makes a store of `shards` shards, their first segments open; ends it with `t.teardown`. */
export type MakeSegments = (t: Test, shards: number) => Promise<SegmentStore>

export function segmentsConformance(t: Test, makeSegments: MakeSegments): void {
  void t.test('statics', (s) => statics(s, makeSegments))
  void t.test('appends', (s) => appends(s, makeSegments))
  void t.test('sending again', (s) => sendingAgain(s, makeSegments))
  void t.test('sealing and the next segment', (s) => sealing(s, makeSegments))
  void t.test('reading', (s) => reading(s, makeSegments))
  void t.test('dropping rows', (s) => dropping(s, makeSegments))
  void t.test('racing appends', (s) => racers(s, makeSegments))
}

const FIRST = { shard: 0, segment: 1 }
const NEW = { epoch: 0, base: 0, head: 0, lastCommit: null, sealed: false }

function offsetsOf(rows: readonly { readonly offset: number }[]): number[] {
  return rows.map(({ offset }) => offset)
}

/** Offsets in a segment. */
async function offsets(store: SegmentStore, of: SegmentId, after = 0): Promise<number[]> {
  return offsetsOf(await store.rows(of, { after, bytesMax: 1e6 }))
}

async function statics(t: Test, makeSegments: MakeSegments): Promise<void> {
  const store = await makeSegments(t, 2)
  for (const shard of [-1, 0, 1]) t.same(await store.statics({ shard, segment: 1 }), NEW)
  const other = { shard: 0, segment: 2 }
  t.equal(await store.statics(other), null)
  t.equal(await store.fence(other, 5), 'refused', 'what was never opened is not fenced')
  t.equal(await store.statics(other), null)
  t.equal(await store.seal(other, { epoch: 0, head: 0 }), 'refused')
  t.equal(await store.append(2, group({ shard: 0, epoch: 0 })), 'refused')
  t.equal(await store.statics(other), null)
  t.equal(await store.open(FIRST, { epoch: 3, head: 9 }), 'refused', 'open already')
  t.same(await store.statics(FIRST), NEW)
  t.equal(await store.fence(FIRST, 2), 'applied')
  t.equal(await store.fence(FIRST, 2), 'refused', 'not higher')
  t.equal(await store.fence(FIRST, 1), 'refused')
  t.equal(await store.fence(FIRST, 7), 'applied', 'epochs may be jumped over')
  t.same(await store.statics(FIRST), { ...NEW, epoch: 7 })
  t.same(await store.statics({ shard: 1, segment: 1 }), NEW, 'other shards stay')
}

async function appends(t: Test, makeSegments: MakeSegments): Promise<void> {
  const store = await makeSegments(t, 2)
  t.ok(store.appendsMax >= 1)
  await store.fence(FIRST, 4)
  const refused = (more: Partial<Group>) =>
    store.append(1, group({ shard: 0, epoch: 4, head: 0, ...more }))
  t.equal(await refused({ epoch: 3 }), 'refused')
  t.equal(await refused({ epoch: 5 }), 'refused')
  t.equal(await refused({ head: 1 }), 'refused')
  t.same(await store.statics(FIRST), { ...NEW, epoch: 4 }, 'nothing of it is in')
  t.same(await offsets(store, FIRST), [])

  const body = Buffer.from([0, 255, 1, 2, 3])
  const first = group({ shard: 0, epoch: 4, count: 3, body })
  t.equal(await store.append(1, first), 'applied')
  body.fill(9)
  t.same(await store.statics(FIRST), { ...NEW, epoch: 4, head: 3, lastCommit: first.commitId })
  const [row] = await store.rows(FIRST, { after: 0, bytesMax: 1 })
  t.same(
    { ...row, body: [...row!.body] },
    {
      shard: 0,
      epoch: 4,
      offset: 3,
      count: 3,
      commitId: first.commitId,
      body: [0, 255, 1, 2, 3],
    },
  )
  await store.fence(FIRST, 6)
  const second = group({ shard: 0, epoch: 6, head: 3, count: 1, body: Buffer.alloc(0) })
  t.equal(await store.append(1, second), 'applied')
  const rows = await store.rows(FIRST, { after: 0, bytesMax: 1e6, serial: true })
  t.same(
    rows.map(({ epoch }) => epoch),
    [4, 6],
    'a row keeps the epoch in which it was appended',
  )
  t.equal(rows[1]!.body.length, 0)
}

async function sendingAgain(t: Test, makeSegments: MakeSegments): Promise<void> {
  const store = await makeSegments(t, 2)
  const first = group({ shard: 0, epoch: 0, count: 2 })
  t.equal(await store.append(1, first), 'applied')
  t.equal(await store.append(1, first), 'refused', 'the first copy won: the statics say so')
  t.equal((await store.statics(FIRST))?.lastCommit, first.commitId)
  t.same(await offsets(store, FIRST), [2])
  const second = group({ shard: 0, epoch: 0, head: 2 })
  t.equal(await store.append(1, second), 'applied')
  t.equal(await store.append(1, first), 'refused')
  t.equal((await store.statics(FIRST))?.lastCommit, second.commitId)
}

async function sealing(t: Test, makeSegments: MakeSegments): Promise<void> {
  const store = await makeSegments(t, 2)
  const next = { shard: 0, segment: 2 }
  t.equal(await store.append(1, group({ shard: 0, epoch: 0, count: 5 })), 'applied')
  t.equal(await store.seal(FIRST, { epoch: 1, head: 5 }), 'refused')
  t.equal(await store.seal(FIRST, { epoch: 0, head: 4 }), 'refused')
  t.equal((await store.statics(FIRST))?.sealed, false)
  t.equal(await store.seal(FIRST, { epoch: 0, head: 5 }), 'applied')
  t.equal(await store.seal(FIRST, { epoch: 0, head: 5 }), 'refused', 'once')
  t.equal((await store.statics(FIRST))?.sealed, true)
  t.equal(await store.append(1, group({ shard: 0, epoch: 0, head: 5 })), 'refused')
  t.same(await offsets(store, FIRST), [5])
  t.equal(await store.fence(FIRST, 8), 'applied', 'a sealed one may be fenced')
  t.equal((await store.statics(FIRST))?.sealed, true)

  t.equal(await store.open(next, { epoch: 0, head: 5 }), 'applied')
  t.same(await store.statics(next), { ...NEW, base: 5, head: 5 })
  t.equal(await store.append(2, group({ shard: 0, epoch: 0, head: 5, count: 2 })), 'applied')
  t.same(await offsets(store, next), [7])
  t.same(await offsets(store, FIRST), [5])
  t.equal((await store.statics(next))?.base, 5)
}

async function reading(t: Test, makeSegments: MakeSegments): Promise<void> {
  const store = await makeSegments(t, 2)
  const all: number[] = []
  for (let head = 0, i = 0; i < 20; i++) {
    const count = 1 + (i % 3)
    const body = Buffer.alloc(1_000, i)
    t.equal(await store.append(1, group({ shard: 0, epoch: 0, head, count, body })), 'applied')
    head += count
    all.push(head)
  }
  const read = async (after: number, bytesMax: number) =>
    offsetsOf(await store.rows(FIRST, { after, bytesMax }))
  t.same(await read(0, 1e6), all)
  t.same(await read(all[2]!, 1e6), all.slice(3))
  t.same(await read(all[3]! - 1, 1e6), all.slice(3), 'a group in the middle of which it is')
  t.same(await read(0, 1), all.slice(0, 1), 'at least one')
  for (const rows of [2, 9, 17]) {
    const some = await read(0, rows * 1_010)
    t.ok(some.length >= rows - 1 && some.length <= rows + 1, 'about as many bytes as asked for')
    t.same(some, all.slice(0, some.length))
  }
  t.same(await read(all.at(-1)!, 1e6), [])
  t.same(await offsets(store, { shard: 1, segment: 1 }), [], "no other shard's")
  t.same(await offsets(store, { shard: 0, segment: 9 }), [], 'nor of a segment that is not there')
}

async function dropping(t: Test, makeSegments: MakeSegments): Promise<void> {
  const store = await makeSegments(t, 2)
  for (const head of [0, 2, 4]) {
    t.equal(await store.append(1, group({ shard: 0, epoch: 0, head, count: 2 })), 'applied')
  }
  await store.dropRows(FIRST, 3)
  t.same(await offsets(store, FIRST), [4, 6], 'a group with an entry above it stays')
  await store.seal(FIRST, { epoch: 0, head: 6 })
  const before = await store.statics(FIRST)
  await store.dropRows(FIRST, 6)
  t.same(await offsets(store, FIRST), [])
  t.same(await store.statics(FIRST), before, 'the statics outlive all rows')
  t.equal(await store.append(1, group({ shard: 0, epoch: 0 })), 'refused', 'no chain begins anew')
  t.equal(await store.open(FIRST, { epoch: 9, head: 0 }), 'refused')
  t.equal(await store.fence(FIRST, 3), 'applied')
  t.same(await store.statics(FIRST), { ...before, epoch: 3 })
}

/** Of several groups on the same head one is applied, and it alone has a row. */
async function racers(t: Test, makeSegments: MakeSegments): Promise<void> {
  const store = await makeSegments(t, 2)
  for (let head = 0; head < 5; head++) {
    const groups = ['a', 'b', 'c'].map((name) =>
      group({ shard: 0, epoch: 0, head, body: Buffer.from(name), commitId: freshUuid() }),
    )
    const outcomes = await Promise.all(groups.map((one) => store.append(1, one)))
    t.same([...outcomes].sort(), ['applied', 'refused', 'refused'])
    const winner = groups[outcomes.indexOf('applied')]!
    t.equal((await store.statics(FIRST))?.lastCommit, winner.commitId)
    const rows = await store.rows(FIRST, { after: head, bytesMax: 1e6 })
    t.same(
      rows.map(({ commitId, body }) => [commitId, Buffer.from(body).toString()]),
      [[winner.commitId, Buffer.from(winner.body).toString()]],
    )
  }
}
