// Room that many share, in pieces or bytes: nobody may have more of it than is then still free. So
// whoever takes all they can leaves a half, the next a quarter, and there is some for whoever comes
// after them: who fills it is refused, not who comes next (dynamic thresholds of shared buffers,
// Choudhury and Hahne). Source: CONTRACT 1.10 "Bounds", PROTOCOL 3.10.

export class FairRoom {
  readonly #max: () => number
  readonly #byHolder = new Map<string, number>()
  #taken = 0

  constructor(max: () => number) {
    this.#max = max
  }

  /** By all. */
  get taken(): number {
    return this.#taken
  }

  /** By one. */
  of(holder: string): number {
    return this.#byHolder.get(holder) ?? 0
  }

  /** Whether there is room for so much of this holder. */
  hasRoom(holder: string, amount: number): boolean {
    return this.of(holder) + amount <= this.#max() - this.#taken - amount
  }

  /**
   * Whether a holder who has been let in, and whose part grows by itself, has too much: more than
   * one may ever have, or more than its part where all of it is taken. Who comes later and takes
   * some drives nobody out.
   */
  hasTooMuch(holder: string): boolean {
    const [max, own] = [this.#max(), this.of(holder)]
    return 2 * own > max || (this.#taken > max && own * this.#byHolder.size > max)
  }

  /** False: there is no room for it, and nothing was taken. */
  enter(holder: string, amount: number): boolean {
    if (!this.hasRoom(holder, amount)) return false
    this.add(holder, amount)
    return true
  }

  /** Takes it, or gives it back, whatever room there is. */
  add(holder: string, amount: number): void {
    const own = this.of(holder) + amount
    if (own > 0) this.#byHolder.set(holder, own)
    else this.#byHolder.delete(holder)
    this.#taken += amount
  }
}
