// Who waits for positions of the graph index, found by one position that each still lacks: an
// offset that moves costs whom it wakes, not all who wait. It stands under both forms of waiting,
// beside the index's thread and in a cluster. Source: PROTOCOL 3.13.6.

import type { Position } from '../../protocol/ids.ts'
import { PriorityQueue } from '../queues/priority-queue.ts'
import type { Queued } from '../queues/priority-queue.ts'

interface Held<W> {
  readonly waiter: W
  /** Place among its positions of the one that it lacks. */
  next: number
  queued: Queued<Held<W>> | null
}

export class LackingPositions<W extends { readonly positions: readonly Position[] }> {
  /** How far the index is in a shard. */
  readonly #offsetOf: (shard: number) => number
  /** By shard, those that lack a position of it first that the index will reach first. */
  readonly #queues = new Map<number, PriorityQueue<Held<W>>>()
  readonly #held = new Map<W, Held<W>>()

  constructor(offsetOf: (shard: number) => number) {
    this.#offsetOf = offsetOf
  }

  get size(): number {
    return this.#held.size
  }

  /** False: it lacks nothing, and isn't held. */
  add(waiter: W): boolean {
    const held = { waiter, next: 0, queued: null }
    if (!this.#queue(held)) return false
    this.#held.set(waiter, held)
    return true
  }

  remove(waiter: W): void {
    const held = this.#held.get(waiter)
    if (held === undefined) return
    this.#held.delete(waiter)
    this.#unqueue(held)
  }

  /** The index has moved: those that lack nothing any more are held no longer. */
  moved(): W[] {
    const complete: W[] = []
    for (const [shard, queue] of this.#queues) {
      const offset = this.#offsetOf(shard)
      for (let { first } = queue; first !== undefined && first.rank <= offset; { first } = queue) {
        const held = first.element
        this.#unqueue(held)
        if (this.#queue(held)) continue
        this.#held.delete(held.waiter)
        complete.push(held.waiter)
      }
    }
    return complete
  }

  /** Goes on from where it lacked one, and round: an index that is made anew goes back. */
  #queue(held: Held<W>): boolean {
    const { positions } = held.waiter
    for (let looked = 0; looked < positions.length; looked++) {
      const { shard, offset } = positions[held.next]!
      if (this.#offsetOf(shard) < offset) {
        const queue = this.#queues.get(shard) ?? new PriorityQueue()
        this.#queues.set(shard, queue)
        held.queued = queue.add(offset, held)
        return true
      }
      held.next = (held.next + 1) % positions.length
    }
    return false
  }

  #unqueue(held: Held<W>): void {
    const { shard } = held.waiter.positions[held.next]!
    const queue = this.#queues.get(shard)!
    queue.remove(held.queued!)
    if (queue.size === 0) this.#queues.delete(shard)
  }
}
