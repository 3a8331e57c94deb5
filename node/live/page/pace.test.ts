// What the page tells of changes: how fast they come and how late. Source: CONTRACT 1.10 "Page".

import t from 'tap'
import { Pace, aheadOf } from './pace.mjs'

t.test('a rate over the last five seconds', async (t) => {
  const pace = new Pace(0)
  t.equal(pace.rate(0), 0)
  for (let at = 0; at < 10_000; at += 10) pace.count(at, null)
  const rate = pace.rate(10_000)
  t.ok(rate > 90 && rate <= 105, `${rate}`)
  t.equal(pace.rate(16_000), 0)
  const young = new Pace(0)
  for (let at = 0; at < 2_000; at += 100) young.count(at, null)
  t.equal(young.rate(2_000), 10, 'of the time that there was')
})

t.test('lags of the last changes', async (t) => {
  const pace = new Pace(0)
  t.equal(pace.lag(0), null)
  pace.count(0, 900)
  pace.count(8_000, 5)
  pace.count(8_000, null)
  pace.count(8_001, 7)
  t.strictSame(pace.lag(9_000), { middleMs: 7, worstMs: 900 })
  t.strictSame(pace.lag(11_000), { middleMs: 7, worstMs: 7 }, 'old ones go')
  t.equal(pace.lag(30_000), null)
  for (let i = 0; i < 5_000; i++) pace.count(40_000, i)
  t.strictSame(pace.lag(40_000), { middleMs: 4_750, worstMs: 4_999 }, 'only so many are kept')
})

t.test("how far the node's clock is ahead, and how sure that is", async (t) => {
  // 2026-01-01T00:00:00.000Z
  const nodeMs = 1_767_225_600_000
  const hex = nodeMs.toString(16).padStart(12, '0')
  const id = `${hex.slice(0, 8)}-${hex.slice(8)}-7abc-8def-0123456789ab`
  t.strictSame(aheadOf(nodeMs - 510, id, nodeMs - 490), { aheadMs: 500, errorMs: 11 })
  t.equal(aheadOf(0, 'an id of a proxy', 1), null)
  t.equal(aheadOf(0, null, 1), null)
})
