// Turns of reads from the index: so many at a time, those that wait in the order in which they
// came. Source: CONTRACT 1.10.

export class ReadTurns {
  readonly #atOnceMax: number
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(atOnceMax: number) {
    this.#atOnceMax = atOnceMax
  }

  /** Resolves when it is the caller's turn, which ends with `leave`. */
  async enter(): Promise<void> {
    if (this.#running < this.#atOnceMax) {
      this.#running++
      return
    }
    await new Promise<void>((resolve) => void this.#waiting.push(resolve))
  }

  leave(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#running--
    else next()
  }

  /** All that wait have their turn at once. */
  end(): void {
    this.#running += this.#waiting.length
    for (const next of this.#waiting.splice(0)) next()
  }
}
