// The rows of the journal as bytes: keys whose order is the order of reading, and values that carry
// a checksum over key and value. It stands between the journal's drivers and the data file. A layout
// that changes re-reads stored data wrongly: JOURNAL_FORMAT changes with it, and
// journal-layout.test.ts pins it with golden bytes. Source: PROTOCOL 3.0, 3.16. (PROTOCOL says
// crc32c; this is zlib's CRC-32, which Node computes natively at 2.6 GB/s and which finds the same
// bit flips.)

import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { LIMITS } from '../../config/limits.ts'
import { assert } from '../../protocol/errors.ts'
import { formatUuid } from '../../protocol/ids.ts'
import type { LogRow } from '../journal.ts'

/** Format number of the store; a newer one than this is refused with a clear message. */
export const JOURNAL_FORMAT = 1

const CRC_BYTES = 4
/** crc, epoch u48, offset u48, count u32, commit id. */
const GROUP_HEADER_BYTES = CRC_BYTES + 6 + 6 + 4 + 16
/** crc, epoch u48, head u48, crc of the last group, commit id. */
export const HEAD_BYTES = CRC_BYTES + 6 + 6 + 4 + 16
/** crc, offset u48, shard u16 (one higher): where in which log the row comes from. */
export const DERIVED_HEADER_BYTES = CRC_BYTES + 6 + 2

/** Greatest number that six bytes hold: offsets and epochs. */
const U48_MAX = 0xffff_ffff_ffff

// Keys. Shards are stored one higher, so that the `system` shard (-1) comes first.

export const SHARD_KEY_BYTES = 2
export const LOG_KEY_BYTES = 8

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
  target.writeUIntBE(Math.min(offset, U48_MAX), at + 2, 6)
}

/** Offsets above 2^48 stand for "behind the last". */
export function logKey(shard: number, offset: number): Buffer {
  const key = Buffer.allocUnsafe(LOG_KEY_BYTES)
  putLogKey(key, 0, shard, offset)
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
  return formatUuid(bytes.subarray(at, at + 16))
}

export function uuidKey(uuid: string): Buffer {
  const key = Buffer.allocUnsafe(16)
  putUuid(key, 0, uuid)
  return key
}

export const ENTRY_KEY_BYTES = 20

/** Entries of an actor side by side, by their number. */
export function entryKey(actorId: string, n: number): Buffer {
  const key = Buffer.allocUnsafe(ENTRY_KEY_BYTES)
  putUuid(key, 0, actorId)
  key.writeUInt32BE(Math.min(n, 0xffff_ffff), 16)
  return key
}

/** A text in a key: itself, or of a long one its beginning and a hash. Never ambiguous with \0. */
function keyText(text: string): Buffer {
  const bytes = Buffer.from(text)
  if (bytes.length <= LIMITS.journalKeyBytesMax) return bytes
  const kept = bytes.subarray(0, LIMITS.journalKeyBytesMax - 16)
  return Buffer.concat([kept, hash('sha1', bytes, 'buffer').subarray(0, 16)])
}

/**
 * Key of a natural key's row. The text itself rather than a hash of it: numbers come in rising
 * order, so new rows share pages. At 50 keys a transaction that is 2 us of CPU a key, not 12.
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

export const IMAGE_KEY_BYTES = 10

export function imageKey(offset: number, part: number): Buffer {
  const key = Buffer.allocUnsafe(IMAGE_KEY_BYTES)
  key.writeUIntBE(Math.min(offset, U48_MAX), 0, 6)
  key.writeUInt32BE(part, 6)
  return key
}

// Values.

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** CRC-32 of key and value (without the checksum's own bytes): a row is whole and in its place. */
export function rowCrc(key: Uint8Array, value: Uint8Array): number {
  return crc32(value.subarray(CRC_BYTES), crc32(key))
}

/** False for a row that is damaged, or that stands under another key than it was written under. */
export function isWhole(key: Uint8Array, value: Uint8Array): boolean {
  return value.length >= CRC_BYTES && bufferOf(value).readUInt32LE(0) === rowCrc(key, value)
}

