// The rows of the journal as bytes: keys whose order is the order of reading, and values that end
// with a checksum over key and value. A layout that changes re-reads stored data wrongly:
// JOURNAL_FORMAT changes with it, and layout.test.ts pins it with golden bytes. The checksum is
// zlib's CRC-32, which Node computes natively. Source: PROTOCOL 3.0, 3.16.

import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { LIMITS } from '../../config/limits.ts'
import { formatUuid } from '../../protocol/ids.ts'
import type { LogRow, ShardStatus } from '../journal.ts'
import type { Place } from '../segment-log/frame.ts'

/** Format number of the store; a newer one than this is refused with a clear message. */
export const JOURNAL_FORMAT = 2

export const CRC_BYTES = 4
/** Greatest number that six bytes hold: offsets and epochs. */
const U48_MAX = 0xffff_ffff_ffff
const U32_MAX = 0xffff_ffff

/** A row as it goes into a table. */
export interface Row {
  readonly key: Buffer
  readonly value: Buffer
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

// Keys. Shards are stored one higher, so that the `system` shard (-1) comes first.

export const SHARD_KEY_BYTES = 2
export const LOG_KEY_BYTES = 8
export const ENTRY_KEY_BYTES = 20
const UUID_BYTES = 16

export function putShardKey(target: Buffer, at: number, shard: number): void {
  target[at] = (shard + 1) >>> 8
  target[at + 1] = (shard + 1) & 0xff
}

export function shardKey(shard: number): Buffer {
  const key = Buffer.allocUnsafe(SHARD_KEY_BYTES)
  putShardKey(key, 0, shard)
  return key
}

export function shardOfKey(key: Uint8Array): number {
  return ((key[0]! << 8) | key[1]!) - 1
}

export function putLogKey(target: Buffer, at: number, shard: number, offset: number): void {
  putShardKey(target, at, shard)
  target.writeUIntBE(offset, at + 2, 6)
}

/** Offsets above 2^48 stand for "behind the last". */
export function logKey(shard: number, offset: number): Buffer {
  const key = Buffer.allocUnsafe(LOG_KEY_BYTES)
  putLogKey(key, 0, shard, Math.min(offset, U48_MAX))
  return key
}

export function placeOfLogKey(key: Uint8Array): { shard: number; offset: number } {
  return { shard: shardOfKey(key), offset: bufferOf(key).readUIntBE(2, 6) }
}

const NIBBLE = new Int8Array(128).fill(-1)
for (let i = 0; i < 16; i++) NIBBLE[i.toString(16).charCodeAt(0)] = i

/** Writes the sixteen bytes of a canonical UUID; faster than Buffer.from(text, 'hex'). */
export function putUuid(target: Uint8Array, at: number, uuid: string): void {
  let to = at
  for (let i = 0; i < 36; i += 2) {
    if (i === 8 || i === 13 || i === 18 || i === 23) i++
    target[to++] = (NIBBLE[uuid.charCodeAt(i)]! << 4) | NIBBLE[uuid.charCodeAt(i + 1)]!
  }
}

export function uuidAt(bytes: Uint8Array, at: number): string {
  return formatUuid(bytes.subarray(at, at + UUID_BYTES))
}

export function uuidKey(uuid: string): Buffer {
  const key = Buffer.allocUnsafe(UUID_BYTES)
  putUuid(key, 0, uuid)
  return key
}

/** Entries of an actor side by side, by their number. */
export function putEntryKey(target: Buffer, at: number, actorId: string, n: number): void {
  putUuid(target, at, actorId)
  target.writeUInt32BE(n, at + UUID_BYTES)
}

/** Numbers above 2^32 stand for "behind the last". */
export function entryKey(actorId: string, n: number): Buffer {
  const key = Buffer.allocUnsafe(ENTRY_KEY_BYTES)
  putEntryKey(key, 0, actorId, Math.min(n, U32_MAX))
  return key
}

export function entryNumber(key: Uint8Array): number {
  return bufferOf(key).readUInt32BE(UUID_BYTES)
}

/** A text in a key: itself, or of a long one its beginning and a hash. */
function keyText(text: string): Buffer {
  const bytes = Buffer.from(text)
  if (bytes.length <= LIMITS.lmdb.keyBytesMax) return bytes
  const kept = bytes.subarray(0, LIMITS.lmdb.keyBytesMax - UUID_BYTES)
  return Buffer.concat([kept, hash('sha1', bytes, 'buffer').subarray(0, UUID_BYTES)])
}

/**
 * Key of a natural key's row. The text itself rather than a hash of it: numbers come in rising
 * order, so new rows share pages.
 */
export function aliasKey(keyType: string, key: string): Buffer {
  return keyText(`${keyType}\0${key}`)
}

export function markKey(actorId: string, day: number, messageId: string): Buffer {
  const text = keyText(messageId)
  const key = Buffer.allocUnsafe(20 + text.length)
  putUuid(key, 0, actorId)
  key.writeUInt32BE(day, 16)
  key.set(text, 20)
  return key
}

export function consumerKey(shard: number, consumer: string): Buffer {
  return Buffer.concat([shardKey(shard), keyText(consumer)])
}

/** Where the parked actors of a consumer begin; the UUID follows. */
export function parkedPrefix(shard: number, consumer: string): Buffer {
  return Buffer.concat([shardKey(shard), keyText(consumer), Buffer.of(0)])
}

export function parkedKey(shard: number, consumer: string, actorId: string): Buffer {
  return Buffer.concat([parkedPrefix(shard, consumer), uuidKey(actorId)])
}

export function imageKey(offset: number, part: number): Buffer {
  const key = Buffer.allocUnsafe(10)
  key.writeUIntBE(Math.min(offset, U48_MAX), 0, 6)
  key.writeUInt32BE(part, 6)
  return key
}

/** Rows that may go, by shard and by the hour of its clock, then in any order. */
export function expiryKey(shard: number, hour: number, n: number): Buffer {
  const key = Buffer.allocUnsafe(SHARD_KEY_BYTES + 10)
  putShardKey(key, 0, shard)
  key.writeUInt32BE(hour, SHARD_KEY_BYTES)
  key.writeUIntBE(n, SHARD_KEY_BYTES + 4, 6)
  return key
}

// Values: fields, a body, and at the end CRC-32 of key and value.

/** False for a row that is damaged, or that stands under another key than it was written under. */
export function isWhole(key: Uint8Array, value: Uint8Array): boolean {
  const end = value.length - CRC_BYTES
  return end >= 0 && rowCrc(value) === crc32(value.subarray(0, end), crc32(key))
}

/** The checksum that a value ends with. */
export function rowCrc(value: Uint8Array): number {
  return bufferOf(value).readUInt32LE(value.length - CRC_BYTES)
}

/** Where something lies in the log: file u48, position u48, length u32, its checksum. */
export const PLACE_BYTES = 6 + 6 + 4 + 4

export function putPlace(target: Buffer, at: number, place: Place): void {
  target.writeUIntLE(place.file, at, 6)
  target.writeUIntLE(place.position, at + 6, 6)
  target.writeUInt32LE(place.length, at + 12)
  target.writeUInt32LE(place.crc, at + 16)
}

export function placeAt(bytes: Uint8Array, at: number): Place {
  const value = bufferOf(bytes)
  return {
    file: value.readUIntLE(at, 6),
    position: value.readUIntLE(at + 6, 6),
    length: value.readUInt32LE(at + 12),
    crc: value.readUInt32LE(at + 16),
  }
}

export const NIL_UUID = '00000000-0000-0000-0000-000000000000'
/** Group or head: epoch u48, last offset u48, count u32, commit id; a group's place. */
export const GROUP_HEADER_BYTES = 6 + 6 + 4 + UUID_BYTES

export type GroupHeader = Omit<LogRow, 'body' | 'shard'>

export function putGroupHeader(target: Buffer, at: number, row: GroupHeader): void {
  target.writeUIntLE(row.epoch, at, 6)
  target.writeUIntLE(row.offset, at + 6, 6)
  target.writeUInt32LE(row.count, at + 12)
  putUuid(target, at + 16, row.commitId)
}

/** A group's row: all but its body, of which it says where it lies. */
export function readGroup(bytes: Uint8Array): GroupHeader & { readonly place: Place } {
  return { ...readGroupHeader(bytes), place: placeAt(bytes, GROUP_HEADER_BYTES) }
}

function readGroupHeader(bytes: Uint8Array): GroupHeader {
  const value = bufferOf(bytes)
  return {
    epoch: value.readUIntLE(0, 6),
    offset: value.readUIntLE(6, 6),
    count: value.readUInt32LE(12),
    commitId: uuidAt(value, 16),
  }
}

/** A head's row: where a shard was when the rows of its groups were written. */
export function readHead(bytes: Uint8Array): ShardStatus {
  const { epoch, offset, commitId } = readGroupHeader(bytes)
  return { epoch, head: offset, lastCommit: commitId === NIL_UUID ? null : commitId }
}

/** Where in which shard's log a derived row comes from. */
export interface Origin {
  readonly shard: number
  readonly offset: number
}

/** Derived row: offset u48, shard u16 (one higher), body. */
export const DERIVED_HEADER_BYTES = 6 + 2

export function putOrigin(target: Buffer, at: number, origin: Origin): void {
  target.writeUIntLE(origin.offset, at, 6)
  target.writeUInt16LE(origin.shard + 1, at + 6)
}

export function derivedOffset(bytes: Uint8Array): number {
  return bufferOf(bytes).readUIntLE(0, 6)
}

export function derivedShard(bytes: Uint8Array): number {
  return bufferOf(bytes).readUInt16LE(6) - 1
}

/** How an entry's row holds it: itself, or where in the log it lies. */
export const ENTRY_INLINE = 0
export const ENTRY_PLACE = 1

/** The body as a view. */
export function derivedBody(bytes: Uint8Array): Buffer {
  return bufferOf(bytes).subarray(DERIVED_HEADER_BYTES, bytes.length - CRC_BYTES)
}

/** What an entry's row holds: the entry itself, or where in the log it lies. */
export function contentOf(value: Uint8Array): Buffer | Place {
  const body = derivedBody(value)
  return body[0] === ENTRY_PLACE ? placeAt(body, 1) : body.subarray(1)
}
