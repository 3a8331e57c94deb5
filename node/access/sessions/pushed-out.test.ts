// Sessions that were pushed out are told of at once, then counted. With a clock of ours.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { PushedOut } from './pushed-out.ts'

function scene() {
  const timers: { ms: number; run: () => void }[] = []
  const told: string[] = []
  const after = (ms: number, run: () => void): (() => void) => {
    const timer = { ms, run }
    timers.push(timer)
    return () => void timers.splice(timers.indexOf(timer), 1)
  }
  const pushedOut = new PushedOut({ after }, (identity, n) => told.push(`${identity} ${n}`))
  /** The time is over: what was told meanwhile. */
  const pass = (): readonly string[] => {
    told.length = 0
    const [timer] = timers.splice(0, 1)
    if (timer !== undefined) timer.run()
    return [...told]
  }
  return { pushedOut, timers, told, pass }
}

t.test('the first at once, then a count', (t) => {
  const { pushedOut, timers, told, pass } = scene()
  pushedOut.add('app', 1)
  t.same(told, ['app 1'])
  for (let i = 0; i < 1_000; i++) pushedOut.add('app', 1)
  pushedOut.add('other', 2)
  t.same(told, ['app 1', 'other 2'])
  t.equal(timers.length, 1)
  t.equal(timers[0]!.ms, LIMITS.access.pushedOutToldMs)
  t.same(pass(), ['app 1000'])
  pushedOut.add('app', 3)
  pushedOut.add('app', 4)
  t.same(pass(), ['app 7'], 'once more while it goes on')
  t.same(pass(), [], 'and then it is quiet')
  t.equal(timers.length, 0)
  pushedOut.add('app', 1)
  t.same(told, ['app 1'], 'told at once again')
  pushedOut.stop()
  t.equal(timers.length, 0)
  t.end()
})

t.test('so many identities, and no more', (t) => {
  const { pushedOut, told, pass } = scene()
  const { pushedOutKnownMax } = LIMITS.access
  for (let i = 0; i < pushedOutKnownMax + 5; i++) pushedOut.add(`app${i}`, 1)
  t.equal(told.length, pushedOutKnownMax)
  pass()
  pushedOut.add('late', 1)
  t.same(told, ['late 1'], 'there is room when a time has passed')
  t.end()
})
