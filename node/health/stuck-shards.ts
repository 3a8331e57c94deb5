// Shards that stand still: what is committed but does not get on, for longer than anything that is
// healthy takes. A process that looks alive and does nothing must not count as ready. Source:
// PROTOCOL 3.11 "A stuck shard must show".

import { LIMITS } from '../../config/limits.ts'

/** How far one follower of a shard's log is. */
export interface Position {
  /** Who follows, for people: `derived rows`, `graph index`. */
  readonly follower: string
  readonly shard: number
  readonly head: number
  readonly applied: number
  /**
   * Times that what it writes to was away, and steps by which that is filled from the beginning:
   * while these rise it is not the shard that is stuck.
   */
  readonly outages: number
}

interface Seen {
  applied: number
  outages: number
  sinceMs: number
}

export class StuckShardWatch {
  readonly #clock: { monotonicMs(): number }
  #seen = new Map<string, Seen>()

  constructor(clock: { monotonicMs(): number }) {
    this.#clock = clock
  }

  /** Returns what is stuck, in words; called whenever readiness is asked for. */
  look(positions: Iterable<Position>): readonly string[] {
    const nowMs = this.#clock.monotonicMs()
    const stuck: string[] = []
    const seen = new Map<string, Seen>()
    for (const { follower, shard, head, applied, outages } of positions) {
      if (head <= applied) continue
      const name = `${follower}/${shard}`
      const before = this.#seen.get(name)
      const hasMoved = before?.applied !== applied || before.outages !== outages
      const now = hasMoved ? { applied, outages, sinceMs: nowMs } : before
      seen.set(name, now)
      const ms = nowMs - now.sinceMs
      if (ms < LIMITS.health.stuckShardMs) continue
      const place = `at offset ${applied} of ${head} for ${Math.floor(ms / 1_000)} s`
      stuck.push(`the ${follower} of shard ${shard} stand still ${place}`)
    }
    this.#seen = seen
    return stuck
  }
}
