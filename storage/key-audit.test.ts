// Whose keys are judged: those of an actor whose entries are one history, and no others'.

import t from 'tap'
import { ledger } from '../cluster/testing/ledger.ts'
import type { Behaviour } from '../protocol/behaviour.ts'
import { encodeEntry, type Entry } from '../protocol/entry/entry.ts'
import { placeOfKey, shardOf } from '../protocol/ids.ts'
import { COUNTER_SUFFIX, CREATE_KEY_SUFFIX } from './journal.ts'
import { KeyAudit, relayedIn } from './key-audit.ts'

const ID = '019b76da-a800-7aea-8f20-3101f073f8bb'

interface Stored {
  readonly offset: number
  readonly v: number
  readonly r: Entry['r']
  readonly y?: string
}

/** Keys that are given back of an actor with these entries, to which the key `K` leads. */
async function freed(stored: readonly Stored[]): Promise<string[]> {
  const found: string[] = []
  const rows = stored.map(({ offset, v, r, y = 'ledger' }, i) => {
    const base = { y, p: ID, l: 0, t: 0, c: 0, b: 'x' } as const
    const entry: Entry = { ...base, v, n: i + 1, r, m: `m${i}`, a: { type: 'open', success: true } }
    return { n: i + 1, offset, body: encodeEntry(entry) }
  })
  const audit = new KeyAudit({
    behaviours: new Map([['ledger', ledger as Behaviour]]),
    settled: new Map([[0, { flush: 9, relayed: 9 }]]),
    shards: 1,
    entries: (_, range) => rows.filter(({ n }) => range.order === 'ascending' && n > range.after),
    report: () => undefined,
    free: ({ key }) => {
      found.push(key)
      return true
    },
  })
  const claims = [{ actorId: ID, messageId: 'm', confirmed: true, clock: 0 }]
  await audit.row({ keyType: 'ledger', key: 'K', claims }, 1)
  await audit.end()
  return found
}

const opened = { offset: 3, v: 0, r: [{ t: 'opened', number: 'N' }] }
const renumbered = [{ t: 'renumbered', number: 'K' }]

t.test('a key is given back of an actor that has settled without it', async (t) => {
  t.same(await freed([opened]), ['K'])
  t.same(await freed([opened, { offset: 5, v: 1, r: renumbered }]), [], 'it has it')
})

t.test('the keys of an actor with two histories, or with records missing, stay', async (t) => {
  const appended = [{ t: 'appended', token: 'x' }]
  t.same(await freed([opened, { offset: 2, v: 1, r: appended }]), [], 'a stray')
  t.same(await freed([opened, { offset: 5, v: 2, r: appended }]), [], 'a gap')
})

t.test(
  'what is behind the rows that are there may change everything: nothing is judged yet',
  async (t) => {
    t.same(await freed([{ ...opened, offset: 9 }]), ['K'], 'all of it is there')
    t.same(await freed([{ ...opened, offset: 10 }]), [])
    const later = { offset: 10, v: 1, r: [{ t: 'appended', token: 'x' }] }
    t.same(await freed([opened, later]), [])
    t.same(await freed([]), [], 'an actor that was never made')
  },
)

const [SHARDS, FLUSH] = [4, [20, 21, 22, 23]]

/** The audit of a store of several shards, in which every actor has settled without any key. */
function auditOf(free: 'gives' | 'waits' | 'only tells') {
  const told: string[] = []
  const freed: unknown[] = []
  const reads: number[] = []
  const settled = FLUSH.map((flush, shard) => [shard, { flush, relayed: flush - 5 }] as const)
  const entry: Entry = {
    ...{ y: 'ledger', p: ID, v: 0, n: 1, r: opened.r, m: 'm', l: 0 as const, t: 0, c: 0, b: 'x' },
    a: { type: 'open', success: true },
  }
  const audit = new KeyAudit({
    behaviours: new Map([['ledger', ledger as Behaviour]]),
    settled: new Map(settled),
    shards: SHARDS,
    entries: (_, range) => {
      const after = range.order === 'ascending' ? range.after : 0
      reads.push(after)
      return after < 1 ? [{ n: 1, offset: 3, body: encodeEntry(entry) }] : []
    },
    report: (what) => told.push(what),
    free:
      free === 'only tells'
        ? null
        : async (row, place) => {
            freed.push([row, place])
            return free === 'gives'
          },
  })
  const row = (key: string, more: object = {}) => {
    const claims = [{ actorId: ID, messageId: 'm', confirmed: true, clock: 0, ...more }]
    return { keyType: 'ledger', key, claims }
  }
  return { audit, told, freed, reads, row }
}

