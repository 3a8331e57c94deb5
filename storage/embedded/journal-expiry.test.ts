// Rows that stand for a while only leave the data file after their time, and nothing else does.
// Source: PROTOCOL 3.12.

import t, { type Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { encodeEntry, joinEntries, type Entry } from '../../protocol/entry.ts'
import type { AliasRow, DerivedRow, Journal, StoreIdentity } from '../journal.ts'
import { freshUuid } from '../conformance/journal-samples.ts'
import { ExpiryPass } from './journal-expiry.ts'
import { openEnvironment } from './journal-environment.ts'
import { openEmbeddedJournal } from './journal.ts'
import { journalOptions } from './testing/journal-options.ts'
import { verifyLog } from './verify-log.ts'

const HOUR_MS = 3_600_000
/** A note counts from the end of its hour. */
const LIFE_MS = LIMITS.derivedTtlSeconds * 1_000 + HOUR_MS
const START_MS = 1_700_000_000_000

interface Store {
  readonly journal: Journal
  readonly dir: string
  readonly write: (...rows: DerivedRow[]) => Promise<void>
  /** Appends an entry and flushes its row, as the runtime does. */
  readonly append: (entry: Entry) => Promise<void>
  readonly pass: (ms: number) => Promise<void>
  readonly epoch: number
}

async function open(t: Test): Promise<Store> {
  let nowMs = START_MS
  const options = { ...journalOptions(t), shards: 1, clock: () => nowMs }
  const journal = await openEmbeddedJournal(options)
  t.teardown(() => journal.close())
  const { epoch } = await journal.log.claim(0)
  const write = async (...rows: DerivedRow[]): Promise<void> => {
    t.equal(await journal.derived.write(0, epoch, rows), 'committed')
  }
  let head = 0
  return {
    journal,
    dir: options.dir,
    epoch,
    write,
    async append(entry) {
      const bytes = encodeEntry(entry)
      const group = { shard: 0, epoch, head, count: 1, commitId: freshUuid() }
      const body = joinEntries([bytes])
      t.same(await journal.log.append([{ ...group, body }]), ['committed'])
      head++
      const { p: actorId, n } = entry
      await write(
        { kind: 'entry', actorId, n, offset: head, body: bytes },
        { kind: 'consumer', consumer: 'flush', offset: head },
      )
    },
    async pass(ms) {
      nowMs += ms
      await journal.derived.expire!(() => null)
    },
  }
}

function alias(keyType: string, key: string, offset: number): DerivedRow {
  const claim = { actorId: freshUuid(), messageId: 'm', confirmed: true, clock: 0 }
  return { kind: 'alias', offset, row: { keyType, key, claims: [claim] } satisfies AliasRow }
}

function entryOf(p: string, n: number, version: number, records: number): Entry {
  const r = Array.from({ length: records }, () => ({ t: 'changed' })) as never
  const a = { type: 'create', success: records > 0 } as Entry['a']
  return { y: 'order', p, v: version, n, r, m: freshUuid(), l: 0, a, t: 0, c: 0, b: 'bootstrap' }
}

/** Notes that are left, and what verify-log says of the store. */
async function leftIn({ dir }: Store): Promise<{ notes: number; findings: string[] }> {
  const env = openEnvironment(dir, true)
  const notes = env.expiries!.getCount()
  await env.root.close()
  const findings: string[] = []
  await verifyLog(dir, (line) => findings.push(line))
  return { notes, findings }
}

void t.test('keys of creates, marks and what is parked no more go after their time', async (t) => {
  const store = await open(t)
  const { derived } = store.journal
  const actorId = freshUuid()
  const body = Buffer.from('x')
  await store.write(
    alias('order!key', 'k1', 1),
    alias('order', 'O1', 2),
    { kind: 'mark', actorId, day: 3, messageId: 'm1', offset: 3, body },
    { kind: 'snapshot', actorId, offset: 4, body },
    { kind: 'parked', consumer: 'index', actorId, body: null, offset: 5 },
  )
  await store.pass(LIFE_MS - 2 * HOUR_MS)
  t.ok(await derived.alias('order!key', 'k1'), 'not before')
  t.ok(await derived.mark(actorId, 3, 'm1'))
  t.equal((await leftIn(store)).notes, 3)
  await store.pass(2 * HOUR_MS)
  t.equal(await derived.alias('order!key', 'k1'), null)
  t.equal(await derived.mark(actorId, 3, 'm1'), null)
  t.ok(await derived.alias('order', 'O1'), 'a number stays')
  t.ok(await derived.snapshot(actorId))
  t.same(await leftIn(store), { notes: 0, findings: [] })
})

void t.test('a row that was written again has its time from then on', async (t) => {
  const store = await open(t)
  const { derived } = store.journal
  await store.write(alias('order!key', 'k', 1))
  await store.pass(LIFE_MS / 2)
  await store.write(alias('order!key', 'k', 2))
  await store.pass(LIFE_MS / 2)
  t.ok(await derived.alias('order!key', 'k'), 'the second time')
  t.equal((await leftIn(store)).notes, 1)
  await store.pass(LIFE_MS / 2)
  t.equal(await derived.alias('order!key', 'k'), null)
})

void t.test('more than one transaction removes', async (t) => {
  const store = await open(t)
  const count = 2 * LIMITS.expireRowsMax + 1
  await store.write(...Array.from({ length: count }, (_, i) => alias('order!key', `k${i}`, i + 1)))
  t.equal((await leftIn(store)).notes, count)
  await store.pass(LIFE_MS)
  t.same(await leftIn(store), { notes: 0, findings: [] })
  t.equal(await store.journal.derived.alias('order!key', `k${count - 1}`), null)
})

void t.test('an actor that was only refused goes, once the log has let go of it', async (t) => {
  const store = await open(t)
  const { derived, log } = store.journal
  const [refused, made] = [freshUuid(), freshUuid()]
  await store.append(entryOf(made, 1, 0, 0))
  await store.append(entryOf(made, 2, 0, 2))
  await store.append(entryOf(made, 3, 2, 0))
  await store.append(entryOf(refused, 1, 0, 0))
  await store.append(entryOf(refused, 2, 0, 0))
  const all = { order: 'ascending', after: 0, bytesMax: 1_000_000 } as const
  const numbers = async (actorId: string): Promise<number[]> =>
    (await derived.entries(actorId, all)).map(({ n }) => n)
  await store.pass(LIFE_MS)
  await log.trim(0, store.epoch, 3)
  await store.pass(0)
  t.same(await numbers(refused), [1, 2], 'the log still says the same of it')
  t.same((await leftIn(store)).findings, [])
  await log.trim(0, store.epoch, 5)
  await store.pass(0)
  t.same(await numbers(refused), [2], 'its first entry first')
  t.same((await leftIn(store)).findings, [])
  await store.pass(0)
  t.same(await derived.actors(null, 10), [made])
  t.same(await numbers(made), [1, 2, 3], 'an order keeps what it refused')
  t.same(await leftIn(store), { notes: 0, findings: [] })
})

void t.test(
  'behind an accepted loss rejections stay: entries are found by their numbers',
  async (t) => {
    const store = await open(t)
    await store.append(entryOf(freshUuid(), 1, 0, 0))
    await store.journal.log.trim(0, store.epoch, 1)
    const env = openEnvironment(store.dir, true)
    t.teardown(() => env.root.close())
    const { identity } = store.journal
    const rowsOf = (losses: StoreIdentity['losses']): number | undefined => {
      const options = { env, identity: { ...identity, losses: losses ?? [] } }
      const pass = new ExpiryPass({ ...options, nowMs: () => START_MS + LIFE_MS }, env.expiries!)
      return pass.next()?.rows.length
    }
    t.equal(rowsOf([{ shard: 0, offset: 0, resumedAt: 0 }]), 0)
    t.equal(rowsOf([]), 1)
  },
)

void t.test('an actor that was refused very often stays', async (t) => {
  const store = await open(t)
  const actorId = freshUuid()
  for (let n = 1; n <= 65; n++) await store.append(entryOf(actorId, n, 0, 0))
  await store.journal.log.trim(0, store.epoch, 65)
  await store.pass(LIFE_MS)
  const all = { order: 'ascending', after: 0, bytesMax: 1_000_000 } as const
  t.equal((await store.journal.derived.entries(actorId, all)).length, 65)
  t.same(await leftIn(store), { notes: 0, findings: [] })
})
