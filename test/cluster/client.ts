// One client of a run: its random choices, its newest write, the marks that it leaves. The workload
// says what clients do; the history knows them by name.

import type { Operation } from './operation-history.ts'
import type { Random } from './random.ts'

/** An order that was made, as far as its clients know. */
export interface KnownOrder {
  readonly id: string
  readonly number: string
  readonly deliveryId: string
  marks: number
}

/** One client: it does one thing after the other. */
export class Client {
  readonly name: string
  readonly random: Random
  /** Its newest write with a token. */
  last: Operation | null = null
  #marks = 0

  constructor(name: string, random: Random) {
    this.name = name
    this.random = random
  }

  newMarks(count: number): readonly string[] {
    const mark = `${this.name}.${++this.#marks}`
    return Array.from({ length: count }, (_, i) => `${mark}.${i}`)
  }

  addressOf({ id, number }: KnownOrder): string {
    return this.random.share() < 0.5 ? id : number
  }

  /** Another one that does something at the same time. */
  rival(): Client {
    return new Client(`${this.name}-rival-${++this.#marks}`, this.random)
  }
}
