// Transactions of the data file: what goes together, and what a failed one means.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import type { DerivedRow } from '../journal.ts'
import { SegmentLog } from '../segment-log/segment-log.ts'
import { NodeDisk } from '../segment-log/node-disk.ts'
import { getCovered } from './covered.ts'
import { logKey, readHead } from './layout.ts'
import { EmbeddedLogReader } from '../embedded/journal/read.ts'
import { journalOptions } from '../embedded/testing/journal-options.ts'
import { entry, logged, openWriter, snapshot, take } from '../embedded/testing/opened-writer.ts'

const { tailTransactions } = LIMITS.lmdb
t.beforeEach(() => void overrideLimits({ 'lmdb.tailTransactions': 0 }))
t.teardown(() => void overrideLimits({ 'lmdb.tailTransactions': tailTransactions }))

void t.test('rows wait for others, and not for long', async (t) => {
  const { writer, transactions } = openWriter(t)
  const written = [1, 2, 3].map((offset) => writer.write(0, 0, [entry(offset, 100)]))
  t.equal(transactions(), 0)
  t.same(await Promise.all(written), ['committed', 'committed', 'committed'])
  t.equal(transactions(), 1, 'all together')
  t.equal(await writer.write(0, 0, []), 'committed')
  t.equal(transactions(), 1)
})

void t.test('enough of them do not wait', async (t) => {
  const { writer, transactions } = openWriter(t)
  const began = performance.now()
  const written = writer.write(0, 0, [snapshot(1, 2 * LIMITS.lmdb.derivedWaitBytes)])
  await Promise.resolve()
  t.equal(transactions(), 1)
  t.equal(await written, 'committed')
  t.ok(performance.now() - began < 20 * LIMITS.lmdb.derivedWaitMs)
})

void t.test('a large write takes several transactions, in order', async (t) => {
  const { writer, transactions, derived } = openWriter(t)
  const rows = Array.from({ length: 50 }, (_, i) => {
    return snapshot(i + 1, LIMITS.lmdb.derivedTransactionBytesMax / 8)
  })
  const flush = (offset: number): DerivedRow => ({ kind: 'consumer', consumer: 'flush', offset })
  const large = writer.write(0, 0, [...rows, flush(50)])
  const small = writer.write(0, 0, [flush(51)])
  const ended: string[] = []
  void large.then(() => ended.push('large'))
  void small.then(() => ended.push('small'))
  t.same(await Promise.all([large, small]), ['committed', 'committed'])
  t.same(ended, ['large', 'small'])
  t.ok(transactions() >= 6 && transactions() < 20, `${transactions()} transactions`)
  const found = rows.filter((row) => 'actorId' in row && derived.snapshot(row.actorId) !== null)
  t.equal(found.length, 50)
  t.equal(derived.consumer(0, 'flush'), 51)
})

void t.test('one that is fenced on its way ends', async (t) => {
  const { writer, derived } = openWriter(t)
  const rows = Array.from({ length: 30 }, (_, i) => {
    return snapshot(i + 1, LIMITS.lmdb.derivedTransactionBytesMax / 8)
  })
  t.equal(await writer.write(0, 7, [entry(1, 9), ...rows]), 'fenced')
  t.same(derived.actors(null, 100), [])
  t.equal(await writer.write(0, 0, [entry(1, 9)]), 'committed', 'and nothing is left of it')
})

void t.test('a failed transaction is the end', async (t) => {
  const { writer, derived, fail, fatal, transactions } = openWriter(t)
  const cause = Object.assign(new Error('Input/output error'), { code: 5 })
  const commitError = Promise.reject(cause)
  commitError.catch(() => {})
  fail(Object.assign(new Error('Commit failed (see commitError for details)'), { commitError }))
  const written = [writer.write(0, 0, [entry(1, 10)]), writer.write(1, 0, [entry(2, 10)])]
  t.same(await Promise.all(written), ['unknown', 'unknown'])
  t.same(fatal, [cause], 'with the cause')
  const before = transactions()
  t.equal(await writer.write(0, 0, [entry(3, 10)]), 'unknown')
  t.equal(await writer.change(() => ({ notes: [], rows: [] })), 'nothing')
  t.equal(transactions(), before, 'nothing is tried again')
  t.same(derived.actors(null, 9), [], 'and reads go on until the process ends')
  await writer.close()
})

void t.test('a full disk: what is committed is finished from what is kept back', async (t) => {
  const { roomBytes } = journalOptions(t)
  let left = roomBytes! - 1
  const { writer, derived, fatal, full, transactions } = openWriter(t, () => left)
  t.equal(writer.hasRoom(), false, 'nothing new')
  t.equal(await writer.write(0, 0, [entry(1, 10)]), 'committed')
  t.equal(derived.actors(null, 9).length, 1)
  left = 0
  const before = transactions()
  t.equal(await writer.write(0, 0, [entry(2, 10)]), 'full')
  t.equal(await writer.change(() => ({ notes: [], rows: [] })), 'later')
  t.equal(transactions(), before, 'a transaction that fails ends the process')
  left = 2 * roomBytes!
  t.equal(writer.hasRoom(), true)
  t.same(full, [true], 'only a commit shows that there is')
  writer.tellRoom(true)
  t.equal(await writer.write(0, 0, [entry(2, 10)]), 'committed')
  t.same([full, fatal], [[true, false], []], 'told once each')
})

