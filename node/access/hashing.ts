// New passwords are hashed one at a time: each takes a pool thread and a processor for some 50 ms,
// which the checks of sign-ins need too, so that whoever makes many keeps nobody from signing in.
// Who makes many waits behind nobody but themselves. Source: CONTRACT 1.8 "Passwords", PROTOCOL
// 3.10.

import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import { FairQueue } from '../queues/fair-queue.ts'

interface Job {
  readonly run: () => void
  readonly reject: (error: RequestError) => void
}

export class Hashing {
  readonly #waiting = new FairQueue<Job>({
    max: LIMITS.access.hashesWaitingMax,
    groupMax: LIMITS.access.hashesOfCallerWaitingMax,
  })
  #isBusy = false

  /** `by`: id of who wants it. Throws RequestError TOO_BUSY where too many wait. */
  run<T>(by: string, hash: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const run = (): void => {
        hash()
          .then(resolve, reject)
          .finally(() => this.#next())
      }
      this.#waiting.push({ group: by, name: '' }, { run, reject })?.reject(tooMany())
      if (!this.#isBusy) this.#next()
    })
  }

  #next(): void {
    const job = this.#waiting.take()
    this.#isBusy = job !== null
    job?.run()
  }
}

function tooMany(): RequestError {
  return new RequestError('TOO_BUSY', 'too many passwords are being made; try again')
}
