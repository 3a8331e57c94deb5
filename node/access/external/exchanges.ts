// Sign-ins that ask the provider: at most so many at once, of one network no more than are still
// free, so that one who asks a slow provider again and again leaves room for others. Where there is
// none left they wait, and networks take turns: few that hold all places keep nobody out for longer
// than the next one of them is answered. Source: CONTRACT 1.11 "External sign-in".

import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import { FairQueue } from '../../queues/fair-queue.ts'
import { networkOf } from '../network.ts'

interface Waiting {
  readonly network: string
  /** False: it has no place, and gets none. */
  readonly settle: (hasPlace: boolean) => void
  /** It is over: it was told that it gets none. */
  isOver: boolean
}

export class Exchanges {
  readonly #clock: Pick<Clock, 'after'>
  /** How many are running, by network. */
  readonly #running = new Map<string, number>()
  #count = 0
  readonly #waiting = new FairQueue<Waiting>({
    max: LIMITS.access.externalWaitingMax,
    groupMax: LIMITS.access.externalOfBlockWaitingMax,
  })

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock
  }

  /** null: there are too many; nothing was begun. */
  async run<T>(address: string, exchange: () => Promise<T>): Promise<T | null> {
    const { own, block } = networkOf(address)
    if (!(await this.#place(own, block))) return null
    try {
      return await exchange()
    } finally {
      this.#leave(own)
    }
  }

  #place(network: string, block: string): true | Promise<boolean> {
    if (this.#mayEnter(network)) {
      this.#enter(network)
      return true
    }
    return new Promise((resolve) => {
      const job: Waiting = {
        network,
        isOver: false,
        settle: (hasPlace) => {
          cancel()
          job.isOver = true
          resolve(hasPlace)
        },
      }
      const cancel = this.#clock.after(LIMITS.access.externalWaitMs, () => job.settle(false))
      this.#waiting.push({ group: block, name: network }, job)?.settle(false)
    })
  }

  #mayEnter(network: string): boolean {
    const mine = this.#running.get(network) ?? 0
    return mine < LIMITS.access.externalExchangesMax - this.#count
  }

  #enter(network: string): void {
    this.#running.set(network, (this.#running.get(network) ?? 0) + 1)
    this.#count++
  }

  #leave(network: string): void {
    this.#count--
    const left = this.#running.get(network)! - 1
    if (left > 0) this.#running.set(network, left)
    else this.#running.delete(network)
    this.#next()
  }

  /** Whoever may have a place now, in turns. */
  #next(): void {
    const take = (): Waiting | null => this.#waiting.take(({ name }) => this.#mayEnter(name))
    for (let job = take(); job !== null; job = take()) {
      if (job.isOver) continue
      this.#enter(job.network)
      job.settle(true)
    }
  }
}