void t.test('what goes needs room, too: a path of pages for each row', async (t) => {
  let left = Infinity
  const { env, writer, derived, transactions } = openWriter(t, () => left)
  const rows = Array.from({ length: 200 }, (_, i) => entry(i + 1, 10))
  t.equal(await writer.write(0, 0, rows), 'committed')
  const keys = [...env.entries.getKeys({})]
  const all = () => ({ notes: [], rows: keys.map((key) => ({ table: env.entries, key })) })
  // A removal of so many rows of a large table was seen to take 1.1 MB.
  left = 2 * 1024 * 1024
  const before = transactions()
  t.equal(await writer.change(all), 'later')
  t.equal(transactions(), before)
  left = 5 * 1024 * 1024
  t.equal(await writer.change(all), 'changed')
  t.same(derived.actors(null, 9), [])
})

void t.test('many rows are finished from little room, in several transactions', async (t) => {
  const { roomBytes } = journalOptions(t)
  const { writer, derived, transactions, full } = openWriter(t, () => roomBytes!)
  const rows = Array.from({ length: 200 }, (_, i) => entry(i + 1, 10))
  t.equal(await writer.write(0, 0, rows), 'committed')
  t.equal(derived.actors(null, 999).length, 200)
  t.ok(transactions() > 3, `${transactions()} transactions`)
  t.same(full, [])
})

void t.test('closing writes what waits, and then nothing', async (t) => {
  const { writer, derived } = openWriter(t)
  const written = writer.write(0, 0, [entry(1, 10)])
  await writer.close()
  t.equal(await written, 'committed')
  t.equal(derived.actors(null, 9).length, 1)
  t.throws(() => writer.write(0, 0, [entry(2, 10)]), { message: 'the journal is open' })
})

void t.test('places are written by themselves, and the tail forgets them then', async (t) => {
  const opened = openWriter(t)
  const { env, writer, tail } = opened
  const groups = [logged(1, 100), logged(2, 200), logged(3, 300)]
  take(opened, groups[0]!, 200)
  take(opened, groups[1]!, 300)
  t.equal(getCovered(env), null)
  const written = writer.write(0, 0, [entry(1, 10)])
  t.equal(await written, 'committed')
  t.same(getCovered(env), { file: 1, position: 300 })
  t.same(tail.after(0, 0), [])
  take(opened, groups[2]!, 400)
  t.same(tail.after(0, 0), [groups[2]])
  const log = new EmbeddedLogReader({
    ...{ env, places: null as never, tail: () => tail },
    status: () => null as never,
  })
  t.same(log.entryPlace(0, { offset: 3, body: Buffer.alloc(0) }), null, 'no entries in it')
  await writer.close()
  t.same(getCovered(env), { file: 1, position: 400 })
})

void t.test('groups are at hand for some transactions more', async (t) => {
  overrideLimits({ 'lmdb.tailTransactions': 2 })
  const opened = openWriter(t)
  const { writer, tail } = opened
  for (let i = 1; i <= 4; i++) {
    take(opened, logged(i, 100 * i), 100 * (i + 1))
    t.equal(await writer.write(0, 0, [entry(i, 10)]), 'committed')
  }
  t.same(
    tail.after(0, 0).map(({ offset }) => offset),
    [3, 4],
  )
})

void t.test('what comes while places are written stays in the tail', async (t) => {
  const opened = openWriter(t)
  const { env, writer, tail } = opened
  take(opened, logged(1, 100), 200)
  const written = writer.write(0, 0, [snapshot(1, 2 * LIMITS.lmdb.derivedWaitBytes)])
  await Promise.resolve()
  const late = logged(2, 200)
  take(opened, late, 300)
  t.equal(await written, 'committed')
  t.same(getCovered(env), { file: 1, position: 200 })
  t.same(tail.after(0, 0), [late])
  await writer.close()
  t.same(getCovered(env), { file: 1, position: 300 })
  t.same(tail.after(0, 0), [])
  t.same([...env.log.getKeys({})], [logKey(0, 1), logKey(0, 2)])
  const [head] = env.heads.getRange({})
  t.equal(readHead(head!.value).head, 2)
})

void t.test('places that found no room are written later, before what came since', async (t) => {
  const { roomBytes } = journalOptions(t)
  let left = 0
  const opened = openWriter(t, () => left)
  const { env, writer, tail } = opened
  take(opened, logged(1, 100), 200)
  t.equal(await writer.write(0, 0, [entry(1, 10)]), 'full')
  take(opened, logged(2, 200), 300)
  t.equal(getCovered(env), null)
  t.equal(tail.after(0, 0).length, 2)
  left = 2 * roomBytes!
  t.equal(await writer.write(0, 0, [entry(1, 10)]), 'committed')
  t.same([...env.log.getKeys({})], [logKey(0, 1), logKey(0, 2)])
  t.same(getCovered(env), { file: 1, position: 300 })
})

void t.test('claims of many shards at once are one frame', async (t) => {
  const { dir } = journalOptions(t)
  let frames = 0
  const log = await SegmentLog.open(new NodeDisk(dir), {
    generation: 'g',
    onFatal: (error) => t.fail(error.message),
    onCommitted: () => void frames++,
  })
  t.teardown(() => log.close())
  await Promise.all([...Array(32).keys()].map((shard) => log.append([], [{ shard, epoch: 1 }])))
  t.equal(frames, 1)
})
