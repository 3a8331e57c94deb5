// Rows on their way into the data file: where groups lie, heads and the derived rows of the port as
// key and value in an arena. Source: PROTOCOL 3.0.

import { LIMITS } from '../../config/limits.ts'
import type { AliasRow, DerivedRow, ShardStatus } from '../journal.ts'
import type { Place } from '../segment-log/frame.ts'
import type { Arena } from './arena.ts'
import type { JournalEnvironment, Table } from './environment.ts'
import {
  aliasKey,
  consumerKey,
  CRC_BYTES,
  DERIVED_HEADER_BYTES,
  ENTRY_INLINE,
  ENTRY_KEY_BYTES,
  ENTRY_PLACE,
  GROUP_HEADER_BYTES,
  imageKey,
  LOG_KEY_BYTES,
  markKey,
  NIL_UUID,
  parkedKey,
  PLACE_BYTES,
  putEntryKey,
  putGroupHeader,
  putLogKey,
  putOrigin,
  putPlace,
  putShardKey,
  SHARD_KEY_BYTES,
  shardKey,
  uuidKey,
  type Origin,
  type Row,
} from './layout.ts'
import type { LoggedGroup } from '../segment-log/tail.ts'

export interface DerivedTableRow extends Row {
  readonly table: Table
  readonly offset: number
  /**
   * True for a register, which an older row by offset must not change. An entry's row needs no look
   * at what is there: (actor, number) is written with one content only, by the log it comes from.
   */
  readonly isRegister: boolean
}

const NOTHING = Buffer.alloc(0)
/** What a row takes beside its body, about. */
const ROW_BYTES = 64

/** About how many bytes a row will take; of an entry it mostly says where it lies. */
export function bytesOfRow(row: DerivedRow): number {
  if (row.kind === 'entry') return ROW_BYTES
  if (row.kind === 'alias') return ROW_BYTES + row.row.key.length + 128 * row.row.claims.length
  return ROW_BYTES + ('body' in row ? (row.body?.length ?? 0) : 0)
}

export function encodeGroup(arena: Arena, group: LoggedGroup): Row {
  const { shard, offset, place } = group
  const bytes = LOG_KEY_BYTES + GROUP_HEADER_BYTES + PLACE_BYTES
  arena.begin(bytes + CRC_BYTES)
  const { chunk, at } = arena
  putLogKey(chunk, at, shard, offset)
  putGroupHeader(chunk, at + LOG_KEY_BYTES, group)
  putPlace(chunk, at + LOG_KEY_BYTES + GROUP_HEADER_BYTES, place)
  return arena.seal(LOG_KEY_BYTES, at + bytes)
}

export function encodeHead(arena: Arena, shard: number, status: ShardStatus): Row {
  const { epoch, head: offset, lastCommit } = status
  arena.begin(SHARD_KEY_BYTES + GROUP_HEADER_BYTES + CRC_BYTES)
  const { chunk, at } = arena
  putShardKey(chunk, at, shard)
  const header = { epoch, offset, count: 0, commitId: lastCommit ?? NIL_UUID }
  putGroupHeader(chunk, at + SHARD_KEY_BYTES, header)
  return arena.seal(SHARD_KEY_BYTES, at + SHARD_KEY_BYTES + GROUP_HEADER_BYTES)
}

/** Any key with an origin and a body. */
export function encodeDerived(
  arena: Arena,
  key: Uint8Array,
  origin: Origin,
  body: Uint8Array,
): Row {
  arena.begin(key.length + DERIVED_HEADER_BYTES + body.length + CRC_BYTES)
  const { chunk, at } = arena
  chunk.set(key, at)
  putOrigin(chunk, at + key.length, origin)
  const bodyAt = at + key.length + DERIVED_HEADER_BYTES
  chunk.set(body, bodyAt)
  return arena.seal(key.length, bodyAt + body.length)
}

