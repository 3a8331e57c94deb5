// Whether this machine gives the processes of a test their time: how late a timer of the test's own
// fires that has nothing else to do. Where it is late, other work has the CPUs, and a figure in
// milliseconds says nothing of a cluster. It stands between the machine and the bounds of a test.

import { quantile } from './probes.ts'

const EVERY_MS = 20
/** A timer that is later than this, one time of ten, is on a machine that is short of CPU. */
const LATE_MS = 30
const LATE_SHARE = 0.9
/** Bounds on such a machine are so many times as wide: what stands still is found all the same. */
const SLACK = 6

export class Pace {
  readonly #lateMs: number[] = []
  readonly #timer: NodeJS.Timeout
  #dueAt = performance.now() + EVERY_MS

  constructor() {
    this.#timer = setInterval(() => {
      const nowMs = performance.now()
      this.#lateMs.push(Math.max(0, nowMs - this.#dueAt))
      this.#dueAt = nowMs + EVERY_MS
    }, EVERY_MS)
    this.#timer.unref()
  }

  /** How late timers are, milliseconds: of ten, nine are earlier. */
  get lateMs(): number {
    return quantile(this.#lateMs, LATE_SHARE)
  }

  /** The bound that holds on this machine. */
  bound(ms: number): number {
    return this.lateMs > LATE_MS ? ms * SLACK : ms
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
