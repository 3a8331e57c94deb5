// Which derived rows stand for a while only, and from when their time counts: one rule for every
// driver. What is needed to read an actor never goes, unless all of it does; what goes only answers
// somebody who repeats a message, and nobody does so after that time. Each driver has its own way
// to let a row go. Source: PROTOCOL 3.6 (dedup), 3.12 "What expires", "Forgotten actors".

import { LIMITS } from '../config/limits.ts'
import { decodeEntry, holdsRecords, type EntryHead } from '../protocol/entry/entry.ts'
import { CREATE_KEY_SUFFIX, type DerivedRow } from './journal.ts'

/**
 * An actor's entries whose number is a multiple of this stay, whatever they hold: a driver may keep
 * so many of them together, and knows by the last one of them that there are more.
 */
export const ENTRIES_TOGETHER = 256

/** How long a row stands that may go: LIMITS.storage.derivedTtlSeconds, counted from here. */
export interface RowExpiry {
  /**
   * The shard's clock, milliseconds; null: the row doesn't say, so from whenever it was seen. Never
   * a wall clock: that may be wrong, and set right.
   */
  readonly from: number | null
}

/**
 * The expiry of a row that may go; null: it stays. What may go is an entry that says no more than
 * what its sender was told, a key of a create, an id that has left its actor's window, an actor
 * that is parked no more. An entry that ends an actor which is forgotten goes after everything that
 * the actor had before it, never sooner. In a store with accepted losses entries stay all the same:
 * they say how far the numbers behind a loss go on.
 */
export function expiryOf(row: DerivedRow): RowExpiry | null {
  switch (row.kind) {
    case 'entry':
      if (row.passesFrom !== undefined) return { from: row.passesFrom }
      return row.n % ENTRIES_TOGETHER === 0 ? null : expiryOfEntry(row.body)
    case 'alias': {
      const { keyType, claims } = row.row
      if (!keyType.endsWith(CREATE_KEY_SUFFIX)) return null
      return { from: claims.reduce((latest, { clock }) => Math.max(latest, clock), 0) }
    }
    case 'snapshot':
      return row.passesFrom === undefined ? null : { from: row.passesFrom }
    case 'mark':
      // Looked for under its day and the next one.
      return { from: (row.day + 1) * LIMITS.storage.callerMarkMs }
    case 'parked':
      return row.body === null ? { from: null } : null
    default:
      return null
  }
}

/**
 * The same of an entry as it stands in a log, of which those of a key alone have no row: its bytes
 * may go with its row. One that hands out numbers or has effects stays: who makes the rows anew
 * from the log wants to see it.
 */
export function expiryOfLogged(body: Uint8Array): RowExpiry | null {
  const expiry = expiryOfEntry(body)
  if (expiry === null) return null
  const { n, e, g } = decodeEntry(body)
  const isOneOfMany = n > 0 && n % ENTRIES_TOGETHER === 0
  return isOneOfMany || e !== undefined || g !== undefined ? null : expiry
}

/** The row of an actor's entry, with what says when it goes. */
export function entryRow(entry: EntryHead, offset: number, body: Uint8Array): EntryRowOf {
  const { p: actorId, n, f } = entry
  const row: EntryRowOf = { kind: 'entry', actorId, n, offset, body }
  return f === undefined ? row : { ...row, passesFrom: f }
}

type EntryRowOf = Extract<DerivedRow, { kind: 'entry' }>

/** True for a row that may go after its time. */
export function isPassing(row: DerivedRow): boolean {
  return expiryOf(row) !== null
}

/**
 * An entry that changed nothing may go. Where a relayed message came from is remembered for ever,
 * by the entry while there is no snapshot, and so are the keys that an actor holds; the key of a
 * create lives as long as its entry.
 */
function expiryOfEntry(body: Uint8Array): RowExpiry | null {
  if (holdsRecords(body)) return null
  const { s, k, c, f } = decodeEntry(body)
  // It goes with its actor.
  if (f !== undefined) return null
  const isNeeded = s !== undefined || k?.some(({ keyType }) => !keyType.endsWith(CREATE_KEY_SUFFIX))
  return isNeeded ? null : { from: c }
}
