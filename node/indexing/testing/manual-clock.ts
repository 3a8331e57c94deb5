// A clock that stands still until a test moves it.

import type { Clock } from '../../../cluster/clock.ts'

interface Timer {
  readonly atMs: number
  readonly run: () => void
}

export class ManualClock implements Clock {
  #ms = 1_000
  readonly #timers = new Set<Timer>()

  nowMs(): number {
    return this.#ms
  }

  monotonicMs(): number {
    return this.#ms
  }

  after(ms: number, run: () => void): () => void {
    const timer = { atMs: this.#ms + ms, run }
    this.#timers.add(timer)
    return () => void this.#timers.delete(timer)
  }

  defer(run: () => void): void {
    setImmediate(run)
  }

  /** Number of timers that are set. */
  get timers(): number {
    return this.#timers.size
  }

  /** Moves the time and runs what has become due, in order. */
  advance(ms: number): void {
    this.#ms += ms
    const due = [...this.#timers].filter(({ atMs }) => atMs <= this.#ms)
    for (const timer of due.sort((a, b) => a.atMs - b.atMs)) {
      if (this.#timers.delete(timer)) timer.run()
    }
  }

  /** Lets the process have its turns and moves the time until no timer is set. */
  async run(): Promise<void> {
    for (let i = 0; i < 100; i++) {
      await new Promise((resolve) => setImmediate(resolve))
      if (this.#timers.size === 0 && i > 5) return
      this.advance(1)
    }
  }
}
