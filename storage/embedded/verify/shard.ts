// One shard's log, entry by entry, against the rows of its actors. Source: PROTOCOL 3.12, 4.1 (K4).

import { decodeWholeEntry, splitEntries, type EntryHead } from '../../../protocol/entry/entry.ts'
import { EntryAudit } from '../../entry-audit.ts'
import type { LogReader, LogRow } from '../../journal.ts'
import type { PlaceReader } from '../../segment-log/place-reader.ts'
import { placeOf } from '../../row-audit.ts'
import { isPassing } from '../../row-expiry.ts'
import { Arena } from '../../lmdb/arena.ts'
import { writeAlone, type JournalEnvironment } from '../../lmdb/environment.ts'
import {
  contentOf,
  consumerKey,
  derivedOffset,
  ENTRY_INLINE,
  entryKey,
  isWhole,
} from '../../lmdb/layout.ts'
import { encodeDerived } from '../../lmdb/rows.ts'
import type { Report } from '../../report.ts'

const READ_BYTES = 4 * 1024 * 1024

export interface ShardVerified {
  readonly env: JournalEnvironment
  readonly places: PlaceReader
  readonly log: LogReader
  /** Rows that are missing are put back. */
  readonly repair: boolean
}

export class ShardVerification {
  readonly #of: ShardVerified
  readonly #shard: number
  readonly #report: Report
  readonly #audit: EntryAudit
  #entries = 0
  #flush = 0

  constructor(of: ShardVerified, shard: number, report: Report) {
    this.#of = of
    this.#shard = shard
    this.#report = (what) => report(`shard ${shard}: ${what}`)
    this.#audit = new EntryAudit(this.#report)
  }

  /** Returns how many entries were read. */
  run(): number {
    const { env, log } = this.#of
    const key = consumerKey(this.#shard, 'flush')
    const value = env.consumers.get(key)
    if (value !== undefined && isWhole(key, value)) this.#flush = derivedOffset(value)
    try {
      for (let after = 0; ;) {
        const rows = log.read(this.#shard, after, READ_BYTES) as readonly LogRow[]
        for (const row of rows) this.#group(row)
        if (rows.length === 0) break
        after = rows.at(-1)!.offset
      }
      this.#verifyFlush()
      this.#audit.end()
    } catch (error) {
      // A frame that can't be read was reported with the log.
      this.#report(error instanceof Error ? error.message : String(error))
    }
    return this.#entries
  }

  #verifyFlush(): void {
    const { head } = this.#of.log.status(this.#shard) as { head: number }
    if (this.#flush > head)
      this.#report(`its flush offset ${this.#flush} is above its head ${head}`)
  }

  #group(row: LogRow): void {
    const first = row.offset - row.count + 1
    let bodies: Buffer[] = []
    try {
      bodies = splitEntries(row.body)
    } catch (error) {
      return this.#report(`offset ${first}: ${String(error)}`)
    }
    if (bodies.length !== row.count) {
      this.#report(`offset ${first}: holds ${bodies.length} entries and says ${row.count}`)
    }
    for (const [i, body] of bodies.entries()) {
      this.#entries++
      try {
        this.#entry(first + i, decodeWholeEntry(body), body)
      } catch (error) {
        this.#report(`offset ${first + i}: the entry can't be read: ${String(error)}`)
      }
    }
  }

  #entry(offset: number, entry: EntryHead, body: Buffer): void {
    this.#audit.next(offset, entry)
    // An entry of a key alone belongs to no actor.
    if (entry.n > 0) this.#verifyRow(offset, entry, body)
  }

  /** The actor's own row of this entry: there once it is flushed, and the same. */
  #verifyRow(offset: number, entry: EntryHead, body: Buffer): void {
    const { n, p: actorId } = entry
    const key = entryKey(actorId, n)
    const { env, repair } = this.#of
    const value = env.entries.get(key)
    const place = `offset ${offset}: actor ${actorId}`
    // It may have gone, and its number may be another's.
    const mayBeGone = isPassing({ kind: 'entry', actorId, n, offset, body })
    if (value === undefined) {
      if (offset > this.#flush || mayBeGone) return
      if (repair) this.#putBack(key, offset, body)
      const done = repair ? '; it was put back' : ''
      this.#report(`${place}: entry ${n} is flushed and has no row${done}`)
      return
    }
    // A damaged row is reported with its table.
    if (!isWhole(key, value)) return
    const at = derivedOffset(value)
    if (at !== offset) {
      if (mayBeGone && at > offset) return
      this.#report(`${place}: ${placeOf(entry, offset)} has a row of offset ${at}`)
    } else if (!body.equals(this.#content(value))) {
      this.#report(`${place}: entry ${n} has a row with another content`)
    }
  }

  /** What can't be read is reported with its table. */
  #content(value: Uint8Array): Buffer {
    const content = contentOf(value)
    return 'file' in content ? this.#of.places.read(content) : content
  }

  #putBack(key: Buffer, offset: number, body: Buffer): void {
    const { env } = this.#of
    const content = Buffer.concat([Buffer.of(ENTRY_INLINE), body])
    const row = encodeDerived(new Arena(), key, { shard: this.#shard, offset }, content)
    writeAlone(env, () => env.entries.putSync(row.key, row.value))
  }
}
