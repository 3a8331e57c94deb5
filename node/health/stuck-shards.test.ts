// A shard that stands still is told; one that is slow, done, or waits for an engine is not.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { StuckShardWatch } from './stuck-shards.ts'

const at = (applied: number, head = 10, outages = 0) => ({
  follower: 'derived rows',
  shard: 3,
  head,
  applied,
  outages,
})

t.test('standing still is told after a while, and only then', async (t) => {
  let nowMs = 0
  const watch = new StuckShardWatch({ monotonicMs: () => nowMs })
  t.same(watch.look([at(4)]), [])
  nowMs += LIMITS.health.stuckShardMs - 1
  t.same(watch.look([at(4, 20)]), [])
  nowMs += 1
  t.match(watch.look([at(4, 20)]), [
    /derived rows of shard 3 stand still at offset 4 of 20 for 30 s/,
  ])
  t.same(watch.look([at(5, 20)]), [], 'it moves')
  nowMs += LIMITS.health.stuckShardMs
  t.equal(watch.look([at(5, 20)]).length, 1)
  t.same(watch.look([at(20, 20)]), [], 'it is done')
})

t.test('while what it writes to is away it is not the shard that is stuck', async (t) => {
  let nowMs = 0
  const watch = new StuckShardWatch({ monotonicMs: () => nowMs })
  for (let outages = 0; outages < 5; outages++) {
    t.same(watch.look([at(4, 10, outages)]), [])
    nowMs += LIMITS.health.stuckShardMs
  }
  t.equal(watch.look([at(4, 10, 4)]).length, 1, 'it is back, and nothing moves')
})
