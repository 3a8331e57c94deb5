// Asking again while an answer is late: which answer counts, and when it is given up.

import t from 'tap'
import { TestClock } from '../testing/harness.ts'
import { LateAnswer, hedged } from './hedge.ts'

interface Asked {
  readonly answer: (text: string) => void
  readonly fail: (text: string) => void
}

function ask() {
  const clock = new TestClock()
  const asked: Asked[] = []
  const answer = hedged(
    { clock, everyMs: 100, times: 3 },
    () =>
      new Promise<string>((resolve, reject) => {
        asked.push({ answer: resolve, fail: (text) => reject(new Error(text)) })
      }),
  )
  answer.catch(() => undefined)
  return { clock, asked, answer }
}

void t.test('answered at once', async (t) => {
  const { clock, asked, answer } = ask()
  asked[0]!.answer('one')
  t.equal(await answer, 'one')
  await clock.advance(1_000)
  t.equal(asked.length, 1, 'and not asked again')
})

void t.test('the first answer counts', async (t) => {
  for (const by of [0, 1, 2]) {
    const { clock, asked, answer } = ask()
    await clock.advance(250)
    t.equal(asked.length, 3)
    asked[by]!.answer(`of ${by}`)
    t.equal(await answer, `of ${by}`)
    await clock.advance(1_000)
    t.equal(asked.length, 3)
  }
})

void t.test('a failure counts when nothing else is under way', async (t) => {
  const alone = ask()
  alone.asked[0]!.fail('first')
  await t.rejects(alone.answer, { message: 'first' })
  const { clock, asked, answer } = ask()
  await clock.advance(150)
  asked[0]!.fail('first')
  await clock.advance(10)
  asked[1]!.answer('second')
  t.equal(await answer, 'second')
  const both = ask()
  await both.clock.advance(150)
  both.asked[0]!.fail('first')
  both.asked[1]!.fail('second')
  await t.rejects(both.answer, { message: 'second' })
  await both.clock.advance(1_000)
  t.equal(both.asked.length, 2)
})

void t.test('given up', async (t) => {
  const { clock, asked, answer } = ask()
  await clock.advance(299)
  let isOver = false
  answer.catch(() => (isOver = true))
  await clock.advance(0)
  t.equal(isOver, false)
  await clock.advance(1)
  await t.rejects(answer, LateAnswer)
  t.equal(asked.length, 3)
  asked[0]!.answer('late')
})
