// Writing the embedded graph index: node documents into SQLite rows, with the offsets they bring
// the index to, in one transaction. One writer at a time; readers have connections of their own
// (reader.ts). Source: ARCHITECTURE 5, PROTOCOL 3.13.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { LIMITS } from '../../config/limits.ts'
import { assert, AssertionError } from '../../protocol/errors.ts'
import { completing } from '../../protocol/graph/custom-fields.ts'
import type { GraphSchema } from '../../protocol/graph/schema.ts'
import type { Position } from '../../protocol/ids.ts'
import { type Fill, type GraphWriter, IndexAway, type IndexWrite } from '../search.ts'
import { isOfFile, logOf, markServed, openForWriting } from './file.ts'
import { IndexLog } from './index-log.ts'
import { keyBytes, layoutOf, NODES_PER_ACTOR, type IndexLayoutOfAll } from './layout.ts'
import { SearchWriter } from './search-writer.ts'
import { NodeTable, type ActorRows } from './table.ts'

export interface GraphWriterOptions {
  /** The data directory. */
  readonly dir: string
  /** Of its indexes (IndexPlace); 0 by default. */
  readonly number?: number
  readonly schema: GraphSchema
  /** If it has to be made: it is filled beside another, and not read before `serve`. */
  readonly isFilling?: boolean
  /** Node types of which nodes are passed over: the program has them, and this layout has not. */
  readonly passesOver?: ReadonlySet<string>
  /** Wall clock, milliseconds since 1970: the age of removals. */
  readonly nowMs?: () => number
  /** The file gets so many pages at most; by default as many as the disk has room for. */
  readonly pagesMax?: number
  /** SQLite's log is copied into the file past so many bytes; LIMITS.sqlite.logBytes by default. */
  readonly logBytes?: number
  /** Past so many readers are waited for; LIMITS.sqlite.logBytesMax by default. */
  readonly logBytesMax?: number
}

/** Removals are looked through for old ones this often. */
const PURGE_EVERY_MS = 60_000

/** Name in `meta` of how far a shard is filled, before the shard's number. */
const FILL = 'fill-'

export class SqliteGraphWriter implements GraphWriter {
  readonly placed = false
  readonly #db: DatabaseSync
  readonly #layout: IndexLayoutOfAll
  readonly #nowMs: () => number
  readonly #complete: <W extends IndexWrite>(write: W) => W
  readonly #passesOver: ReadonlySet<string>
  readonly #tables = new Map<string, NodeTable>()
  readonly #search: SearchWriter
  readonly #log: IndexLog
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  readonly #findActor: StatementSync
  readonly #addActor: StatementSync
  readonly #moveOffset: StatementSync
  readonly #setMeta: StatementSync
  readonly #dropMeta: StatementSync
  readonly #tombstone: StatementSync
  readonly #forgetTombstone: StatementSync
  readonly #oldTombstones: StatementSync
  #offsets: Map<number, number>
  readonly #fills = new Map<number, Fill>()
  #generation: string | null
  /** The next actor's number; below it all are taken. */
  #nextActor: number
  #purgedMs = 0

