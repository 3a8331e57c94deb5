// The window of one live query: the nodes that match, in order, up to its limit, and some more
// behind them, so that a node that leaves is followed by the next without asking the index. Source:
// CONTRACT 1.10.

import { type Doc, compareDocs, compareIds } from '../../../protocol/graph/evaluate.ts'
import type { SortKey } from '../../../protocol/graph/plan.ts'

/** A node that matches. One object stands for one content: another content is another object. */
export interface LiveNode {
  readonly actorId: string
  readonly id: string
  /** As the client may be told it; null: it may not. */
  readonly shownId: string | null
  /** What it is sorted by is read from here. */
  readonly doc: Doc
  /** What the client is shown of it, JSON. */
  readonly text: string
  /** What it is sorted by, JSON. */
  readonly sorted: string
}

export interface LiveWindowOptions {
  readonly orderBy: readonly SortKey[]
  /** Most nodes to show; at least 1. */
  readonly limit: number
  /** Most nodes to keep behind them; at least 1. */
  readonly margin: number
  /** The first node of an actor is kept, or the last one no more. */
  readonly onActor?: (actorId: string, isKept: boolean) => void
}

/** One text for a node, whatever its type: ids are told apart by their actor. */
export function keyOf({ actorId, id }: Pick<LiveNode, 'actorId' | 'id'>): string {
  return `${actorId}/${id}`
}

const NODE_CHARS = 200

export class LiveWindow {
  /** Characters of what is kept. */
  chars = 0
  readonly #options: LiveWindowOptions
  readonly #byKey = new Map<string, LiveNode>()
  readonly #byActor = new Map<string, Set<LiveNode>>()
  /** In order. */
  #kept: LiveNode[] = []
  /**
   * All nodes that match and sort up to this one are kept, whether it is there still or not; what
   * lies behind is not known. Null: all that match are kept.
   */
  #knownTo: LiveNode | null = null

  constructor(options: LiveWindowOptions) {
    this.#options = options
  }

  /** How many nodes to read: `begin` takes so many. */
  get capacity(): number {
    return this.#options.limit + this.#options.margin
  }

  /** Begins anew with the first nodes that match, in any order. `more`: there are others behind. */
  begin(nodes: readonly LiveNode[], more: boolean): void {
    const known = this.#byKey
    this.#kept = nodes.map((node) => sameOr(known.get(keyOf(node)), node, this.#compare))
    this.#kept.sort(this.#compare)
    const former = [...known.values()]
    for (const node of this.#kept) this.#enter(node)
    const stays = new Set(this.#kept)
    for (const node of former) if (!stays.has(node)) this.#leave(node)
    this.#knownTo = more ? (this.#kept.at(-1) ?? null) : null
    this.#cut()
  }

  /** Those to show, and those behind them. */
  get kept(): readonly LiveNode[] {
    return this.#kept
  }

  /** The nodes to show. */
  get shown(): readonly LiveNode[] {
    return this.#kept.slice(0, this.#options.limit)
  }

  /** More match than are shown, or did when it was last read from the index. */
  get hasMore(): boolean {
    return this.#knownTo !== null || this.#kept.length > this.#options.limit
  }

  /** There may be nodes that have to be shown and are not known: it has to be read again. */
  get lacks(): boolean {
    return this.#knownTo !== null && this.#kept.length < this.#options.limit
  }

  /** Soon there may be: a good time to read it again. */
  get runsLow(): boolean {
    return this.#knownTo !== null && this.#kept.length <= this.#options.limit
  }

  /** Whether exactly this content is kept, shown or not. */
  holds(node: LiveNode): boolean {
    return this.#byKey.get(keyOf(node)) === node
  }

  /** What is kept of an actor, shown or not. */
  ofActor(actorId: string): readonly LiveNode[] {
    return [...(this.#byActor.get(actorId) ?? [])]
  }

  /** All that are kept go, and nothing is known. */
  clear(): void {
    this.begin([], false)
  }

  /** A node that matches, new or changed. Returns whether anything is another now. */
  put(node: LiveNode): boolean {
    const key = keyOf(node)
    const old = this.#byKey.get(key)
    if (old !== undefined && sameOr(old, node, this.#compare) === old) return false
    if (old !== undefined) this.#take(old)
    const isBehind = this.#knownTo !== null && this.#compare(node, this.#knownTo) > 0
    if (isBehind) return old !== undefined
    this.#enter(node)
    this.#kept.splice(this.#placeOf(node), 0, node)
    this.#cut()
    return true
  }

  /** A node that does not match, or is no more. Returns whether it was kept. */
  remove(node: Pick<LiveNode, 'actorId' | 'id'>): boolean {
    const old = this.#byKey.get(keyOf(node))
    if (old !== undefined) this.#take(old)
    return old !== undefined
  }

  readonly #compare = (a: LiveNode, b: LiveNode): number =>
    compareDocs(this.#options.orderBy, a.doc, b.doc) || compareIds(a, b)

  #take(old: LiveNode): void {
    this.#kept.splice(this.#placeOf(old), 1)
    this.#leave(old)
  }

  #enter(node: LiveNode): void {
    const { actorId } = node
    const key = keyOf(node)
    this.chars += charsOf(node) - charsOf(this.#byKey.get(key))
    this.#byKey.set(key, node)
    const own = this.#byActor.get(actorId)
    if (own !== undefined) own.add(node)
    else {
      this.#byActor.set(actorId, new Set([node]))
      this.#options.onActor?.(actorId, true)
    }
  }

  #leave(node: LiveNode): void {
    const { actorId } = node
    if (this.#byKey.get(keyOf(node)) === node) {
      this.#byKey.delete(keyOf(node))
      this.chars -= charsOf(node)
    }
    const own = this.#byActor.get(actorId)!
    own.delete(node)
    if (own.size > 0) return
    this.#byActor.delete(actorId)
    this.#options.onActor?.(actorId, false)
  }

  /** Of a node that is kept, or is about to be. */
  #placeOf(node: LiveNode): number {
    let [from, to] = [0, this.#kept.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if (this.#compare(this.#kept[middle]!, node) < 0) from = middle + 1
      else to = middle
    }
    return from
  }

  #cut(): void {
    if (this.#kept.length <= this.capacity) return
    for (const node of this.#kept.splice(this.capacity)) this.#leave(node)
    this.#knownTo = this.#kept.at(-1)!
  }
}

/** About, with what it takes to keep a small one. */
function charsOf(node: LiveNode | undefined): number {
  return node === undefined ? 0 : NODE_CHARS + node.text.length + node.sorted.length
}

function sameOr(
  old: LiveNode | undefined,
  node: LiveNode,
  compare: (a: LiveNode, b: LiveNode) => number,
): LiveNode {
  return old !== undefined && old.text === node.text && compare(old, node) === 0 ? old : node
}
