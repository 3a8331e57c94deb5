// Time and chance as the cluster sees them: injected, so that a simulation can seed both.

import { LIMITS } from '../config/limits.ts'
import type { FillRandom } from '../protocol/ids.ts'

export interface Clock {
  /** Wall clock, milliseconds since 1970. */
  nowMs(): number
  /** Monotonic clock, milliseconds; only differences mean anything. */
  monotonicMs(): number
  /** Runs after a while; returns the way to call it off. Never keeps the process alive. */
  after(ms: number, run: () => void): () => void
  /** Runs once everything that has already arrived in this tick has been handled. */
  defer(run: () => void): void
}

export interface World {
  readonly clock: Clock
  readonly random: FillRandom
}

/** A moment by both clocks, milliseconds. */
export interface Moment {
  readonly monotonicMs: number
  readonly wallMs: number
}

/** Before every other moment. */
export const NEVER: Moment = { monotonicMs: -Infinity, wallMs: -Infinity }

export function momentOf(clock: Clock): Moment {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.nowMs() }
}

/**
 * True while less than `ms` have passed since a moment. By both clocks: a suspended machine's
 * monotonic clock stands still, and the wall clock tells; it counts by itself, too, for a
 * suspension too short to be told from a drift must not prolong anything (PROTOCOL 3.3.4). Cheap
 * enough for every request.
 */
export function isWithin(clock: Clock, ms: number, since: Moment): boolean {
  const passedMs = clock.monotonicMs() - since.monotonicMs
  if (passedMs >= ms) return false
  const byWallMs = clock.nowMs() - since.wallMs
  return byWallMs < ms && Math.abs(byWallMs - passedMs) <= LIMITS.cluster.clockJumpMs
}

/** The machine's own clock. */
export function systemClock(): Clock {
  return {
    nowMs: Date.now,
    monotonicMs: () => performance.now(),
    after(ms, run) {
      const timer = setTimeout(run, ms)
      timer.unref()
      return () => clearTimeout(timer)
    },
    defer: (run) => void setImmediate(run),
  }
}
