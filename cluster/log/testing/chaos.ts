// A seeded scheduler for tests of the log: whatever waits (a statement on its way, an answer, a
// timer) goes on in random order.

import type { Clock } from '../../clock.ts'

export class Chaos implements Clock {
  readonly #below: (n: number) => number
  readonly #waiting: (() => void)[] = []
  #timers: { readonly at: number; readonly run: () => void }[] = []
  #nowMs = 0

  constructor(below: (n: number) => number) {
    this.#below = below
  }

  nowMs(): number {
    return this.#nowMs
  }

  monotonicMs(): number {
    return this.#nowMs
  }

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.#nowMs + ms, run }
    this.#timers.push(timer)
    return () => void (this.#timers = this.#timers.filter((other) => other !== timer))
  }

  defer(run: () => void): void {
    this.#waiting.push(run)
  }

  /** Resolves when it is its turn. */
  pause(): Promise<void> {
    return new Promise((resolve) => void this.#waiting.push(resolve))
  }

  /** Lets one after the other go on until the promise is settled; `between` may do more. */
  async run<T>(running: Promise<T>, between: () => Promise<void>): Promise<T> {
    const its = { isDone: false }
    const ended = running.finally(() => (its.isDone = true))
    ended.catch(() => undefined)
    for (let steps = 0; ; steps++) {
      await new Promise<void>((resolve) => setImmediate(resolve))
      if (its.isDone) return ended
      if (steps > 100_000) throw new Error('nothing comes to an end')
      if (this.#below(10) === 0) await between()
      if (this.#waiting.length > 0 && (this.#timers.length === 0 || this.#below(8) > 0)) {
        const [go] = this.#waiting.splice(this.#below(this.#waiting.length), 1)
        go!()
      } else {
        const next = this.#timers.toSorted((a, b) => a.at - b.at)[0]
        if (next === undefined) continue
        this.#timers = this.#timers.filter((other) => other !== next)
        this.#nowMs = Math.max(this.#nowMs, next.at)
        next.run()
      }
    }
  }
}
