// Derived rows on their way into the data file: each row of the port as table, key and value. It
// stands between the journal port and the committer. Source: PROTOCOL 3.0.

import type { AliasRow, DerivedRow } from '../journal.ts'
import type { JournalEnvironment, Table } from './journal-environment.ts'
import {
  aliasKey,
  consumerKey,
  DERIVED_HEADER_BYTES,
  derivedValue,
  entryKey,
  imageKey,
  markKey,
  parkedKey,
  sealDerived,
  shardKey,
  uuidKey,
  type Origin,
} from './journal-layout.ts'

export interface EncodedRow {
  readonly table: Table
  readonly key: Buffer
  readonly value: Uint8Array
  readonly offset: number
  /**
   * True for a register, which an older row by offset must not change. An entry's row needs no look
   * at what is there: (actor, number) is written with one content only, by the log it comes from.
   */
  readonly isRegister: boolean
}

const NOTHING = Buffer.alloc(0)

/** Encodes at once, so that the caller may go on with its buffers and a bad row throws here. */
export function encodeRow(env: JournalEnvironment, shard: number, row: DerivedRow): EncodedRow {
  const origin = { shard, offset: row.offset }
  switch (row.kind) {
    case 'entry': {
      const key = entryKey(row.actorId, row.n)
      const value = derivedValue(key, origin, row.body)
      return { table: env.entries, key, value, offset: row.offset, isRegister: false }
    }
    case 'alias':
      return encodeAlias(env, origin, row.row)
    case 'snapshot':
      return register(env.snapshots, uuidKey(row.actorId), origin, row.body)
    case 'mark': {
      const key = markKey(row.actorId, row.day, row.messageId)
      return register(env.marks, key, origin, row.body)
    }
    case 'shard':
      return register(env.shards, shardKey(shard), origin, row.body)
    case 'consumer':
      return register(env.consumers, consumerKey(shard, row.consumer), origin, NOTHING)
    case 'parked': {
      // Done is a value of its own: a deleted row would forget its offset.
      const body = row.body === null ? Buffer.of(0) : Buffer.concat([Buffer.of(1), row.body])
      return register(env.parked, parkedKey(shard, row.consumer, row.actorId), origin, body)
    }
    case 'image':
      return register(env.images, imageKey(row.offset, row.part), origin, row.body)
  }
}

function register(table: Table, key: Buffer, origin: Origin, body: Uint8Array): EncodedRow {
  const value = derivedValue(key, origin, body)
  return { table, key, value, offset: origin.offset, isRegister: true }
}

function encodeAlias(env: JournalEnvironment, origin: Origin, row: AliasRow): EncodedRow {
  const key = aliasKey(row.keyType, row.key)
  // JSON as text straight into the row: one copy less on the way of every order.
  const text = JSON.stringify(row)
  const value = Buffer.allocUnsafe(DERIVED_HEADER_BYTES + Buffer.byteLength(text))
  value.write(text, DERIVED_HEADER_BYTES)
  sealDerived(value, key, origin)
  return { table: env.aliases, key, value, offset: origin.offset, isRegister: true }
}
