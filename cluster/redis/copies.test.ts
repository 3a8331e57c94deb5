// The table of copies that wait for an answer: each is answered once, and none is kept for ever.

import fc from 'fast-check'
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

t.test('who answers within an answer is not heard', async (t) => {
  const copies = new Copies(new TestClock())
  let answers = 0
  copies.add('a', 10, 1_000, () => {
    answers++
    copies.answer(1, REPLY)
    t.equal(copies.size, 0, 'there is room for what is sent now')
  })
  copies.answer(1, REPLY)
  t.equal(answers, 1)
})

t.test('a copy is forgotten once its budget is over, and makes room', async (t) => {
  const clock = new TestClock()
  const copies = new Copies(clock)
  const half = LIMITS.redis.bytesMax / 2
  const never = () => t.fail('nobody answers')
  copies.add('a', half, 1_000, never)
  copies.add('a', half, 5_000, never)
  t.equal(clock.timers, 1)
  t.notOk(copies.hasRoom('a', 1))
  t.ok(copies.hasRoom('b', LIMITS.redis.bytesMax * 2), 'a large one goes alone')
  await clock.advance(3_000)
  t.equal(copies.size, 1)
  t.ok(copies.hasRoom('a', half))
  t.notOk(copies.hasRoom('a', half + 1))
  await clock.advance(4_000)
  t.equal(copies.size, 0)
  t.equal(clock.timers, 0, 'nothing is looked for when there is none')
  t.ok(copies.hasRoom('a', LIMITS.redis.bytesMax * 2))
})

t.test('copies to one that has ended are forgotten', async (t) => {
  const copies = new Copies(new TestClock())
  const answered: string[] = []
  for (const to of ['a', 'b', 'a'])
    copies.add(to, LIMITS.redis.bytesMax, 1e6, () => answered.push(to))
  copies.forgetAllTo('a')
  t.equal(copies.size, 1)
  t.ok(copies.hasRoom('a', 1))
  copies.answer(2, REPLY)
  t.strictSame(answered, ['b'])
})

t.test('there is a bound for all', async (t) => {
  const copies = new Copies(new TestClock())
  for (let i = 0; i < LIMITS.redis.copiesMax; i++) copies.add(`to ${i}`, 1, 1e6, () => undefined)
  t.notOk(copies.hasRoom('another', 1))
})

interface Known {
  readonly number: number
  readonly to: string
  readonly bytes: number
  /** Second of the clock at which it was sent, and its budget, in seconds. */
  readonly at: number
  readonly budget: number
}

type Step =
  | { readonly do: 'add'; readonly to: string; readonly bytes: number; readonly budget: number }
  | { readonly do: 'answer'; readonly number: number }
  | { readonly do: 'forget'; readonly to: string }
  | { readonly do: 'wait'; readonly seconds: number }

const MiB = 1024 * 1024
const to = fc.constantFrom('a', 'b')
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('add' as const),
      to,
      bytes: fc.constantFrom(MiB, 3 * MiB, 8 * MiB, 9 * MiB),
      budget: fc.integer({ min: 0, max: 5 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('answer' as const), number: fc.nat(12) }) },
  fc.record({ do: fc.constant('forget' as const), to }),
  fc.record({ do: fc.constant('wait' as const), seconds: fc.integer({ min: 1, max: 4 }) }),
)

t.test('the table against a plain list, whatever is done to it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30, size: 'max' }), async (steps) => {
      const clock = new TestClock()
      const copies = new Copies(clock)
      const answered: number[] = []
      const wanted: number[] = []
      let known: Known[] = []
      let made = 0
      let now = 0
      for (const step of steps) {
        if (step.do === 'add') {
          const number = copies.next
          if (number !== ++made) return false
          const { bytes, budget } = step
          known.push({ number, to: step.to, bytes, at: now, budget })
          copies.add(step.to, bytes, budget * 1_000, () => answered.push(number))
        } else if (step.do === 'answer') {
          if (known.some(({ number }) => number === step.number)) wanted.push(step.number)
          known = known.filter(({ number }) => number !== step.number)
          copies.answer(step.number, REPLY)
        } else if (step.do === 'forget') {
          known = known.filter((copy) => copy.to !== step.to)
          copies.forgetAllTo(step.to)
        } else {
          now += step.seconds
          await clock.advance(step.seconds * 1_000)
          // Never before its budget is over; a sweep or two later it is gone.
          known = known.filter(({ at, budget }) => at + budget + 1 > now)
        }
        if (copies.size !== known.length || answered.join() !== wanted.join()) return false
        for (const to of ['a', 'b']) {
          const mine = known.filter((copy) => copy.to === to)
          const sum = mine.reduce((all, { bytes }) => all + bytes, 0)
          for (const bytes of [1, MiB, 5 * MiB, 20 * MiB]) {
            const hasRoom = mine.length === 0 || sum + bytes <= LIMITS.redis.bytesMax
            if (copies.hasRoom(to, bytes) !== hasRoom) return false
          }
        }
      }
      return true
    }),
    { numRuns: 150 },
  )
})
