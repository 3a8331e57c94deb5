// Whose message is taken next: of each connection that has some one after the other, for a moment,
// and then all others of the process have their turn. A document may take milliseconds to check,
// and one read of a socket may bring a hundred. Source: CONTRACT 1.4.1.

import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'

export interface HasMessages {
  /** Takes the next one. Returns whether there are more. */
  takeMessage(): boolean
}

export class MessageTurns {
  readonly #clock: Clock
  readonly #waiting = new Set<HasMessages>()
  /** Characters of all messages that wait. */
  chars = 0
  #isDue = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(one: HasMessages): void {
    this.#waiting.add(one)
    this.#soon()
  }

  #soon(): void {
    if (this.#isDue) return
    this.#isDue = true
    this.#clock.defer(() => {
      this.#isDue = false
      this.#run()
    })
  }

  #run(): void {
    const endMs = this.#clock.monotonicMs() + LIMITS.live.messagesTurnMs
    // Who has more comes again behind the others.
    for (const one of this.#waiting) {
      this.#waiting.delete(one)
      if (one.takeMessage()) this.#waiting.add(one)
      if (this.#clock.monotonicMs() < endMs) continue
      if (this.#waiting.size > 0) this.#soon()
      return
    }
  }
}
