// Memory that rows are encoded into for one transaction, used again for the next: nothing is left
// to collect at tens of thousands of rows a second. LMDB's write thread reads these bytes until the
// transaction ends.

import { crc32 } from 'node:zlib'
import { CRC_BYTES, type Row } from './layout.ts'

const CHUNK_BYTES = 1024 * 1024
/** Kept between transactions: more than a full one of small groups and derived rows needs. */
const CHUNKS_MAX = 8

export class Arena {
  /** Where the row that was begun is to be written, from `at` on. */
  chunk: Buffer
  at = 0
  /** Bytes of the rows that were written since `reset`. */
  used = 0
  readonly #chunkBytes: number
  readonly #chunks: Buffer[]
  #next = 1

  constructor(chunkBytes = CHUNK_BYTES) {
    this.#chunkBytes = chunkBytes
    this.chunk = Buffer.allocUnsafeSlow(chunkBytes)
    this.#chunks = [this.chunk]
  }

  /** Begins anew. What was written before must not be in use any more. */
  reset(): void {
    this.chunk = this.#chunks[0]!
    this.#next = 1
    this.at = 0
    this.used = 0
  }

  /** Makes room for a row of at most so many bytes, key and checksum included. */
  begin(bytes: number): void {
    if (this.at + bytes <= this.chunk.length) return
    this.at = 0
    if (bytes > this.#chunkBytes) {
      this.chunk = Buffer.allocUnsafeSlow(bytes)
      return
    }
    this.chunk = this.#chunks[this.#next] ?? Buffer.allocUnsafeSlow(this.#chunkBytes)
    if (this.#next === this.#chunks.length && this.#next < CHUNKS_MAX) this.#chunks.push(this.chunk)
    this.#next++
  }

  /** Ends the row that stands from `at` to `end`, its key first, with its checksum. */
  seal(keyBytes: number, end: number): Row {
    const { chunk, at } = this
    chunk.writeUInt32LE(crc32(chunk.subarray(at, end)), end)
    this.at = end + CRC_BYTES
    this.used += this.at - at
    return {
      key: chunk.subarray(at, at + keyBytes),
      value: chunk.subarray(at + keyBytes, this.at),
    }
  }
}