/** `place`: of an entry, where it lies in the log; null: its row holds it itself. */
export function encodeRow(
  arena: Arena,
  env: JournalEnvironment,
  of: { readonly shard: number; readonly row: DerivedRow; readonly place: Place | null },
): DerivedTableRow {
  const { shard, row, place } = of
  const origin = { shard, offset: row.offset }
  switch (row.kind) {
    case 'entry': {
      const { key, value } = encodeEntry(arena, origin, row, place)
      return { table: env.entries, key, value, offset: row.offset, isRegister: false }
    }
    case 'alias': {
      const { key, value } = encodeAlias(arena, origin, row.row)
      return { table: env.aliases, key, value, offset: row.offset, isRegister: true }
    }
    default: {
      const [table, key, body] = registerOf(env, shard, row)
      const encoded = encodeDerived(arena, key, origin, body)
      return { table, ...encoded, offset: row.offset, isRegister: true }
    }
  }
}

type Register = Exclude<DerivedRow, { kind: 'entry' | 'alias' }>

function registerOf(
  env: JournalEnvironment,
  shard: number,
  row: Register,
): [table: Table, key: Buffer, body: Uint8Array] {
  switch (row.kind) {
    case 'snapshot':
      return [env.snapshots, uuidKey(row.actorId), row.body]
    case 'mark':
      return [env.marks, markKey(row.actorId, row.day, row.messageId), row.body]
    case 'shard':
      return [env.shards, shardKey(shard), row.body]
    case 'consumer':
      return [env.consumers, consumerKey(shard, row.consumer), NOTHING]
    case 'parked': {
      // Done is a value of its own: a deleted row would forget its offset.
      const body = row.body === null ? Buffer.of(0) : Buffer.concat([Buffer.of(1), row.body])
      return [env.parked, parkedKey(shard, row.consumer, row.actorId), body]
    }
    case 'image':
      return [env.images, imageKey(row.offset, row.part), row.body]
  }
}

function encodeEntry(
  arena: Arena,
  origin: Origin,
  row: Extract<DerivedRow, { kind: 'entry' }>,
  place: Place | null,
): Row {
  const contentBytes = place === null ? row.body.length : PLACE_BYTES
  arena.begin(ENTRY_KEY_BYTES + DERIVED_HEADER_BYTES + 1 + contentBytes + CRC_BYTES)
  const { chunk, at } = arena
  putEntryKey(chunk, at, row.actorId, row.n)
  putOrigin(chunk, at + ENTRY_KEY_BYTES, origin)
  const formAt = at + ENTRY_KEY_BYTES + DERIVED_HEADER_BYTES
  chunk[formAt] = place === null ? ENTRY_INLINE : ENTRY_PLACE
  if (place === null) chunk.set(row.body, formAt + 1)
  else putPlace(chunk, formAt + 1, place)
  return arena.seal(ENTRY_KEY_BYTES, formAt + 1 + contentBytes)
}

function encodeAlias(arena: Arena, origin: Origin, row: AliasRow): Row {
  const text = JSON.stringify(row)
  // UTF-8 takes at most three bytes a code unit.
  const bytesMax = 3 * text.length + LIMITS.lmdb.keyBytesMax + DERIVED_HEADER_BYTES + CRC_BYTES
  arena.begin(bytesMax)
  const { chunk, at } = arena
  const keyBytes = putAliasKey(chunk, at, row)
  putOrigin(chunk, at + keyBytes, origin)
  const bodyAt = at + keyBytes + DERIVED_HEADER_BYTES
  return arena.seal(keyBytes, bodyAt + chunk.write(text, bodyAt))
}

/** Writes `aliasKey` and returns its length: short ones, which are nearly all, without a copy. */
function putAliasKey(target: Buffer, at: number, row: AliasRow): number {
  const { keyType, key } = row
  if (3 * (keyType.length + 1 + key.length) > LIMITS.lmdb.keyBytesMax) {
    const long = aliasKey(keyType, key)
    target.set(long, at)
    return long.length
  }
  return target.write(`${keyType}\0${key}`, at)
}
