// Nodes that a step finds by several values, as one list. Source: CONTRACT 1.4.

import { compareDocs, compareIds, compareRanks } from './evaluate.ts'
import { type Found, type GraphRow, NOTHING_FOUND } from './execute.ts'
import type { Step } from './plan.ts'

/**
 * What a step found by each of the values that an edge over a link goes by, as one: no node is
 * found by two of them. No more rows are held than a few times what the step shows.
 */
export class Merged {
  readonly #step: Step
  #only: Found | null = NOTHING_FOUND
  readonly #rows: GraphRow[] = []
  #more = false
  #count = 0

  constructor(step: Step) {
    this.#step = step
  }

  add(found: Found): void {
    this.#only = this.#only === NOTHING_FOUND ? found : null
    this.#rows.push(...found.rows)
    this.#more ||= found.more
    this.#count += found.count
    if (this.#rows.length > 4 * this.#step.limit) this.#cut()
  }

  found(): Found {
    // Edges without a link find all at once, in an order of their own.
    if (this.#only !== null) return this.#only
    this.#cut()
    return { rows: this.#rows, more: this.#more, count: this.#count }
  }

  #cut(): void {
    const { orderBy, limit } = this.#step
    this.#rows.sort(
      (a, b) => compareRanks(a, b) || compareDocs(orderBy, a.doc, b.doc) || compareIds(a, b),
    )
    this.#more ||= this.#rows.length > limit
    this.#rows.length = Math.min(this.#rows.length, limit)
  }
}
