// Up to where a watcher has heard of each shard: parts that come doubled or overlap are cut, what
// lies between two of them was lost and is told as a gap. Source: PROTOCOL 3.18.

import type { FedItem, FedPart } from './watch-notices.ts'

/** A part as its stream gets it: each item once, in the order of its shard. */
export interface Covered {
  readonly shard: number
  readonly from: number
  readonly to: number
  readonly items: readonly FedItem[]
  /** Something before `from`, or in the part, was lost. */
  readonly gap: boolean
  /** Of the interest that its owner went by: what a newer one wants besides may be missing. */
  readonly number: number
}

interface Known {
  to: number
  atMs: number
  number: number
}

export class Coverage {
  readonly #shards = new Map<number, Known>()

  /** null: nothing of it is new. */
  take(part: FedPart, number: number, nowMs: number): Covered | null {
    const { shard, from, to, items, dropped = 0 } = part
    const known = this.#shards.get(shard)
    if (known === undefined) {
      this.#shards.set(shard, { to, atMs: nowMs, number })
      return { shard, from, to, items, gap: dropped > 0, number }
    }
    const before = known.to
    if (to >= before) known.atMs = nowMs
    if (to === before) known.number = Math.max(known.number, number)
    if (to <= before) return null
    known.to = to
    // A shard's next owner may go by an older interest than the one before it.
    known.number = number
    const gap = from > before || dropped > 0
    const rest = from >= before ? items : items.filter(([offset]) => offset > before)
    return { shard, from: Math.max(from, before), to, items: rest, gap, number }
  }

  /** Heard of up to here, when, and by which interest its newest part was; null: never. */
  of(shard: number): Readonly<Known> | null {
    return this.#shards.get(shard) ?? null
  }

  clear(): void {
    this.#shards.clear()
  }
}
