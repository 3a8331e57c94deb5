// Whether something is still so by both clocks: a machine that slept has a wall clock that tells,
// and one that was set right has a monotonic one. Source: PROTOCOL 3.3.4.

import t from 'tap'
import { LIMITS } from '../config/limits.ts'
import { NEVER, isWithin, momentOf } from './clock.ts'
import { TestClock } from './testing/harness.ts'

t.test('less than so long has passed, by both clocks', async (t) => {
  const ms = 10 * LIMITS.cluster.clockJumpMs
  const clock = new TestClock()
  await clock.advance(12_345)
  const since = momentOf(clock)
  t.same(since, { monotonicMs: clock.monotonicMs(), wallMs: clock.nowMs() })
  t.ok(isWithin(clock, ms, since))
  await clock.advance(ms - 1)
  t.ok(isWithin(clock, ms, since))
  clock.stepWall(1)
  t.notOk(isWithin(clock, ms, since), 'the wall clock counts by itself')
  clock.stepWall(-1)
  await clock.advance(1)
  t.notOk(isWithin(clock, ms, since))
  clock.stepWall(-1)
  t.notOk(isWithin(clock, ms, since), 'and the monotonic one, too')
  t.notOk(isWithin(clock, ms, NEVER))
})

t.test('clocks that differ by more than a jump say nothing', async (t) => {
  for (const sign of [1, -1]) {
    const clock = new TestClock()
    const since = momentOf(clock)
    clock.stepWall(sign * LIMITS.cluster.clockJumpMs)
    t.ok(isWithin(clock, 1e9, since))
    clock.stepWall(sign)
    t.notOk(isWithin(clock, 1e9, since))
  }
})
