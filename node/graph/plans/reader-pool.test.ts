// Who comes next on the reader threads, with threads that do as the test says.

import t from 'tap'
import { TestClock } from '../../../cluster/testing/harness.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { PoolAtHand, type ThreadAtHand } from './testing/threads-at-hand.ts'

/** Longer than a thread that others may join takes for a plan. */
const LATER_MS = 20

/** Caller A has sent heavy plans: the first has shown it, and goes on on the second thread. */
async function besieged(clock: TestClock): Promise<PoolAtHand> {
  const p = new PoolAtHand(clock, 2)
  await p.send('A', 'h1', 'h2', 'h3', 'h4')
  t.strictSame(p.seats, ['h1 h2 h3 h4', ''], 'a caller of whom nothing is known')
  await p.threads[0]!.stop()
  return p
}

/** Stops what runs until it is this one; says how often. */
async function upTo(thread: ThreadAtHand, name: string): Promise<number> {
  for (let turns = 0; turns < 5; turns++) {
    if (thread.names === name) return turns
    await thread.stop()
  }
  throw new Error(`${name} had no turn`)
}

t.test('light plans go on whatever heavy ones a caller sends', async (t) => {
  const clock = new TestClock()
  const p = await besieged(clock)
  t.strictSame(p.seats, ['h2', 'h1'], 'what was behind it came back, and waits in line')
  t.equal(p.pool.waiting, 4)
  const [light, heavy] = p.threads
  await p.send('B', 'b1')
  t.ok(light!.isAsked, 'a plan that is not known to be heavy is to give way')
  t.notOk(heavy!.isAsked)
  const turns = await upTo(light!, 'b1')
  t.ok(turns <= 2, 'A has at most one turn more')
  await light!.answer()
  t.strictSame(p.ended, ['b1'])
  for (let i = 0; i < 20; i++) {
    const name = `b${i + 2}`
    await p.send('B', name)
    await upTo(light!, name)
    t.strictSame(p.seats, [name, 'h1'], 'the heavy ones have one thread of the two')
    await light!.answer()
  }
  await p.answerAll(true)
  t.strictSame(p.ended.slice(-4).toSorted(), ['h1', 'h2', 'h3', 'h4'], 'and all of them end')
  t.equal(p.pool.waiting, 0)
})

t.test('heavy plans of several callers take turns', async (t) => {
  const p = new PoolAtHand(new TestClock(), 2)
  for (const name of ['a1', 'a2', 'a3', 'b1']) {
    await p.send(name[0]!, name)
    await p.threads[0]!.answer(true)
  }
  p.ended.length = 0
  await p.send('a', 'a1', 'a2', 'a3')
  await p.send('b', 'b1')
  t.strictSame(p.seats, ['a1', ''], 'what was heavy before goes to the heavy ones at once')
  await p.threads[0]!.answer()
  await p.answerAll(true)
  t.strictSame(p.ended, ['a1', 'a2', 'b1', 'a3'])
  await p.send('a', 'a1', 'a2')
  t.match(p.threads, [
    { given: [{ name: 'a1', of: { mayStop: true } }] },
    { given: [{ name: 'a2', of: { mayStop: false } }] },
  ])
})

t.test('a thread is given light plans ahead, up to a bound, but none of a suspect', async (t) => {
  const clock = new TestClock()
  const p = new PoolAtHand(clock, 2)
  const names = Array.from({ length: LIMITS.graph.plansAheadMax + 3 }, (_, n) => `p${n}`)
  await p.send('A', ...names)
  t.strictSame(
    p.threads.map(({ given }) => given.length),
    [LIMITS.graph.plansAheadMax, 3],
  )
  for (const thread of p.threads) while (thread.given.length > 0) await thread.answer()
  t.strictSame(p.ended.toSorted(), names.toSorted())
  await p.send('A', 'h')
  await p.threads[0]!.answer(true)
  await p.send('A', 'a1', 'a2', 'a3')
  await p.send('B', 'b1')
  t.strictSame(p.seats, ['a1', 'a2'])
  t.ok(p.threads[0]!.isAsked)
  t.ok(p.threads[1]!.isAsked)
  await p.threads[0]!.answer()
  t.strictSame(p.seats, ['a3', 'a2'].toSorted().toReversed(), 'in turns')
  await p.threads[1]!.answer()
  t.strictSame(p.seats, ['a3', 'b1'], 'B was never behind a plan of A')
})

t.test(
  'who has plans that take a while gets no company, and others wait for few of them',
  async (t) => {
    const clock = new TestClock()
    const p = new PoolAtHand(clock, 2)
    await p.send('A', ...['a1', 'a2', 'a3', 'a4', 'a5', 'a6'])
    await p.threads[0]!.answerLate()
    t.strictSame(p.ended, ['a1'])
    t.strictSame(p.seats.toSorted(), ['a2', 'a3'], 'what was behind it came back')
    await p.send('B', 'b1', 'b2')
    await p.threads[0]!.answerLate()
    await p.threads[0]!.answerLate()
    t.match(p.seats.join(' '), 'b1', 'one turn of A at most')
    await clock.advance(LIMITS.graph.suspectMs)
    await p.answerAll()
    await p.send('A', 'a7', 'a8')
    t.strictSame(p.seats, ['a7 a8', ''], 'it is forgotten after a while')
  },
)

