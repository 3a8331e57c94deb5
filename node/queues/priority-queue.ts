// A priority queue: a binary heap that gives what has the lowest rank first, and lets go of any
// element it holds. Each costs the logarithm of how many are held.

/** What a queue holds of one element; `remove` wants it back. */
export interface Queued<T> {
  readonly rank: number
  readonly element: T
  /** Place in the heap; -1: it is in no queue any more. */
  place: number
}

export class PriorityQueue<T> {
  readonly #heap: Queued<T>[] = []

  get size(): number {
    return this.#heap.length
  }

  /** The element of the lowest rank. */
  get first(): Queued<T> | undefined {
    return this.#heap[0]
  }

  add(rank: number, element: T): Queued<T> {
    const queued = { rank, element, place: this.#heap.length }
    this.#heap.push(queued)
    this.#rise(queued)
    return queued
  }

  /** False: it has left the queue before. */
  remove(queued: Queued<T>): boolean {
    if (this.#heap[queued.place] !== queued) return false
    const last = this.#heap.pop()!
    if (last !== queued) {
      this.#put(last, queued.place)
      this.#rise(last)
      this.#sink(last)
    }
    queued.place = -1
    return true
  }

  #put(queued: Queued<T>, place: number): void {
    this.#heap[place] = queued
    queued.place = place
  }

  #rise(queued: Queued<T>): void {
    let { place } = queued
    while (place > 0) {
      const above = (place - 1) >> 1
      const parent = this.#heap[above]!
      if (parent.rank <= queued.rank) break
      this.#put(parent, place)
      place = above
    }
    this.#put(queued, place)
  }

  #sink(queued: Queued<T>): void {
    const { length } = this.#heap
    let { place } = queued
    for (let below = 2 * place + 1; below < length; below = 2 * place + 1) {
      const right = this.#heap[below + 1]
      if (right !== undefined && right.rank < this.#heap[below]!.rank) below++
      const child = this.#heap[below]!
      if (child.rank >= queued.rank) break
      this.#put(child, place)
      place = below
    }
    this.#put(queued, place)
  }
}
