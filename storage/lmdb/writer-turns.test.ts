// Whoever changes the data file waits for his turn, and gets an answer: also where the disk has no
// room, where a shard has a newer owner on the way, and at the end.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { DerivedRow } from '../journal.ts'
import { headsOf } from '../embedded/journal/catch-up.ts'
import { getCovered, upkeepRow } from './covered.ts'
import { openEnvironment } from './environment.ts'
import { openEmbeddedJournal, openEmbeddedJournalReader } from '../embedded/journal/journal.ts'
import { group } from '../conformance/journal-samples.ts'
import { journalOptions } from '../embedded/testing/journal-options.ts'
import { entry, logged, openWriter, snapshot, take } from '../embedded/testing/opened-writer.ts'

const WITHIN_MS = 20_000

/** Resolves once it holds; rejects when it doesn't in time. */
async function until(holds: () => boolean): Promise<void> {
  const deadline = Date.now() + WITHIN_MS
  while (!holds()) {
    if (Date.now() > deadline) throw new Error('it never came')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

t.test('what is found is changed before anybody else looks', async (t) => {
  const { env, writer } = openWriter(t)
  const found: number[] = []
  const more = () => {
    env.root.resetReadTxn()
    const count = env.meta.getCount()
    found.push(count)
    return { notes: [], rows: [{ table: env.meta, ...upkeepRow(count, { turned: 1, due: 1 }) }] }
  }
  const written = writer.write(0, 0, [snapshot(1, 2 * LIMITS.lmdb.derivedWaitBytes)])
  const changed = await Promise.all([1, 2, 3, 4].map(() => writer.change(more)))
  t.same(changed, ['changed', 'changed', 'changed', 'changed'])
  t.equal(await written, 'committed')
  t.same(found, [0, 1, 2, 3])
})

t.test('on a full disk each is told, whoever waits behind him', async (t) => {
  let left = 0
  const opened = openWriter(t, () => left)
  const { env, writer } = opened
  // One row a transaction is tried.
  const outcomes = [1, 2, 3].map((offset) => writer.write(offset, 0, [entry(offset, 10)]))
  t.same(await Promise.all(outcomes), ['full', 'full', 'full'])
  take(opened, logged(1, 100), 200)
  await until(() => opened.full.length > 0)
  t.equal(getCovered(env), null)
  left = Infinity
  await until(() => {
    env.root.resetReadTxn()
    return getCovered(env) !== null
  })
  t.same(getCovered(env), { file: 1, position: 200 }, 'nobody has to ask for it')
})

t.test('what a row holds may be written twice, and needs the room', async (t) => {
  const bytes = 600_000
  let left = 1.5 * bytes
  const { writer, transactions } = openWriter(t, () => left)
  t.equal(await writer.write(0, 0, [snapshot(1, bytes)]), 'full')
  t.equal(transactions(), 0)
  left = 3 * bytes
  t.equal(await writer.write(0, 0, [snapshot(1, bytes)]), 'committed')
})

t.test('on a full disk it closes, and says what is not in', async (t) => {
  const opened = openWriter(t, () => 0)
  take(opened, logged(1, 100), 200)
  const { writer, env } = opened
  const outcomes = [1, 2].map((offset) => writer.write(offset, 0, [entry(offset, 10)]))
  await writer.close()
  t.same(await Promise.all(outcomes), ['full', 'unknown'], 'nothing was tried with the second')
  t.equal(getCovered(env), null, 'the next start takes it from the log')
  t.equal(await writer.change(() => t.fail('it is closed') as never), 'nothing')
})

t.test('one that is fenced after its first part hears of it, and no more is in', async (t) => {
  const parts = 24
  const rows = Array.from({ length: parts }, (_, i): DerivedRow => {
    return snapshot(i + 1, LIMITS.lmdb.derivedTransactionBytesMax / 8)
  })
  let epoch = 0
  const { writer, derived, transactions } = openWriter(t, undefined, () => {
    if (transactions() === 1) epoch = 1
    return epoch
  })
  t.equal(await writer.write(0, 0, rows), 'fenced')
  const there = rows.filter((row) => 'actorId' in row && derived.snapshot(row.actorId) !== null)
  t.ok(there.length > 0 && there.length < parts, `${there.length} rows of ${parts}`)
  t.equal(await writer.write(0, 1, rows), 'committed', 'its next owner writes all of them')
})

t.test('a claim is known to whoever begins behind it', async (t) => {
  const options = { ...journalOptions(t), shards: 2 }
  const journal = await openEmbeddedJournal(options)
  t.teardown(() => journal.close())
  const claimed = await journal.log.claim(1)
  const { epoch } = await journal.log.claim(0)
  const flush: DerivedRow = { kind: 'consumer', consumer: 'flush', offset: 0 }
  t.equal(await journal.derived.write(0, epoch, [flush]), 'committed')
  const env = openEnvironment(options.dir, true)
  t.teardown(() => env.root.close())
  t.equal(headsOf(env).status(1).epoch, claimed.epoch)
  const reader = openEmbeddedJournalReader(journal.access)
  t.teardown(() => reader.close())
  t.same(await journal.log.append([group({ shard: 1, epoch: claimed.epoch })]), ['committed'])
  t.match(await reader.log.status(1), { epoch: claimed.epoch, head: 1 })
})
