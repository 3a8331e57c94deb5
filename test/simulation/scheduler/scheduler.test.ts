// The scheduler of simulations: one order for one seed, promises that run to their end between two
// events, and processes that pause, sleep and die.

import t from 'tap'
import { Process, Scheduler } from './scheduler.ts'
import { Trace } from './trace.ts'

function world(seed = 1) {
  const lines: string[] = []
  const scheduler = new Scheduler(seed, new Trace())
  return { scheduler, lines, say: (line: string) => () => void lines.push(line) }
}

t.test(
  'what is due at once comes in an order that the seed chooses, the same each time',
  async (t) => {
    const order = async (seed: number): Promise<string> => {
      const { scheduler, lines, say } = world(seed)
      for (const name of 'abcdefgh') scheduler.at(5, name, say(name))
      scheduler.at(1, 'first', say('first'))
      await scheduler.run(10)
      return lines.join('')
    }
    t.equal(await order(7), await order(7))
    const orders = new Set<string>()
    for (let seed = 0; seed < 10; seed++) orders.add(await order(seed))
    t.ok(orders.size > 5)
    for (const one of orders) t.ok(one.startsWith('first'))
  },
)

t.test('promises run to their end before the next event', async (t) => {
  const { scheduler, lines, say } = world()
  scheduler.at(1, 'chain', () => {
    let chain = Promise.resolve()
    for (let i = 0; i < 50; i++) chain = chain.then(() => undefined)
    void chain.then(say('chain'))
  })
  scheduler.at(1.0001, 'next', say('next'))
  await scheduler.run(2)
  t.strictSame(lines, ['chain', 'next'])
})

t.test('what is deferred comes behind all that is due, in its own order', async (t) => {
  const { scheduler, lines, say } = world()
  const a = new Process('a', scheduler)
  scheduler.at(0, 'x', () => {
    a.clock.defer(say('1'))
    a.clock.defer(say('2'))
  })
  scheduler.at(0, 'y', say('y'))
  await scheduler.run(1)
  t.strictSame(lines, ['y', '1', '2'])
})

t.test('a paused process finds all that waited; its monotonic clock has gone on', async (t) => {
  const { scheduler, lines, say } = world()
  const a = new Process('a', scheduler)
  a.clock.after(100, say('timer'))
  const cancel = a.clock.after(120, say('never'))
  scheduler.at(50, 'pause', () => a.pause())
  scheduler.at(60, 'delivery', say('delivery'), a)
  await scheduler.run(1_000)
  t.strictSame(lines, [])
  t.ok(a.clock.monotonicMs() > 900)
  cancel()
  a.resume()
  await scheduler.run(1_010)
  t.strictSame(lines.toSorted(), ['delivery', 'timer'])
})

t.test('a suspended machine has its time still before it, but not by the wall clock', async (t) => {
  const { scheduler, lines, say } = world()
  const a = new Process('a', scheduler)
  const wall = a.clock.nowMs()
  a.clock.after(100, say('timer'))
  a.clock.after(5_000, say('late'))
  scheduler.at(50, 'suspend', () => a.suspend())
  await scheduler.run(1_000)
  a.resume()
  t.ok(a.clock.monotonicMs() < 60)
  t.ok(a.clock.nowMs() - wall >= 1_000)
  await scheduler.run(1_030)
  t.strictSame(lines, [])
  await scheduler.run(1_070)
  t.strictSame(lines, ['timer'])
  await scheduler.run(5_600)
  t.strictSame(lines, ['timer'])
  await scheduler.run(6_500)
  t.strictSame(lines, ['timer', 'late'])
})

t.test('a killed process does nothing more, and whoever waits for it is told', async (t) => {
  const { scheduler, lines, say } = world()
  const a = new Process('a', scheduler)
  a.clock.after(10, say('timer'))
  a.onDeath(say('dead'))
  a.kill()
  await scheduler.run(20)
  t.strictSame(lines, ['dead'])
  a.onDeath(say('at once'))
  t.strictSame(lines, ['dead', 'at once'])
})

t.test('a trace differs as soon as one thing differs', async (t) => {
  const run = async (delayMs: number): Promise<string> => {
    const trace = new Trace()
    const scheduler = new Scheduler(1, trace)
    for (let i = 0; i < 5_000; i++) scheduler.at(i, 'event', () => undefined)
    scheduler.at(delayMs, 'one', () => undefined)
    await scheduler.run(6_000)
    return trace.digest()
  }
  t.equal(await run(10.5), await run(10.5))
  t.not(await run(10.5), await run(10.6))
})
