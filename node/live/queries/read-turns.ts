// Turns of reads from the index: so many at a time; of those that wait callers take turns, and each
// has its own in the order in which they came. Source: CONTRACT 1.10.

import type { Caller } from '../../graph/plans/plan-queue.ts'
import { FairQueue } from '../../queues/fair-queue.ts'

/** What waits is bounded by how many live queries there may be. */
export const UNBOUNDED = { max: Infinity, groupMax: Infinity }

export class ReadTurns {
  readonly #atOnceMax: number
  readonly #waiting = new FairQueue<() => void>(UNBOUNDED)
  #running = 0

  constructor(atOnceMax: number) {
    this.#atOnceMax = atOnceMax
  }

  /** Resolves when it is the caller's turn, which ends with `leave`. */
  async enter(caller: Caller): Promise<void> {
    if (this.#running < this.#atOnceMax) {
      this.#running++
      return
    }
    await new Promise<void>((resolve) => void this.#waiting.push(caller, resolve))
  }

  leave(): void {
    const next = this.#waiting.take()
    if (next === null) this.#running--
    else next()
  }

  /** All that wait have their turn at once. */
  end(): void {
    this.#running += this.#waiting.size
    for (const next of this.#waiting.clear()) next()
  }
}
