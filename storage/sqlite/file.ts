// The SQLite file of the graph index: opening it for the writer and for readers, and making it
// anew. What is in the file can always be made again from the journal, so a file that can't be used
// is replaced.

import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { NodeType } from '../../protocol/graph/node-type.ts'
import { IndexAway } from '../search.ts'
import { ddlOf, type IndexLayoutOfAll } from './layout.ts'

/** Where an index is: it may be filled beside the one that is read (PROTOCOL 3.13.5). */
export interface IndexPlace {
  /** The data directory. */
  readonly dir: string
  /** Each index of a directory has another one; a later one a higher one. */
  readonly number: number
}

const NAME = /^graph(?:-([1-9]\d{0,8}))?\.sqlite$/
const fileOf = ({ dir, number }: IndexPlace): string => join(dir, nameOf(number))
/** What SQLite has written and not copied into the file yet. */
export const logOf = (place: IndexPlace): string => `${fileOf(place)}-wal`
const nameOf = (number: number): string =>
  number === 0 ? 'graph.sqlite' : `graph-${number}.sqlite`

/** Names in `meta`: the node types as they were declared, and that it is not to be read yet. */
const TYPES = 'types'
const FILLING = 'filling'

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

type Options = NonNullable<ConstructorParameters<typeof DatabaseSync>[1]>

/** Loaded with the first file: Node warns of it, and `--help` opens none. */
function opened(file: string, options: Options): DatabaseSync {
  const { DatabaseSync: Database } = process.getBuiltinModule('node:sqlite')
  return new Database(file, options)
}

/** Of a file and of what SQLite keeps beside it. */
const SUFFIXES = ['', '-wal', '-shm']

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

/** What a file is opened for. */
export interface Opening {
  readonly layout: IndexLayoutOfAll
  /** The node types that it is laid out for. */
  readonly types: readonly NodeType[]
  /** If it has to be made: it is not to be read before `markServed`. */
  readonly isFilling: boolean
  /** Past so many SQLite's log is copied into the file: a page that changed often, once. */
  readonly logBytes: number
}

/**
 * Opens the index for writing, makes it when it is missing, damaged, or made for another layout. A
 * file that was made here holds no generation: it has to be filled.
 */
export function openForWriting(place: IndexPlace, opening: Opening): DatabaseSync {
  mkdirSync(place.dir, { recursive: true })
  const file = fileOf(place)
  try {
    return openMade(file, opening)
  } catch (error) {
    if (!isDamage(error)) throw error
    removeFile(file)
    return openMade(file, opening)
  }
}

function openMade(file: string, opening: Opening): DatabaseSync {
  const { layout, logBytes, types } = opening
  let db = openWriter(file, logBytes)
  try {
    const found = fingerprintOf(db)
    if (found === layout.fingerprint) {
      // Those of today: what differs between versions that are laid out alike.
      db.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)').run(TYPES, JSON.stringify(types))
      return db
    }
    if (found !== null) {
      // Another layout: a new file is cheaper than dropping tables page by page.
      db.close()
      removeFile(file)
      db = openWriter(file, logBytes)
    }
    make(db, opening)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

function openWriter(file: string, logBytes: number): DatabaseSync {
  const db = opened(file, { timeout: BUSY_MS })
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

function make(db: DatabaseSync, { layout, types, isFilling }: Opening): void {
  db.exec('BEGIN IMMEDIATE')
  for (const statement of ddlOf(layout)) db.exec(statement)
  const keep = db.prepare('INSERT INTO meta VALUES (?, ?)')
  keep.run('fingerprint', layout.fingerprint)
  keep.run(TYPES, JSON.stringify(types))
  if (isFilling) keep.run(FILLING, '1')
  db.exec('COMMIT')
  // Statistics are read when a schema is loaded.
  db.exec('ANALYZE sqlite_schema')
}

/** What the file was made for, or null when it is empty. */
export function fingerprintOf(db: DatabaseSync): string | null {
  const made = db.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'meta'`).get()
  if (made === undefined) return null
  return metaOf(db, 'fingerprint') ?? ''
}

function metaOf(db: DatabaseSync, name: string): string | null {
  const row = db.prepare('SELECT value FROM meta WHERE name = ?').get(name)
  return row === undefined ? null : String(row['value'])
}

/** It is whole: from now on it is the one that is read, whatever other there is. */
export function markServed(db: DatabaseSync): void {
  db.prepare('DELETE FROM meta WHERE name = ?').run(FILLING)
}

/** Opens the index for reading; throws when it is not there. */
export function openForReading(place: IndexPlace): DatabaseSync {
  const db = opened(fileOf(place), { readOnly: true, timeout: BUSY_MS })
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
export function discardIndex(place: IndexPlace): void {
  removeFile(fileOf(place))
}

function removeFile(file: string): void {
  for (const suffix of SUFFIXES) rmSync(file + suffix, { force: true })
}

/** The same for a large file that nobody writes any more, off this thread. */
export async function removeIndex(place: IndexPlace): Promise<void> {
  const file = fileOf(place)
  for (const suffix of SUFFIXES) await rm(file + suffix, { force: true })
}

/** An index that is there at a start. */
export interface FoundIndex {
  readonly number: number
  /** Null: it is empty. */
  readonly fingerprint: string | null
  /** Of the node types that it is laid out for; null: it doesn't say. */
  readonly types: readonly NodeType[] | null
  /** It was filled beside another, and had not taken its place. */
  readonly isFilling: boolean
  /** It can't be looked into now, for a reason that says nothing of what it has. */
  readonly isAway: boolean
}

/** All indexes of a data directory, by number. One that is damaged is found as an empty one. */
export function findIndexes(dir: string): readonly FoundIndex[] {
  if (!existsSync(dir)) return []
  const numbers = new Set<number>()
  for (const name of readdirSync(dir)) {
    const named = NAME.exec(SUFFIXES.reduce((left, suffix) => withoutEnd(left, suffix), name))
    if (named !== null) numbers.add(Number(named[1] ?? 0))
  }
  return [...numbers].toSorted((a, b) => a - b).map((number) => lookAt({ dir, number }))
}

const withoutEnd = (name: string, end: string): string =>
  end !== '' && name.endsWith(end) ? name.slice(0, -end.length) : name

function lookAt(place: IndexPlace): FoundIndex {
  const empty = {
    number: place.number,
    fingerprint: null,
    types: null,
    isFilling: false,
    isAway: false,
  }
  let db: DatabaseSync | null = null
  try {
    if (!existsSync(fileOf(place))) return empty
    // For writing, or a log that a kill has left could not be read.
    db = opened(fileOf(place), { timeout: BUSY_MS })
    const fingerprint = fingerprintOf(db)
    if (fingerprint === null) return empty
    const types = metaOf(db, TYPES)
    return {
      number: place.number,
      fingerprint,
      types: types === null ? null : (JSON.parse(types) as readonly NodeType[]),
      isFilling: metaOf(db, FILLING) !== null,
      isAway: false,
    }
  } catch (error) {
    return { ...empty, isAway: isOfFile(error) && !isDamage(error) }
  } finally {
    db?.close()
  }
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
