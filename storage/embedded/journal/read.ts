// Reading a journal, from the main thread or from another one. Every checksum is compared before
// anything is handed out: a damage is an error, never an answer. Source: PROTOCOL 3.0, 3.16.

import { crc32 } from 'node:zlib'
import { LIMITS } from '../../../config/limits.ts'
import { assert } from '../../../protocol/errors.ts'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import type {
  AliasRow,
  DerivedReader,
  EntryRange,
  EntryRow,
  LogReader,
  LogRow,
  ShardStatus,
} from '../../journal.ts'
import type { Place } from '../../segment-log/frame.ts'
import { roundOf } from '../../segment-log/header.ts'
import type { PlaceReader } from '../../segment-log/place-reader.ts'
import { withErased } from '../log/erased-body.ts'
import { damagedRow, JournalDamage } from '../../damage.ts'
import type { JournalEnvironment, Table } from '../../lmdb/environment.ts'
import {
  contentOf,
  aliasKey,
  consumerKey,
  derivedBody,
  derivedOffset,
  entryKey,
  entryNumber,
  imageKey,
  isWhole,
  logKey,
  markKey,
  parkedPrefix,
  readGroup,
  shardKey,
  uuidAt,
  uuidKey,
} from '../../lmdb/layout.ts'
import { beginsIn, type LoggedGroup, type LogTail } from '../../segment-log/tail.ts'

/** The last offset that can be asked for: behind every entry. */
const LAST = Number.MAX_SAFE_INTEGER
/** The last number of an entry, a day or a part in a key. */
const LAST_U32 = 0xffff_ffff

/**
 * A derived row's value as it is now, checked; null when there is none. Throws JournalDamage. The
 * read transaction is a fresh one each time: it would else last until the next timers run, and
 * another thread's or process's commit would be missed.
 */
export function getDerived(env: JournalEnvironment, table: Table, key: Uint8Array) {
  env.root.resetReadTxn()
  return getChecked(env, table, key)
}

function getChecked(env: JournalEnvironment, table: Table, key: Uint8Array) {
  const value = table.get(key)
  if (value === undefined) return null
  checkDerived(env, table, key, value)
  return value
}

function checkDerived(
  env: JournalEnvironment,
  table: Table,
  key: Uint8Array,
  value: Uint8Array,
): void {
  if (isWhole(key, value)) return
  throw damagedRow(env.file, (table as unknown as { name: string }).name, key)
}

/** Offset and body of a register. */
function register(value: Uint8Array | null): { offset: number; body: Uint8Array } | null {
  return value === null ? null : { offset: derivedOffset(value), body: derivedBody(value) }
}

/** What a log reader reads from. */
export interface LogSource {
  readonly env: JournalEnvironment
  readonly places: PlaceReader
  /**
   * Groups whose places the data file may not have yet, up to now: everything above what it has.
   */
  readonly tail: () => LogTail
  readonly status: (shard: number) => ShardStatus
  /** Takes the tail anew: where its groups lay, a file may have gone. */
  readonly renew?: () => void
}

/**
 * What lies at places that were just looked up. A file that is given back meanwhile is cut, and its
 * places were turned before: they are looked up again. Throws JournalDamage when they stay wrong.
 */
function atPlaces<T>(read: () => T, renew: () => void = () => {}): T {
  for (let attempt = 1; ; attempt++) {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof JournalDamage) || attempt === LIMITS.embedded.placeReadsMax)
        throw error
      renew()
    }
  }
}

export class EmbeddedLogReader implements LogReader {
  protected readonly source: LogSource
  #read: { file: number; position: number; begins: readonly number[] | null } | null = null

  constructor(source: LogSource) {
    this.source = source
  }

  status(shard: number): ShardStatus {
    return this.source.status(shard)
  }

  epochNow(shard: number): number {
    return this.status(shard).epoch
  }

