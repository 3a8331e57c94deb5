// Envelopes that a shard keeps while it can't run them but soon will, or somebody else will: while
// it is claimed, while it is sealed for its next owner, while a suspect message runs alone. Bounded
// in number, bytes and time; what is over the bound is answered `moved`, and its edge sends it
// again. Source: PROTOCOL 3.8, 3.11.

import { LIMITS } from '../../../config/limits.ts'
import type { Envelope, WireReply } from '../../../protocol/message.ts'
import type { Clock } from '../../clock.ts'
import { doubted } from '../core.ts'
import type { Work } from './work.ts'

type Respond = (reply: WireReply) => void

export interface HeldEnvelope {
  readonly envelope: Envelope
  readonly respond: Respond
}

interface Holding extends HeldEnvelope {
  readonly sinceMs: number
  readonly bytes: number
}

export class Stash {
  readonly #clock: Clock
  readonly #moved: () => WireReply
  #list: Holding[] = []
  #bytes = 0
  #timer: (() => void) | null = null

  /** `moved`: the answer to what can't be held, or not any longer. */
  constructor(clock: Clock, moved: () => WireReply) {
    this.#clock = clock
    this.#moved = moved
  }

  get size(): number {
    return this.#list.length
  }

  add(envelope: Envelope, respond: Respond): void {
    // What is held waits for a round trip or two: its size is worth a look.
    const bytes = JSON.stringify(envelope.messages).length
    const isOver =
      this.#list.length >= LIMITS.sharding.sealedHeldMax ||
      (this.#bytes + bytes > LIMITS.sharding.sealedHeldBytesMax && this.#list.length > 0)
    if (isOver) {
      respond(this.#moved())
      return
    }
    this.#bytes += bytes
    this.#list.push({ envelope, respond, bytes, sinceMs: this.#clock.monotonicMs() })
    this.#watch()
  }

  /** A work that was begun: part of it may be in the log, nothing about it is fresh any more. */
  addBegun({ envelope, respond, position }: Work): void {
    const again = { ...envelope, copy: Math.max(1, envelope.copy) }
    this.add(again, position === 0 ? respond : (reply) => respond(doubted(reply)))
  }

  /** Hands out everything, oldest first, with the time that each has left. */
  take(): readonly HeldEnvelope[] {
    const nowMs = this.#clock.monotonicMs()
    const taken = this.#empty()
    return taken.map(({ envelope, respond, sinceMs }) => {
      const waitedMs = nowMs - sinceMs
      if (waitedMs === 0) return { envelope, respond }
      return { envelope: { ...envelope, budgetMs: envelope.budgetMs - waitedMs }, respond }
    })
  }

  /** Answers everything. */
  answer(reply: WireReply): void {
    for (const { respond } of this.#empty()) respond(reply)
  }

  #empty(): readonly Holding[] {
    const all = this.#list
    this.#list = []
    this.#bytes = 0
    this.#timer?.()
    this.#timer = null
    return all
  }

  #watch(): void {
    const oldest = this.#list[0]
    if (this.#timer !== null || oldest === undefined) return
    const leftMs = oldest.sinceMs + LIMITS.sharding.sealedHeldMs - this.#clock.monotonicMs()
    this.#timer = this.#clock.after(Math.max(0, leftMs), () => {
      this.#timer = null
      this.#expire()
      this.#watch()
    })
  }

  #expire(): void {
    const untilMs = this.#clock.monotonicMs() - LIMITS.sharding.sealedHeldMs
    let old = 0
    while (old < this.#list.length && this.#list[old]!.sinceMs <= untilMs) old++
    const expired = this.#list.splice(0, old)
    for (const { bytes } of expired) this.#bytes -= bytes
    for (const { respond } of expired) respond(this.#moved())
  }
}