export interface GroupFields {
  readonly epoch: number
  readonly offset: number
  readonly count: number
  readonly commitId: string
  readonly body: Uint8Array
}

export function groupBytes(body: Uint8Array): number {
  return GROUP_HEADER_BYTES + body.length
}

/** Writes a group's value and returns its checksum. */
export function putGroup(value: Buffer, key: Uint8Array, group: GroupFields): number {
  value.writeUIntLE(group.epoch, 4, 6)
  value.writeUIntLE(group.offset, 10, 6)
  value.writeUInt32LE(group.count, 16)
  putUuid(value, 20, group.commitId)
  value.set(group.body, GROUP_HEADER_BYTES)
  const crc = rowCrc(key, value)
  value.writeUInt32LE(crc, 0)
  return crc
}

/** A whole group's value as a row; the body is a view. */
export function readGroup(shard: number, bytes: Uint8Array): LogRow {
  const value = bufferOf(bytes)
  return {
    shard,
    epoch: value.readUIntLE(4, 6),
    offset: value.readUIntLE(10, 6),
    count: value.readUInt32LE(16),
    commitId: uuidAt(value, 20),
    body: value.subarray(GROUP_HEADER_BYTES),
  }
}

export function groupCrc(bytes: Uint8Array): number {
  return bufferOf(bytes).readUInt32LE(0)
}

export interface HeadFields {
  readonly epoch: number
  readonly head: number
  /** Checksum of the group at the head; 0 when there is none yet. */
  readonly groupCrc: number
  readonly commitId: string
}

export const NIL_UUID = '00000000-0000-0000-0000-000000000000'

export function putHead(value: Buffer, key: Uint8Array, head: HeadFields): void {
  value.writeUIntLE(head.epoch, 4, 6)
  value.writeUIntLE(head.head, 10, 6)
  value.writeUInt32LE(head.groupCrc, 16)
  putUuid(value, 20, head.commitId)
  value.writeUInt32LE(rowCrc(key, value), 0)
}

export function readHead(bytes: Uint8Array): HeadFields {
  const value = bufferOf(bytes)
  return {
    epoch: value.readUIntLE(4, 6),
    head: value.readUIntLE(10, 6),
    groupCrc: value.readUInt32LE(16),
    commitId: uuidAt(value, 20),
  }
}

/** Where in which shard's log a derived row comes from. */
export interface Origin {
  readonly shard: number
  readonly offset: number
}

/** Writes a derived row's value around a body that is already in its place. */
export function sealDerived(value: Buffer, key: Uint8Array, origin: Origin): void {
  assert(origin.offset <= U48_MAX, 'an offset fits in 48 bits')
  value.writeUIntLE(origin.offset, 4, 6)
  value.writeUInt16LE(origin.shard + 1, 10)
  value.writeUInt32LE(rowCrc(key, value), 0)
}

export function derivedValue(key: Uint8Array, origin: Origin, body: Uint8Array): Buffer {
  const value = Buffer.allocUnsafe(DERIVED_HEADER_BYTES + body.length)
  value.set(body, DERIVED_HEADER_BYTES)
  sealDerived(value, key, origin)
  return value
}

const NOTHING = Buffer.alloc(0)

/** A register that holds a number alone: the epoch of a shard, or how far it was trimmed. */
export function numberValue(shard: number, offset: number): Buffer {
  return derivedValue(shardKey(shard), { shard, offset }, NOTHING)
}

export function derivedOffset(bytes: Uint8Array): number {
  return bufferOf(bytes).readUIntLE(4, 6)
}

export function derivedShard(bytes: Uint8Array): number {
  return bufferOf(bytes).readUInt16LE(10) - 1
}

export function derivedBody(bytes: Uint8Array): Buffer {
  return bufferOf(bytes).subarray(DERIVED_HEADER_BYTES)
}
