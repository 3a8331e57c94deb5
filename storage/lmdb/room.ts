// How much room the data file has to grow. It is asked before each transaction, because LMDB must
// not be the one to find out: lmdb 3.5.6 writes its message about a failed write (mdb.c,
// mdb_page_flush) behind the end of the hundred bytes that it has for it, which may end the
// process. Source: PROTOCOL 3.16.

import { existsSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { LIMITS } from '../../config/limits.ts'

/** Pages from the root to the leaf of a large table, and one that splits. */
const PATH_BYTES = 5 * LIMITS.lmdb.pageBytes

/** By how much rows that lie anywhere make the data file grow at most, beside what they hold. */
export function pathBytes(rows: number): number {
  return rows * PATH_BYTES
}

/**
 * Paths of pages for the places of groups and the heads of so many shards, however many groups: a
 * shard's places stand behind one another, and share pages; so it has one of them and a head.
 */
export function shardPaths(shards: number): number {
  return 2 * shards
}

/**
 * What is kept back for finishing what is committed, which may be of all shards at once: with less
 * left on the disk nothing new is taken.
 */
export function roomKept(shards: number): number {
  return LIMITS.lmdb.roomBytes + pathBytes(shardPaths(shards))
}

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

  /** Bytes by which the data file can grow now. Cheap: one call of the system. */
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
