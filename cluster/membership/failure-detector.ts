// How long beats have stood still, on the reader's monotonic clock. Declarations of a death go by
// it, and so does a newcomer that takes over a name. Source: PROTOCOL 3.3.1, 3.3.3, 3.7 (I5).

import { LIMITS } from '../../config/limits.ts'
import type { MemberRow } from '../../storage/control.ts'
import { isAlive } from './view.ts'

interface Standing {
  readonly beat: number
  readonly sinceMs: number
  /** Seen to change, and not only seen. */
  readonly hasMoved: boolean
}

export class FailureDetector {
  readonly #standing = new Map<string, Standing>()
  #readMs = -Infinity

  /**
   * Takes what a read has found. `nowMs`: after its answer came, for a beat was surely sent before
   * it was seen, but perhaps after the read was begun. Reads that paused make the count start
   * afresh: an engine, or a reader, that was away must not make everyone look dead.
   */
  saw(rows: readonly MemberRow[], nowMs: number): void {
    if (nowMs - this.#readMs > LIMITS.membership.membersPauseMs) this.restart()
    this.#readMs = nowMs
    const seen = new Set<string>()
    for (const row of rows) {
      if (!isAlive(row)) continue
      seen.add(row.incarnation)
      const before = this.#standing.get(row.incarnation)
      if (before?.beat === row.beat) continue
      const hasMoved = before !== undefined
      this.#standing.set(row.incarnation, { beat: row.beat, sinceMs: nowMs, hasMoved })
    }
    for (const incarnation of this.#standing.keys()) {
      if (!seen.has(incarnation)) this.#standing.delete(incarnation)
    }
  }

  /** True when its beat, as last read, has stood still for as long as a death takes. */
  isTimedOut(incarnation: string): boolean {
    const standing = this.#standing.get(incarnation)
    return standing !== undefined && this.#readMs - standing.sinceMs >= LIMITS.membership.deathMs
  }

  /** True when its beat was seen to move since the count was begun. */
  hasMoved(incarnation: string): boolean {
    return this.#standing.get(incarnation)?.hasMoved === true
  }

  restart(): void {
    this.#standing.clear()
  }
}
