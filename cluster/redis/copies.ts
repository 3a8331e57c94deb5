// The copies that this member has sent and that are not answered, by their numbers: an answer finds
// its asker here. It bounds what may be on its way: bytes a destination, copies in all. Each is
// forgotten once its budget is over. Source: PROTOCOL 3.6 "Wire", 3.10.

import { LIMITS } from '../../config/limits.ts'
import type { WireReply } from '../../protocol/message.ts'
import type { Clock } from '../clock.ts'

export interface Copy {
  readonly to: string
  readonly bytes: number
  readonly respond: (reply: WireReply) => void
  /** Monotonic. */
  readonly forgetMs: number
}

const SWEEP_MS = 1_000

export class Copies {
  readonly #clock: Clock
  readonly #copies = new Map<number, Copy>()
  readonly #bytesTo = new Map<string, number>()
  #last = 0
  #sweeping = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#copies.size
  }

  /** The number that the next copy gets. */
  get next(): number {
    return this.#last + 1
  }

  /** True while a copy of that size may go; one larger than the bound goes alone. */
  hasRoom(to: string, bytes: number): boolean {
    if (this.#copies.size >= LIMITS.redis.copiesMax) return false
    const before = this.#bytesTo.get(to) ?? 0
    return before === 0 || before + bytes <= LIMITS.redis.bytesMax
  }

  /** Notes the copy that has the number `next`. */
  add(to: string, bytes: number, budgetMs: number, respond: Copy['respond']): void {
    const forgetMs = this.#clock.monotonicMs() + budgetMs + SWEEP_MS
    this.#copies.set(++this.#last, { to, bytes, respond, forgetMs })
    this.#bytesTo.set(to, (this.#bytesTo.get(to) ?? 0) + bytes)
    this.#sweepLater()
  }

  /** The answer to a copy; later ones, and those to nobody, go nowhere. */
  answer(number: number, reply: WireReply): void {
    const copy = this.#copies.get(number)
    if (!copy) return
    this.#forget(number, copy)
    copy.respond(reply)
  }

  /** No answer can come from there any more. */
  forgetAllTo(to: string): void {
    for (const [number, copy] of this.#copies) if (copy.to === to) this.#forget(number, copy)
  }

  #forget(number: number, { to, bytes }: Copy): void {
    this.#copies.delete(number)
    const left = this.#bytesTo.get(to)! - bytes
    if (left === 0) this.#bytesTo.delete(to)
    else this.#bytesTo.set(to, left)
  }

  #sweepLater(): void {
    if (this.#sweeping) return
    this.#sweeping = true
    this.#clock.after(SWEEP_MS, () => {
      this.#sweeping = false
      const nowMs = this.#clock.monotonicMs()
      for (const [number, copy] of this.#copies) {
        if (copy.forgetMs <= nowMs) this.#forget(number, copy)
      }
      if (this.#copies.size > 0) this.#sweepLater()
    })
  }
}
