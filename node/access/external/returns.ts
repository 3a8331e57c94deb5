// Which ways back from the provider were taken: each is taken once, whatever the provider thinks of
// its code. Remembered until the form behind it would have ended, in bounded memory, by each member
// for itself. Source: CONTRACT 1.11 "External sign-in", RFC 9700 4.5.

import { LIMITS } from '../../../config/limits.ts'

export class Returns {
  readonly #nowMs: () => number
  /** When each was taken, by its nonce, in that order. */
  readonly #taken = new Map<string, number>()

  /** `nowMs`: monotonic milliseconds. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** False: it was taken before. Past the bound the oldest is forgotten. */
  take(nonce: string): boolean {
    const nowMs = this.#nowMs()
    const { externalReturnsMax, signInFormMs } = LIMITS.access
    for (const [old, atMs] of this.#taken) {
      if (nowMs - atMs < signInFormMs && this.#taken.size < externalReturnsMax) break
      this.#taken.delete(old)
    }
    if (this.#taken.has(nonce)) return false
    this.#taken.set(nonce, nowMs)
    return true
  }
}
