// Queries that begin go on some at a time, and callers take turns: thousands that have waited for
// one list keep nobody else waiting when it is there, nor thousands of one caller those of others.
// Source: CONTRACT 1.10.

import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { Caller } from '../../graph/plans/plan-queue.ts'
import { FairQueue } from '../../queues/fair-queue.ts'
import { UNBOUNDED } from './read-turns.ts'

export class BeginTurns {
  readonly #clock: Pick<Clock, 'defer'>
  readonly #waiting = new FairQueue<() => void>(UNBOUNDED)

  constructor(clock: Pick<Clock, 'defer'>) {
    this.#clock = clock
  }

  /** Resolves when it is the caller's turn, once other work has had one. */
  enter(caller: Caller): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(caller, resolve)
      if (this.#waiting.size === 1) this.#clock.defer(this.#next)
    })
  }

  readonly #next = (): void => {
    for (let left = LIMITS.live.queriesBeginTogether; left > 0; left--) this.#waiting.take()?.()
    if (this.#waiting.size > 0) this.#clock.defer(this.#next)
  }
}
