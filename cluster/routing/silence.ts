// How long silence of an owner is normal: four times the p99 of the answers of late, from one
// second to five. Resending early would double the work just when the engines are slow. Source:
// PROTOCOL 3.6 (edge 2).

const SILENCE_MS_MIN = 1_000
/** One more copy in so long is no burden, and a caller whose copy was lost waits for it. */
const SILENCE_MS_MAX = 5_000
const ANSWERS_MAX = 512
const TIMES_P99 = 4

export class Silence {
  readonly #tookMs = new Float64Array(ANSWERS_MAX)
  #answers = 0
  #resendMs = SILENCE_MS_MIN
  #lookedAt = 0

  answered(tookMs: number): void {
    this.#tookMs[this.#answers % ANSWERS_MAX] = tookMs
    this.#answers++
  }

  /** A copy that has waited longer may be sent again, milliseconds. */
  get resendMs(): number {
    if (this.#answers - this.#lookedAt >= ANSWERS_MAX / 4) {
      this.#lookedAt = this.#answers
      const known = this.#tookMs.slice(0, Math.min(this.#answers, ANSWERS_MAX)).toSorted()
      const p99 = known[Math.floor(known.length * 0.99)]!
      this.#resendMs = Math.min(SILENCE_MS_MAX, Math.max(SILENCE_MS_MIN, TIMES_P99 * p99))
    }
    return this.#resendMs
  }

  /** The same behind so many copies: each waits twice as long as the one before. */
  againMs(copies: number): number {
    return Math.min(SILENCE_MS_MAX, this.resendMs * 2 ** (copies - 1))
  }
}
