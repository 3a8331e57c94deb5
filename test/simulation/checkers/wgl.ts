// A search for a linearization, after Wing and Gong with Lowe's memory of what was tried: given
// calls with their times and a sequential specification, is there an order of them that respects
// time and explains every answer? It knows nothing of ledgers. It stands between histories and the
// checker K3. Source: PROTOCOL 4.1; Lowe, "Testing for linearizability" (2017).

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
}

/** Tries at most so many states. */
const STATES_MAX = 400_000

export function linearize<S>(
  calls: readonly Call<S>[],
  { initial, key }: Specification<S>,
): Linearization {
  const first = listOf(calls)
  const returns = new Map<number, Event>()
  for (let event = first.next; event; event = event.next) {
    if (event.isReturn) returns.set(event.call, event)
  }
  const leadsOn = new Set(calls.map(({ after }) => after))
  let left = calls.filter(({ returnedMs }) => returnedMs !== Infinity).length
  const done = new Bits(calls.length)
  const seen = new Set<string>()
  const chosen: Chosen<S>[] = []
  let state = initial
  let stuckAt = ''
  let furthest = -1
  let event = first.next
  while (left > 0) {
    if (event !== null && !event.isReturn) {
      const call = calls[event.call]!
      const next = call.after !== null && !done.has(call.after) ? null : call.step(state)
      // What need not happen, changes nothing and leads to nothing is left out.
      const isIdle =
        next !== null &&
        call.returnedMs === Infinity &&
        !leadsOn.has(event.call) &&
        key(next) === key(state)
      if (next !== null && !isIdle) {
        done.add(event.call)
        const memory = `${done.text()} ${key(next)}`
        if (seen.has(memory)) done.remove(event.call)
        else {
          if (seen.size >= STATES_MAX) return { verdict: 'too large' }
          seen.add(memory)
          chosen.push({ event, state })
          state = next
          lift(event)
          if (call.returnedMs !== Infinity) {
            lift(returns.get(event.call)!)
            left--
          }
          event = first.next
          continue
        }
      }
      event = event.next
      continue
    }
    // A call has returned that no order so far explains: take the last choice back.
    if (chosen.length > furthest) {
      furthest = chosen.length
      stuckAt = event === null ? 'the end' : calls[event.call]!.name
    }
    const last = chosen.pop()
    if (!last) return { verdict: 'not linearizable', stuckAt }
    state = last.state
    done.remove(last.event.call)
    if (calls[last.event.call]!.returnedMs !== Infinity) {
      put(returns.get(last.event.call)!)
      left++
    }
    put(last.event)
    event = last.event.next
  }
  return { verdict: 'linearizable' }
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
