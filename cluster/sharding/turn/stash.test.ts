// What a shard keeps while it can't run it: in its order, within bounds, with the time it has left.

import t from 'tap'
import fc from 'fast-check'
import { LIMITS } from '../../../config/limits.ts'
import type { Envelope, WireReply } from '../../../protocol/message.ts'
import { TestClock } from '../../testing/harness.ts'
import { Stash } from './stash.ts'

const MOVED: WireReply = { outcome: 'moved', shard: 0 }

function makeHeld() {
  const clock = new TestClock()
  const answers: string[] = []
  const stash = new Stash(clock, () => MOVED)
  const add = (name: string, bytes = 10, budgetMs = 5_000): void => {
    // Quotes and brackets of the JSON are four bytes.
    const messages = ['x'.repeat(bytes - 4)]
    stash.add(
      { trace: name, messages, budgetMs } as unknown as Envelope,
      (reply) => void answers.push(`${name} ${reply.outcome}`),
    )
  }
  return { clock, answers, stash, add }
}

t.test('handed out oldest first, with what is left of its budget, once', async (t) => {
  const { clock, stash, add, answers } = makeHeld()
  add('a')
  clock.stepWall(60_000)
  await clock.advance(300)
  add('b')
  await clock.advance(200)
  add('c')
  t.equal(stash.size, 3)
  const taken = stash.take()
  t.same(
    taken.map(({ envelope }) => [envelope.trace, envelope.budgetMs]),
    [
      ['a', 4_500],
      ['b', 4_800],
      ['c', 5_000],
    ],
  )
  t.same([stash.size, stash.take()], [0, []])
  await clock.advance(LIMITS.sharding.sealedHeldMs * 2)
  t.same(answers, [], 'nobody else answers what was handed out')
  taken[0]!.respond(MOVED)
  t.same(answers, ['a moved'])
})

t.test('each is kept for a second, counted from its own coming', async (t) => {
  const { clock, stash, add, answers } = makeHeld()
  add('a')
  await clock.advance(400)
  add('b')
  add('c')
  await clock.advance(LIMITS.sharding.sealedHeldMs - 401)
  t.same(answers, [])
  await clock.advance(1)
  t.same(answers, ['a moved'])
  await clock.advance(399)
  t.equal(stash.size, 2)
  await clock.advance(1)
  t.same(answers, ['a moved', 'b moved', 'c moved'])
  add('d')
  await clock.advance(LIMITS.sharding.sealedHeldMs)
  t.equal(answers.at(-1), 'd moved', 'it is watched again')
})

t.test('after it was emptied time begins anew', async (t) => {
  const { clock, stash, add, answers } = makeHeld()
  add('a')
  await clock.advance(600)
  stash.take()
  add('b')
  await clock.advance(LIMITS.sharding.sealedHeldMs - 1)
  t.same(answers, [])
  await clock.advance(1)
  t.same(answers, ['b moved'])
})

t.test('all are answered at once, and none of them later', async (t) => {
  const { clock, stash, add, answers } = makeHeld()
  add('a')
  add('b')
  stash.answer({ outcome: 'unsent' })
  t.same(answers, ['a unsent', 'b unsent'])
  await clock.advance(LIMITS.sharding.sealedHeldMs)
  t.same([answers.length, stash.size], [2, 0])
})

t.test('so many, and so many bytes, or one that is larger than all', async () => {
  const part = LIMITS.sharding.sealedHeldBytesMax / 4
  const bytes = fc.constantFrom(
    10,
    part,
    LIMITS.sharding.sealedHeldBytesMax,
    LIMITS.sharding.sealedHeldBytesMax + 1,
  )
  const step = fc.oneof(
    { weight: 5, arbitrary: bytes },
    fc.constantFrom('take' as const, 'wait' as const, 'answer' as const),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
      const { clock, stash, add, answers } = makeHeld()
      let kept: number[] = []
      let refused = 0
      for (const step of steps) {
        if (typeof step === 'number') {
          const sum = kept.reduce((all, one) => all + one, 0)
          if (kept.length > 0 && sum + step > LIMITS.sharding.sealedHeldBytesMax) refused++
          else kept.push(step)
          add('x', step)
        } else {
          if (step === 'take') stash.take()
          else if (step === 'answer') stash.answer(MOVED)
          else await clock.advance(LIMITS.sharding.sealedHeldMs)
          if (step !== 'take') refused += kept.length
          kept = []
        }
        if (stash.size !== kept.length || answers.length !== refused) return false
      }
      return true
    }),
    { numRuns: 10 },
  )
})

t.test('the last that there is room for, and the first that there is not', async (t) => {
  const { stash, add, answers } = makeHeld()
  for (let i = 0; i < LIMITS.sharding.sealedHeldMax; i++) add('x')
  t.same([stash.size, answers.length], [LIMITS.sharding.sealedHeldMax, 0])
  add('one too many')
  t.same([stash.size, answers], [LIMITS.sharding.sealedHeldMax, ['one too many moved']])
})

t.test('what has gone, in whatever way, takes no room any more', async (t) => {
  for (const way of ['take', 'answer', 'wait'] as const) {
    const { clock, stash, add, answers } = makeHeld()
    const fill = (): void => {
      for (let i = 0; i < 4; i++) add('x', LIMITS.sharding.sealedHeldBytesMax / 4)
    }
    fill()
    if (way === 'take') stash.take()
    else if (way === 'answer') stash.answer(MOVED)
    else await clock.advance(LIMITS.sharding.sealedHeldMs)
    const before = answers.length
    fill()
    t.same([stash.size, answers.length], [4, before], way)
  }
})
