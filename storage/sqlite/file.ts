// The SQLite file of the graph index: opening it for the writer and for readers, and making it
// anew. What is in the file can always be made again from the journal, so a file that can't be used
// is replaced.

import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { LIMITS } from '../../config/limits.ts'
import { IndexAway } from '../search.ts'
import { ddlOf, type IndexLayoutOfAll } from './layout.ts'

/** Name of the file in the data directory. */
const FILE = 'graph.sqlite'
/**
 * An entry of an index lands anywhere in it: on a large store each dirties a page of its own, which
 * is written to SQLite's log and then to the file. So pages are small.
 */
const PAGE_BYTES = 4096
const WRITER_CACHE_KIB = 32 * 1024
const READER_CACHE_KIB = 8 * 1024
/** Readers see the file's pages through the kernel's memory instead of copies of their own. */
const MMAP_BYTES = 1024 ** 3
/** A reader or writer that finds the file locked (only while it is made) waits this long. */
const BUSY_MS = 5_000

/** SQLite's result codes for a file that is damaged or none of its own. */
const CORRUPT = 11
const NOT_A_DATABASE = 26

/** Result codes that are about what was written, or how; all others are the file's. */
const OF_CONTENT = [
  1, // ERROR
  18, // TOOBIG
  19, // CONSTRAINT
  20, // MISMATCH
  21, // MISUSE
  25, // RANGE
]

/** The disk could not keep what it was given, and the kernel may have dropped it. */
const SYNC_FAILED = 1034

/**
 * Opens the index for writing, makes it when it is missing, damaged, or made for another layout. A
 * file that was made here holds no generation: it has to be filled. Past `logBytes` SQLite's log is
 * copied into the file: a page that changed often, once.
 */
export function openForWriting(
  dir: string,
  layout: IndexLayoutOfAll,
  logBytes: number = LIMITS.sqlite.logBytes,
): DatabaseSync {
  mkdirSync(dir, { recursive: true })
  const file = join(dir, FILE)
  try {
    return openMade(file, layout, logBytes)
  } catch (error) {
    if (!isDamage(error)) throw error
    removeFile(file)
    return openMade(file, layout, logBytes)
  }
}

function openMade(file: string, layout: IndexLayoutOfAll, logBytes: number): DatabaseSync {
  let db = openWriter(file, logBytes)
  try {
    const found = fingerprintOf(db)
    if (found === layout.fingerprint) return db
    if (found !== null) {
      // Another layout: a new file is cheaper than dropping tables page by page.
      db.close()
      removeFile(file)
      db = openWriter(file, logBytes)
    }
    make(db, layout)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

function openWriter(file: string, logBytes: number): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: BUSY_MS })
  try {
    // Each transaction is synced by itself: what gathers until the log is copied goes to the disk
    // in one go otherwise, and commits of the journal stand behind it.
    db.exec(
      `PRAGMA page_size = ${PAGE_BYTES}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;` +
        `PRAGMA temp_store = MEMORY; PRAGMA cache_size = -${WRITER_CACHE_KIB};`,
    )
    // A file that was there may have pages of another size.
    const { page_size: pageBytes } = db.prepare('PRAGMA page_size').get()!
    const pages = Math.max(1, Math.floor(logBytes / Number(pageBytes)))
    db.exec(`PRAGMA wal_autocheckpoint = ${pages}`)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

function make(db: DatabaseSync, layout: IndexLayoutOfAll): void {
  db.exec('BEGIN IMMEDIATE')
  for (const statement of ddlOf(layout)) db.exec(statement)
  db.prepare(`INSERT INTO meta VALUES ('fingerprint', ?)`).run(layout.fingerprint)
  db.exec('COMMIT')
  // Statistics are read when a schema is loaded.
  db.exec('ANALYZE sqlite_schema')
}

/** What the file was made for, or null when it is empty. */
export function fingerprintOf(db: DatabaseSync): string | null {
  const made = db.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'meta'`).get()
  if (made === undefined) return null
  const row = db.prepare(`SELECT value FROM meta WHERE name = 'fingerprint'`).get()
  return row === undefined ? '' : String(row['value'])
}

/** Opens the index for reading; throws when it is not there. */
export function openForReading(dir: string): DatabaseSync {
  const db = new DatabaseSync(join(dir, FILE), { readOnly: true, timeout: BUSY_MS })
  db.exec(
    `PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = ${MMAP_BYTES};` +
      `PRAGMA cache_size = -${READER_CACHE_KIB};`,
  )
  return db
}

/**
 * Removes the index, after damage that shows in use: the next writer makes a new one, to be filled.
 * Readers must open it again.
 */
export function discardIndex(dir: string): void {
  removeFile(join(dir, FILE))
}

function removeFile(file: string): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true })
}

/**
 * True: SQLite failed for a reason that lies in the file or the machine (no room, an I/O error, a
 * lock, damage), whatever was to be written.
 */
export function isOfFile(error: unknown): boolean {
  const code = (error as { errcode?: number }).errcode
  return code !== undefined && !OF_CONTENT.includes(code & 0xff)
}

/** True: what is in the file can't be relied on any more. */
export function isDamage(error: unknown): boolean {
  const { cause } = error as { cause?: unknown }
  const code = ((error instanceof IndexAway ? cause : error) as { errcode?: number }).errcode
  if (code === undefined) return false
  return code === SYNC_FAILED || [CORRUPT, NOT_A_DATABASE].includes(code & 0xff)
}
