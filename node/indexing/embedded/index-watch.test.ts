// Waiting for the index of one process, without its thread: what an offset that moves costs.

import t from 'tap'
import { SharedProgress } from './shared-progress.ts'
import { ProgressWatch } from './index-watch.ts'
import { ManualClock } from '../testing/manual-clock.ts'

class CountedProgress extends SharedProgress {
  looks = 0

  override applied(shard: number): number {
    this.looks++
    return super.applied(shard)
  }
}

t.test('an offset that moves costs whom it wakes, not all who wait', async (t) => {
  const clock = new ManualClock()
  const progress = new CountedProgress(400)
  const watch = new ProgressWatch({
    progress: () => progress,
    clock,
    follows: () => true,
    flushed: () => 0,
  })
  const ends: boolean[] = []
  for (let shard = 0; shard < 399; shard++) progress.setApplied(shard, 5, 0)
  for (let i = 0; i < 1_000; i++) {
    const positions = Array.from({ length: 400 }, (_, shard) => ({ shard, offset: 5 }))
    positions[399] = { shard: 399, offset: 6 + i }
    void Promise.resolve(watch.reached(positions, 1_000)).then((is) => ends.push(is))
  }
  t.equal(watch.waiting, 1_000)
  const before = progress.looks
  progress.setApplied(399, 7, 0)
  watch.applied()
  const looks = progress.looks - before
  t.ok(looks < 5_000, `${looks} looks for two who wake`)
  t.equal(watch.waiting, 998)
  t.ok(progress.awaited)
  // The index is made anew: what was there is lacking again.
  progress.setApplied(3, 0, 0)
  progress.setApplied(399, 8, 0)
  watch.applied()
  t.equal(watch.waiting, 998)
  progress.setApplied(3, 5, 0)
  watch.applied()
  t.equal(watch.waiting, 997)
  clock.advance(1_000)
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(ends.filter(Boolean).length, 3)
  t.equal(ends.length, 1_000)
  t.notOk(progress.awaited)
  t.equal(clock.timers, 0)
})
