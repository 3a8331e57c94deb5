// Rows that stand for a while only leave the data file by their shard's clock, and their notes with
// them. What may go at all is the rule of every driver (conformance/expiry.ts). Source: PROTOCOL
// 3.12 "What expires".

import { randomFillSync } from 'node:crypto'
import t, { type Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { DerivedRow, Journal, StoreIdentity } from '../journal.ts'
import { encodeEntry, type Entry } from '../../protocol/entry/entry.ts'
import { SYSTEM_SHARD, type FillRandom } from '../../protocol/ids.ts'
import { freshUuid } from '../conformance/journal-samples.ts'
import { ExpiryPass } from './expiry.ts'
import { openEnvironment } from './environment.ts'
import { openEmbeddedJournal } from '../embedded/journal/journal.ts'
import { journalOptions } from '../embedded/testing/journal-options.ts'
import { verifyLog } from '../embedded/verify/store.ts'

const HOUR_MS = 3_600_000
/** A note counts from the end of its hour. */
const EXPIRY_MS = LIMITS.storage.derivedTtlSeconds * 1_000 + HOUR_MS

interface Store {
  readonly journal: Journal
  readonly dir: string
  readonly write: (...rows: DerivedRow[]) => Promise<void>
  readonly reopen: () => Promise<void>
}

async function open(
  t: Test,
  clock: () => number = Date.now,
  random: FillRandom = randomFillSync,
): Promise<Store> {
  const options = { ...journalOptions(t), shards: 1, clock, random }
  let journal = await openEmbeddedJournal(options)
  t.teardown(() => journal.close())
  let { epoch } = await journal.log.claim(0)
  return {
    get journal() {
      return journal
    },
    dir: options.dir,
    async write(...rows) {
      t.equal(await journal.derived.write(0, epoch, rows), 'committed')
    },
    async reopen() {
      await journal.close()
      journal = await openEmbeddedJournal(options)
      epoch = (await journal.log.claim(0)).epoch
    },
  }
}

function alias(key: string, offset: number, clock = 0): DerivedRow {
  const claim = { actorId: freshUuid(), messageId: 'm', confirmed: true, clock }
  return { kind: 'alias', offset, row: { keyType: 'order!key', key, claims: [claim] } }
}

function refusal(actorId: string, n: number, offset: number): DerivedRow {
  const a = { type: 'create', success: false, errors: [] } as Entry['a']
  const entry = { y: 'order', p: actorId, v: 0, n, r: [], m: freshUuid(), l: 0, a } as const
  const body = encodeEntry({ ...entry, t: 0, c: 0, b: 'bootstrap' })
  return { kind: 'entry', actorId, n, offset, body }
}

/** Notes that are left, and what verify-log says of the store. */
async function leftIn({ dir }: Store): Promise<{ notes: number; findings: string[] }> {
  const env = openEnvironment(dir, true)
  const notes = env.lives!.getCount()
  await env.root.close()
  const findings: string[] = []
  await verifyLog(dir, (line) => findings.push(line))
  return { notes, findings }
}

void t.test('a wall clock that is set right takes nothing along', async (t) => {
  let nowMs = 1_700_000_000_000 - 60 * HOUR_MS
  const store = await open(t, () => nowMs)
  const { derived } = store.journal
  await store.write(alias('k', 1), refusal(freshUuid(), 1, 2))
  nowMs += 60 * HOUR_MS
  await derived.expire!(() => 60_000)
  t.ok(await derived.alias('order!key', 'k'), 'the shard has been there for a minute')
  t.equal((await leftIn(store)).notes, 2)
  await derived.expire!(() => EXPIRY_MS)
  t.equal(await derived.alias('order!key', 'k'), null)
  t.same(await leftIn(store), { notes: 0, findings: [] })
})

void t.test('notes of one hour are kept apart, over restarts too', async (t) => {
  const store = await open(t)
  const count = 2 * LIMITS.storage.expireRowsMax + 1
  await store.write(...Array.from({ length: count }, (_, i) => alias(`k${i}`, i + 1)))
  await store.reopen()
  await store.write(alias('after', count + 1))
  t.equal((await leftIn(store)).notes, count + 1)
  await store.journal.derived.expire!(() => EXPIRY_MS)
  t.same(await leftIn(store), { notes: 0, findings: [] })
  for (const key of ['k0', `k${count - 1}`, 'after']) {
    t.equal(await store.journal.derived.alias('order!key', key), null)
  }
})

void t.test('so many notes a transaction, whatever is over', async (t) => {
  const store = await open(t)
  const count = 2 * LIMITS.storage.expireRowsMax + 1
  await store.write(...Array.from({ length: count }, (_, i) => alias(`k${i}`, i + 1)))
  const env = openEnvironment(store.dir, true)
  t.teardown(() => env.root.close())
  const { identity } = store.journal
  const pass = new ExpiryPass({ env, identity, clockOf: () => EXPIRY_MS }, env.lives!, [0])
  const { notes, rows } = pass.next()!
  t.equal(notes.length, LIMITS.storage.expireRowsMax)
  t.equal(rows.length, LIMITS.storage.expireRowsMax)
})

void t.test('the numbers of notes begin anew behind the last one', async (t) => {
  const random = (into: Uint8Array): void => {
    if (into.length === 6) into.fill(0xff)
    else randomFillSync(into)
  }
  const store = await open(t, Date.now, random)
  await store.write(alias('a', 1), alias('b', 2), alias('c', 3))
  t.equal((await leftIn(store)).notes, 3)
  await store.journal.derived.expire!(() => EXPIRY_MS)
  t.same(await leftIn(store), { notes: 0, findings: [] })
})

void t.test('a row is there for its whole time, wherever in an hour it was written', async (t) => {
  const store = await open(t)
  const { derived } = store.journal
  const writtenMs = 59 * 60_000
  await store.write(alias('k', 1, writtenMs))
  await derived.expire!(() => EXPIRY_MS - HOUR_MS + writtenMs - 1)
  t.ok(await derived.alias('order!key', 'k'), 'a millisecond is left')
  await derived.expire!(() => EXPIRY_MS)
  t.equal(await derived.alias('order!key', 'k'), null, 'and no more than an hour is added')
})

void t.test('what is parked no more goes once its shard has told its clock', async (t) => {
  const store = await open(t)
  const { derived } = store.journal
  const done = (offset: number): DerivedRow => {
    return { kind: 'parked', consumer: 'index', actorId: freshUuid(), body: null, offset }
  }
  await store.write(done(1))
  t.equal((await leftIn(store)).notes, 0, 'when it was written is not known: it stays')
  await derived.expire!(() => 5 * HOUR_MS)
  await store.write(done(2))
  await derived.expire!(() => EXPIRY_MS)
  t.equal((await leftIn(store)).notes, 1)
  await derived.expire!(() => 5 * HOUR_MS + EXPIRY_MS)
  t.same(await leftIn(store), { notes: 0, findings: [] })
})

void t.test('behind an accepted loss entries stay: they say how far it goes on', async (t) => {
  const store = await open(t)
  await store.write(refusal(freshUuid(), 1, 1))
  const env = openEnvironment(store.dir, true)
  t.teardown(() => env.root.close())
  const { identity } = store.journal
  const rowsOf = (losses: StoreIdentity['losses']): number | undefined => {
    const options = {
      env,
      identity: { ...identity, losses: losses ?? [] },
      clockOf: () => EXPIRY_MS,
    }
    return new ExpiryPass(options, env.lives!, [0]).next()?.rows.length
  }
  t.equal(rowsOf([{ shard: 0, offset: 0, resumedAt: 0 }]), 0)
  t.equal(rowsOf([]), 1)
})

void t.test('older images go, the newest but one stays', async (t) => {
  const { journal, dir } = await open(t)
  const { epoch } = await journal.log.claim(SYSTEM_SHARD)
  const env = openEnvironment(dir, true)
  t.teardown(() => env.root.close())
  const left: number[][] = []
  for (const offset of [10, 20, 30, 40]) {
    const image: DerivedRow = { kind: 'image', offset, part: 0, body: Buffer.of(offset) }
    const whole: DerivedRow = { kind: 'consumer', consumer: 'image', offset }
    // The last one is not said to be whole.
    const rows = offset === 40 ? [image] : [image, whole]
    t.equal(await journal.derived.write(SYSTEM_SHARD, epoch, rows), 'committed')
    await journal.derived.trimImages()
    env.root.resetReadTxn()
    left.push([...env.images.getKeys({})].map((key) => Buffer.from(key).readUIntBE(0, 6)))
  }
  t.same(left, [[10], [10, 20], [20, 30], [20, 30, 40]])
  t.equal((await journal.derived.image())?.offset, 30)
})
