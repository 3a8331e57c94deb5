// Plans are kept as far as their number and their characters go.

import assert from 'node:assert'
import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { type KeptBounds, KeptPlans } from './kept-plans.ts'
import { PlanServer } from './plan-server.ts'

const BOUNDS: KeptBounds = { max: 3, charsMax: 1_600 }

t.test('by number, whoever was not used for longest goes', (t) => {
  const kept = new KeptPlans<number>(BOUNDS)
  for (const n of [1, 2, 3]) kept.keep(`${n}`, n, 10)
  t.equal(kept.find('1'), 1)
  kept.keep('4', 4, 10)
  t.strictSame(
    ['1', '2', '3', '4'].map((key) => kept.find(key)),
    [1, null, 3, 4],
  )
  t.end()
})

t.test('by characters, and a very long one is not kept', (t) => {
  const kept = new KeptPlans<number>({ max: 100, charsMax: 1_600 })
  kept.keep('long', 1, 101)
  t.equal(kept.find('long'), null)
  for (let n = 0; n < 17; n++) kept.keep(`${n}`, n, 100)
  t.equal(kept.size, 16)
  t.equal(kept.find('0'), null)
  kept.keep('16', 16, 100)
  t.equal(kept.size, 16, 'the same again takes no more')
  t.end()
})

t.test('a reader makes a plan anew that is too long to be kept', (t) => {
  const seen: unknown[] = []
  const query = (plan: unknown) => (seen.push(plan), {})
  const server = new PlanServer(
    { query, explain: () => assert.fail('nobody asks'), close: () => undefined },
    () => 0,
  )
  const ask = (plan: string): void =>
    void server.answer({ id: 1, plan, endsAtMs: 1, generation: 1 } as Parameters<
      typeof server.answer
    >[0])
  const long = JSON.stringify({ text: 'a'.repeat(LIMITS.graph.readerPlansCharsMax / 16) })
  for (const plan of ['{"short":1}', '{"short":1}', long, long]) ask(plan)
  t.equal(seen[0], seen[1])
  t.not(seen[2], seen[3])
  t.end()
})
