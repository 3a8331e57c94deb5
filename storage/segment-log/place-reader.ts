// Bodies by their places. It keeps some of the segment files open.

import { crc32 } from 'node:zlib'
import { LIMITS } from '../../config/limits.ts'
import type { Disk, DiskFile } from './disk.ts'
import type { Place } from './frame.ts'
import { openSegment, segmentDamage } from './header.ts'

const NOTHING = Buffer.alloc(0)

export class PlaceReader {
  readonly #disk: Disk
  /** By their last use, the oldest first. */
  readonly #files = new Map<number, DiskFile>()

  constructor(disk: Disk) {
    this.#disk = disk
  }

  /** What lies there. Throws JournalDamage when it isn't what was written. */
  read({ file, position, length, crc }: Place): Buffer {
    if (length === 0) return NOTHING
    const body = this.#opened(file).read(position, length)
    if (body.length === length && crc32(body) === crc) return body
    // A file of which nothing is left may be another one's by its next opening.
    this.forget(file)
    throw segmentDamage(this.#disk, { file, position, what: 'a body has the wrong checksum' })
  }

  /** Lets go of a file that is no longer needed. */
  forget(file: number): void {
    this.#files.get(file)?.close()
    this.#files.delete(file)
  }

  close(): void {
    for (const opened of this.#files.values()) opened.close()
    this.#files.clear()
  }

  #opened(file: number): DiskFile {
    const known = this.#files.get(file)
    const opened = known ?? openSegment(this.#disk, file)
    this.#files.delete(file)
    this.#files.set(file, opened)
    if (this.#files.size > LIMITS.segmentLog.filesOpenMax) {
      const [oldest, old] = this.#files.entries().next().value!
      this.#files.delete(oldest)
      old.close()
    }
    return opened
  }
}
