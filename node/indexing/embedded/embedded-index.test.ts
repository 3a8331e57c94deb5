// The index's threads seen from the main thread: heads go in, offsets come back, rows of parked
// actors are written for it, a dead one is started again, and one that is filled beside the other
// takes its place when it has all that the other has.

import t, { type Test } from 'tap'
import { systemClock } from '../../../cluster/clock.ts'
import type { Clock } from '../../../cluster/clock.ts'
import { decodeParked } from '../../../cluster/feed/projection-batch.ts'
import { TestClock } from '../../../cluster/testing/harness.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { DerivedRow } from '../../../storage/journal.ts'
import { Metrics } from '../../metrics.ts'
import { collectGraphMetrics } from './index-metrics.ts'
import type { ThreadLog } from '../../thread-log.ts'
import { EmbeddedIndex } from './embedded-index.ts'
import { LiveSchema } from '../../graph/live-schema.ts'
import { ReaderPool } from '../../graph/plans/reader-pool.ts'
import { ReaderThread } from '../../graph/plans/reader-thread.ts'

const entry = new URL('../testing/index-twin.ts', import.meta.url)
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

function thread(
  t: Test,
  writeRows: (rows: readonly DerivedRow[]) => Promise<void>,
  log: ThreadLog = silent,
  clock: Clock = systemClock(),
) {
  const schema = new LiveSchema([])
  const index = new EmbeddedIndex({
    journal: { dir: t.testdir(), end: new SharedArrayBuffer(8) },
    shards: 2,
    generation: 'g',
    clock,
    log,
    schema,
    heads: [
      { shard: 0, offset: 3 },
      { shard: 1, offset: 0 },
    ],
    writeRows: (_shard, rows) => writeRows(rows),
    flushed: () => 0,
    entry,
  })
  t.teardown(() => index.close())
  return index
}

