// How much room the data file has to grow. It stands between the writer and the file system, and
// is asked before each transaction, because LMDB must not be the one to find out: lmdb 3.5.6 writes
// its message about a failed write (mdb.c, mdb_page_flush) behind the end of the hundred bytes that
// it has for it, which may end the process. Source: PROTOCOL 3.16.

import { existsSync, readFileSync, statfsSync, statSync } from 'node:fs'

export class Room {
  readonly #dir: string
  readonly #file: string
  /** The process' limit on the size of a file (RLIMIT_FSIZE). */
  readonly #fileBytesMax: number

  constructor(dir: string, file: string) {
    this.#dir = dir
    this.#file = file
    this.#fileBytesMax = fileBytesMax()
  }

  /** Bytes by which the data file can grow now. Costs about 2 us. */
  left(): number {
    const { bavail, bsize } = statfsSync(this.#dir)
    const free = bavail * bsize
    if (this.#fileBytesMax === Infinity) return free
    return Math.min(free, this.#fileBytesMax - statSync(this.#file).size)
  }
}

function fileBytesMax(): number {
  const path = '/proc/self/limits'
  if (!existsSync(path)) return Infinity
  const found = /^Max file size +(\d+) /m.exec(readFileSync(path, 'utf8'))
  return found === null ? Infinity : Number(found[1])
}
