// Choices from a seed (mulberry32): the same seed asks for the same operations.

export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** In [0, 1). */
  share(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000
  }

  /** A whole number from 0, below `n`. */
  below(n: number): number {
    return Math.floor(this.share() * n)
  }

  between(from: number, to: number): number {
    return from + this.below(to - from)
  }

  one<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!
  }
}
