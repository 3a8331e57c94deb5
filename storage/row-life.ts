// Which derived rows stand for a while only, and from when their time counts: one rule for every
// driver. What is needed to read an actor never goes; what goes only answers somebody who repeats
// a message, and nobody does so after that time. It stands between the rows as the runtime makes
// them and the drivers, each of which has its own way to let a row go. Source: PROTOCOL 3.6
// (dedup), 3.12 "What expires".

import { decodeEntry, holdsRecords } from '../protocol/entry.ts'
import { CREATE_KEY_SUFFIX, type DerivedRow } from './journal.ts'

const DAY_MS = 86_400_000

/**
 * An actor's entries whose number is a multiple of this stay, whatever they hold: a driver may keep
 * so many of them together, and knows by the last one of them that there are more.
 */
export const ENTRIES_TOGETHER = 256

/**
 * True for a row that may go LIMITS.derivedTtlSeconds after it was written: an entry that says no
 * more than what its sender was told, a key of a create, an id that has left its actor's window, an
 * actor that is parked no more. Not in a store with accepted losses: there entries stay all the
 * same, for they say how far the numbers behind a loss go on.
 */
export function isPassing(row: DerivedRow): boolean {
  switch (row.kind) {
    case 'entry':
      return row.n % ENTRIES_TOGETHER !== 0 && isAnswer(row.body)
    case 'alias':
      return row.row.keyType.endsWith(CREATE_KEY_SUFFIX)
    case 'mark':
      return true
    case 'parked':
      return row.body === null
    default:
      return false
  }
}

/**
 * An entry that changed nothing. Where a relayed message came from is remembered for ever, by the
 * entry while there is no snapshot, and so are the keys that an actor holds; the key of a create
 * lives as long as its entry.
 */
function isAnswer(body: Uint8Array): boolean {
  if (holdsRecords(body)) return false
  const { s, k } = decodeEntry(body)
  if (s !== undefined) return false
  return k === undefined || k.every(({ keyType }) => keyType.endsWith(CREATE_KEY_SUFFIX))
}

/**
 * The shard's clock, milliseconds, from which a passing row's time counts; null: the row doesn't
 * say, so from whenever it was seen. Never a wall clock: that may be wrong, and set right.
 */
export function livesFrom(row: DerivedRow): number | null {
  switch (row.kind) {
    case 'entry':
      return decodeEntry(row.body).c
    case 'alias':
      return row.row.claims.reduce((latest, { clock }) => Math.max(latest, clock), 0)
    case 'mark':
      // Looked for under its day and the next one.
      return (row.day + 1) * DAY_MS
    default:
      return null
  }
}
