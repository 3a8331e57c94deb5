// What an owner has for one watcher of one stream: gathered for a moment, sent as parts that each
// say from which offset to which they cover a shard. Bounded: what has no room is counted, and the
// part says so. Source: PROTOCOL 3.18.

import { LIMITS } from '../../../config/limits.ts'
import type { FeedEntry } from '../log-follower.ts'
import type { FedItem, FedPart } from './watch-notices.ts'

interface Pending {
  from: number
  to: number
  items: FedItem[]
  dropped: number
}

export class Outgoing {
  readonly #parts = new Map<number, Pending>()
  readonly #isOwn: boolean
  #bytes = 0

  /** `isOwn`: it is for this member itself, on no wire; what it has is weighed by its entries. */
  constructor(isOwn: boolean) {
    this.#isOwn = isOwn
  }

  /** True: it should leave at once. */
  get isFull(): boolean {
    return this.#bytes >= LIMITS.feed.watchBatchBytes
  }

  /**
   * The shard is followed from this offset on, or has come to it. One that is further than what was
   * added has been with another owner meanwhile: the watcher sees that something lies between.
   */
  cover(shard: number, offset: number): void {
    const part = this.#parts.get(shard)
    if (part === undefined) {
      this.#parts.set(shard, { from: offset, to: offset, items: [], dropped: 0 })
    } else if (part.to < offset) {
      part.from = offset
      part.to = offset
    }
  }

  /** Whether `cover` would leave something out that must be sent before. */
  leaps(shard: number, offset: number): boolean {
    const part = this.#parts.get(shard)
    return part !== undefined && part.to < offset && part.items.length > 0
  }

  /** Shards that are no longer ours go. */
  keep(isOurs: (shard: number) => boolean): void {
    for (const shard of this.#parts.keys()) if (!isOurs(shard)) this.#parts.delete(shard)
  }

  /** What of the entry at this offset is for the watcher, if anything. */
  add({ shard, offset, bytes: ofEntry }: FeedEntry, values: readonly unknown[]): number {
    const part = this.#parts.get(shard)
    if (part === undefined) return 0
    part.to = Math.max(part.to, offset)
    let dropped = 0
    for (const value of values) {
      const bytes = this.#isOwn ? ofEntry : JSON.stringify(value).length
      if (this.#bytes + bytes > LIMITS.feed.watchBytesMax) dropped++
      else {
        part.items.push([offset, value])
        this.#bytes += bytes
      }
    }
    part.dropped += dropped
    return dropped
  }

  /** All parts, or those that have something; from here the next ones go on. */
  take(all: boolean): readonly FedPart[] {
    const parts: FedPart[] = []
    for (const [shard, part] of this.#parts) {
      const { from, to, items, dropped } = part
      if (!all && items.length === 0 && dropped === 0) continue
      parts.push({ shard, from, to, items, ...(dropped > 0 && { dropped }) })
      part.from = to
      part.items = []
      part.dropped = 0
    }
    this.#bytes = 0
    return parts
  }
}
