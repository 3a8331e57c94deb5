// How many live queries may stand: of one session, and of all of a member, of which no caller has
// more than are free. Source: CONTRACT 1.10 "Bounds".

import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { Caller } from '../../graph/plans/plan-queue.ts'
import { FairRoom } from '../../queues/fair-room.ts'

export class QueryPlaces {
  readonly #all = new FairRoom(() => LIMITS.live.queriesOfMemberMax)
  readonly #ofSession = new Map<string, number>()

  /** Throws 429 past a bound. */
  enter({ group, name }: Caller): void {
    const { queriesOfSessionMax } = LIMITS.live
    const own = this.#ofSession.get(name) ?? 0
    if (own >= queriesOfSessionMax) {
      const text = `a session has at most ${queriesOfSessionMax} live queries; nothing was done`
      throw new RequestError('TOO_BUSY', text)
    }
    if (!this.#all.enter(group, 1)) {
      const text = 'a caller has no more live queries than this member has room for beside them'
      throw new RequestError('TOO_BUSY', `${text}; nothing was done`)
    }
    this.#ofSession.set(name, own + 1)
  }

  leave({ group, name }: Caller): void {
    const left = this.#ofSession.get(name)! - 1
    if (left > 0) this.#ofSession.set(name, left)
    else this.#ofSession.delete(name)
    this.#all.add(group, -1)
  }
}
