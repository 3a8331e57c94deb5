// Bounds that tests set otherwise: by place, all or none, and put back.

import t from 'tap'
import { LIMITS, type LimitOverrides } from './limits.ts'
import { overrideLimits } from './testing/override-limits.ts'

t.test('bounds are set by their places, and put back', async (t) => {
  const before = structuredClone(LIMITS)
  const putBack = overrideLimits({ 'sharding.marksMax': 4, 'segmentLog.fileBytes': [1_024] })
  t.equal(LIMITS.sharding.marksMax, 4)
  t.same(LIMITS.segmentLog.fileBytes, [1_024])
  t.equal(LIMITS.sharding.turnMs, before.sharding.turnMs)
  putBack()
  t.strictSame(LIMITS, before)
})

t.test('a place that is none is refused, and nothing is set', async (t) => {
  const before = structuredClone(LIMITS)
  for (const place of ['sharding.marks', 'shard.marksMax', 'marksMax', 'sharding.toString', '']) {
    const overrides = { 'sharding.marksMax': 4, [place]: 4 } as LimitOverrides
    t.throws(() => overrideLimits(overrides), { message: `LIMITS has no ${place}` }, place)
  }
  t.strictSame(LIMITS, before)
})
