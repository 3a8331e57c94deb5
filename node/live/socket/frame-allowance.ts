// How many frames a client may send: so many in a second, and so many at once. Source: CONTRACT
// 1.10.

import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'

export class FrameAllowance {
  readonly #clock: Clock
  #left: number = LIMITS.live.framesAtOnceMax
  #atMs: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#atMs = clock.monotonicMs()
  }

  /** Counts one. False: it is too much. */
  take(): boolean {
    const { framesPerSecondMax, framesAtOnceMax } = LIMITS.live
    const nowMs = this.#clock.monotonicMs()
    const gained = ((nowMs - this.#atMs) * framesPerSecondMax) / 1_000
    this.#left = Math.min(framesAtOnceMax, this.#left + gained) - 1
    this.#atMs = nowMs
    return this.#left >= 0
  }
}
