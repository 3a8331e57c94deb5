// Queries that begin go on some at a time: thousands that have waited for one list keep nobody else
// waiting when it is there. Source: CONTRACT 1.10.

import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'

export class BeginTurns {
  readonly #clock: Pick<Clock, 'defer'>
  readonly #waiting: (() => void)[] = []

  constructor(clock: Pick<Clock, 'defer'>) {
    this.#clock = clock
  }

  /** Resolves when it is the caller's turn, once other work has had one. */
  enter(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) this.#clock.defer(this.#next)
    })
  }

  readonly #next = (): void => {
    for (const go of this.#waiting.splice(0, LIMITS.live.queriesBeginTogether)) go()
    if (this.#waiting.length > 0) this.#clock.defer(this.#next)
  }
}
