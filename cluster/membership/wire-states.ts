// Whose wire is down: what an incarnation says of its own, not at every loss and not at once when
// it is back; and who counts as cut off because it is down there while it is up elsewhere. A wire
// that is down for all cuts nobody off. Source: PROTOCOL 3.4 "Cut off".

import { LIMITS } from '../../config/limits.ts'
import type { MemberRow, WireState } from '../../storage/control.ts'

/** What this incarnation says of its wire. Times are monotonic milliseconds. */
export class OwnWire {
  #said: WireState
  /** It has been up in this incarnation: that it is up again must last. */
  #wasUp: boolean
  /** Since when it is otherwise than was said. */
  #otherMs: number | null = null

  constructor(isUp: boolean) {
    this.#said = isUp ? 'up' : 'down'
    this.#wasUp = isUp
  }

  get said(): WireState {
    return this.#said
  }

  get wasUp(): boolean {
    return this.#wasUp
  }

  /** Looked at now; returns what is to be said. */
  look(isUp: boolean, nowMs: number): WireState {
    if (isUp === (this.#said === 'up')) {
      this.#otherMs = null
      return this.#said
    }
    this.#otherMs ??= nowMs
    const afterMs = isUp
      ? this.#wasUp
        ? LIMITS.membership.wireUpMs
        : 0
      : LIMITS.membership.wireDownMs
    if (nowMs - this.#otherMs >= afterMs) {
      this.#otherMs = null
      this.#said = isUp ? 'up' : 'down'
      this.#wasUp ||= isUp
    }
    return this.#said
  }
}

interface Seen {
  readonly wire: WireState
  readonly sinceMs: number
}

/** Who counts as cut off, as one member sees the rows. */
export class CutOff {
  #seen = new Map<string, Seen>()
  #lookedMs = -Infinity

  /**
   * Incarnations whose wire has been down for LIMITS.membership.wireApartMs, while that of another
   * one has been up for as long. It begins afresh when reads have paused: nobody could say anything
   * then.
   */
  saw(members: readonly MemberRow[], nowMs: number): ReadonlySet<string> {
    const before = nowMs - this.#lookedMs > LIMITS.membership.membersPauseMs ? null : this.#seen
    this.#lookedMs = nowMs
    this.#seen = new Map()
    for (const { incarnation, state, wire = 'up' } of members) {
      if (state !== 'up') continue
      const known = before?.get(incarnation)
      this.#seen.set(incarnation, known?.wire === wire ? known : { wire, sinceMs: nowMs })
    }
    const lasting = [...this.#seen].filter(([, { sinceMs }]) => {
      return nowMs - sinceMs >= LIMITS.membership.wireApartMs
    })
    if (!lasting.some(([, { wire }]) => wire === 'up')) return NOBODY
    return new Set(
      lasting.filter(([, { wire }]) => wire === 'down').map(([incarnation]) => incarnation),
    )
  }
}

const NOBODY: ReadonlySet<string> = new Set()