async function until(isSo: () => boolean): Promise<void> {
  const endsAtMs = performance.now() + 20_000
  while (!isSo()) {
    if (performance.now() > endsAtMs) throw new Error('it never came')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

t.test('tells heads, hears offsets, lets requests wait for them', async (t) => {
  const index = thread(t, () => Promise.resolve())
  await index.opened()
  await until(() => index.progress.applied(0) === 3)
  t.equal(index.watch.unready(), null)
  const reached = index.watch.reached([{ shard: 1, offset: 5 }], 20_000)
  index.committed(1, 4)
  index.committed(1, 5)
  t.equal(await reached, true)
  t.equal(index.watch.reached([{ shard: 0, offset: 3 }], 0), true)
  t.strictSame(
    [...index.heads],
    [
      [0, 3],
      [1, 5],
    ],
  )
  t.equal(index.watch.head(1), 5)
  t.equal(index.watch.head(-1), Infinity, 'what is not followed is not judged')
  await until(() => index.lag().entries === 0)
  t.equal(index.throttleMs(), 0)
})

t.test('a dead worker is started again and goes on', async (t) => {
  const index = thread(t, () => Promise.resolve())
  await index.opened()
  index.committed(0, 666)
  await until(() => index.restarts === 1)
  index.committed(0, 700)
  await until(() => index.progress.applied(0) === 700)
  await until(() => index.watch.unready() === null)
  t.equal(index.restarts, 1)
})

t.test('an index that can not go on is told of once a minute, and that it goes on', async (t) => {
  const told: string[] = []
  const note = (fields: object, text: string): void =>
    void told.push(`${text}: ${(fields as { failures: number }).failures}`)
  const clock = new TestClock()
  const index = thread(t, () => Promise.resolve(), { ...silent, warn: note, info: note }, clock)
  await index.opened()
  const fails = async (head: number): Promise<void> => {
    index.committed(0, head)
    await until(() => index.progress.applied(0) === head)
  }
  for (const head of [444, 1_444, 2_444]) await fails(head)
  await until(() => told.length === 1)
  await clock.advance(60_000)
  await fails(3_444)
  await fails(3_445)
  await until(() => told.length === 3)
  const failing = 'the graph index could not go on; it tries again'
  t.same(told, [`${failing}: 1`, `${failing}: 4`, 'the graph index goes on: 4'])
})

t.test('an index that was emptied because its part of the log is gone is told', async (t) => {
  const told: unknown[] = []
  const error = (fields: object, text: string): void => void told.push([text, fields])
  const index = thread(t, () => Promise.resolve(), { ...silent, error })
  await index.opened()
  index.committed(0, 555)
  await until(() => told.length > 0)
  const text = 'the graph index is emptied and filled from the journal'
  t.strictSame(told, [[text, { why: 'the log of shard 0 is gone' }]])
})

t.test('writes the rows of parked actors and says when they are durable', async (t) => {
  const rows: DerivedRow[] = []
  let fails = true
  const index = thread(t, async (some) => {
    if (fails) throw new Error('not now')
    rows.push(...some)
  })
  await index.opened()
  index.committed(0, 99)
  await until(() => index.progress.counter('failures') === 2)
  fails = false
  index.committed(0, 199)
  await until(() => index.progress.counter('failures') === 1)
  const row = rows[0]
  t.match(row, { kind: 'parked', consumer: 'index', actorId: 'a', offset: 199 })
  if (row?.kind === 'parked') t.match(decodeParked(row.body!), { reason: 'r', offset: 199 })
})

t.test('the row that clears a parked actor is not older than the index', async (t) => {
  const rows: DerivedRow[] = []
  const index = thread(t, async (some) => void rows.push(...some))
  await index.opened()
  index.committed(0, 99)
  await until(() => rows.length === 1)
  index.committed(0, 300)
  await until(() => rows.length === 2)
  t.match(rows[1], { kind: 'parked', actorId: 'a', body: null, offset: 300 })
})

t.test('the brake: by lag, but not while the index is filled anew', async (t) => {
  const index = thread(t, () => Promise.resolve())
  await index.opened()
  await until(() => index.watch.unready() === null)
  index.retryParked()
  await until(() => index.progress.counter('resets') === 1)
  // It is asleep, and nobody tells it: as if it could not follow.
  index.progress.takeAsleep()
  index.committed(0, LIMITS.feed.indexLagEntriesMax * 1.5)
  const nowMs = performance.now()
  await until(() => performance.now() > nowMs + 6)
  t.ok(Math.abs(index.throttleMs() - LIMITS.feed.ackDelayMsMax / 2) < 1)
  index.progress.ready = false
  t.equal(index.throttleMs(), 0)
})

async function filling(t: Test): Promise<{ index: EmbeddedIndex; clock: TestClock }> {
  const clock = new TestClock()
  const index = thread(t, () => Promise.resolve(), silent, clock)
  await index.opened()
  await until(() => index.progress.applied(0) === 3)
  index.rebuild()
  t.match(index.rebuildProgress(), { state: 'filling', total: 3 })
  await until(() => index.rebuildProgress().done === 2)
  return { index, clock }
}

/** Time passes until it holds. */
async function passesUntil(clock: TestClock, isSo: () => boolean): Promise<void> {
  const endsAtMs = performance.now() + 20_000
  while (!isSo()) {
    if (performance.now() > endsAtMs) throw new Error('it never came')
    await clock.advance(LIMITS.indexing.takeOverLookMs)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

t.test('the new index takes over with all that the old one has, and not before', async (t) => {
  const { index, clock } = await filling(t)
  const generation = index.watch.generation
  const moves: number[] = []
  index.onMoved(() => moves.push(index.progress.applied(0)))
  const waits = index.watch.reached([{ shard: 1, offset: 9 }], 60_000)
  await passesUntil(clock, () => moves.length > 0)
  t.strictSame(moves, [3], 'nobody who reads goes back')
  t.equal(index.read.number, 1)
  t.equal(index.watch.generation, generation + 1, 'readers open it')
  t.match(index.rebuildProgress(), { state: 'idle', done: 0, total: 0 })
  index.committed(1, 9)
  t.equal(await waits, true, 'who waited for the old one is told by the new one')
  t.equal(index.restarts, 0)
})

t.test('one that can not catch up in time leaves the old one in its place', async (t) => {
  const { index, clock } = await filling(t)
  index.committed(0, 777)
  await until(() => index.progress.applied(0) === 777)
  await passesUntil(clock, () => index.rebuildProgress().state === 'taking-over')
  index.committed(1, 5)
  await passesUntil(clock, () => index.rebuildProgress().state === 'filling')
  t.equal(index.read.number, 0)
  await until(() => index.progress.applied(1) === 5 && index.progress.ready)
  index.committed(0, 778)
  await passesUntil(clock, () => index.read.number === 1)
})

t.test('one that dies while it takes over is started again, and does', async (t) => {
  const { index, clock } = await filling(t)
  index.committed(0, 888)
  await until(() => index.progress.applied(0) === 888)
  await passesUntil(clock, () => index.restarts > 0)
  t.equal(index.read.number, 0)
  index.committed(0, 889)
  await passesUntil(clock, () => index.read.number === 1)
  await until(() => index.progress.applied(0) === 889)
})

t.test('its numbers are on the metrics page', async (t) => {
  const index = thread(t, () => Promise.resolve())
  const { current } = new LiveSchema([])
  const twin = {
    journal: { dir: '', end: new SharedArrayBuffer(8) },
    clock: systemClock(),
    log: silent,
    read: () => ({ version: current, number: 0 }),
    entry: new URL('../../graph/plans/testing/reader-twin.ts', import.meta.url),
  }
  const reader = new ReaderPool({
    clock: twin.clock,
    threads: 1,
    startThread: (stats, onChange) => new ReaderThread(twin, stats, onChange),
  })
  t.teardown(() => reader.close())
  await index.opened()
  await until(() => index.progress.applied(0) === 3)
  const metrics = new Metrics()
  collectGraphMetrics(metrics, { index, reader })
  const text = metrics.text()
  t.match(text, /^kontor_index_applied_offset\{shard="0"\} 3$/m)
  t.match(text, /^kontor_journal_head_offset\{shard="1"\} 0$/m)
  t.match(text, /^kontor_index_lag_entries 0$/m)
  t.match(text, /^kontor_graph_queries_total 0$/m)
})
