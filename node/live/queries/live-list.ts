// What all live queries that ask and show the same have together: one window, one look at each
// change, and the difference between two of its lists, made once for all who are told it. Callers
// who may see other things have other plans, and so other lists. Source: CONTRACT 1.10.

import { digestOfAll } from './live-positions.ts'
import { type ListChange, listChanges } from './list-changes.ts'
import type { LivePlan } from './live-plan.ts'
import { type LiveNode, LiveWindow, keyOf } from './live-window.ts'

/** What leads from one list to the next; a reset where that is shorter. */
export type Difference =
  | { readonly kind: 'changes'; readonly changes: readonly ListChange[] }
  | { readonly kind: 'reset' }

/** So many changes more than there are nodes are a list of its own. */
const RESET_BEYOND = 4

const RESET: Difference = { kind: 'reset' }

export class LiveList<Q extends object> {
  readonly plan: LivePlan
  /** Who asked for it first: what it holds counts as theirs. */
  readonly owner: string
  /** Of `chars` what has been counted. */
  countedChars = 0
  /** Who stands on it. */
  readonly queries = new Set<Q>()
  /** While it is read from the index: what became of actors meanwhile. */
  pending: Map<string, readonly LiveNode[]> | null = null
  /** Under way: the reading of it. */
  filling: Promise<void> | null = null
  /** It has been read once. */
  isFilled = false
  readonly #window: LiveWindow
  #shown: readonly LiveNode[] | null = null
  #digest: bigint | null = null
  /** By the list from which they lead to the present one. */
  #differences = new WeakMap<readonly LiveNode[], Difference>()

  constructor(
    { plan, owner }: { readonly plan: LivePlan; readonly owner: string },
    onActor: (list: LiveList<Q>, actorId: string, isKept: boolean) => void,
  ) {
    this.plan = plan
    this.owner = owner
    const { limit, margin, step } = plan
    this.#window = new LiveWindow({
      ...{ limit, margin, orderBy: step.orderBy },
      onActor: (actorId, isKept) => onActor(this, actorId, isKept),
    })
  }

  /** Nobody stands on it any more. */
  get isOver(): boolean {
    return this.queries.size === 0
  }

  /** It is what matches, as far as the feed has told. */
  get isLive(): boolean {
    return this.isFilled && this.pending === null
  }

  /** The nodes to show: the same array until something is another. */
  get shown(): readonly LiveNode[] {
    return (this.#shown ??= this.#window.shown)
  }

  /** Of what is shown. */
  get digest(): bigint {
    return (this.#digest ??= digestOfAll(this.shown))
  }

  /** Of the nodes that it holds. */
  get chars(): number {
    return this.#window.chars
  }

  get hasMore(): boolean {
    return this.#window.hasMore
  }

  get lacks(): boolean {
    return this.#window.lacks
  }

  get runsLow(): boolean {
    return this.#window.runsLow
  }

  begin(nodes: readonly LiveNode[], more: boolean): void {
    this.#window.begin(nodes, more)
    this.#changed()
  }

  clear(): void {
    this.#window.clear()
    this.#changed()
  }

  /** These of the actor's nodes match, and no others. Returns whether anything is another now. */
  apply(actorId: string, matching: readonly LiveNode[]): boolean {
    let isAnother = false
    const stays = new Set(matching.map(keyOf))
    for (const node of this.#window.ofActor(actorId)) {
      if (!stays.has(keyOf(node))) isAnother = this.#window.remove(node) || isAnother
    }
    for (const node of matching) isAnother = this.#window.put(node) || isAnother
    if (isAnother) this.#changed()
    return isAnother
  }

  /** From a list that was shown before to what is shown. */
  differenceFrom(had: readonly LiveNode[]): Difference {
    let difference = this.#differences.get(had)
    if (difference === undefined) {
      const { shown } = this
      const changes = listChanges(had, shown, (node) => this.#window.holds(node))
      const isLong = changes.length > shown.length + RESET_BEYOND
      difference = isLong ? RESET : { kind: 'changes', changes }
      this.#differences.set(had, difference)
    }
    return difference
  }

  #changed(): void {
    this.#shown = null
    this.#digest = null
    this.#differences = new WeakMap()
  }
}
