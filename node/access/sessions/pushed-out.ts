// What is told of sessions that were ended because their identity had too many: a client that asks
// for a new token each time would have a line of the log for each. The first is told at once, then
// how many there were, once in a while, of each identity. Source: CONTRACT 1.8.

import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'

/** So many valid sessions of an identity were ended since it was told last. */
export type TellPushedOut = (identity: string, sessions: number) => void

export class PushedOut {
  readonly #clock: Pick<Clock, 'after'>
  readonly #tell: TellPushedOut
  /** Those that are still to be told, by identity. */
  readonly #untold = new Map<string, number>()
  #cancel: (() => void) | null = null

  constructor(clock: Pick<Clock, 'after'>, tell: TellPushedOut) {
    this.#clock = clock
    this.#tell = tell
  }

  add(identity: string, sessions: number): void {
    const untold = this.#untold.get(identity)
    if (untold !== undefined) {
      this.#untold.set(identity, untold + sessions)
      return
    }
    // Of more identities at a time nothing is told.
    if (this.#untold.size >= LIMITS.access.pushedOutKnownMax) return
    this.#untold.set(identity, 0)
    this.#tell(identity, sessions)
    this.#cancel ??= this.#clock.after(LIMITS.access.pushedOutToldMs, () => this.#tellAll())
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = null
  }

  #tellAll(): void {
    for (const [identity, sessions] of this.#untold) {
      if (sessions === 0) this.#untold.delete(identity)
      else {
        this.#untold.set(identity, 0)
        this.#tell(identity, sessions)
      }
    }
    const again = (): void => this.#tellAll()
    this.#cancel =
      this.#untold.size === 0 ? null : this.#clock.after(LIMITS.access.pushedOutToldMs, again)
  }
}