  constructor(options: GraphWriterOptions) {
    this.#layout = layoutOf(options.schema)
    this.#complete = completing(Array.from(options.schema.nodes.values(), ({ type }) => type))
    this.#nowMs = options.nowMs ?? (() => Date.now())
    this.#passesOver = options.passesOver ?? new Set()
    const { dir, number = 0, schema, isFilling = false } = options
    const { logBytes, logBytesMax } = { ...LIMITS.sqlite, ...options }
    const db = openForWriting(
      { dir, number },
      {
        layout: this.#layout,
        types: Array.from(schema.nodes.values(), ({ type }) => type),
        isFilling,
        logBytes,
      },
    )
    if (options.pagesMax) db.exec(`PRAGMA max_page_count = ${options.pagesMax}`)
    this.#db = db
    for (const [name, layout] of this.#layout.nodes) {
      this.#tables.set(name, new NodeTable(db, layout))
    }
    this.#search = new SearchWriter(db, this.#layout)
    this.#log = new IndexLog({ db, file: logOf({ dir, number }), logBytes, logBytesMax })
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#findActor = db.prepare('SELECT number FROM actor WHERE id = ?')
    this.#addActor = db.prepare('INSERT INTO actor VALUES (?, ?)')
    this.#moveOffset = db.prepare('INSERT OR REPLACE INTO shard_offset VALUES (?, ?)')
    this.#setMeta = db.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)')
    this.#dropMeta = db.prepare('DELETE FROM meta WHERE name = ?')
    this.#tombstone = db.prepare('INSERT OR REPLACE INTO tombstone VALUES (?, ?, ?)')
    this.#forgetTombstone = db.prepare('DELETE FROM tombstone WHERE node = ? AND k = ?')
    this.#oldTombstones = db.prepare(
      'SELECT node, k FROM tombstone WHERE at < ? ORDER BY at LIMIT ?',
    )
    const offsets = db.prepare('SELECT shard, offset FROM shard_offset').all()
    this.#offsets = new Map(offsets.map((row) => [Number(row['shard']), Number(row['offset'])]))
    const fills = db.prepare(`SELECT value FROM meta WHERE name GLOB '${FILL}*'`).all()
    for (const { value } of fills) {
      const fill = JSON.parse(String(value)) as Fill
      this.#fills.set(fill.shard, fill)
    }
    this.#generation = this.#meta('generation')
    this.#nextActor = Number(this.#meta('nextActor') ?? 1)
  }

  #meta(name: string): string | null {
    const row = this.#db.prepare('SELECT value FROM meta WHERE name = ?').get(name)
    return row === undefined ? null : String(row['value'])
  }

  apply(
    writes: readonly IndexWrite[],
    offsets: readonly Position[],
    fills: readonly Fill[] = [],
  ): void {
    const nextActor = this.#nextActor
    this.#inTransaction(() => {
      this.#write(writes)
      for (const { shard, offset } of offsets) {
        this.#moveOffset.run(shard, offset)
        if (this.#fills.has(shard)) this.#dropMeta.run(`${FILL}${shard}`)
      }
      for (const fill of fills) this.#setMeta.run(`${FILL}${fill.shard}`, JSON.stringify(fill))
      if (this.#nextActor !== nextActor) this.#setMeta.run('nextActor', String(this.#nextActor))
      this.#purge(writes.length)
    })
    for (const { shard, offset } of offsets) {
      this.#offsets.set(shard, offset)
      this.#fills.delete(shard)
    }
    for (const fill of fills) this.#fills.set(fill.shard, fill)
  }

  /** All or nothing: what fails leaves the file and this object's memory of it as they were. */
  #inTransaction(work: () => void): void {
    const nextActor = this.#nextActor
    try {
      this.#log.bound()
      this.#begin.run()
      work()
      this.#commit.run()
    } catch (error) {
      this.#nextActor = nextActor
      this.#search.forget()
      // A failed COMMIT (disk full) may have rolled back by itself.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      // The file's fault is nobody's whose nodes were to be written.
      if (isOfFile(error)) throw new IndexAway((error as Error).message, { cause: error })
      throw error
    }
  }

  /** A table after the other: what one insert has fetched is still near for the next. */
  #write(writes: readonly IndexWrite[]): void {
    const actors = new Map<string, ActorRows>()
    const byNode = new Map<string, IndexWrite[]>()
    for (const write of writes) {
      if (this.#passesOver.has(write.node)) continue
      const own = byNode.get(write.node)
      if (own === undefined) byNode.set(write.node, [write])
      else own.push(write)
    }
    for (const [node, own] of byNode) this.#writeNodes(node, own, actors)
    this.#search.flush()
  }

  #writeNodes(node: string, writes: readonly IndexWrite[], actors: Map<string, ActorRows>): void {
    const table = this.#table(node)
    /** Places of rows that came with one, by their keys. */
    const placed = new Map<ActorRows, Map<number, number>>()
    let nowMs = 0
    for (const given of writes) {
      const write = this.#complete(given)
      const { actorId, doc, place } = write
      let actor = actors.get(actorId)
      if (actor === undefined) {
        actor = this.#actor(actorId)
        actors.set(actorId, actor)
      }
      const done = table.write(write, actor)
      if (done === 'stale') continue
      this.#search.wrote(write, actor, done)
      if (doc === null) {
        nowMs ||= this.#nowMs()
        this.#tombstone.run(node, done.k, nowMs)
        placed.get(actor)?.delete(done.k)
        continue
      }
      if (done.removedK !== null) this.#forgetTombstone.run(node, done.removedK)
      if (place === undefined) continue
      const rows = placed.get(actor) ?? new Map<number, number>()
      placed.set(actor, rows.set(done.k, place))
    }
    for (const [actor, rows] of placed) {
      const keys = [...rows].toSorted(([, a], [, b]) => a - b).map(([k]) => k)
      this.#search.moved(node, actor, table.arrange(keys))
    }
  }

  #table(node: string): NodeTable {
    const table = this.#tables.get(node)
    if (table === undefined) throw new AssertionError(`node type ${node} has no rows in the index`)
    return table
  }

  #actor(actorId: string): ActorRows {
    const key = keyBytes(actorId)
    assert(key !== null, "an actor's id is a UUID")
    const row = this.#findActor.get(key)
    if (row !== undefined) {
      return { key, first: Number(row['number']) * NODES_PER_ACTOR, isNew: false, next: new Map() }
    }
    const number = this.#nextActor++
    this.#addActor.get(key, number)
    return { key, first: number * NODES_PER_ACTOR, isNew: true, next: new Map() }
  }

  /**
   * Forgets removals that no write can be older than any more (PROTOCOL 3.13.3): more than come
   * with a transaction, and with each until none is left.
   */
  #purge(written: number): void {
    const nowMs = this.#nowMs()
    // One that was set ahead and is right again must not wait for the time that it had.
    if (nowMs >= this.#purgedMs && nowMs < this.#purgedMs + PURGE_EVERY_MS) return
    const old = nowMs - LIMITS.storage.indexTombstoneMs
    const most = Math.max(LIMITS.storage.indexPurgeMax, 2 * written)
    const rows = this.#oldTombstones.all(old, most)
    if (rows.length < most) this.#purgedMs = nowMs
    for (const row of rows) {
      const node = String(row['node'])
      const k = Number(row['k'])
      this.#tables.get(node)?.forget(k)
      this.#forgetTombstone.run(node, k)
    }
  }

  offsets(): ReadonlyMap<number, number> {
    return this.#offsets
  }

  fills(): ReadonlyMap<number, Fill> {
    return this.#fills
  }

  generation(): string | null {
    return this.#generation
  }

  reset(generation: string): void {
    this.#inTransaction(() => {
      for (const { table } of this.#layout.nodes.values()) this.#db.exec(`DELETE FROM ${table}`)
      this.#search.reset(this.#db)
      this.#db.exec('DELETE FROM actor; DELETE FROM tombstone; DELETE FROM shard_offset')
      for (const shard of this.#fills.keys()) this.#dropMeta.run(`${FILL}${shard}`)
      this.#setMeta.run('generation', generation)
      this.#setMeta.run('nextActor', '1')
      this.#nextActor = 1
    })
    this.#offsets = new Map()
    this.#fills.clear()
    this.#generation = generation
  }

  /** It has all that the one has beside which it was filled, and takes its place. */
  serve(): void {
    this.#inTransaction(() => markServed(this.#db))
  }

  close(): void {
    this.#db.close()
  }

  /** After damage: what is in the file is not to be kept. */
  abandon(): void {
    if (this.#db.isOpen) this.#db.close()
  }
}
