// Rows that stand in the data file for a while only, for LMDB has no TTL: each is noted, in the
// transaction that writes it, in a table by the hour, and is removed when its time is over. What is
// looked through is so as small as what has to go, whatever the store holds. It stands between the
// committer, which writes the notes, and the upkeep that asks for removals. Source: PROTOCOL 3.12.

import { LIMITS } from '../../config/limits.ts'
import { assert } from '../../protocol/errors.ts'
import { holdsRecords } from '../../protocol/entry.ts'
import type { DerivedRow, StoreIdentity } from '../journal.ts'
import type { Arena } from './journal-arena.ts'
import type { JournalEnvironment, Table } from './journal-environment.ts'
import {
  derivedBody,
  derivedOffset,
  derivedShard,
  entryKey,
  entryNumber,
  expiryKey,
  isWhole,
  shardKey,
  uuidAt,
} from './journal-layout.ts'
import { CLAIMS_KEY } from './journal-places.ts'
import { encodeDerived, type DerivedTableRow } from './journal-rows.ts'

const HOUR_MS = 3_600_000
/** Notes of one millisecond that have keys of their own. */
const NOTES_PER_MS = 2 ** 26
/** An actor with more entries than this is no create that was refused a few times: it stays. */
const ENTRIES_MAX = 64

/** Tables whose rows are noted, by the number that stands for them in a note. */
const TABLES = ['entries', 'aliases', 'marks', 'parked'] as const
type Kind = Extract<DerivedRow['kind'], 'entry' | 'alias' | 'mark' | 'parked'>
const TABLE_OF: Readonly<Record<Kind, number>> = { entry: 0, alias: 1, mark: 2, parked: 3 }

export interface NotesOptions {
  readonly arena: Arena
  readonly table: Table
  /** Milliseconds since 1970. */
  readonly nowMs: () => number
}

/** Makes the notes that rows, which are written with them, may go after their time. */
export class Notes {
  readonly #options: NotesOptions
  #count = 0

  constructor(options: NotesOptions) {
    this.#options = options
  }

  encode(kind: DerivedRow['kind'], shard: number, row: DerivedTableRow): DerivedTableRow {
    const number = TABLE_OF[kind as Kind]
    assert(number !== undefined, `rows of kind ${kind} stay`)
    const { arena, table } = this.#options
    const { offset } = row
    const body = Buffer.allocUnsafe(1 + row.key.length)
    body[0] = number
    body.set(row.key, 1)
    const { key, value } = encodeDerived(arena, this.#key(), { shard, offset }, body)
    return { table, key, value, offset, isRegister: false }
  }

  /** One that no other note has, in the order of time. */
  #key(): Buffer {
    const nowMs = this.#options.nowMs()
    const n = (nowMs % HOUR_MS) * NOTES_PER_MS + this.#count
    this.#count = (this.#count + 1) % NOTES_PER_MS
    return expiryKey(Math.floor(nowMs / HOUR_MS), n)
  }
}

/** What one transaction removes. */
export interface Removals {
  /** Under this token nobody has claimed since the rows were looked at. */
  readonly token: number
  readonly notes: readonly Uint8Array[]
  readonly rows: readonly { readonly table: Table; readonly key: Uint8Array }[]
}

export interface ExpiryOptions {
  readonly env: JournalEnvironment
  readonly identity: StoreIdentity
  /** Milliseconds since 1970. */
  readonly nowMs: () => number
}

/** Finds what may go, from the oldest on. One pass has a cursor: what must wait is passed over. */
export class ExpiryPass {
  readonly #options: ExpiryOptions
  readonly #table: Table
  readonly #end: Uint8Array
  #cursor: Uint8Array = expiryKey(0, 0)
  #waiting = 0

  constructor(options: ExpiryOptions, table: Table) {
    this.#options = options
    this.#table = table
    const before = options.nowMs() - LIMITS.derivedTtlSeconds * 1_000
    this.#end = expiryKey(Math.max(0, Math.floor(before / HOUR_MS)), 0)
  }

  /** The next ones, all looked at in one read transaction; null: that is all for now. */
  next(): Removals | null {
    if (this.#waiting > LIMITS.expireWaitingMax) return null
    const { root, epochs } = this.#options.env
    root.resetReadTxn()
    const token = epochs.getEntry(CLAIMS_KEY)?.version
    if (token === undefined) return null
    const notes: Uint8Array[] = []
    const rows: Removals['rows'][number][] = []
    let seen = 0
    const range = { start: this.#cursor, end: this.#end, limit: LIMITS.expireRowsMax }
    for (const { key, value } of this.#table.getRange(range)) {
      seen++
      this.#cursor = Buffer.concat([key, Buffer.of(0)])
      const found = isWhole(key, value) ? this.#judge(value) : 'stays'
      if (found === 'waits') {
        this.#waiting++
        continue
      }
      notes.push(key)
      if (found !== 'stays') rows.push(found)
    }
    return seen === 0 ? null : { token, notes, rows }
  }

  /** The row of a note, if it is still the one that was noted and nothing needs it. */
  #judge(note: Uint8Array): Removals['rows'][number] | 'stays' | 'waits' {
    const { env } = this.#options
    const body = derivedBody(note)
    const name = TABLES[body[0]!]
    if (name === undefined) return 'stays'
    const key = Buffer.from(body.subarray(1))
    const shard = derivedShard(note)
    const offset = derivedOffset(note)
    const value = env[name].getBinaryFast(key)
    if (value === undefined || derivedOffset(value) !== offset) return 'stays'
    if (name === 'entries') {
      const verdict = this.#judgeEntry(key, shard, offset)
      if (verdict !== 'goes') return verdict
    }
    return { table: env[name], key }
  }

  /**
   * A rejection goes with an actor that never came to be, its first entries first, so that those
   * which stay are dense; never before the log has let go of it, which says the same of the actor.
   */
  #judgeEntry(key: Buffer, shard: number, offset: number): 'goes' | 'stays' | 'waits' {
    const { env, identity } = this.#options
    if ((identity.losses ?? []).length > 0) return 'stays'
    const trimmed = env.trims.getBinaryFast(shardKey(shard))
    if (trimmed === undefined || derivedOffset(trimmed) < offset) return 'waits'
    const actorId = uuidAt(key, 0)
    const range = {
      start: entryKey(actorId, 0),
      end: entryKey(actorId, Number.MAX_SAFE_INTEGER),
      limit: ENTRIES_MAX + 1,
    }
    let n = 0
    let count = 0
    for (const entry of env.entries.getRange(range)) {
      n ||= entryNumber(entry.key)
      if (++count > ENTRIES_MAX || holdsRecords(derivedBody(entry.value))) return 'stays'
    }
    return n === entryNumber(key) ? 'goes' : 'waits'
  }
}
