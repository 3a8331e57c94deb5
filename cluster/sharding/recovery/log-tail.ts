// Reading a shard's log as entries: dense, in order, each once, whatever rows they are in. Source:
// PROTOCOL 3.0 "Offset", 3.5.

import { assert } from '../../../protocol/errors.ts'
import { decodeEntry, splitEntries } from '../../../protocol/entry/entry.ts'
import type { StoredEntry } from '../../../protocol/entry/entry.ts'
import type { LogReader, LogRow, StoreIdentity } from '../../../storage/journal.ts'

const READ_BYTES = 1024 * 1024

/** A shard's log in one store. */
export interface LogSource {
  readonly number: number
  readonly identity: StoreIdentity
  readonly log: LogReader
}

export interface Placed {
  readonly entry: StoredEntry
  readonly offset: number
  readonly body: Uint8Array
  /** Its part of its row's bytes: those of all entries of a row are the row's. */
  readonly rowBytes: number
}

/** Entries of a log row that a reader standing at `after` has not had yet. */
export function* entriesOfRow(row: LogRow, after: number): Generator<Placed> {
  const first = row.offset - row.count + 1
  const bodies = splitEntries(row.body)
  assert(bodies.length === row.count, `the row at offset ${row.offset} holds its entries`)
  let rest = row.body.length
  for (let i = 0; i < bodies.length; i++) {
    const body = bodies[i]!
    const rowBytes = i === bodies.length - 1 ? rest : body.length
    rest -= body.length
    if (first + i <= after) continue
    yield { entry: decodeEntry(body), offset: first + i, body, rowBytes }
  }
}

/** Every entry with offset in (after, upTo], in order. Throws when one is missing. */
export async function* entriesBetween(
  source: LogSource,
  after: number,
  upTo: number,
): AsyncGenerator<Placed, void> {
  let at = after
  while (at < upTo) {
    at = resumedBehind(source, at)
    if (at >= upTo) return
    const rows = await source.log.read(source.number, at, READ_BYTES)
    if (rows.length === 0) throw new Error(missing(source, at + 1))
    for (const row of rows) {
      if (row.offset - row.count > at) throw new Error(missing(source, at + 1))
      for (const placed of entriesOfRow(row, at)) {
        if (placed.offset > upTo) return
        at = placed.offset
        yield placed
      }
    }
  }
}

/** Behind what an operator has given up the log goes on higher (PROTOCOL 3.16). */
export function resumedBehind({ identity, number }: Omit<LogSource, 'log'>, at: number): number {
  const loss = identity.losses?.find(({ shard, offset }) => shard === number && offset === at)
  return loss ? loss.resumedAt : at
}

/** Offset behind which the shard has lost entries for good; -1: none. */
export function lostBehind(identity: StoreIdentity, shard: number): number {
  let offset = -1
  for (const loss of identity.losses ?? []) {
    if (loss.shard === shard) offset = Math.max(offset, loss.offset)
  }
  return offset
}

function missing({ number }: LogSource, offset: number): string {
  return `the log of shard ${number} has no entry at offset ${offset}: restore a backup`
}
