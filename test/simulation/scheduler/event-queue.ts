// The queue of a simulation's events: the earliest first, and of those that are due at the same
// moment the one that the seed ranks first.

export type ProcessState = 'running' | 'paused' | 'suspended' | 'dead'

/** Whoever an event happens to: it waits while that process doesn't run, and dies with it. */
export interface Owner {
  readonly name: string
  readonly state: ProcessState
  /** An event that came while nothing runs here. */
  keep(event: SimulatedEvent): void
}

export interface SimulatedEvent {
  readonly atMs: number
  /** Drawn from the seed, 0..1; what is deferred has 2. */
  readonly rank: number
  readonly sequence: number
  readonly label: string
  readonly owner: Owner | null
  run: () => void
  cancelled: boolean
}

function isBefore(a: SimulatedEvent, b: SimulatedEvent): boolean {
  if (a.atMs !== b.atMs) return a.atMs < b.atMs
  if (a.rank !== b.rank) return a.rank < b.rank
  return a.sequence < b.sequence
}

export class EventQueue {
  readonly #heap: SimulatedEvent[] = []

  peek(): SimulatedEvent | null {
    return this.#heap[0] ?? null
  }

  push(event: SimulatedEvent): void {
    const heap = this.#heap
    let at = heap.push(event) - 1
    while (at > 0) {
      const parent = (at - 1) >>> 1
      if (!isBefore(event, heap[parent]!)) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = event
  }

  pop(): SimulatedEvent | null {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined) return null
    if (heap.length > 0) this.#sink(last)
    return first
  }

  #sink(event: SimulatedEvent): void {
    const heap = this.#heap
    let at = 0
    for (;;) {
      let child = at * 2 + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (!isBefore(heap[child]!, event)) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = event
  }
}
