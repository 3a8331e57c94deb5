// A search for a linearization, after Wing and Gong with Lowe's memory of what was tried: given
// calls with their times and a sequential specification, is there an order of them that respects
// time and explains every answer? It knows nothing of ledgers. Source: PROTOCOL 4.1; Lowe, "Testing
// for linearizability" (2017).

export interface Call<S> {
  readonly name: string
  readonly invokedMs: number
  /** Infinity: it may take effect at any later time, or never. */
  readonly returnedMs: number
  /** Call that must stand before this one. */
  readonly after: number | null
  /** The state behind it, or null when the answer doesn't fit this state. */
  readonly step: (state: S) => S | null
}

export interface Specification<S> {
  readonly initial: S
  /** The same text for the same state. */
  readonly key: (state: S) => string
}

export type Linearization =
  | { readonly verdict: 'linearizable' }
  /** The call that no order could explain: the furthest that any got to. */
  | { readonly verdict: 'not linearizable'; readonly stuckAt: string }
  | { readonly verdict: 'too large' }

interface Event {
  readonly call: number
  readonly isReturn: boolean
  before: Event | null
  next: Event | null
}

interface Chosen<S> {
  readonly event: Event
  readonly state: S
  /** It changes nothing and fits: it may as well stand here as anywhere later. */
  readonly isSettled: boolean
}

/** Tries at most so many states. */
const STATES_MAX = 400_000

export function linearize<S>(
  calls: readonly Call<S>[],
  specification: Specification<S>,
): Linearization {
  return new Search(calls, specification).run()
}

class Search<S> {
  readonly #calls: readonly Call<S>[]
  readonly #key: (state: S) => string
  readonly #first: Event
  readonly #returns = new Map<number, Event>()
  /** Calls that others must stand behind. */
  readonly #leadsOn: ReadonlySet<number | null>
  readonly #done: Bits
  readonly #seen = new Set<string>()
  readonly #chosen: Chosen<S>[] = []
  #state: S
  /** Calls that have returned and have no place yet. */
  #left: number

  constructor(calls: readonly Call<S>[], { initial, key }: Specification<S>) {
    this.#calls = calls
    this.#key = key
    this.#state = initial
    this.#first = listOf(calls)
    for (let event = this.#first.next; event; event = event.next) {
      if (event.isReturn) this.#returns.set(event.call, event)
    }
    this.#leadsOn = new Set(calls.map(({ after }) => after))
    this.#left = this.#returns.size
    this.#done = new Bits(calls.length)
  }

  run(): Linearization {
    let stuckAt = ''
    let furthest = -1
    let event = this.#settled()
    while (this.#left > 0) {
      if (event !== null && !event.isReturn) {
        event = this.#choose(event) ? this.#settled() : event.next
        continue
      }
      if (this.#seen.size >= STATES_MAX) return { verdict: 'too large' }
      // A call has returned that no order so far explains: the last choice is taken back.
      if (this.#chosen.length > furthest) {
        furthest = this.#chosen.length
        stuckAt = event === null ? 'the end' : this.#calls[event.call]!.name
      }
      const last = this.#takeBack()
      if (last === null) return { verdict: 'not linearizable', stuckAt }
      event = last.next
    }
    return { verdict: 'linearizable' }
  }

  /** Puts a call next, if its answer fits and that was not tried before. */
  #choose(event: Event): boolean {
    const call = this.#calls[event.call]!
    if (call.after !== null && !this.#done.has(call.after)) return false
    const next = call.step(this.#state)
    if (next === null || this.#isIdle(event.call, next)) return false
    this.#done.add(event.call)
    const configuration = `${this.#done.text()} ${this.#key(next)}`
    if (this.#seen.has(configuration)) {
      this.#done.remove(event.call)
      return false
    }
    this.#seen.add(configuration)
    this.#put(event, next, false)
    return true
  }

  /** Puts all calls next that change nothing here; the first event that is left. */
  #settled(): Event | null {
    while (this.#settleOne());
    return this.#first.next
  }

  /** Puts a call next that is answered as this state has it, and leaves it as it is. */
  #settleOne(): boolean {
    for (let event = this.#first.next; event !== null && !event.isReturn; event = event.next) {
      const { after, step } = this.#calls[event.call]!
      if (!this.#returns.has(event.call) || (after !== null && !this.#done.has(after))) continue
      if (step(this.#state) !== this.#state) continue
      this.#done.add(event.call)
      this.#put(event, this.#state, true)
      return true
    }
    return false
  }

  #put(event: Event, next: S, isSettled: boolean): void {
    this.#chosen.push({ event, state: this.#state, isSettled })
    this.#state = next
    lift(event)
    const returned = this.#returns.get(event.call)
    if (returned) {
      lift(returned)
      this.#left--
    }
  }

  /** What need not happen, changes nothing and leads to nothing is left out. */
  #isIdle(call: number, next: S): boolean {
    if (this.#returns.has(call) || this.#leadsOn.has(call)) return false
    return this.#key(next) === this.#key(this.#state)
  }

  /** Undoes the last choice that was one. */
  #takeBack(): Event | null {
    for (;;) {
      const last = this.#chosen.pop()
      if (!last) return null
      this.#undo(last)
      if (!last.isSettled) return last.event
    }
  }

  #undo({ event, state }: Chosen<S>): void {
    this.#state = state
    this.#done.remove(event.call)
    const returned = this.#returns.get(event.call)
    if (returned) {
      put(returned)
      this.#left++
    }
    put(event)
  }
}

/** Invocations and returns in the order of their times, behind an empty first one. */
function listOf<S>(calls: readonly Call<S>[]): Event {
  const times = calls.flatMap(({ invokedMs, returnedMs }, call) => {
    const invoked = { call, isReturn: false, atMs: invokedMs }
    return returnedMs === Infinity
      ? [invoked]
      : [invoked, { call, isReturn: true, atMs: returnedMs }]
  })
  // What happens at one moment is concurrent: invocations first.
  times.sort((a, b) => a.atMs - b.atMs || Number(a.isReturn) - Number(b.isReturn))
  const first: Event = { call: -1, isReturn: false, before: null, next: null }
  let last = first
  for (const { call, isReturn } of times) {
    const event: Event = { call, isReturn, before: last, next: null }
    last.next = event
    last = event
  }
  return first
}

function lift(event: Event): void {
  event.before!.next = event.next
  if (event.next) event.next.before = event.before
}

function put(event: Event): void {
  event.before!.next = event
  if (event.next) event.next.before = event
}

/** A set of small numbers with a text of its own. */
class Bits {
  readonly #words: Uint32Array

  constructor(size: number) {
    this.#words = new Uint32Array(Math.ceil(size / 32))
  }

  has(bit: number): boolean {
    return (this.#words[bit >>> 5]! & (1 << (bit & 31))) !== 0
  }

  add(bit: number): void {
    this.#words[bit >>> 5]! |= 1 << (bit & 31)
  }

  remove(bit: number): void {
    this.#words[bit >>> 5]! &= ~(1 << (bit & 31))
  }

  text(): string {
    return this.#words.join()
  }
}
