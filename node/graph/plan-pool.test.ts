// Plans at once, waiting and refused.

import t from 'tap'
import type { RequestError } from '../../protocol/errors.ts'
import { TestClock, settle } from '../../cluster/testing/harness.ts'
import { PlanPool } from './plan-pool.ts'

const PLAN = { plan: { steps: [] }, json: '', usesHistory: false }

const codeOf = async (work: Promise<string>): Promise<string> =>
  work.catch((error: unknown) => (error as RequestError).errors[0]!.code)

t.test('so many at once, some wait, more are told to come back', async (t) => {
  const clock = new TestClock()
  const ends: (() => void)[] = []
  const read: number[] = []
  const pool = new PlanPool({
    clock,
    inFlightMax: 2,
    queueMax: 1,
    readerOf: (generation) => ({
      async query() {
        read.push(generation)
        await new Promise<void>((resolve) => ends.push(resolve))
        return { generation }
      },
      close: () => undefined,
    }),
  })
  const one = pool.run(PLAN, 1_000, 1)
  const two = pool.run(PLAN, 1_000, 1)
  const three = pool.run(PLAN, 1_000, 2)
  await settle()
  t.equal(await codeOf(pool.run(PLAN, 1_000, 1)), 'TOO_BUSY')
  t.equal(pool.waiting, 3)
  t.strictSame(read, [1, 1])
  ends[0]!()
  t.equal(await one, '{"generation":1}')
  await settle()
  t.strictSame(read, [1, 1, 2], 'who waited is next, on what it was to read')
  const late = pool.run(PLAN, 1_000, 3)
  await clock.advance(1_000)
  ends[1]!()
  ends[2]!()
  t.strictSame([await two, await three], ['{"generation":1}', '{"generation":2}'])
  t.equal(await codeOf(late), 'UNAVAILABLE', 'its time was over')
  t.equal(pool.waiting, 0)
  t.match(pool.stats, { queries: 4, refused: 1, failed: 1 })
})
