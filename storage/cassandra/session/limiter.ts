// So many at once, the others in the order in which they came. Past its bound a caller is refused,
// not queued.

import { RequestError } from '../../../protocol/errors.ts'

export interface LimiterOptions {
  readonly inFlightMax: number
  readonly waitingMax: number
}

export class Limiter {
  readonly #options: LimiterOptions
  #inFlight = 0
  #waiting: (() => void)[] = []
  #next = 0

  constructor(options: LimiterOptions) {
    this.#options = options
  }

  get idle(): boolean {
    return this.#inFlight === 0
  }

  /** Runs when its turn has come. Rejects with 503 when too many wait already. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#inFlight >= this.#options.inFlightMax) await this.#turn()
    else this.#inFlight++
    try {
      return await work()
    } finally {
      this.#release()
    }
  }

  #turn(): Promise<void> {
    if (this.#waiting.length - this.#next >= this.#options.waitingMax) {
      throw new RequestError('UNAVAILABLE', 'too much waits for the journal store')
    }
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Hands the place over to who has waited longest. */
  #release(): void {
    const next = this.#waiting[this.#next]
    if (next === undefined) {
      this.#inFlight--
      this.#waiting = []
      this.#next = 0
      return
    }
    this.#next++
    if (this.#next > 1_024 && this.#next * 2 > this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#next)
      this.#next = 0
    }
    next()
  }
}
