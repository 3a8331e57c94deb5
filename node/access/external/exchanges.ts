// Sign-ins that wait for the provider: at most so many at once, of one network no more than are
// still free, so that one who asks a slow provider again and again leaves room for others. Source:
// CONTRACT 1.11 "External sign-in".

import { LIMITS } from '../../../config/limits.ts'
import { networkOf } from '../network.ts'

export class Exchanges {
  /** How many are running, by network. */
  readonly #running = new Map<string, number>()
  #count = 0

  /** null: there are too many; nothing was begun. */
  async run<T>(address: string, exchange: () => Promise<T>): Promise<T | null> {
    const { own } = networkOf(address)
    const mine = this.#running.get(own) ?? 0
    if (mine >= LIMITS.access.externalExchangesMax - this.#count) return null
    this.#running.set(own, mine + 1)
    this.#count++
    try {
      return await exchange()
    } finally {
      this.#count--
      const left = this.#running.get(own)! - 1
      if (left > 0) this.#running.set(own, left)
      else this.#running.delete(own)
    }
  }
}
