// Which derived rows stand for a while only: what answers a repeated request is forgotten with the
// request's key. It stands between the rows as the runtime makes them and the drivers, each of
// which has its own way to let a row go. Source: PROTOCOL 3.6 (dedup), 3.12.

import { holdsRecords } from '../protocol/entry.ts'
import { CREATE_KEY_SUFFIX, type DerivedRow } from './journal.ts'

/**
 * True for a row that may go LIMITS.derivedTtlSeconds after it was written: a rejection, a key of a
 * create, an id that has left its actor's window, an actor that is parked no more. A rejection may
 * have to stay all the same, for those who read an actor's entries by their numbers.
 */
export function isPassing(row: DerivedRow): boolean {
  switch (row.kind) {
    case 'entry':
      return !holdsRecords(row.body)
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
