// Plans at once, waiting and refused.

import t from 'tap'
import { RequestError } from '../../../protocol/errors.ts'
import { TestClock, settle } from '../../../cluster/testing/harness.ts'
import type { QueueBounds } from '../../queues/fair-queue.ts'
import { PlanPool, type PlansAtOnce } from './plan-pool.ts'

const PLAN = { plan: { steps: [] }, json: '', usesHistory: false }

const codeOf = async (work: Promise<string>): Promise<string> =>
  work.catch((error: unknown) => (error as RequestError).errors[0]!.code)

const caller = (group: string, name = group) => ({ group, name })
const A = caller('A')

/** A pool whose plans end when they are told to. */
function pool(atOnce: PlansAtOnce, queue: QueueBounds) {
  const clock = new TestClock()
  const ends: (() => void)[] = []
  const read: number[] = []
  const made = new PlanPool({
    clock,
    atOnce,
    queue,
    readerOf: (generation) => ({
      async query() {
        read.push(generation)
        await new Promise<void>((resolve) => ends.push(resolve))
        return { generation }
      },
      explain: () => ({ engine: 'none', steps: [], engineMs: 0, totalMs: 0 }),
      close: () => undefined,
    }),
  })
  const run = (generation: number, by = A): Promise<string> =>
    made.run(PLAN, 1_000, () => generation, by)
  return { pool: made, clock, ends, read, run }
}

t.test('so many at once, some wait, more are told to come back', async (t) => {
  const atOnce = { max: 2, identityMax: 2, sessionMax: 2 }
  const { pool: p, clock, ends, read, run } = pool(atOnce, { max: 1, groupMax: 1 })
  const [one, two, three] = [run(1), run(1), run(2)]
  await settle()
  t.equal(await codeOf(run(1)), 'TOO_BUSY')
  t.equal(p.waiting, 3)
  t.strictSame(read, [1, 1])
  ends[0]!()
  t.equal(await one, '{"generation":1}')
  await settle()
  t.strictSame(read, [1, 1, 2], 'who waited is next, on what it was to read')
  const late = run(3)
  await clock.advance(1_000)
  ends[1]!()
  ends[2]!()
  t.strictSame([await two, await three], ['{"generation":1}', '{"generation":2}'])
  t.equal(await codeOf(late), 'UNAVAILABLE', 'its time was over')
  t.equal(p.waiting, 0)
  t.match(p.stats, { queries: 4, refused: 1, failed: 1 })
})

t.test('nobody has all places, and who waits goes in turns', async (t) => {
  const atOnce = { max: 4, identityMax: 3, sessionMax: 2 }
  const { pool: p, ends, read, run } = pool(atOnce, { max: 100, groupMax: 100 })
  const all = [11, 12, 13, 14, 15].map((n) => run(n, caller('A', 'x')))
  await settle()
  t.strictSame(read, [11, 12], 'one session has two at most')
  all.push(...[16, 17].map((n) => run(n, caller('A', 'y'))))
  await settle()
  t.strictSame(read, [11, 12, 16], 'one identity three')
  all.push(...[21, 22].map((n) => run(n, caller('B'))))
  await settle()
  t.strictSame(read, [11, 12, 16, 21], 'so there is one for others')
  ends[0]!()
  await settle()
  ends[1]!()
  await settle()
  t.strictSame(read.slice(4), [13, 22])
  for (let i = 2; i < all.length; i++) {
    ends[i]!()
    await settle()
  }
  await Promise.all(all)
  t.equal(p.waiting, 0)
})

t.test(
  'a plan of an index that is gone by its turn is refused, and leaves its place',
  async (t) => {
    const atOnce = { max: 1, identityMax: 1, sessionMax: 1 }
    const { pool: p, ends, run } = pool(atOnce, { max: 10, groupMax: 10 })
    const first = run(1)
    const gone = p.run(PLAN, 1_000, () => refuse(), A)
    const third = run(3)
    await settle()
    ends[0]!()
    await first
    t.equal(await codeOf(gone), 'INDEX_BEHIND')
    await settle()
    ends[1]!()
    t.equal(await third, '{"generation":3}')
    function refuse(): never {
      throw new RequestError('INDEX_BEHIND', 'it is being filled')
    }
  },
)
