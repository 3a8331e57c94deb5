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

void t.test('each crowd that comes has all its places, however many came before', async (t) => {
  const limiter = new Limiter({ inFlightMax: 1, waitingMax: 3 })
  const ends: (() => void)[] = []
  const enter = () => limiter.run(() => new Promise<void>((resolve) => void ends.push(resolve)))
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  for (let crowd = 0; crowd < 3; crowd++) {
    const all = Array.from({ length: 4 }, enter)
    // Whoever comes while others go takes their places.
    for (let i = 0; i < 10; i++) {
      ends.shift()!()
      await settle()
      all.push(enter())
      await t.rejects(enter(), { errors: [{ code: 'UNAVAILABLE' }] }, 'three wait')
    }
    while (ends.length > 0) {
      ends.shift()!()
      await settle()
    }
    await Promise.all(all)
    t.ok(limiter.idle)
  }
})
