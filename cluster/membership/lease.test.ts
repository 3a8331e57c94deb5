// A member's lease: what it counts from and how long it stands, while answers are slow, clocks jump
// and the machine is suspended.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { TestClock } from '../testing/harness.ts'
import { cluster, once } from './testing/machine.ts'
import type { Machine } from './testing/machine.ts'

/** True time until the lease is over, with nothing more being heard; at most 5 s. */
async function leaseLeft(time: TestClock, machine: Machine): Promise<number> {
  const began = time.monotonicMs()
  while (machine.membership.mayServe() && time.monotonicMs() < began + 5_000) {
    await time.advance(10)
  }
  return time.monotonicMs() - began
}

void t.test('time counts while a lease stands, and never backwards', async (t) => {
  const { time, start } = cluster()
  const one = await start('a')
  const { membership } = one
  const began = membership.leasedMs()
  await time.advance(4_000)
  t.equal(membership.leasedMs() - began, 4_000)
  // Without a store for a minute: then the last lease has counted, and no more.
  one.isAway = true
  await time.advance(60_000)
  const counted = membership.leasedMs()
  t.ok(counted - began <= 4_000 + LIMITS.membership.leaseMs, String(counted - began))
  one.isAway = false
  await time.advance(2_000)
  const after = membership.leasedMs()
  const more = after - counted
  t.ok(more > 0 && more <= 2_000 + LIMITS.membership.beatEveryMs, 'and it goes on from there')
  membership.close()
  t.equal(membership.leasedMs(), after, 'an incarnation that is over has its time')
  await time.advance(1_000)
  t.equal(membership.leasedMs(), after)
})

void t.test('a lease counts from when its beat was first sent', async (t) => {
  for (const fate of ['heard', 'unheard', 'lost', 'late'] as const) {
    const { time, start } = cluster()
    const one = await start('a')
    one.delay = () => 40
    await time.advance(700)
    // Up to the next beat.
    const beats = () => one.calls.filter((call) => call === 'beat').length
    const before = beats()
    once(one, 'beat', fate)
    while (beats() === before) await time.advance(1)
    const sentAt = time.monotonicMs()
    await time.advance(LIMITS.membership.beatRetryMs + 260)
    for (const land of one.late.splice(0)) await land()
    one.isAway = true
    t.equal(beats() - before, fate === 'heard' || fate === 'unheard' ? 1 : 2)
    const end = time.monotonicMs() + (await leaseLeft(time, one))
    t.ok(Math.abs(end - sentAt - LIMITS.membership.leaseMs) <= 11, `${fate}: ${end - sentAt}`)
    t.same(one.lost, [], 'over, not lost')
    one.isAway = false
    await time.advance(LIMITS.membership.beatEveryMs)
    t.equal(one.membership.mayServe(), true, 'and it comes back')
  }
})

void t.test('a beat whose answer takes long', async (t) => {
  const { time, start } = cluster()
  const one = await start('a')
  one.delay = () => 400
  await time.advance(5_000)
  t.equal(one.membership.mayServe(), true)
  t.equal(one.membership.view!.readAtMs > 0, true)
  one.delay = (call) => (call === 'beat' ? 900 : 30)
  await time.advance(10_000)
  let seconds = 0
  for (let i = 0; i < 40; i++) {
    await time.advance(50)
    if (one.membership.mayServe()) seconds += 0.05
  }
  t.ok(seconds > 0.1 && seconds < 1, `of two seconds ${seconds}`)
  one.delay = () => 1_100
  await time.advance(10_000)
  let served = 0
  for (let i = 0; i < 100; i++) {
    await time.advance(50)
    if (one.membership.mayServe()) served++
  }
  t.equal(served, 0, 'longer than a lease: it never has one')
  t.same(one.lost, [])
})

void t.test('a coordinator that is silent', async (t) => {
  const { time, start } = cluster()
  const [a, b] = [await start('a'), await start('b')]
  for (const call of ['beat', 'member', 'members', 'shards']) {
    let asked = 0
    // Every other goes to one that does not answer for a long time.
    a.delay = (sent) => (sent === call && asked++ % 2 === 0 ? 12_000 : 5)
    // And each beat has to be looked up.
    a.fate = (sent) => (call === 'member' && sent === 'beat' ? 'unheard' : 'heard')
    for (let i = 0; i < 100; i++) {
      await time.advance(100)
      t.ok(a.membership.mayServe(), call)
      const ageMs = time.monotonicMs() - a.membership.view!.readAtMs
      t.ok(ageMs < 2_000, `${call}: a view of ${ageMs} ms`)
    }
  }
  t.same([a.lost, b.declared], [[], []])
})

void t.test('a wall clock that jumps', async (t) => {
  const { time, start } = cluster()
  const one = await start('a')
  await time.advance(50)
  for (const [jump, may] of [
    [400, true],
    [-400, true],
    [600, false],
    [-600, false],
    [3_600_000, false],
  ] as const) {
    one.wallOffsetMs += jump
    t.equal(one.membership.mayServe(), may, `by ${jump} ms`)
    await time.advance(LIMITS.membership.beatEveryMs)
    t.equal(one.membership.mayServe(), true, 'the next beat goes by the new time')
  }
  t.same(one.lost, [])
})

void t.test('suspensions too short to be told from a drift do not prolong a lease', async (t) => {
  const { time, start } = cluster()
  const one = await start('a')
  await time.advance(10)
  one.isAway = true
  const began = time.monotonicMs()
  for (let i = 0; i < 4; i++) {
    one.suspend()
    await time.advance(110)
    one.resume()
    await time.advance(10)
  }
  const leftMs = await leaseLeft(time, one)
  t.ok(time.monotonicMs() - began <= LIMITS.membership.leaseMs, `${leftMs} ms were left`)
})
