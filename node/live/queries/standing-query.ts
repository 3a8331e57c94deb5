// One live query as it stands: its window, and the list that its client has been told. What is
// pushed is the difference of the two, however many changes lie between: a client that reads slowly
// costs no more than that. Source: CONTRACT 1.10.

import type { LivePlan } from './live-plan.ts'
import { digestOfAll } from './live-positions.ts'
import { listChanges } from './list-changes.ts'
import type { ListChange } from './list-changes.ts'
import { type LiveNode, LiveWindow, keyOf } from './live-window.ts'

/** Who is told. */
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

export class StandingQuery {
  readonly taker: QueryTaker
  /** While it is read from the index: what became of actors meanwhile. */
  pending: Map<string, readonly LiveNode[]> | null = null
  isEnded = false
  /** The client has a list. */
  isTold = false
  mustReset = false
  #plan: LivePlan
  #window: LiveWindow
  #told: readonly LiveNode[] = []
  readonly #onActor: (actorId: string, isKept: boolean) => void

  constructor(
    taker: QueryTaker,
    plan: LivePlan,
    onActor: (query: StandingQuery, actorId: string, isKept: boolean) => void,
  ) {
    this.taker = taker
    this.#onActor = (actorId, isKept) => onActor(this, actorId, isKept)
    this.#plan = plan
    this.#window = this.#windowOf(plan)
  }

  get plan(): LivePlan {
    return this.#plan
  }

  get window(): LiveWindow {
    return this.#window
  }

  /** Another question from now on: nothing is known of its answer. */
  replan(plan: LivePlan): void {
    this.#window.clear()
    this.#plan = plan
    this.#window = this.#windowOf(plan)
    this.isTold = false
    this.mustReset = true
  }

  #windowOf({ limit, margin, step }: LivePlan): LiveWindow {
    return new LiveWindow({ limit, margin, orderBy: step.orderBy, onActor: this.#onActor })
  }

  get digest(): bigint {
    return digestOfAll(this.#told)
  }

  /** The client has what is shown from now. */
  begin(): readonly LiveNode[] {
    this.#told = this.window.shown
    this.isTold = true
    this.mustReset = false
    return this.#told
  }

  /** These of the actor's nodes match, and no others. Returns whether anything is another now. */
  apply(actorId: string, matching: readonly LiveNode[]): boolean {
    let isAnother = false
    const stays = new Set(matching.map(keyOf))
    for (const node of this.window.ofActor(actorId)) {
      if (!stays.has(keyOf(node))) isAnother = this.window.remove(node) || isAnother
    }
    for (const node of matching) isAnother = this.window.put(node) || isAnother
    return isAnother
  }

  get #mayBeTold(): boolean {
    return this.isTold && !this.isEnded
  }

  /** Tells the client, if it may be told. Returns false where it has to wait. */
  flush(): boolean {
    if (!this.#mayBeTold) return true
    if (!this.taker.isReady) return false
    // Looking at what the caller may do can end it, or have it ask something else.
    if (!this.#mayBeTold) return true
    const { window } = this
    const had = this.#told
    const wanted = window.shown
    if (this.mustReset) {
      this.taker.reset(this.begin(), this.digest)
      return true
    }
    const changes = listChanges(had, wanted, (node) => window.holds(node))
    this.#told = wanted
    if (changes.length > wanted.length + RESET_BEYOND) this.taker.reset(wanted, this.digest)
    else if (changes.length > 0) this.taker.changed(changes, this.digest)
    return true
  }
}

/** So many changes more than there are nodes are a list of its own. */
const RESET_BEYOND = 4
