// Plans by a text, in bounded memory: a long query makes a plan a hundred times its length. The
// main thread has such a cache, and so has each reader.

export interface KeptBounds {
  readonly max: number
  /** Characters of the plans' JSON, all together. */
  readonly charsMax: number
}

/** No plan has more than this part of the room: one that is so long is seldom sent twice. */
const PART_OF_ROOM = 1 / 16

export class KeptPlans<P> {
  readonly #bounds: KeptBounds
  /** In order of last use. */
  readonly #plans = new Map<string, { readonly plan: P; readonly chars: number }>()
  #chars = 0

  constructor(bounds: KeptBounds) {
    this.#bounds = bounds
  }

  get size(): number {
    return this.#plans.size
  }

  find(key: string): P | null {
    const found = this.#plans.get(key)
    if (found === undefined) return null
    this.#plans.delete(key)
    this.#plans.set(key, found)
    return found.plan
  }

  /** `chars`: of its JSON. Those that were not used for longest have to go for it. */
  keep(key: string, plan: P, chars: number): void {
    const { max, charsMax } = this.#bounds
    if (chars > charsMax * PART_OF_ROOM) return
    this.#forget(key)
    for (const oldest of this.#plans.keys()) {
      if (this.#plans.size < max && this.#chars + chars <= charsMax) break
      this.#forget(oldest)
    }
    this.#plans.set(key, { plan, chars })
    this.#chars += chars
  }

  #forget(key: string): void {
    this.#chars -= this.#plans.get(key)?.chars ?? 0
    this.#plans.delete(key)
  }
}
