// Loaded before a node's own program (`--import`): lowers bounds of config/limits.ts, so that what
// takes days passes within a test, and moves the clocks of the process ahead when it is told to.
// NodeProcess starts the node from its sources; worker threads load this too.

import type { LimitOverrides } from '../../config/limits.ts'
import { overrideLimits } from '../../config/testing/override-limits.ts'

/** The bounds to be lowered by their places, as JSON: `{"sharding.marksMax":4}`. */
export const LIMITS_VARIABLE = 'TEST_NODE_LIMITS'
/** How far a SIGUSR2 moves the clocks ahead, milliseconds. */
export const LEAP_VARIABLE = 'TEST_NODE_LEAP_MS'
/** How far they are ahead as it starts, milliseconds. */
export const AHEAD_VARIABLE = 'TEST_NODE_AHEAD_MS'

overrideLimits(JSON.parse(process.env[LIMITS_VARIABLE] ?? '{}') as LimitOverrides)

const leapMs = Number(process.env[LEAP_VARIABLE] ?? 0)
const startAheadMs = Number(process.env[AHEAD_VARIABLE] ?? 0)
if (leapMs > 0 || startAheadMs > 0) {
  const now = Date.now
  const monotonic = performance.now.bind(performance)
  let aheadMs = startAheadMs
  Date.now = () => now() + aheadMs
  performance.now = () => monotonic() + aheadMs
  process.on('SIGUSR2', () => (aheadMs += leapMs))
}
