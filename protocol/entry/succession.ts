// Which stored entry of an actor goes on from those before it. An actor's entries are read in the
// order of their numbers; those without records may be missing anywhere, for they expire, so only
// the versions of records say whether anything is missing. Pure. Source: PROTOCOL 3.12 "Reading an
// actor".

import { isEnd, LOSS_JUMP, type EntryHead } from './entry.ts'

/** Where a reader of an actor's entries stands. */
export interface Standing {
  /** Records so far. */
  version: number
  /** Offset of the newest entry with records so far, or of the snapshot that was begun with. */
  recordedAt: number
}

/**
 * `next`: it goes on from what was read, or has no records and may stand anywhere. `stray`: its
 * offset is not above that of records before it: a leftover of an abandoned timeline, whatever
 * its version says; it is passed over. `gap`: entries with records are missing before it;
 * before the end of an actor that is forgotten none are missed.
 */
export type Succession = 'next' | 'stray' | 'gap'

export function successionOf(at: Standing, entry: EntryHead, offset: number): Succession {
  if (entry.r.length === 0) return 'next'
  if (offset <= at.recordedAt) return 'stray'
  if (isEnd(entry)) return 'next'
  return entry.v === at.version || entry.v === at.version + LOSS_JUMP ? 'next' : 'gap'
}

/**
 * Moves a reader over an entry, one behind a gap too. Only records count: what an entry without any
 * says of the version is not believed.
 */
export function moveOver(at: Standing, entry: EntryHead, offset: number): void {
  if (entry.r.length > 0) {
    at.version = Math.max(at.version, entry.v + entry.r.length)
    at.recordedAt = offset
  } else if (entry.v === at.version + LOSS_JUMP) {
    // Behind an accepted loss (PROTOCOL 3.16): what comes next is as much higher.
    at.version = entry.v
  }
}
