// What must hold of an actor's stored entries, read in the order of their numbers: nothing with
// records missing, nothing left over from another timeline. It is the rule by which actors are
// read (protocol/entry/succession.ts); entries without records may be missing anywhere. Pure.
// Source: PROTOCOL 3.12 "Reading an actor".

import { decodeWholeEntry, type EntryHead } from '../protocol/entry/entry.ts'
import { moveOver, successionOf, type Standing } from '../protocol/entry/succession.ts'

export interface StoredEntry {
  readonly n: number
  readonly offset: number
  readonly body: Uint8Array
}

/** One actor's rows. */
export class RowAudit implements Standing {
  version = 0
  recordedAt = 0
  /** Number of the newest entry with records. */
  #recordedN = 0
  readonly #report: (what: string) => void

  constructor(report: (what: string) => void) {
    this.#report = report
  }

  /**
   * The next row. Throws when its entry can't be read. `isForgotten`: the actor's end is further
   * on, and what was before it may be gone in part.
   */
  next({ n, offset, body }: StoredEntry, isForgotten = false): EntryHead {
    const entry = decodeWholeEntry(body)
    switch (successionOf(this, entry, offset)) {
      case 'next':
        break
      case 'gap':
        if (isForgotten) break
        this.#report(
          `${placeOf(entry, offset)} does not go on from what is there before it, which ends at ` +
            `version ${this.version}: what it had before is missing`,
        )
        break
      case 'stray':
        this.#report(
          `${placeOf(entry, offset)} was acknowledged and is left out: entry ` +
            `${this.#recordedN} before it is a later one, of offset ${this.recordedAt}`,
        )
        return entry
    }
    moveOver(this, entry, offset)
    if (entry.r.length > 0) this.#recordedN = n
    return entry
  }
}

/** An entry with records, as one who has to decide what becomes of it wants to know it. */
export function placeOf({ n, v, r, t, m }: EntryHead, offset: number): string {
  const when = new Date(t).toISOString()
  return `entry ${n} (offset ${offset}, version ${v} to ${v + r.length}, ${when}, message ${m})`
}
