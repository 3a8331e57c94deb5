// Some of a load's answers, kept to be looked at afterwards: evenly over all of it, however long it
// is, in a bounded number. For a scenario that reads back what was acknowledged.

export class AnswerSample {
  readonly #most: number
  #answers: string[] = []
  #seen = 0
  /** Of so many answers one is kept. */
  #every = 1

  /** Keeps at most so many; of a load with more answers at least half as many. */
  constructor(most: number) {
    this.#most = most
  }

  /** Bodies as they came. */
  get answers(): readonly string[] {
    return this.#answers
  }

  /** Asked before each answer. */
  wantsNext(): boolean {
    return this.#seen++ % this.#every === 0
  }

  add(answer: string): void {
    this.#answers.push(answer)
    if (this.#answers.length < this.#most) return
    this.#answers = this.#answers.filter((_, i) => i % 2 === 0)
    this.#every *= 2
  }
}
