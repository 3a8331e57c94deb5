// How rows stand in Cassandra's blobs: a format byte, then what no column may carry. Pure. Every
// derived row is one cell: on equal timestamps Cassandra decides cell by cell, and two columns
// could come from two writers. Source: PROTOCOL 3.0.

import { assert } from '../../../protocol/errors.ts'
import { ENTRIES_TOGETHER } from '../../row-expiry.ts'

/** Format number of every blob; a newer one than this is refused with a clear message. */
export const BLOB_FORMAT = 1

/** Format byte and a number below 2^48: a log row's epoch, a derived row's offset. */
const HEADER_BYTES = 7
const NUMBER_MAX = 2 ** 48 - 1

/** Entries of one actor that share a partition. */
export const BUCKET_ENTRIES = ENTRIES_TOGETHER

/** A blob as it is stored: `number` and the content behind it. */
export function encodeBlob(number: number, content: Uint8Array): Buffer {
  const blob = Buffer.allocUnsafe(HEADER_BYTES + content.length)
  putHeader(blob, number)
  blob.set(content, HEADER_BYTES)
  return blob
}

/** The same for text, without a copy of it. */
export function encodeTextBlob(number: number, text: string): Buffer {
  const blob = Buffer.allocUnsafe(HEADER_BYTES + Buffer.byteLength(text))
  putHeader(blob, number)
  blob.write(text, HEADER_BYTES)
  return blob
}

function putHeader(blob: Buffer, number: number): void {
  assert(number >= 0 && number <= NUMBER_MAX, `${number} fits into 48 bits`)
  blob[0] = BLOB_FORMAT
  blob.writeUIntBE(number, 1, 6)
}

export interface Blob {
  readonly number: number
  readonly content: Buffer
}

/** Throws when a newer version of Kontor has written it. */
export function decodeBlob(blob: Buffer, where: () => string): Blob {
  if (blob[0] !== BLOB_FORMAT) {
    throw new Error(
      `${where()}: format ${String(blob[0])} is not readable by this version (${BLOB_FORMAT}): ` +
        'it was written by a newer Kontor; start that version',
    )
  }
  return { number: blob.readUIntBE(1, 6), content: blob.subarray(HEADER_BYTES) }
}

/** Partition of an actor's n-th entry. */
export function bucketOf(n: number): number {
  return Math.floor((n - 1) / BUCKET_ENTRIES)
}

/** The last entry of a bucket: it never goes (row-expiry.ts), for it says that there are more. */
export function endsBucket(n: number): boolean {
  return n % BUCKET_ENTRIES === 0
}

/** A parked actor's row. Of two at one offset Cassandra keeps the greater bytes: done with. */
export function encodeParked(offset: number, body: Uint8Array | null): Buffer {
  if (body === null) return encodeBlob(offset, DONE)
  return encodeBlob(offset, Buffer.concat([WAITING, body]))
}

/** What a parked row holds; null: it is done with. */
export function parkedBody(content: Buffer): Buffer | null {
  return content[0] === DONE[0] ? null : content.subarray(1)
}

const WAITING = Buffer.of(0)
const DONE = Buffer.of(1)
