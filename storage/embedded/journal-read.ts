// Reading a journal's data file, from the main thread or from another one. It stands between the
// tables and the reading half of the journal port; every row's checksum is compared before it is
// handed out, so a damaged row is an error and never an answer. Source: PROTOCOL 3.0, 3.16.

import { assert } from '../../protocol/errors.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type {
  AliasRow,
  DerivedReader,
  EntryRange,
  EntryRow,
  LogReader,
  LogRow,
  ShardStatus,
} from '../journal.ts'
import { JournalDamage } from './journal-damage.ts'
import type { JournalEnvironment, Table } from './journal-environment.ts'
import {
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
  NIL_UUID,
  parkedPrefix,
  placeOfLogKey,
  readGroup,
  readHead,
  shardKey,
  uuidAt,
  uuidKey,
  type HeadFields,
} from './journal-layout.ts'

/** The last offset that can be asked for: behind every entry. */
const LAST = Number.MAX_SAFE_INTEGER
/** The last number of an entry, a day or a part in a key. */
const LAST_U32 = 0xffff_ffff

/**
 * A derived row's value as it is now, checked; null when there is none. Throws JournalDamage. The
 * read transaction is a fresh one each time (0.3 us): it would else last until the next timers run,
 * and another thread's or process's commit would be missed.
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
  const { name } = table as unknown as { name: string }
  const hex = Buffer.from(key).toString('hex')
  throw new JournalDamage(
    `${env.file}: table ${name}, row ${hex}: its checksum doesn't match: restore the data ` +
      'directory from a backup',
    { file: env.file, shard: null, offset: null },
  )
}

/** Offset and body of a register. */
function register(value: Uint8Array | null): { offset: number; body: Uint8Array } | null {
  return value === null ? null : { offset: derivedOffset(value), body: derivedBody(value) }
}

export class EmbeddedLogReader implements LogReader {
  protected readonly env: JournalEnvironment

  constructor(env: JournalEnvironment) {
    this.env = env
  }

  status(shard: number): ShardStatus {
    // Head first: an epoch that was raised in between is the newer news.
    const { head, commitId } = this.head(shard)
    const epoch = this.epochNow(shard)
    return { epoch, head, lastCommit: commitId === NIL_UUID ? null : commitId }
  }

  epochNow(shard: number): number {
    const value = getDerived(this.env, this.env.epochs, shardKey(shard))
    assert(value !== null, `shard ${shard} is one of this store`)
    return derivedOffset(value)
  }

  /** The head row as it is now. */
  protected head(shard: number): HeadFields {
    const value = getDerived(this.env, this.env.heads, shardKey(shard))
    assert(value !== null, `shard ${shard} is one of this store`)
    return readHead(value)
  }

  read(shard: number, after: number, bytesMax: number): readonly LogRow[] {
    const rows: LogRow[] = []
    const range = { start: logKey(shard, after + 1), end: logKey(shard + 1, 0) }
    let bytes = 0
    this.env.root.resetReadTxn()
    for (const { key, value } of this.env.log.getRange(range)) {
      bytes += value.length
      if (rows.length > 0 && bytes > bytesMax) break
      if (!isWhole(key, value)) {
        const { offset } = placeOfLogKey(key)
        throw new JournalDamage(
          `${this.env.file}: shard ${shard}, offset ${offset}: the group's checksum doesn't ` +
            'match: stop this node, see what else verify-log finds, and restore the data ' +
            'directory from a backup',
          { file: this.env.file, shard, offset },
        )
      }
      rows.push(readGroup(shard, value))
    }
    return rows
  }
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
  #isFresh = false

  constructor(env: JournalEnvironment) {
    this.env = env
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
    const found: EntryRow[] = []
    let bytes = 0
    for (const { key, value } of this.env.entries.getRange(options)) {
      const row = this.#entry(key, value)
      bytes += row.body.length
      if (found.length > 0 && bytes > bytesMax) break
      found.push(row)
    }
    return found
  }

  #entry(key: Uint8Array, value: Uint8Array): EntryRow {
    checkDerived(this.env, this.env.entries, key, value)
    return { n: entryNumber(key), offset: derivedOffset(value), body: derivedBody(value) }
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