const shardOfKey = (key: string): number => shardOf(placeOfKey('ledger', key), SHARDS)

t.test('it is told what becomes of a key, and given back as of what is flushed', async (t) => {
  const what = `key 'K' of ledger leads to actor ${ID}, which doesn't have it; `
  for (const [free, end] of [
    ['gives', 'it was given back'],
    ['waits', 'it can be given back once its shard goes on'],
    ['only tells', '--repair gives it back'],
  ] as const) {
    const { audit, told, freed, row } = auditOf(free)
    await audit.row(row('K'), 1)
    await audit.end()
    t.same(told, [what + end])
    if (free === 'only tells') continue
    const shard = shardOfKey('K')
    const place = { shard, offset: FLUSH[shard] }
    t.same(freed, [[{ keyType: 'ledger', key: 'K', claims: [] }, place]])
  }
})

t.test('a row that is not flushed, or not settled, is not judged', async (t) => {
  const { audit, told, row } = auditOf('only tells')
  const flush = FLUSH[shardOfKey('K')]!
  await audit.row(row('K'), flush + 1)
  await audit.row({ ...row('K'), claims: [] }, 1)
  await audit.row(row('K', { confirmed: false }), 1)
  const both = [...row('K').claims, ...row('K', { confirmed: false }).claims]
  await audit.row({ ...row('K'), claims: both }, 1)
  for (const suffix of [CREATE_KEY_SUFFIX, COUNTER_SUFFIX]) {
    await audit.row({ ...row('K'), keyType: `ledger${suffix}` }, 1)
  }
  await audit.end()
  t.same(told, [])
  await audit.row(row('K'), flush)
  await audit.end()
  t.equal(told.length, 1)
})

/** What is told of the key `K` behind an entry of a log. */
async function toldBehind(shard: number, offset: number, entry: Partial<Entry>): Promise<number> {
  const { audit, told, row } = auditOf('only tells')
  const head = { p: 'another', ...entry } as Entry
  audit.entry(shard, offset, head)
  await audit.row(row('K'), 1)
  await audit.end()
  return told.length
}

t.test('what is on its way, by the log, is no finding', async (t) => {
  const [flush, relayed] = [FLUSH[2]!, FLUSH[2]! - 5]
  const k = [{ keyType: 'ledger', key: 'K', change: 'free', actorId: ID, by: 'm' }] as const
  t.equal(await toldBehind(2, flush + 1, { k }), 0, 'a change of the key')
  t.equal(await toldBehind(2, flush, { k }), 1, 'one that is in its row')
  t.equal(await toldBehind(2, flush + 1, { k: [{ ...k[0], key: 'L' }] }), 1, "another key's")
  t.equal(await toldBehind(2, flush + 1, { k: [{ ...k[0], keyType: 'order' }] }), 1)
  t.equal(await toldBehind(2, flush + 1, { p: ID }), 0, 'a change of the actor')
  t.equal(await toldBehind(2, flush, { p: ID }), 1)
  const e = [{ to: { type: 'ledger', key: 'K' }, messages: [] }]
  t.equal(await toldBehind(2, relayed + 1, { e }), 0, 'a message to the key')
  t.equal(await toldBehind(2, relayed, { e }), 1, 'one that was taken')
  t.equal(
    await toldBehind(2, relayed + 1, { e: [{ to: { type: 'ledger', id: ID }, messages: [] }] }),
    1,
  )
})

t.test('all rows are looked at, however many', async (t) => {
  const { audit, told, row } = auditOf('only tells')
  const keys = Array.from({ length: 35 }, (_, i) => `K${i}`)
  for (const key of keys) await audit.row(row(key), 1)
  t.ok(told.length >= 16 && told.length < 35, 'some together')
  await audit.end()
  t.same(told.length, 35)
  for (const key of keys) t.ok(told.some((line) => line.startsWith(`key '${key}' `)))
})

t.test('an actor that was deleted, or of whose type nothing is known, is not judged', async (t) => {
  const deleted = { offset: 5, v: 1, r: [{ t: 'deleted' }] }
  t.same(await freed([opened, deleted]), [])
  t.same(await freed([{ ...opened, y: 'unknown' }]), [])
})

t.test('how far a shard has relayed is said by its own row', (t) => {
  t.equal(relayedIn(null), 0)
  t.equal(relayedIn({ body: Buffer.from('{}') }), 0)
  t.equal(relayedIn({ body: Buffer.from('{"clockMs":9,"relayed":7}') }), 7)
  t.end()
})
