// Which derived rows may go, and from when their time counts. Source: PROTOCOL 3.12 "What expires".

import t from 'tap'
import { LIMITS } from '../config/limits.ts'
import { CREATE_KEY_SUFFIX } from './journal.ts'
import type { DerivedRow } from './journal.ts'
import { lifeOf } from './row-life.ts'

function alias(keyType: string, ...clocks: readonly number[]): DerivedRow {
  const claims = clocks.map((clock) => {
    return { actorId: 'a', messageId: 'm', confirmed: true, clock }
  })
  return { kind: 'alias', offset: 1, row: { keyType, key: 'k', claims } }
}

t.test('the key of a create lives from its newest claim on; any other key stays', (t) => {
  t.same(lifeOf(alias(`order${CREATE_KEY_SUFFIX}`, 5, 9, 7)), { from: 9 })
  t.same(lifeOf(alias(`order${CREATE_KEY_SUFFIX}`)), { from: 0 }, 'one that is free')
  t.equal(lifeOf(alias('order', 5)), null)
  t.end()
})

t.test('a follower that is done with an actor keeps no row for ever', (t) => {
  const parked = { kind: 'parked', consumer: 'index', actorId: 'a', offset: 1 } as const
  t.same(lifeOf({ ...parked, body: null }), { from: null })
  t.equal(lifeOf({ ...parked, body: Buffer.from('why') }), null)
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
    t.same(lifeOf(mark), { from: 5 * LIMITS.callerMarkMs })
    t.end()
  },
)
