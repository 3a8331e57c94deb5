// So many at once, in order, and a bound behind which nobody waits.

import t from 'tap'
import { Limiter } from './limiter.ts'

void t.test('in order, never more at once than allowed', async (t) => {
  const limiter = new Limiter({ inFlightMax: 3, waitingMax: 5_000 })
  let inFlight = 0
  let most = 0
  const began: number[] = []
  const work = (i: number) =>
    limiter.run(async () => {
      began.push(i)
      most = Math.max(most, ++inFlight)
      await new Promise((resolve) => setImmediate(resolve))
      inFlight--
      return i
    })
  const all = Array.from({ length: 4_000 }, (_, i) => i)
  t.same(await Promise.all(all.map(work)), all)
  t.same(began, all)
  t.equal(most, 3)
  t.equal(await work(7), 7, 'and goes on afterwards')
})

void t.test('failures give their place back', async (t) => {
  const limiter = new Limiter({ inFlightMax: 1, waitingMax: 10 })
  const fail = () => limiter.run(() => Promise.reject(new Error('no')))
  const outcomes = await Promise.allSettled([fail(), fail(), limiter.run(async () => 'yes')])
  t.same(
    outcomes.map(({ status }) => status),
    ['rejected', 'rejected', 'fulfilled'],
  )
})

void t.test('past the bound a caller is refused', async (t) => {
  const limiter = new Limiter({ inFlightMax: 1, waitingMax: 1 })
  let end = () => {}
  const first = limiter.run(() => new Promise<void>((resolve) => (end = resolve)))
  const second = limiter.run(async () => 'second')
  await t.rejects(
    limiter.run(async () => 'third'),
    { errors: [{ code: 'UNAVAILABLE' }] },
  )
  end()
  await first
  t.equal(await second, 'second')
})
