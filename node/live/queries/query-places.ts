// How many live queries may stand: of one session, and of all of a member. Source: CONTRACT 1.10
// "Bounds".

import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { Caller } from '../../graph/plans/plan-queue.ts'

export class QueryPlaces {
  readonly #ofSession = new Map<string, number>()
  #all = 0

  /** Throws 429 past a bound. */
  enter({ name }: Caller): void {
    const { queriesOfMemberMax, queriesOfSessionMax } = LIMITS.live
    const own = this.#ofSession.get(name) ?? 0
    if (this.#all >= queriesOfMemberMax) {
      throw new RequestError('TOO_BUSY', 'this member has too many live queries; nothing was done')
    }
    if (own >= queriesOfSessionMax) {
      const text = `a session has at most ${queriesOfSessionMax} live queries; nothing was done`
      throw new RequestError('TOO_BUSY', text)
    }
    this.#ofSession.set(name, own + 1)
    this.#all++
  }

  leave({ name }: Caller): void {
    const left = this.#ofSession.get(name)! - 1
    if (left > 0) this.#ofSession.set(name, left)
    else this.#ofSession.delete(name)
    this.#all--
  }
}
