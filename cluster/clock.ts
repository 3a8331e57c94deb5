// Time and chance as the cluster sees them: injected, so that a simulation can seed both.

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
