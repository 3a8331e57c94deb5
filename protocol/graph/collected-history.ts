// History nodes that a step keeps of those that are read, newest first, and when it has enough.
// Source: CONTRACT 1.4 "orderBy", "Cursors".

import { docAt, rankAt, type Row } from './cursor.ts'
import { compareDocs, compareRanks, compareText, type Doc } from './evaluate.ts'
import type { Step } from './plan.ts'

/** A history node, and how many were read before it. */
interface Aged {
  readonly row: Row
  readonly age: number
}

/** Takes the history nodes that match, newest first, and keeps those that the answer shows. */
export class Collected {
  /** Nodes read so far, those that don't match included. */
  age = 0
  readonly #step: Step
  readonly #room: number
  readonly #after: Doc | null
  /** The node that the cursor was made of has been read. */
  #isPast = false
  #kept: Aged[] = []
  #count = 0

  constructor(step: Step) {
    this.#step = step
    this.#room = step.limit + 1
    this.#after = step.after === undefined ? null : docAt(step.orderBy, step.after)
  }

  /** Every node that is read, in order; false: it is not behind the cursor's. */
  meets(row: Row): boolean {
    if (this.#after === null) return true
    const { doc, id, actorId } = row
    const { orderBy, after, phrase } = this.#step
    const order =
      (phrase === null ? 0 : compareRanks(row, { rank: rankAt(after!) })) ||
      compareDocs(orderBy, doc, this.#after) ||
      compareText(actorId, after!.actorId)
    if (order !== 0) return order > 0
    if (id === after!.id) {
      this.#isPast = true
      return false
    }
    // Sorted, an actor's entries go by their place in the journal; else the newest comes first.
    return this.#sorts !== this.#isPast
  }

  get #sorts(): boolean {
    return this.#step.orderBy.length > 0 || this.#step.phrase !== null
  }

  get #counts(): boolean {
    return this.#step.returns === 'count' || this.#step.returns === 'both'
  }

  add(row: Row, isBehind: boolean): void {
    this.#count++
    if (!isBehind) return
    if (this.#sorts || this.#kept.length < this.#room) this.#kept.push({ row, age: this.age })
    if (this.#kept.length < 4 * this.#room) return
    this.#kept = sorted(this.#step, this.#kept).slice(0, this.#room)
  }

  /** True: whatever comes, the answer stays the same. */
  get isDone(): boolean {
    return this.#kept.length === this.#room && !this.#sorts && !this.#counts
  }

  found(): { readonly rows: readonly Row[]; readonly more: boolean; readonly count: number } {
    const { returns, limit } = this.#step
    const kept = this.#sorts ? sorted(this.#step, this.#kept) : this.#kept
    const rows = returns === 'count' ? [] : kept.slice(0, limit).map((one) => one.row)
    return { rows, more: kept.length > limit, count: this.#count }
  }
}

function sorted(step: Step, kept: readonly Aged[]): Aged[] {
  return kept.toSorted(
    (a, b) =>
      compareRanks(a.row, b.row) ||
      compareDocs(step.orderBy, a.row.doc, b.row.doc) ||
      compareText(a.row.actorId, b.row.actorId) ||
      // Younger entries are read first: the greater age has the earlier place in the journal.
      b.age - a.age,
  )
}
