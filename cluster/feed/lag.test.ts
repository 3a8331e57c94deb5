// Lag and what follows from it: exact in entries, an upper bound in time, a smooth brake.

import t from 'tap'
import fc from 'fast-check'
import { LIMITS } from '../../config/limits.ts'
import { LagMeter, ackDelayMs } from './lag.ts'

function meter() {
  const state = { nowMs: 10_000, applied: 0, appliedTimeMs: 0 }
  const progress = {
    applied: (shard: number) => (shard === 0 ? state.applied : 0),
    appliedTimeMs: (shard: number) => (shard === 0 ? state.appliedTimeMs : 0),
  }
  return { state, lag: new LagMeter(progress, () => state.nowMs) }
}

t.test('counts entries over all shards, and time from the oldest that is missing', async (t) => {
  const { state, lag } = meter()
  t.strictSame(lag.lag(), { entries: 0, ageMs: 0 })
  lag.committed(0, 5)
  state.nowMs += 100
  lag.committed(0, 9)
  lag.committed(1, 2)
  t.strictSame(lag.lag(), { entries: 11, ageMs: 100 })
  state.nowMs += 50
  t.strictSame(lag.lag(), { entries: 11, ageMs: 150 })
})

t.test('progress makes it younger, catching up ends it', async (t) => {
  const { state, lag } = meter()
  lag.committed(0, 5)
  state.nowMs += 1_000
  state.applied = 3
  state.appliedTimeMs = 10_600
  t.strictSame(lag.lag(), { entries: 2, ageMs: 400 })
  state.applied = 5
  t.strictSame(lag.lag(), { entries: 0, ageMs: 0 })
  state.nowMs += 60_000
  lag.committed(0, 6)
  state.nowMs += 5
  t.strictSame(lag.lag(), { entries: 1, ageMs: 5 }, 'the quiet minute is not counted')
})

t.test('a head never falls', async (t) => {
  const { lag } = meter()
  lag.committed(0, 5)
  lag.committed(0, 4)
  t.equal(lag.heads.get(0), 5)
})

const lagOf = fc.record({
  entries: fc.nat(LIMITS.feed.indexLagEntriesMax * 5),
  ageMs: fc.nat(LIMITS.feed.indexLagMs * 5),
})

t.test('the brake: nothing within the bounds, bounded above, rising without a jump', async () => {
  fc.assert(
    fc.property(lagOf, lagOf, (a, b) => {
      const [delayA, delayB] = [ackDelayMs(a), ackDelayMs(b)]
      const isMany = a.entries >= LIMITS.feed.indexLagEntriesMin
      if (a.entries <= LIMITS.feed.indexLagEntriesMax && a.ageMs <= LIMITS.feed.indexLagMs) {
        if (delayA !== 0) throw new Error('within the bounds')
      } else if ((isMany && delayA <= 0) || delayA < 0 || delayA > LIMITS.feed.ackDelayMsMax)
        throw new Error('out of range')
      if (a.entries <= b.entries && a.ageMs <= b.ageMs && delayA > delayB) {
        throw new Error('more lag, less delay')
      }
      const next = ackDelayMs({ ...a, entries: a.entries + 1 })
      if (Math.abs(next - delayA) > LIMITS.feed.ackDelayMsMax / 50) throw new Error('a jump')
    }),
    { numRuns: 2_000 },
  )
})

t.test('the brake: a few old entries wait for their turn, and nobody with them', async (t) => {
  const few = LIMITS.feed.indexLagEntriesMin / 10
  t.equal(ackDelayMs({ entries: few, ageMs: 9 * LIMITS.feed.indexLagMs }), 0, 'of a busy machine')
  const half = ackDelayMs({ entries: few, ageMs: 15 * LIMITS.feed.indexLagMs })
  t.ok(Math.abs(half - LIMITS.feed.ackDelayMsMax / 2) < 1e-6, 'of a consumer that stands still')
  const many = { entries: LIMITS.feed.indexLagEntriesMin, ageMs: 1.5 * LIMITS.feed.indexLagMs }
  t.equal(ackDelayMs(many), LIMITS.feed.ackDelayMsMax / 2)
})
