// Which derived rows may go, and from when their time counts. Source: PROTOCOL 3.12 "What expires".

import t from 'tap'
import { LIMITS } from '../config/limits.ts'
import { encodeEntry, type Entry, type KeyChange } from '../protocol/entry/entry.ts'
import { CREATE_KEY_SUFFIX } from './journal.ts'
import type { DerivedRow } from './journal.ts'
import { ENTRIES_TOGETHER, isPassing, expiryOf, expiryOfLogged } from './row-expiry.ts'

function alias(keyType: string, ...clocks: readonly number[]): DerivedRow {
  const claims = clocks.map((clock) => {
    return { actorId: 'a', messageId: 'm', confirmed: true, clock }
  })
  return { kind: 'alias', offset: 1, row: { keyType, key: 'k', claims } }
}

t.test('the key of a create lives from its newest claim on; any other key stays', (t) => {
  t.same(expiryOf(alias(`order${CREATE_KEY_SUFFIX}`, 5, 9, 7)), { from: 9 })
  t.same(expiryOf(alias(`order${CREATE_KEY_SUFFIX}`)), { from: 0 }, 'one that is free')
  t.equal(expiryOf(alias('order', 5)), null)
  t.end()
})

t.test('a follower that is done with an actor keeps no row for ever', (t) => {
  const parked = { kind: 'parked', consumer: 'index', actorId: 'a', offset: 1 } as const
  t.same(expiryOf({ ...parked, body: null }), { from: null })
  t.equal(expiryOf({ ...parked, body: Buffer.from('why') }), null)
  t.end()
})

t.test(
  'a mark is looked for on its day and the next one: it lives from the end of its day',
  (t) => {
    const mark = {
      kind: 'mark',
      shard: 0,
      day: 4,
      messageId: 'm',
      offset: 1,
    } as unknown as DerivedRow
    t.same(expiryOf(mark), { from: 5 * LIMITS.storage.callerMarkMs })
    t.end()
  },
)

/** A refusal at clock 7. */
function refusal(more: Partial<Entry> = {}): Buffer {
  const a = { type: 'change', success: false, errors: [] } as Entry['a']
  const fixed = { y: 'order', p: 'a', v: 3, n: 5, r: [], m: 'm', l: 1, t: 0, b: 'x' } as const
  return encodeEntry({ ...fixed, a, c: 7, ...more })
}

const take = (keyType: string): KeyChange => {
  return { keyType, key: '1', change: 'take', actorId: 'a' }
}
const create = take(`order${CREATE_KEY_SUFFIX}`)
const RECORD = [{ t: 'changed' }] as Entry['r']
const EFFECT = [{ to: { type: 'order', key: '2' }, messages: [] }] as unknown as NonNullable<
  Entry['e']
>

t.test('an entry stays that is needed to read its actor; a refusal goes by its clock', (t) => {
  const expiry = (n: number, more: Partial<Entry> = {}) => {
    return expiryOf({ kind: 'entry', actorId: 'a', n, offset: 9, body: refusal({ n, ...more }) })
  }
  t.same(expiry(5), { from: 7 })
  t.same(expiry(5, { k: [create] }), { from: 7 }, 'with the key of a create')
  t.equal(expiry(5, { r: RECORD }), null)
  t.equal(expiry(5, { s: [1, 2, 0] }), null, 'it says where a relayed message came from')
  t.equal(expiry(5, { k: [create, take('order')] }), null, 'it has taken a key')
  t.equal(expiry(ENTRIES_TOGETHER), null, 'there are more behind it')
  t.same(expiry(ENTRIES_TOGETHER + 1), { from: 7 })
  t.same(expiry(ENTRIES_TOGETHER - 1), { from: 7 })
  t.same(expiry(5, { e: EFFECT }), { from: 7 }, 'its effects are in the log')
  t.end()
})

t.test("what may go of a log: a refusal's bytes, unless the rows are made of them", (t) => {
  t.same(expiryOfLogged(refusal()), { from: 7 })
  t.same(expiryOfLogged(refusal({ n: 0, k: [create] })), { from: 7 }, 'an entry of a key alone')
  t.equal(expiryOfLogged(refusal({ n: ENTRIES_TOGETHER })), null)
  t.equal(expiryOfLogged(refusal({ e: EFFECT })), null)
  t.equal(expiryOfLogged(refusal({ g: { 'order/A': 3 } })), null)
  t.equal(expiryOfLogged(refusal({ r: RECORD })), null)
  t.equal(expiryOfLogged(refusal({ s: [1, 2, 0] })), null)
  t.equal(expiryOfLogged(refusal({ k: [take('order')] })), null)
  t.end()
})

t.test('rows that hold what nothing else does never pass', (t) => {
  const body = Buffer.from('x')
  t.notOk(isPassing({ kind: 'snapshot', actorId: 'a', offset: 1, body }))
  t.notOk(isPassing({ kind: 'shard', offset: 1, body }))
  t.notOk(isPassing({ kind: 'consumer', consumer: 'flush', offset: 1 }))
  t.notOk(isPassing({ kind: 'image', offset: 1, part: 0, body }))
  t.ok(isPassing(alias(`order${CREATE_KEY_SUFFIX}`, 1)))
  t.end()
})