  read(shard: number, after: number, bytesMax: number): readonly LogRow[] {
    return atPlaces(() => this.#rows(shard, after, bytesMax), this.source.renew)
  }

  #rows(shard: number, after: number, bytesMax: number): readonly LogRow[] {
    const { places } = this.source
    const rows: LogRow[] = []
    let bytes = 0
    for (const { place, begins: _, ...group } of this.#groups(shard, after)) {
      bytes += place.length
      if (rows.length > 0 && bytes > bytesMax) break
      const body = bodyOf(group) ?? places.read(place)
      const isAsWritten = roundOf(place.file) === 0
      rows.push({ ...group, body: isAsWritten ? body : withErased(body, group.count) })
    }
    return rows
  }

  /** The group that ends at this offset. */
  protected group(shard: number, offset: number): LoggedGroup | null {
    const [group] = this.#groups(shard, offset - 1)
    return group?.offset === offset ? group : null
  }

  /** Where an entry lies, by its offset; null where the log doesn't have it. */
  entryPlace(shard: number, row: { offset: number; body: Uint8Array }): Place | null {
    const known = this.source.tail().at(shard, row.offset)
    const [found] = known === null ? this.#groups(shard, row.offset - 1) : [known]
    if (found === undefined) return null
    const first = found.offset - found.count + 1
    if (row.offset < first) return null
    const begins = known === null ? this.#beginsIn(found) : found.begins
    if (begins === null) return null
    const begin = begins[row.offset - first]!
    const { file, position } = found.place
    return { file, position: position + begin, length: row.body.length, crc: crc32(row.body) }
  }

  /** Entries of one group are asked for one after the other. */
  #beginsIn({ place, count }: LoggedGroup): readonly number[] | null {
    const { file, position } = place
    if (this.#read?.file !== file || this.#read.position !== position) {
      const begins = beginsIn(this.source.places.read(place), count)
      this.#read = { file, position, begins }
    }
    return this.#read.begins
  }

  /** Those that end above `after`: as the data file has them, then the tail's. */
  *#groups(shard: number, after: number): Generator<LoggedGroup> {
    const { env } = this.source
    // First the tail: what it has forgotten since is in the data file.
    const tail = this.source.tail()
    let last = after
    env.root.resetReadTxn()
    const range = { start: logKey(shard, after + 1), end: logKey(shard + 1, 0) }
    for (const { key, value } of env.log.getRange(range)) {
      if (!isWhole(key, value)) throw damagedRow(env.file, 'log', key)
      const group = { shard, begins: null, ...readGroup(value) }
      last = group.offset
      yield group
    }
    yield* tail.after(shard, last)
  }
}

/** A reader's tail has the newest bodies in memory. */
function bodyOf(group: object): Buffer | null {
  return (group as { body?: Buffer | null }).body ?? null
}

const SETTLED = Promise.resolve()

/** Keys of the entries that are read, in the order in which they are. */
interface Range {
  readonly start: Uint8Array
  readonly end: Uint8Array
  readonly reverse?: boolean
  readonly limit?: number
}

export class EmbeddedDerivedReader implements DerivedReader {
  protected readonly env: JournalEnvironment
  readonly #places: PlaceReader
  #isFresh = false

  constructor(env: JournalEnvironment, places: PlaceReader) {
    this.env = env
    this.#places = places
  }

  /**
   * Keys are looked up for one turn after the other: all of them in one read transaction, until
   * the next microtasks, which alone can hear of a commit that has ended since.
   */
  alias(keyType: string, key: string): AliasRow | null {
    if (!this.#isFresh) {
      this.#isFresh = true
      void SETTLED.then(this.#age)
      this.env.root.resetReadTxn()
    }
    const value = getChecked(this.env, this.env.aliases, aliasKey(keyType, key))
    if (value === null) return null
    const row = JSON.parse(derivedBody(value).toString()) as AliasRow
    assert(row.keyType === keyType && row.key === key, 'two key texts share one hash')
    return row
  }

  readonly #age = (): void => {
    this.#isFresh = false
  }

  snapshot(actorId: string): { offset: number; body: Uint8Array } | null {
    return register(getDerived(this.env, this.env.snapshots, uuidKey(actorId)))
  }

