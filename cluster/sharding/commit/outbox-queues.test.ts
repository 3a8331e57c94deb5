// What waits behind one another in an outbox, and for how long. Source: PROTOCOL 3.6 "Outbox".

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { addressed, isEarlier, nameOf, waitMs } from './outbox-queues.ts'
import type { Item } from './outbox-queues.ts'

const item = (offset: number, index: number): Item => {
  return { effect: { to: { type: 'ledger', key: 'K' }, messages: [] }, offset, index, by: 'tester' }
}

t.test('what goes to different actors and keys waits in different queues', (t) => {
  const names = [
    { type: 'ledger', id: 'a' },
    { type: 'ledger', id: 'b' },
    { type: 'ledger', key: 'a' },
    { type: 'ledger', key: 'b' },
    { type: 'ledger!key', key: 'a' },
    { type: 'order', id: 'a' },
  ].map(nameOf)
  t.equal(new Set(names).size, names.length)
  t.end()
})

t.test('effects are in the order of the log, and in that of their entry', (t) => {
  t.ok(isEarlier(item(1, 5), item(2, 0)))
  t.notOk(isEarlier(item(2, 0), item(1, 5)))
  t.ok(isEarlier(item(2, 0), item(2, 1)))
  t.notOk(isEarlier(item(2, 1), item(2, 0)))
  t.end()
})

t.test('an effect goes to the actor that its key led to, where it did', (t) => {
  t.same(addressed(item(1, 0), 'a').effect.to, { type: 'ledger', id: 'a' })
  t.same(addressed(item(1, 0), undefined), item(1, 0))
  t.end()
})

t.test('it is tried again ever later, up to a bound', (t) => {
  const waits = Array.from({ length: 40 }, (_, failures) => waitMs(failures))
  t.ok(waits[0]! > 0 && waits[0]! <= 100, 'soon at first')
  t.same(
    waits.slice(0, 4),
    [1, 2, 4, 8].map((times) => times * waits[0]!),
  )
  t.equal(Math.max(...waits), LIMITS.sharding.relayRetryMsMax)
  t.equal(waits.at(-1), LIMITS.sharding.relayRetryMsMax)
  t.same(
    waits,
    waits.toSorted((a, b) => a - b),
  )
  t.end()
})
