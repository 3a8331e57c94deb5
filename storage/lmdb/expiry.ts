// Rows that stand in the data file for a while only, for LMDB has no TTL: each is noted, in the
// transaction that writes it, in a table by shard and hour of the shard's clock, and is removed
// when its time is over by that clock. What is looked through is so as small as what has to go,
// whatever the store holds. The writer writes the notes, the upkeep asks for removals. Source:
// PROTOCOL 3.12 "What expires".

import { LIMITS } from '../../config/limits.ts'
import { assert } from '../../protocol/errors.ts'
import type { DerivedRow, StoreIdentity } from '../journal.ts'
import type { RowExpiry } from '../row-expiry.ts'
import { numberOf } from '../segment-log/header.ts'
import type { Arena } from './arena.ts'
import type { JournalEnvironment, Table } from './environment.ts'
import { getUpkeep, upkeepRow } from './covered.ts'
import { bytesByFile } from './ended.ts'
import { derivedBody, derivedOffset, isWhole, expiryKey, uuidAt } from './layout.ts'
import { encodeDerived, type DerivedTableRow } from './rows.ts'

const HOUR_MS = 3_600_000
const TTL_MS = LIMITS.storage.derivedTtlSeconds * 1_000
/** Notes of one hour that have keys of their own. */
const NOTES_MAX = 2 ** 48

/** Tables whose rows are noted, by the number that stands for them in a note. */
const TABLES = ['entries', 'aliases', 'marks', 'parked', 'snapshots', 'ended'] as const
type Kind = Extract<NotedKind, 'entry' | 'alias' | 'mark' | 'parked' | 'snapshot' | 'ended'>
const TABLE_OF: Readonly<Record<Kind, number>> = {
  ...{ entry: 0, alias: 1, mark: 2, parked: 3, snapshot: 4 },
  // The rows of that actor's entries are due to go with the log's files.
  ended: 5,
}

/** A shard's clock now, milliseconds; null: it isn't known. */
export type ClockOf = (shard: number) => number | null

type NotedKind = DerivedRow['kind'] | 'ended'

/** A row that may go. */
export interface Noted {
  readonly kind: NotedKind
  readonly shard: number
  readonly expiry: RowExpiry
  readonly row: DerivedTableRow
}

/** Makes the notes that rows, which are written with them, may go after their time. */
export class Notes {
  readonly #arena: Arena
  readonly #table: Table
  readonly #firstN: number
  #count = 0
  /** Clocks as they were told last. */
  readonly #told = new Map<number, number>()

  /** `firstN`: random, below 2^48: a process doesn't write over the notes of another. */
  constructor(arena: Arena, table: Table, firstN: number) {
    this.#arena = arena
    this.#table = table
    this.#firstN = firstN
  }

  tell(shard: number, clock: number): void {
    this.#told.set(shard, clock)
  }

  /** null: from when its time counts can't be said before a clock was told; it stays. */
  encode({ kind, shard, expiry, row }: Noted): DerivedTableRow | null {
    const number = TABLE_OF[kind as Kind]
    assert(number !== undefined, `rows of kind ${kind} stay`)
    const from = expiry.from ?? this.#told.get(shard)
    if (from === undefined) return null
    const { offset } = row
    const body = Buffer.allocUnsafe(1 + row.key.length)
    body[0] = number
    body.set(row.key, 1)
    const n = (this.#firstN + this.#count++) % NOTES_MAX
    const key = expiryKey(shard, Math.floor(from / HOUR_MS), n)
    const { key: noteKey, value } = encodeDerived(this.#arena, key, { shard, offset }, body)
    return { table: this.#table, key: noteKey, value, offset, isRegister: false }
  }
}

/** What one transaction of the upkeep changes. */
export interface Changes {
  readonly notes: readonly Uint8Array[]
  /** A row without a value goes. */
  readonly rows: readonly {
    readonly table: Table
    readonly key: Uint8Array
    readonly value?: Uint8Array
  }[]
}

/** Whether a time is over by which a row, or its entry in the log, may go. */
export function isOver(fromMs: number, clockMs: number): boolean {
  return Math.floor(fromMs / HOUR_MS) < overHours(clockMs)
}

/** Rows count from the end of their hour: those of hours before this one are over. */
function overHours(clockMs: number): number {
  return Math.floor((clockMs - TTL_MS) / HOUR_MS)
}

export interface ExpiryOptions {
  readonly env: JournalEnvironment
  readonly identity: StoreIdentity
  readonly clockOf: ClockOf
}

/** Finds what may go, shard by shard, from the oldest on. */
export class ExpiryPass {
  readonly #options: ExpiryOptions
  readonly #table: Table
  readonly #shards: number[]

  constructor(options: ExpiryOptions, table: Table, shards: readonly number[]) {
    this.#options = options
    this.#table = table
    this.#shards = [...shards]
  }

  /** The next ones, all looked at in one read transaction; null: that is all for now. */
  next(): Changes | null {
    this.#options.env.root.resetReadTxn()
    while (this.#shards.length > 0) {
      const found = this.#ofShard(this.#shards[0]!)
      if (found !== null) return found
      this.#shards.shift()
    }
    return null
  }

  #ofShard(shard: number): Changes | null {
    const clock = this.#options.clockOf(shard)
    const hours = clock === null ? 0 : overHours(clock)
    if (hours <= 0) return null
    const notes: Uint8Array[] = []
    const rows: Changes['rows'][number][] = []
    const forgotten = new Map<number, number>()
    let looked = 0
    const range = { start: expiryKey(shard, 0, 0), end: expiryKey(shard, hours, 0) }
    for (const { key, value } of this.#table.getRange({
      ...range,
      limit: LIMITS.storage.expireRowsMax,
    })) {
      notes.push(key)
      const found = isWhole(key, value) ? this.#rowOf(value) : null
      if (found === null) continue
      if (found.table !== this.#options.env.ended) rows.push(found)
      else looked += this.#forget(found.key, forgotten)
      // The rest has its note still, and is the next look's.
      if (looked >= LIMITS.storage.expireRowsMax) break
    }
    rows.push(...this.#filesOf(forgotten))
    return notes.length === 0 ? null : { notes, rows }
  }

  /** Where the log can give back what an actor had; returns how many rows that took to see. */
  #forget(key: Uint8Array, files: Map<number, number>): number {
    const { rows, bytes } = bytesByFile(this.#options.env, uuidAt(key, 0))
    for (const [file, some] of bytes) {
      files.set(numberOf(file), (files.get(numberOf(file)) ?? 0) + some)
    }
    return rows
  }

  #filesOf(forgotten: ReadonlyMap<number, number>): Changes['rows'][number][] {
    const { env } = this.#options
    return [...forgotten].map(([number, bytes]) => {
      const upkeep = getUpkeep(env, number)
      const ended = (upkeep.ended ?? 0) + bytes
      return { table: env.meta, ...upkeepRow(number, { ...upkeep, ended }) }
    })
  }

  /** The row of a note, if it is still the one that was noted. */
  #rowOf(note: Uint8Array): Changes['rows'][number] | null {
    const { env, identity } = this.#options
    const body = derivedBody(note)
    const name = TABLES[body[0]!]
    if (name === undefined) return null
    const isEntry = name === 'entries' || name === 'ended'
    if (isEntry && (identity.losses ?? []).length > 0) return null
    const key = Buffer.from(body.subarray(1))
    const table = env[name]!
    const value = table.getBinaryFast(key)
    if (value === undefined || derivedOffset(value) !== derivedOffset(note)) return null
    return { table, key }
  }
}