  entries(actorId: string, range: EntryRange): readonly EntryRow[] {
    this.env.root.resetReadTxn()
    if (range.order === 'descending') {
      if (range.before <= 1) return []
      const options = {
        start: entryKey(actorId, range.before - 1),
        end: entryKey(actorId, 0),
        reverse: true,
        limit: range.countMax,
      }
      return this.#upTo(range.bytesMax, options)
    }
    const start = entryKey(actorId, Math.max(range.after, 0) + 1)
    return this.#upTo(range.bytesMax, { start, end: entryKey(actorId, LAST_U32) })
  }

  #upTo(bytesMax: number, options: Range): readonly EntryRow[] {
    return atPlaces(
      () => this.#rows(bytesMax, options),
      () => this.env.root.resetReadTxn(),
    )
  }

  #rows(bytesMax: number, options: Range): readonly EntryRow[] {
    const found: EntryRow[] = []
    let bytes = 0
    for (const { key, value } of this.env.entries.getRange(options)) {
      checkDerived(this.env, this.env.entries, key, value)
      const content = contentOf(value)
      bytes += content.length
      if (found.length > 0 && bytes > bytesMax) break
      const body = 'file' in content ? this.#places.read(content) : content
      found.push({ n: entryNumber(key), offset: derivedOffset(value), body })
    }
    return found
  }

  mark(actorId: string, day: number, messageId: string): Uint8Array | null {
    const value = getDerived(this.env, this.env.marks, markKey(actorId, day, messageId))
    return value === null ? null : derivedBody(value)
  }

  shard(shard: number): { offset: number; body: Uint8Array } | null {
    return register(getDerived(this.env, this.env.shards, shardKey(shard)))
  }

  consumer(shard: number, consumer: string): number | null {
    const value = getDerived(this.env, this.env.consumers, consumerKey(shard, consumer))
    return value === null ? null : derivedOffset(value)
  }

  parked(shard: number, consumer: string): readonly { actorId: string; body: Uint8Array }[] {
    const found: { actorId: string; body: Uint8Array }[] = []
    const start = parkedPrefix(shard, consumer)
    const end = Buffer.from(start)
    end[end.length - 1] = 1
    this.env.root.resetReadTxn()
    for (const { key, value } of this.env.parked.getRange({ start, end })) {
      checkDerived(this.env, this.env.parked, key, value)
      const body = derivedBody(value)
      // The first byte says whether the actor is still parked.
      if (body[0] === 1)
        found.push({ actorId: uuidAt(key, key.length - 16), body: body.subarray(1) })
    }
    return found
  }

  image(): { offset: number; parts: readonly Uint8Array[] } | null {
    const offset = this.imageBefore(LAST)
    if (offset === null) return null
    const parts: Uint8Array[] = []
    const range = { start: imageKey(offset, 0), end: imageKey(offset + 1, 0) }
    for (const { key, value } of this.env.images.getRange(range)) {
      checkDerived(this.env, this.env.images, key, value)
      parts.push(derivedBody(value))
    }
    return { offset, parts }
  }

  /** Offset of the newest whole image below `offset`. */
  protected imageBefore(offset: number): number | null {
    const upTo = Math.min(this.consumer(SYSTEM_SHARD, 'image') ?? 0, offset - 1)
    const start = imageKey(upTo, LAST_U32)
    for (const key of this.env.images.getKeys({ start, reverse: true, limit: 1 })) {
      return Buffer.from(key).readUIntBE(0, 6)
    }
    return null
  }

  actors(after: string | null, limit: number): readonly string[] {
    const found: string[] = []
    this.env.root.resetReadTxn()
    // Behind every entry of an actor: five bytes where an entry's number has four.
    const behind = Buffer.alloc(21, 0xff)
    let start: Uint8Array = Buffer.alloc(1)
    if (after !== null) start = Buffer.concat([uuidKey(after), behind.subarray(16)])
    while (found.length < limit) {
      let next: Uint8Array | null = null
      for (const key of this.env.entries.getKeys({ start, limit: 1 })) next = key
      if (next === null) break
      found.push(uuidAt(next, 0))
      behind.set(next.subarray(0, 16), 0)
      start = behind
    }
    return found
  }
}
