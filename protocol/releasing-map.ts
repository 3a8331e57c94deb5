// Collections for members that come and go by the thousand a second: requests under way, actors
// that rest again with their commit. V8's own Map and Set keep their old tables linked to the new
// ones when they grow or tidy up; an old table that has reached the old generation keeps everything
// that stood in it, until a full collection, and with it whatever the tables after it hold.
// Here what is taken out is let go at once, wherever a dead table may still hold its place.

interface Cell<V> {
  value: V | undefined
}

/** As a Map: insertion order, values may be deleted and set while it is gone through. */
export class ReleasingMap<K, V extends object> implements ReadonlyMap<K, V> {
  readonly #cells = new Map<K, Cell<V>>()

  get size(): number {
    return this.#cells.size
  }

  get(key: K): V | undefined {
    return this.#cells.get(key)?.value
  }

  has(key: K): boolean {
    return this.#cells.has(key)
  }

  set(key: K, value: V): this {
    const cell = this.#cells.get(key)
    if (cell === undefined) this.#cells.set(key, { value })
    else cell.value = value
    return this
  }

  delete(key: K): boolean {
    const cell = this.#cells.get(key)
    if (cell === undefined) return false
    cell.value = undefined
    return this.#cells.delete(key)
  }

  clear(): void {
    for (const cell of this.#cells.values()) cell.value = undefined
    this.#cells.clear()
  }

  keys(): MapIterator<K> {
    return this.#cells.keys()
  }

  *values(): Generator<V, undefined> {
    for (const { value } of this.#cells.values()) yield value!
  }

  *entries(): Generator<[K, V], undefined> {
    for (const [key, { value }] of this.#cells) yield [key, value!]
  }

  [Symbol.iterator](): Generator<[K, V], undefined> {
    return this.entries()
  }

  forEach(use: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const [key, { value }] of this.#cells) use(value!, key, this)
  }
}

/** What a member of a ReleasingSet carries: its place there, -1 outside. */
export interface Slotted {
  slot: number
}

/** A set whose members know their place in it. In no order. A member is in one such set at most. */
export class ReleasingSet<T extends Slotted> {
  readonly #slots: (T | null)[] = []
  readonly #free: number[] = []

  get size(): number {
    return this.#slots.length - this.#free.length
  }

  add(member: T): void {
    if (member.slot >= 0) return
    member.slot = this.#free.pop() ?? this.#slots.length
    this.#slots[member.slot] = member
  }

  has(member: T): boolean {
    return member.slot >= 0 && this.#slots[member.slot] === member
  }

  delete(member: T): void {
    if (!this.has(member)) return
    this.#slots[member.slot] = null
    this.#free.push(member.slot)
    member.slot = -1
  }

  *[Symbol.iterator](): Generator<T, void> {
    for (const member of this.#slots) if (member !== null) yield member
  }
}
