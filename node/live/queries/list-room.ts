// How much live queries may hold: each list, and the queries and lists of a member, of which a
// caller's have no more than is free. Source: CONTRACT 1.10 "Bounds".

import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { FairRoom } from '../../queues/fair-room.ts'
import type { Caller } from '../../graph/plans/plan-queue.ts'
import type { LiveList } from './live-list.ts'
import type { LivePlan } from './live-plan.ts'

/** A plan as objects, with the terms that it is found by, takes many times its text. */
const PLAN_TIMES = 24

type Counted = Pick<LiveList<object>, 'owner' | 'chars' | 'countedChars'>

export class ListRoom {
  readonly #all = new FairRoom(() => LIMITS.live.queriesCharsMax)

  /** Characters that all hold. */
  get chars(): number {
    return this.#all.taken
  }

  /** A query that stands takes about so much, beside its list. Throws 429. */
  enter({ group }: Caller, { text }: Pick<LivePlan, 'text'>): number {
    const chars = PLAN_TIMES * text.length
    if (this.#all.enter(group, chars)) return chars
    throw full('nothing was done; ask for fewer')
  }

  leave({ group }: Caller, chars: number): void {
    this.#all.add(group, -chars)
  }

  /** Counts what the list holds by now. Returns why it may not stand on: it holds too much. */
  count(list: Counted): RequestError | null {
    const { owner, chars } = list
    const more = chars - list.countedChars
    if (more === 0) return null
    this.#all.add(owner, more)
    list.countedChars = chars
    if (more < 0) return null
    const { queryCharsMax } = LIMITS.live
    if (chars > queryCharsMax) {
      const text = `the nodes of a live query have at most ${queryCharsMax} characters together`
      return new RequestError('TOO_LARGE', `${text}: ask for fewer of them, or fewer fields`)
    }
    // One that stands may grow while there is room at all: only who has much of it has to go.
    const isIn = more < chars ? !this.#all.hasTooMuch(owner) : this.#all.hasRoom(owner, 0)
    if (isIn) return null
    return full('ask for fewer, for fewer nodes or fewer fields')
  }
}

function full(advice: string): RequestError {
  const text = "a caller's live queries hold no more than this member has room for beside them"
  return new RequestError('TOO_BUSY', `${text}; ${advice}`)
}
