// Where new actors gather that may lie in any shard: in one shard of this member until its group is
// taken for an append, then in the next. So creates that arrive together commit as one group, and
// the log sees a few large appends instead of one for each shard; at rest each create finds a shard
// with nothing on its way and goes at once. Source: PROTOCOL 3.6 (edge 1), ARCHITECTURE 4.

import { LIMITS } from '../../config/limits.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { Clock } from '../clock.ts'
import type { ShardState } from '../sharding/core.ts'

/** What of a shard it goes by. */
export interface Gatherer {
  readonly number: number
  readonly state: ShardState
  readonly gate: {
    /** A group is on its way into the log. */
    readonly isFlying: boolean
    /** Groups that were taken for an append. */
    readonly taken: number
  }
}

export interface CreateBatchingOptions {
  readonly clock: Clock
  /** Shards of this member, by their number. */
  readonly shards: ReadonlyMap<number, Gatherer>
}

export class CreateBatching {
  readonly #options: CreateBatchingOptions
  #at: Gatherer | null = null
  /** Groups of it that had been taken when it was chosen. */
  #taken = 0
  #left = 0
  #untilMs = 0
  /** What is left of this round: every shard has its turn. */
  #round: number[] = []

  constructor(options: CreateBatchingOptions) {
    this.#options = options
  }

  /** The shard that the next new actor belongs in; null while this member serves none. */
  next(): number | null {
    const nowMs = this.#options.clock.monotonicMs()
    if (!this.#isOpen(nowMs)) {
      this.#at = this.#choose()
      if (this.#at === null) return null
      this.#taken = this.#at.gate.taken
      this.#left = LIMITS.routing.gatherActorsMax
      this.#untilMs = nowMs + LIMITS.routing.gatherMs
    }
    this.#left--
    return this.#at!.number
  }

  #isOpen(nowMs: number): boolean {
    const at = this.#at
    if (at === null || this.#left === 0 || nowMs >= this.#untilMs) return false
    if (this.#options.shards.get(at.number) !== at || at.state !== 'serving') return false
    return at.gate.taken === this.#taken
  }

  /** The next with nothing on its way; when there is none, the next. */
  #choose(): Gatherer | null {
    const { shards } = this.#options
    let busy: Gatherer | null = null
    let behind: number[] = []
    // The rest of this round, which may name shards that have gone, and then a whole one.
    for (let left = this.#round.length + shards.size; left > 0; left--) {
      if (this.#round.length === 0) this.#round = [...shards.keys()]
      const at = shards.get(this.#round.pop()!)
      if (at?.state !== 'serving' || at.number === SYSTEM_SHARD) continue
      if (!at.gate.isFlying) return at
      if (busy !== null) continue
      busy = at
      behind = [...this.#round]
    }
    // The round goes on behind it: one that stands still is not chosen again and again.
    if (busy !== null) this.#round = behind
    return busy
  }
}
