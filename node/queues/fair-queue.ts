// Work that waits, by who asked for it: groups take turns, and of one group its flows, so that who
// asks for much waits behind nobody but themselves. Where there is no room the newest of whoever
// has most waiting has to go (fair queuing with longest-queue drop). For what serves few requests
// at a time: graph queries, sign-ins. Source: PROTOCOL 3.10.

/** Whose work it is: groups take turns, and within one its flows. */
export interface Flow {
  readonly group: string
  readonly name: string
}

export interface QueueBounds {
  /** Of all together. */
  readonly max: number
  /** Of one group. */
  readonly groupMax: number
}

/** What one group has waiting: by flow, the one whose turn is next first. */
interface Line<T> {
  size: number
  readonly flows: Map<string, T[]>
}

export class FairQueue<T> {
  readonly #bounds: QueueBounds
  /** By group, the one whose turn is next first. */
  readonly #lines = new Map<string, Line<T>>()
  #size = 0

  constructor(bounds: QueueBounds) {
    this.#bounds = bounds
  }

  get size(): number {
    return this.#size
  }

  /**
   * Puts it at the end of its flow's line. Returns what there is no room for any more: null,
   * itself, or the newest of the longest line.
   */
  push(flow: Flow, item: T): T | null {
    const { max, groupMax } = this.#bounds
    const own = this.#lines.get(flow.group)
    const ownSize = own?.size ?? 0
    let from: string | null = null
    if (ownSize >= groupMax) from = flow.group
    else if (this.#size >= max) from = this.#longest(flow.group)
    const dropped = from === null ? null : this.#dropNewest(from, flow)
    if (from !== null && dropped === null) return item
    this.#add(flow, item)
    return dropped
  }

  /** Returns whose turn it is, of those who may have one now, or null. */
  take(mayGo: (flow: Flow) => boolean = () => true): T | null {
    for (const [group, line] of this.#lines) {
      for (const [name, items] of line.flows) {
        if (!mayGo({ group, name })) continue
        const item = items.shift()!
        // To the end of both rounds.
        line.flows.delete(name)
        if (items.length > 0) line.flows.set(name, items)
        this.#lines.delete(group)
        if (--line.size > 0) this.#lines.set(group, line)
        this.#size--
        return item
      }
    }
    return null
  }

  /** Takes out all that waits. */
  clear(): T[] {
    const all = [...this.#lines.values()].flatMap(({ flows }) => [...flows.values()].flat())
    this.#lines.clear()
    this.#size = 0
    return all
  }

  #add({ group, name }: Flow, item: T): void {
    let line = this.#lines.get(group)
    if (line === undefined) this.#lines.set(group, (line = { size: 0, flows: new Map() }))
    const items = line.flows.get(name)
    if (items === undefined) line.flows.set(name, [item])
    else items.push(item)
    line.size++
    this.#size++
  }

  /** The group with most waiting; the one that asks, if it would have as much with one more. */
  #longest(asking: string): string {
    let [longest, size] = [asking, (this.#lines.get(asking)?.size ?? 0) + 1]
    for (const [group, line] of this.#lines) {
      if (line.size > size) [longest, size] = [group, line.size]
    }
    return longest
  }

  /** Null: the newcomer itself is of the longest line. */
  #dropNewest(group: string, newcomer: Flow): T | null {
    const line = this.#lines.get(group)
    if (line === undefined) return null
    const isOwn = group === newcomer.group
    const own = isOwn ? (line.flows.get(newcomer.name)?.length ?? 0) : 0
    let [longest, size] = ['', own]
    for (const [name, items] of line.flows) {
      if (items.length > size) [longest, size] = [name, items.length]
    }
    // With one more the newcomer would have as much: then nobody gains by it.
    if (isOwn && size <= own + 1) return null
    const items = line.flows.get(longest)!
    const item = items.pop()!
    if (items.length === 0) line.flows.delete(longest)
    if (--line.size === 0) this.#lines.delete(group)
    this.#size--
    return item
  }
}
