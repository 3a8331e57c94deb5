// When a plan stops for others: asked to, after its time, and never one that had no processor.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { GaveWay, GiveWay } from './give-way.ts'

function scene() {
  const cell = new SharedArrayBuffer(4)
  const time = { ms: 1_000 }
  const main = new GiveWay(cell, () => time.ms)
  const thread = new GiveWay(cell, () => time.ms)
  const looks = (count: number): void => {
    for (let i = 0; i < count; i++) thread.check()
  }
  const stops = (): boolean => {
    try {
      thread.check()
      return false
    } catch (error) {
      return error instanceof GaveWay
    }
  }
  return { time, main, thread, looks, stops }
}

t.test('asked to, and after its time', (t) => {
  const { time, main, thread, looks, stops } = scene()
  thread.begin(true)
  looks(100)
  time.ms += LIMITS.graph.quantumMs
  looks(100)
  t.ok(thread.isHeavy, 'nobody waits, but it is known from now on')
  main.ask(true)
  t.ok(stops())
  main.ask(false)
  looks(1)
  main.ask(true)
  thread.begin(true)
  looks(100)
  t.notOk(thread.isHeavy)
  time.ms += LIMITS.graph.quantumMs
  t.ok(stops())
  t.end()
})

t.test('one that takes a while is long before it is heavy', (t) => {
  const { time, main, thread, looks, stops } = scene()
  main.ask(true)
  thread.begin(true)
  looks(100)
  t.notOk(thread.isLong)
  time.ms += LIMITS.graph.companyMs
  t.ok(thread.isLong)
  t.notOk(thread.isHeavy)
  t.notOk(stops())
  thread.begin(true)
  t.notOk(thread.isLong)
  t.end()
})

t.test('a heavy one that has its turn goes on', (t) => {
  const { time, main, thread, looks } = scene()
  main.ask(true)
  thread.begin(false)
  time.ms += 60_000
  looks(1_000)
  t.ok(thread.isHeavy)
  t.end()
})

t.test('time that passes without looks is the machine’s, unless it is very much', (t) => {
  const { time, main, thread, looks } = scene()
  main.ask(true)
  thread.begin(true)
  time.ms += LIMITS.graph.quantumMs * 2
  looks(3)
  t.notOk(thread.isHeavy)
  time.ms += LIMITS.graph.quantumMs * 6
  t.ok(thread.isHeavy)
  t.end()
})
