// The LMDB environment of a journal: one data file with a table per kind of row. It is the only
// door to lmdb. Source: PROTOCOL 3.16.
//
// Options (figures: bench/README "Measured choices"):
// - overlappingSync off: a transaction is seen only once it is on disk, its promise resolves behind
//   the flush, and a failed flush leaves nothing behind. With one transaction in flight, the
//   overlapping kind has nothing to overlap and is slower.
// - Pages of 4 KiB: a commit of 32 orders touches some twenty shards' ends of the log, a leaf and
//   a branch page each, and writes all of both. Larger pages mean more bytes.
// - eventTurnBatching off: what belongs to a transaction is said with `batch`.

import { join } from 'node:path'
import { open, type Database, type RootDatabase } from 'lmdb'
import { LIMITS } from '../../config/limits.ts'

export const DATA_FILE = 'data.mdb'

export type Table = Database<Uint8Array, Uint8Array>

export interface JournalEnvironment {
  /** Path of the data file, for messages. */
  readonly file: string
  readonly root: RootDatabase<Uint8Array, Uint8Array>
  /** The store's identity. */
  readonly meta: Table
  /** By shard and offset: where groups lie in the log. */
  readonly log: Table
  /** By shard: where it was when the rows of its groups were written. */
  readonly heads: Table
  readonly entries: Table
  readonly aliases: Table
  readonly snapshots: Table
  readonly marks: Table
  readonly shards: Table
  readonly consumers: Table
  readonly parked: Table
  readonly images: Table
  /** Which rows may go, by shard and hour of its clock; null in a store without any. */
  readonly lives: Table | null
  /** Actors that are forgotten (ended.ts); null as above. */
  readonly ended: Table | null
}

/** Names of the tables of derived rows, whose values all have one form. */
export const DERIVED_TABLES = [
  'entries',
  'aliases',
  'snapshots',
  'marks',
  'shards',
  'consumers',
  'parked',
  'images',
] as const

const TABLE = { encoding: 'binary', keyEncoding: 'binary' } as const

/**
 * Opens the environment in `dir`. Read-only, it must exist: throws when a table is missing. Threads
 * of one process share it.
 */
export function openEnvironment(dir: string, readOnly: boolean): JournalEnvironment {
  const options = {
    ...TABLE,
    // Or a folder with a dot in its name would be taken for a file.
    noSubdir: false,
    overlappingSync: false,
    eventTurnBatching: false,
    // Leaves whatever the memory held in unused parts of pages: the file is as private as that.
    noMemInit: true,
    mapSize: LIMITS.lmdb.mapBytes,
    pageSize: LIMITS.lmdb.pageBytes,
    maxDbs: 16,
    readOnly,
  }
  const root = open<Uint8Array, Uint8Array>(dir, options)
  try {
    return { file: join(dir, DATA_FILE), root, ...tablesOf(dir, root) }
  } catch (error) {
    // Or the next one to open it in this process would be refused.
    void root.close()
    throw error
  }
}

function tablesOf(
  dir: string,
  root: RootDatabase<Uint8Array, Uint8Array>,
): Omit<JournalEnvironment, 'file' | 'root'> {
  const table = (name: string): Table => {
    const found = root.openDB<Uint8Array, Uint8Array>(name, { ...TABLE })
    if (found === undefined) {
      throw new Error(`${join(dir, DATA_FILE)}: ${dir} holds no journal: it has no table '${name}'`)
    }
    return found
  }
  return {
    meta: table('meta'),
    log: table('log'),
    heads: table('heads'),
    entries: table('entries'),
    aliases: table('aliases'),
    snapshots: table('snapshots'),
    marks: table('marks'),
    shards: table('shards'),
    consumers: table('consumers'),
    parked: table('parked'),
    images: table('images'),
    // A store of an earlier version that is only read may have none.
    lives: root.openDB<Uint8Array, Uint8Array>('lives', { ...TABLE }) ?? null,
    ended: root.openDB<Uint8Array, Uint8Array>('ended', { ...TABLE }) ?? null,
  }
}

/**
 * Writes what a stopped node's store lacks. Throws Error when another process has the directory
 * open: a node knows of nothing that is written beside it. One that starts meanwhile waits for the
 * write lock with its first claim.
 */
export function writeAlone(env: JournalEnvironment, write: () => void): void {
  env.root.transactionSync(() => {
    refuseOthers(env)
    write()
  })
}

/** Throws Error when another process has the directory open; only reading it counts, too. */
export function refuseOthers({ file, root }: JournalEnvironment): void {
  // Those that were killed are still listed.
  root.readerCheck()
  for (const [, pid] of root.readerList().matchAll(/^ *(\d+) /gm)) {
    if (Number(pid) === process.pid) continue
    throw new Error(`${file}: process ${pid} has the data directory open: stop it and repair again`)
  }
}

/** What lies behind a failed commit: the system's or LMDB's error, its number as `code`. */
export async function causeOfFailure(error: unknown): Promise<Error & { code?: unknown }> {
  if (!(error instanceof Error)) return new Error(String(error))
  const { commitError } = error as { commitError?: Promise<unknown> }
  if (commitError === undefined) return error
  try {
    await commitError
  } catch (cause) {
    if (cause instanceof Error) return cause
  }
  return error
}
