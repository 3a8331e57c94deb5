// Who may ask the provider, and who waits, with exchanges that end when the test says so. Source:
// CONTRACT 1.11 "External sign-in".

import t from 'tap'
import { settle } from '../../../cluster/testing/harness.ts'
import { LIMITS } from '../../../config/limits.ts'
import { Exchanges } from './exchanges.ts'

const { externalExchangesMax, externalWaitingMax, externalWaitMs } = LIMITS.access

function scene() {
  const timers = new Set<{ ms: number; run: () => void }>()
  const after = (ms: number, run: () => void): (() => void) => {
    const timer = { ms, run }
    timers.add(timer)
    return () => void timers.delete(timer)
  }
  const exchanges = new Exchanges({ after })
  const running: { from: string; end: () => void }[] = []
  const busy: string[] = []
  const ask = (from: string): void => {
    const exchange = (): Promise<string> =>
      new Promise((resolve) => running.push({ from, end: () => resolve(from) }))
    void exchanges.run(from, exchange).then((is) => is === null && busy.push(from))
  }
  /** The oldest of this network is answered. */
  const end = async (from: string): Promise<void> => {
    const [one] = running.splice(
      running.findIndex((each) => each.from === from),
      1,
    )
    one!.end()
    await settle()
  }
  const of = (from: string): number => running.filter((one) => one.from === from).length
  return { ask, end, of, running, busy, timers }
}

/** Five networks hold all places, and ask for more. */
async function held() {
  const s = scene()
  const five = [1, 2, 3, 4, 5].map((i) => `192.0.${i}.1`)
  for (const from of five) for (let i = 0; i < 10; i++) s.ask(from)
  await settle()
  return { ...s, five }
}

t.test('a network has no more than are free, and so there is one for the next', async (t) => {
  const { of, five, running } = await held()
  t.same(five.map(of), [8, 4, 2, 1, 1])
  t.equal(running.length, externalExchangesMax)
})

t.test('few networks hold all: who comes has the next place that may be theirs', async (t) => {
  const { ask, end, of, five, busy, timers } = await held()
  ask('198.51.100.7')
  await settle()
  t.equal(of('198.51.100.7'), 0)
  await end(five[0]!)
  t.equal(of('198.51.100.7') + five.map(of).reduce((a, b) => a + b), externalExchangesMax)
  // Those that have some already may not have one that is the only one.
  t.equal(of('198.51.100.7'), 1)
  await end('198.51.100.7')
  t.same(busy, [])
  t.equal(timers.size, 5 * 10 - externalExchangesMax, 'who has a place waits no more')
})

t.test('networks that have none take turns', async (t) => {
  const { ask, end, of, five } = await held()
  for (let i = 0; i < 5; i++) ask('198.51.100.7')
  ask('203.0.113.9')
  await settle()
  await end(five[0]!)
  await end(five[1]!)
  t.same([of('198.51.100.7'), of('203.0.113.9')], [1, 1])
})

t.test('who waits too long, or is one too many, is told; others are not', async (t) => {
  const { ask, end, of, busy, timers, five } = await held()
  for (let i = 0; busy.length === 0 && i < 2 * externalWaitingMax; i++) {
    ask(`198.51.${i}.1`)
    await settle()
  }
  t.equal(busy.length, 1)
  t.ok(five.includes(busy[0]!), 'of those who have most waiting')
  for (const { ms, run } of [...timers]) {
    t.equal(ms, externalWaitMs)
    run()
  }
  await settle()
  t.equal(busy.length, externalWaitingMax + 1)
  for (const from of five) while (of(from) > 0) await end(from)
  ask('198.51.100.7')
  await settle()
  t.equal(of('198.51.100.7'), 1, 'and places are free again')
  t.equal(timers.size, 0)
})
