// The entries that a reader took lately, by what names each of them: what comes again is not taken
// again. Source: PROTOCOL 3.6 "Wire".

/** Remembers at least so many of the ids that it has seen last. */
export class KnownIds {
  readonly #max: number
  #recent = new Set<string>()
  #before = new Set<string>()

  constructor(max: number) {
    this.#max = max
  }

  /** True the first time. */
  isNew(id: string): boolean {
    if (this.#recent.has(id) || this.#before.has(id)) return false
    this.#recent.add(id)
    if (this.#recent.size >= this.#max) {
      this.#before = this.#recent
      this.#recent = new Set()
    }
    return true
  }
}
