// Whose message is taken next: callers take turns, of each its connections, one message at a time
// for a moment, and then all others of the process have their turn. A document may take
// milliseconds to check, and one read of a socket may bring a hundred. Source: CONTRACT 1.4.1.

import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import { FairQueue, type Flow } from '../../queues/fair-queue.ts'
import { FairRoom } from '../../queues/fair-room.ts'

export interface HasMessages {
  /** Whose they are, and of which connection. */
  readonly flow: Flow
  /** Takes the next one. Returns whether there are more. */
  takeMessage(): boolean
}

/** A connection is in the queue once. */
const UNBOUNDED = { max: Infinity, groupMax: Infinity }

export class MessageTurns {
  /** Characters of all messages that wait, by who sent them. */
  readonly room = new FairRoom(() => LIMITS.live.messagesOfAllCharsMax)
  readonly #clock: Clock
  readonly #queue = new FairQueue<HasMessages>(UNBOUNDED)
  readonly #queued = new Set<HasMessages>()
  #isDue = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(one: HasMessages): void {
    if (this.#queued.has(one)) return
    this.#queued.add(one)
    this.#queue.push(one.flow, one)
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
    for (let one = this.#queue.take(); one !== null; one = this.#queue.take()) {
      this.#queued.delete(one)
      // Who has more comes again behind the others.
      if (one.takeMessage()) this.add(one)
      if (this.#clock.monotonicMs() < endMs) continue
      if (this.#queue.size > 0) this.#soon()
      return
    }
  }
}
