// One live query as it stands: who is told, and the list that they have been told. What is pushed
// is the difference to the list of all that ask the same, however many changes lie between: a
// client that reads slowly costs no more than that. Source: CONTRACT 1.10.

import type { ListChange } from './list-changes.ts'
import type { LiveList } from './live-list.ts'
import type { LivePlan } from './live-plan.ts'
import type { LiveNode } from './live-window.ts'

/** Who is told. What comes is the same object for all who are told the same. */
export interface QueryTaker {
  /** False: nothing may be sent now; `wake` is called when it may. */
  readonly isReady: boolean
  changed(changes: readonly ListChange[], digest: bigint): void
  /** All anew: too much has changed to be told one by one, or another question is asked. */
  reset(nodes: readonly LiveNode[], digest: bigint): void
  /** Fields of the graph are others now: it may mean something else, or nothing. */
  schemaChanged(): void
  /** It has ended: the query is no more. */
  failed(error: unknown): void
}

const NOTHING: readonly LiveNode[] = []

export class StandingQuery {
  readonly taker: QueryTaker
  /** What it takes beside its list, in characters. */
  readonly chars: number
  list: LiveList<StandingQuery>
  isEnded = false
  /** Its first list was told. */
  isBegun = false
  /** The client has a list. */
  isTold = false
  mustReset = false
  #told = NOTHING

  constructor(taker: QueryTaker, list: LiveList<StandingQuery>, chars: number) {
    this.taker = taker
    this.list = list
    this.chars = chars
  }

  get plan(): LivePlan {
    return this.list.plan
  }

  /** Of the list as it is shown, which is the one that was told where nothing is on its way. */
  get digest(): bigint {
    return this.list.digest
  }

  get hasMore(): boolean {
    return this.list.hasMore
  }

  /** The client has what is shown from now. */
  begin(): readonly LiveNode[] {
    this.#told = this.list.shown
    this.isBegun = true
    this.isTold = true
    this.mustReset = false
    return this.#told
  }

  /** What it had been told means nothing any more. */
  forget(): void {
    this.#told = NOTHING
    this.isTold = false
    this.mustReset = true
  }

  get #mayBeTold(): boolean {
    return this.isTold && !this.isEnded
  }

  /** Tells the client, if it may be told. Returns false where it has to wait. */
  flush(): boolean {
    if (!this.#mayBeTold || (this.#told === this.list.shown && !this.mustReset)) return true
    if (!this.taker.isReady) return false
    // Looking at what the caller may do can end it, or have it ask something else.
    if (!this.#mayBeTold) return true
    const { list, taker } = this
    const { shown, digest } = list
    if (this.mustReset) {
      taker.reset(this.begin(), digest)
      return true
    }
    const difference = list.differenceFrom(this.#told)
    this.#told = shown
    if (difference.kind === 'reset') taker.reset(shown, digest)
    else if (difference.changes.length > 0) taker.changed(difference.changes, digest)
    return true
  }
}