t.test('no company for a plan that does not get on, while a thread is idle', async (t) => {
  const clock = new TestClock()
  const p = new PoolAtHand(clock, 2)
  await p.send('A', 'a1')
  await p.send('B', 'b1')
  t.strictSame(p.seats, ['a1 b1', ''])
  await clock.advance(LATER_MS)
  await p.send('B', 'b2')
  t.strictSame(p.seats, ['a1 b1', 'b2'])
})

t.test('the threads but the first are started with the first plan', async (t) => {
  const p = new PoolAtHand(new TestClock(), 3)
  t.equal(p.threads.length, 1)
  p.threads[0]!.state = 'starting'
  await p.send('A', 'a1')
  t.equal(p.threads.length, 3)
  t.strictSame(p.seats, ['', 'a1', ''], 'one that is there comes before one that is not yet')
})

t.test('who has most is told to come back, as soon as there is no room', async (t) => {
  const p = new PoolAtHand(new TestClock(), 2, { max: 4, groupMax: 3 })
  await p.send('A', 'h')
  await p.threads[0]!.answer(true)
  await p.send('A', ...['a1', 'a2', 'a3', 'a4', 'a5', 'a6'])
  t.strictSame(p.ended, ['h', 'a6: TOO_BUSY'], 'two run, three wait')
  await p.send('B', 'b1')
  await p.send('C', 'c1')
  t.strictSame(p.ended, ['h', 'a6: TOO_BUSY', 'a5: TOO_BUSY'])
  t.equal(p.pool.stats.refused, 2)
})

t.test('a plan whose time is over before its turn is not run', async (t) => {
  const clock = new TestClock()
  const p = await besieged(clock)
  await clock.advance(10_000)
  await p.threads[0]!.answer(true)
  await p.threads[1]!.answer(true)
  const late = ['h3: UNAVAILABLE', 'h4: UNAVAILABLE']
  t.strictSame(p.ended.toSorted(), ['h1', 'h2', ...late])
  t.strictSame(p.seats, ['', ''])
})

t.test('a plan works no longer than its bound, whatever time it has', async (t) => {
  const p = new PoolAtHand(new TestClock(), 2)
  await p.send('A', 'a1')
  t.equal(p.threads[0]!.given[0]!.of.leftMs, LIMITS.graph.workMs)
})

t.test('which index there is, is asked when a plan has its turn', async (t) => {
  const p = new PoolAtHand(new TestClock(), 2)
  await p.send('A', 'h')
  await p.threads[0]!.answer(true)
  await p.send('A', 'a1', 'a2', 'a3', 'a4')
  p.generation = () => 2
  await p.threads[0]!.answer()
  t.equal(p.threads[0]!.given[0]!.of.generation, 2)
  p.generation = () => {
    throw new RequestError('INDEX_BEHIND', 'it is being filled')
  }
  await p.threads[0]!.answer()
  t.strictSame(p.ended, ['h', 'a1', 'a3', 'a4: INDEX_BEHIND'])
  await p.threads[1]!.answer()
  t.equal(p.pool.waiting, 0)
})

t.test('a thread that dies takes its own plans along, and nobody else', async (t) => {
  const clock = new TestClock()
  const p = new PoolAtHand(clock, 2)
  await p.send('A', 'a1')
  await clock.advance(LATER_MS)
  await p.send('B', 'b1')
  t.strictSame(p.seats, ['a1', 'b1'])
  await p.threads[0]!.become('away')
  t.strictSame(p.ended, ['a1: UNAVAILABLE'])
  await p.send('A', 'a2')
  await p.threads[1]!.answer()
  await p.threads[1]!.answer()
  t.strictSame(p.ended, ['a1: UNAVAILABLE', 'b1', 'a2'])
  await p.threads[1]!.become('away')
  await p.send('A', 'a3')
  t.equal(p.ended.at(-1), 'a3: UNAVAILABLE', 'with no thread at all there is nothing to wait for')
  await p.threads[0]!.become('ready')
  await p.send('A', 'a4')
  await p.threads[0]!.answer()
  t.equal(p.ended.at(-1), 'a4')
})

t.test('with one thread left heavy and light plans take turns', async (t) => {
  const p = await besieged(new TestClock())
  await p.threads[1]!.become('away')
  await p.send('B', 'b1', 'b2')
  const ran: string[] = []
  for (let i = 0; i < 6 && p.threads[0]!.given.length > 0; i++) {
    ran.push(p.threads[0]!.given[0]!.name)
    // Heavy ones come without end.
    await p.send('A', 'h1')
    await p.threads[0]!.answer(true)
  }
  t.ok(ran.includes('b1') && ran.includes('b2'), ran.join(' '))
  await p.answerAll()
  t.equal(p.pool.waiting, 0)
})
