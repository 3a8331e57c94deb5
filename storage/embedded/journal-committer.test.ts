// Transactions of the embedded journal: what rides with what, and what a failed one means.

import t, { type Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { freshUuid, group } from '../conformance/journal-samples.ts'
import type { DerivedRow } from '../journal.ts'
import { Committer } from './journal-committer.ts'
import { openEnvironment, type JournalEnvironment } from './journal-environment.ts'
import { establishIdentity } from './journal-identity.ts'
import { CLAIMS_KEY } from './journal-places.ts'
import { EmbeddedDerivedReader, EmbeddedLogReader } from './journal-read.ts'
import { Reserve } from './journal-reserve.ts'
import { Room } from './journal-room.ts'
import { journalOptions } from './testing/journal-options.ts'

interface Opened {
  readonly env: JournalEnvironment
  readonly committer: Committer
  readonly fatal: Error[]
  /** Number of transactions so far. */
  readonly transactions: () => number
  /** Makes every later transaction fail. */
  readonly fail: (error: Error) => void
}

/** `left`: bytes that the disk has room for; as they are by default. */
async function openCommitter(t: Test, left?: () => number): Promise<Opened> {
  const { dir, random, roomBytes } = journalOptions(t)
  const real = openEnvironment(dir, false)
  t.teardown(() => real.root.close())
  establishIdentity(real, 2, freshUuid)
  const reserve = new Reserve({ dir, bytes: 1024, random })
  await reserve.make()
  let transactions = 0
  let failure: Error | null = null
  const root = Object.create(real.root, {
    batch: {
      value: (build: () => void) => {
        transactions++
        if (failure !== null) return Promise.reject(failure)
        return real.root.batch(build)
      },
    },
  }) as JournalEnvironment['root']
  const env = { ...real, root }
  const fatal: Error[] = []
  const committer = new Committer({
    random,
    env,
    reserve,
    room: left === undefined ? new Room(dir, env.file) : ({ left } as Room),
    roomBytes: roomBytes!,
    now: () => performance.now(),
    onFatal: (error) => fatal.push(error),
    onFull: () => {},
  })
  return {
    env,
    committer,
    fatal,
    transactions: () => transactions,
    fail: (error) => (failure = error),
  }
}

function entry(offset: number, size: number): DerivedRow {
  return { kind: 'entry', actorId: freshUuid(), n: 1, offset, body: Buffer.alloc(size, offset) }
}

void t.test('rows ride with an append when there are enough of them', async (t) => {
  const { committer, transactions } = await openCommitter(t)
  const written = committer.write(0, 0, [entry(1, 2 * LIMITS.derivedWaitBytes)])
  const appended = committer.append([group({ shard: 0, epoch: 0 }), group({ shard: 1, epoch: 0 })])
  t.same(await Promise.all([appended, written]), [['committed', 'committed'], 'committed'])
  t.equal(transactions(), 1)
})

void t.test('a few rows wait for more, and not for long', async (t) => {
  const { committer, transactions } = await openCommitter(t)
  const written = [1, 2, 3].map((offset) => committer.write(0, 0, [entry(offset, 100)]))
  t.same(await committer.append([group({ shard: 0, epoch: 0 })]), ['committed'])
  t.equal(transactions(), 1)
  t.same(await Promise.all(written), ['committed', 'committed', 'committed'])
  t.equal(transactions(), 2, 'all together in one of their own')
  t.equal(await committer.write(0, 0, []), 'committed')
  t.equal(transactions(), 2)
})

void t.test('a large write takes several transactions, in order', async (t) => {
  const { committer, transactions, env } = await openCommitter(t)
  const rows = Array.from({ length: 50 }, (_, i) =>
    entry(i + 1, LIMITS.derivedTransactionBytesMax / 8),
  )
  const large = committer.write(0, 0, [
    ...rows,
    { kind: 'consumer', consumer: 'flush', offset: 50 },
  ])
  const small = committer.write(0, 0, [{ kind: 'consumer', consumer: 'flush', offset: 51 }])
  const ended: string[] = []
  void large.then(() => ended.push('large'))
  void small.then(() => ended.push('small'))
  t.same(await Promise.all([large, small]), ['committed', 'committed'])
  t.same(ended, ['large', 'small'])
  t.ok(transactions() >= 6 && transactions() < 20, `${transactions()} transactions`)
  const derived = new EmbeddedDerivedReader(env)
  t.equal(derived.actors(null, 100).length, 50)
  t.equal(derived.consumer(0, 'flush'), 51)
})

void t.test('one that is fenced on its way ends', async (t) => {
  const { committer, env } = await openCommitter(t)
  const rows = Array.from({ length: 30 }, (_, i) =>
    entry(i + 1, LIMITS.derivedTransactionBytesMax / 8),
  )
  t.equal(await committer.write(0, 7, rows), 'fenced')
  t.same(new EmbeddedDerivedReader(env).actors(null, 100), [])
  t.equal(await committer.write(0, 0, rows.slice(0, 1)), 'committed', 'and nothing is left of it')
})

void t.test('a failed commit is the end', async (t) => {
  const { committer, env, fail, fatal, transactions } = await openCommitter(t)
  t.same(await committer.append([group({ shard: 0, epoch: 0 })]), ['committed'])
  const cause = Object.assign(new Error('Input/output error'), { code: 5 })
  const commitError = Promise.reject(cause)
  fail(Object.assign(new Error('Commit failed (see commitError for details)'), { commitError }))
  const waiting = committer.write(0, 0, [entry(1, 10)])
  t.same(await committer.append([group({ shard: 0, epoch: 0, head: 1 })]), ['unknown'])
  t.same(fatal, [cause], 'with the cause')
  t.equal(await waiting, 'unknown')
  const before = transactions()
  t.same(await committer.append([group({ shard: 0, epoch: 0, head: 1 })]), ['unknown'])
  t.equal(await committer.essential(() => []), 'unknown')
  t.equal(transactions(), before, 'nothing is tried again')
  t.equal(fatal.length, 1)
  t.equal(new EmbeddedLogReader(env).status(0).head, 1, 'and reads go on until the process ends')
  await committer.close()
})

void t.test('rows that came with a refused append are finished', async (t) => {
  const { roomBytes } = journalOptions(t)
  const { committer, env, fatal } = await openCommitter(t, () => roomBytes!)
  const written = committer.write(0, 0, [entry(1, 2 * LIMITS.derivedWaitBytes)])
  t.same(await committer.append([group({ shard: 0, epoch: 0 })]), ['full'])
  t.equal(await written, 'committed', 'with what was kept back for it')
  t.equal(new EmbeddedDerivedReader(env).actors(null, 100).length, 1)
  t.same(fatal, [])
})

void t.test('where nothing has room nothing is tried', async (t) => {
  const { committer, transactions, fatal } = await openCommitter(t, () => 0)
  const written = committer.write(0, 0, [entry(1, 2 * LIMITS.derivedWaitBytes)])
  t.same(await committer.append([group({ shard: 0, epoch: 0 })]), ['full'])
  t.equal(await written, 'full')
  t.equal(await committer.essential(() => []), 'full')
  t.equal(transactions(), 0, 'a commit that fails ends the process')
  t.same(fatal, [])
})

void t.test('closing writes what waits, and then nothing', async (t) => {
  const { committer, env } = await openCommitter(t)
  const written = committer.write(0, 0, [entry(1, 10)])
  await committer.close()
  t.equal(await written, 'committed')
  t.equal(new EmbeddedDerivedReader(env).actors(null, 9).length, 1)
  t.throws(() => committer.write(0, 0, [entry(2, 10)]), { message: 'the journal is open' })
  await t.rejects(committer.append([]), { message: 'the journal is open' })
})

void t.test('claims of many shards at once are one transaction', async (t) => {
  const { committer, env, transactions } = await openCommitter(t)
  const built: number[] = []
  const claims = [1, 2, 3].map((n) =>
    committer.essential(() => {
      built.push(n)
      return [env.trims.put(Buffer.of(0, n), Buffer.of(n))]
    }),
  )
  t.same(await Promise.all(claims), ['committed', 'committed', 'committed'])
  t.same(built, [1, 2, 3])
  t.ok(transactions() <= 2, `${transactions()} transactions`)
  env.root.resetReadTxn()
  t.same(env.trims.get(Buffer.of(0, 3)), Buffer.of(3))
})

void t.test('nothing is removed when somebody has claimed since it was looked for', async (t) => {
  const { committer, env } = await openCommitter(t)
  await env.epochs.put(CLAIMS_KEY, Buffer.of(0), 7)
  await env.marks.put(Buffer.from('row'), Buffer.of(1))
  const removals = { notes: [], rows: [{ table: env.marks, key: Buffer.from('row') }] }
  const isThere = (): boolean => {
    env.root.resetReadTxn()
    return env.marks.get(Buffer.from('row')) !== undefined
  }
  t.equal(await committer.remove(() => ({ ...removals, token: 6 })), 'later')
  t.ok(isThere())
  t.equal(await committer.remove(() => ({ ...removals, token: 7 })), 'removed')
  t.notOk(isThere())
  t.equal(await committer.remove(() => null), 'nothing')
})
