// The table of copies that wait for an answer: each is answered once, and none is kept for ever.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { WireReply } from '../../protocol/message.ts'
import { TestClock } from '../testing/harness.ts'
import { Copies } from './copies.ts'

const REPLY: WireReply = { outcome: 'unsent' }

t.test('an answer finds its copy, once', async (t) => {
  const copies = new Copies(new TestClock())
  const answered: number[] = []
  for (const number of [1, 2, 3]) {
    t.equal(copies.next, number)
    copies.add('a', 10, 1_000, () => answered.push(number))
  }
  copies.answer(2, REPLY)
  copies.answer(2, REPLY)
  copies.answer(99, REPLY)
  t.strictSame(answered, [2])
  t.equal(copies.size, 2)
})

t.test('a copy is forgotten once its budget is over, and makes room', async (t) => {
  const clock = new TestClock()
  const copies = new Copies(clock)
  const half = LIMITS.wireBytesMax / 2
  const never = () => t.fail('nobody answers')
  copies.add('a', half, 1_000, never)
  copies.add('a', half, 5_000, never)
  t.notOk(copies.hasRoom('a', 1))
  t.ok(copies.hasRoom('b', LIMITS.wireBytesMax * 2), 'a large one goes alone')
  await clock.advance(3_000)
  t.equal(copies.size, 1)
  t.ok(copies.hasRoom('a', half))
  t.notOk(copies.hasRoom('a', half + 1))
  await clock.advance(4_000)
  t.equal(copies.size, 0)
  t.ok(copies.hasRoom('a', LIMITS.wireBytesMax * 2))
})

t.test('copies to one that has ended are forgotten', async (t) => {
  const copies = new Copies(new TestClock())
  const answered: string[] = []
  for (const to of ['a', 'b', 'a'])
    copies.add(to, LIMITS.wireBytesMax, 1e6, () => answered.push(to))
  copies.forgetAllTo('a')
  t.equal(copies.size, 1)
  t.ok(copies.hasRoom('a', 1))
  copies.answer(2, REPLY)
  t.strictSame(answered, ['b'])
})

t.test('there is a bound for all', async (t) => {
  const copies = new Copies(new TestClock())
  for (let i = 0; i < LIMITS.wireCopiesMax; i++) copies.add(`to ${i}`, 1, 1e6, () => undefined)
  t.notOk(copies.hasRoom('another', 1))
})
