// The rebalancer: the member that ranks first asks the owners to hand shards over to their targets,
// a few at a time. Every member has one, and it is silent in all but that member. Source: PROTOCOL
// 3.4.

import { LIMITS } from '../../config/limits.ts'
import type { Clock } from '../clock.ts'
import type { ClusterView } from '../membership/view.ts'
import { isRebalancer, movesAtOnce, movesDue } from './moves.ts'
import type { Move } from './moves.ts'

export interface RebalancerOptions {
  readonly clock: Clock
  readonly member: string
  /** Whether that incarnation was seen to beat, and not only its row to say `up`. */
  readonly isBeating: (incarnation: string) => boolean
  /** Asks the present owner; what comes of it shows in the rows. */
  readonly requestMove: (move: Move) => void
}

export class Rebalancer {
  readonly #options: RebalancerOptions
  /** Moves that were asked for, with the time. */
  readonly #moving = new Map<number, { readonly epoch: number; readonly sinceMs: number }>()
  /** When each incarnation that is up was first seen, by this member's clock. */
  readonly #upSince = new Map<string, number>()

  constructor(options: RebalancerOptions) {
    this.#options = options
  }

  /** Forgets what was asked for. */
  reset(): void {
    this.#moving.clear()
  }

  isMoving(shard: number): boolean {
    return this.#moving.has(shard)
  }

  /** The next owner has said that it serves. */
  moved(shard: number): void {
    this.#moving.delete(shard)
  }

  /** The incarnations that are up or leaving, as of now. */
  living(incarnations: ReadonlySet<string>): void {
    const nowMs = this.#options.clock.monotonicMs()
    for (const incarnation of incarnations)
      if (!this.#upSince.has(incarnation)) this.#upSince.set(incarnation, nowMs)
    for (const incarnation of this.#upSince.keys())
      if (!incarnations.has(incarnation)) this.#upSince.delete(incarnation)
  }

  /** Asks for what is due, when it is this member's to ask. */
  look(view: ClusterView): void {
    const { clock, member, requestMove } = this.#options
    if (!isRebalancer(view, member)) return this.#moving.clear()
    const nowMs = clock.monotonicMs()
    for (const [shard, { epoch, sinceMs }] of this.#moving) {
      const isOver = view.shards.get(shard)?.epoch !== epoch
      if (isOver || nowMs - sinceMs > LIMITS.placement.moveMs) this.#moving.delete(shard)
    }
    for (const move of movesDue(view)) {
      const { shard, epoch, to } = move
      if (this.#moving.size >= movesAtOnce(view.shards.size)) return
      if (this.#moving.has(shard) || !this.#hasSettled(to, nowMs) || view.saysDown(to)) continue
      this.#moving.set(shard, { epoch, sinceMs: nowMs })
      requestMove(move)
    }
  }

  /**
   * A process that has just begun is slow: nothing is moved to it before it has run for a bit. Nor
   * to one that may have died while this member, or all of them, rested.
   */
  #hasSettled(incarnation: string, nowMs: number): boolean {
    if (!this.#options.isBeating(incarnation)) return false
    return nowMs - (this.#upSince.get(incarnation) ?? nowMs) >= LIMITS.placement.moveSettleMs
  }
}
