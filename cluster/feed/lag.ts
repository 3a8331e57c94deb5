// How far a consumer of the feed is behind, in entries and in time, and how much acknowledgements
// slow down because of it. It compares the projector's offsets with the heads; the runtime holds
// answers back for as long as it is told. Source: PROTOCOL 3.10, ARCHITECTURE 8.

import { LIMITS } from '../../config/limits.ts'

export interface Lag {
  /** Committed entries that the consumer has not taken. */
  readonly entries: number
  /** Upper bound on the age of the oldest of them, milliseconds. */
  readonly ageMs: number
}

/**
 * How long an acknowledgement is held back, milliseconds: 0 within both bounds, then in proportion
 * to how far the worse of them is passed, up to LIMITS.feed.ackDelayMsMax at twice the bound.
 * Callers that wait for their answers send less by it, until both rates agree; none gets an error.
 * The age of less than LIMITS.feed.indexLagEntriesMin counts in part: a consumer that could take
 * them in one go waits for a processor or a disk that others have, and gets neither by callers
 * sending less.
 */
export function ackDelayMs({ entries, ageMs }: Lag): number {
  const share = Math.min(entries / LIMITS.feed.indexLagEntriesMin, 1)
  const over = Math.max(
    entries / LIMITS.feed.indexLagEntriesMax,
    (share * ageMs) / LIMITS.feed.indexLagMs,
  )
  if (over <= 1) return 0
  return Math.min(over - 1, 1) * LIMITS.feed.ackDelayMsMax
}

/** Where the consumer stands. Offsets never fall. */
export interface Progress {
  /** Done up to and including; 0 at the beginning. */
  applied(shard: number): number
  /** Time of the newest entry taken, milliseconds since 1970; 0 when none was. */
  appliedTimeMs(shard: number): number
}

/** Compares heads, as they are committed, with a consumer's progress. */
export class LagMeter {
  readonly #progress: Progress
  readonly #nowMs: () => number
  readonly #heads = new Map<number, number>()
  /** When the shard's head left a consumer behind that had all of it. */
  readonly #sinceMs = new Map<number, number>()

  constructor(progress: Progress, nowMs: () => number) {
    this.#progress = progress
    this.#nowMs = nowMs
  }

  get heads(): ReadonlyMap<number, number> {
    return this.#heads
  }

  /** The shard's newest committed offset. */
  committed(shard: number, head: number): void {
    const before = this.#heads.get(shard) ?? 0
    if (this.#progress.applied(shard) >= before) this.#sinceMs.set(shard, this.#nowMs())
    this.#heads.set(shard, Math.max(head, before))
  }

  /** The shard is no longer ours to measure. */
  forget(shard: number): void {
    this.#heads.delete(shard)
    this.#sinceMs.delete(shard)
  }

  lag(): Lag {
    let entries = 0
    let ageMs = 0
    const nowMs = this.#nowMs()
    for (const [shard, head] of this.#heads) {
      const applied = this.#progress.applied(shard)
      if (applied >= head) continue
      entries += head - applied
      // The oldest entry that is missing is no older than the newest one that is there.
      const sinceMs = this.#sinceMs.get(shard) ?? nowMs
      ageMs = Math.max(ageMs, nowMs - Math.max(sinceMs, this.#progress.appliedTimeMs(shard)))
    }
    return { entries, ageMs }
  }
}
