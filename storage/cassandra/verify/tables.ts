// The audit of the derived tables: every row readable, an actor's entries in order and whole, what
// names an offset not above the log. It reads the tables page by page. Source: PROTOCOL 3.0, 3.12,
// 4.1 (K4).

import { decodeEntry } from '../../../protocol/entry/entry.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { placeOfActor, shardOf, SYSTEM_SHARD } from '../../../protocol/ids.ts'
import type { Standing } from '../../../protocol/entry/succession.ts'
import { GENERATION_CONSUMERS } from '../../journal.ts'
import { RowAudit } from '../../row-audit.ts'
import { isPassing } from '../../row-expiry.ts'
import { bucketOf, BUCKET_ENTRIES, decodeBlob, parkedBody, type Blob } from '../derived/rows.ts'
import type { Row, Session } from '../session/session.ts'
import type { EntryOf, PutBack } from './shard.ts'

const GENERATIONS: ReadonlySet<unknown> = new Set(Object.values(GENERATION_CONSUMERS))

/** Rows of a page: each may be large. */
const PAGE_ROWS = 200

export interface TableAudit {
  readonly session: Session
  readonly keyspace: string
  readonly shards: number
  /** Whether a shard's log reaches up to this offset, now: nothing derived is above it. */
  readonly reaches: (shard: number, offset: number) => Promise<boolean>
  /** Behind an accepted loss entries are found by the numbers before it: these must all stay. */
  readonly keepsRefusals: boolean
  /** Writes a row again that would go; null: it is only told. */
  readonly putBack: PutBack | null
  readonly report: (line: string) => void
}

type Check = (row: Row, name: string) => Promise<void> | void

/** Reads all derived tables; answers the number of rows. */
export async function verifyTables(audit: TableAudit): Promise<number> {
  let rows = 0
  for (const [table, columns, check] of checksOf(audit)) {
    for (let from: string | null = null; ;) {
      const query = `SELECT ${columns} FROM ${audit.keyspace}.${table}`
      const page = await audit.session.readPage(query, [], { rows: PAGE_ROWS, from })
      for (const row of page.rows) {
        rows++
        await checked(audit, table, row, check)
      }
      if (page.next === null) break
      from = page.next
    }
  }
  return rows
}

const NO_KEYS: ReadonlySet<string> = new Set(['body', 'ttl', 'stamp'])

async function checked(audit: TableAudit, table: string, row: Row, check: Check): Promise<void> {
  const keys = row.keys().filter((column) => !NO_KEYS.has(column))
  const name = `${table} ${keys.map((column) => String(row.get(column))).join(' ')}`
  try {
    await check(row, name)
  } catch (error) {
    // An engine that doesn't answer says nothing of the row.
    if (error instanceof RequestError) throw error
    audit.report(`${name}: can't be read: ${String(error)}`)
  }
}

const ENTRY_COLUMNS = 'pid, bucket, n, body, TTL(body) AS ttl, WRITETIME(body) AS stamp'

function checksOf(audit: TableAudit): [table: string, columns: string, check: Check][] {
  const entries = new EntryRows(audit)
  return [
    ['actor_entry', ENTRY_COLUMNS, (row, name) => entries.next(row, name)],
    ['actor_snap', 'pid, body', (row, name) => verifySnapshot(audit, row, name)],
    ['alias', 'type, key, body', (row, name) => verifyAlias(audit, row, name)],
    ['mark', 'pid, day, id, body', (row, name) => verifyMark(audit, row, name)],
    ['shard_snap', 'shard, body', (row, name) => void textOf(row, name)],
    [
      'parked',
      'shard, consumer, pid, body',
      (row, name) => void parkedBody(blobOf(row, name).content),
    ],
    ['system_image', 'at, part, chunk, body', (row, name) => void blobOf(row, name)],
    ['consumer_offset', 'shard, consumer, off', (row, name) => verifyConsumer(audit, row, name)],
  ]
}

function blobOf(row: Row, name: string): Blob {
  return decodeBlob(row['body'] as Buffer, () => name)
}

/** Offset and JSON of a blob. */
function textOf(row: Row, name: string): { offset: number; value: Record<string, unknown> } {
  const { number, content } = blobOf(row, name)
  return { offset: number, value: JSON.parse(content.toString()) as Record<string, unknown> }
}

/** Only an actor's entries say whether its home is the system shard. */
async function verifyReach(audit: TableAudit, actorId: string, at: At): Promise<void> {
  const home = shardOf(placeOfActor(actorId), audit.shards)
  if (await audit.reaches(home, at.offset)) return
  if (await audit.reaches(SYSTEM_SHARD, at.offset)) return
  audit.report(`${at.name}: its offset ${at.offset} is above the head of its log`)
}

interface At {
  readonly name: string
  readonly offset: number
}

/** Entries come partition by partition, in the order of their numbers. */
class EntryRows {
  readonly #audit: TableAudit
  #partition = ''
  #rows: RowAudit | null = null

  constructor(audit: TableAudit) {
    this.#audit = audit
  }

  async next(row: Row, name: string): Promise<void> {
    const { report } = this.#audit
    const pid = String(row['pid'])
    const bucket = row['bucket'] as number
    const n = row['n'] as number
    const { number: offset, content } = blobOf(row, name)
    const partition = `${pid} ${bucket}`
    if (this.#rows === null || this.#partition !== partition) {
      this.#rows = new RowAudit((what) => report(`actor_entry ${partition}: ${what}`))
      this.#partition = partition
      Object.assign(this.#rows, await this.#endOf(pid, bucket - 1))
    }
    const entry = this.#rows.next({ n, offset, body: content })
    if (entry.p !== pid || entry.n !== n) report(`${name}: holds another entry`)
    if (bucketOf(entry.n) !== bucket) report(`${name}: stands in another partition than its own`)
    await verifyReach(this.#audit, pid, { name, offset })
    if (row['ttl'] !== null)
      await this.#verifyExpiry(row, name, {
        ...{ actorId: pid, n, offset, body: content },
        ...(entry.f !== undefined && { passesFrom: entry.f }),
      })
  }

  /** Earlier versions let go what is needed to read an actor. */
  async #verifyExpiry(row: Row, name: string, entry: EntryOf): Promise<void> {
    const { report, keepsRefusals, putBack } = this.#audit
    if (!keepsRefusals && isPassing({ kind: 'entry', ...entry })) return
    // An expiring row wins over one that stays of the same stamp; an entry's row has one content.
    await putBack?.(entry, Number(row['stamp']) + 1)
    const end = putBack === null ? '' : '; it stays now'
    report(`${name}: is needed and goes in ${String(row['ttl'])} s${end}`)
  }

  /** Where a reader stands behind the partitions up to this one: at their newest records. */
  async #endOf(pid: string, bucket: number): Promise<Standing> {
    const { session, keyspace } = this.#audit
    const query = `SELECT n, body FROM ${keyspace}.actor_entry
                   WHERE pid = ? AND bucket = ? AND n < ? ORDER BY n DESC LIMIT ?`
    for (let at = bucket; at >= 0; at--) {
      let before = (at + 1) * BUCKET_ENTRIES + 1
      for (;;) {
        const rows = await session.read(query, [pid, at, before, PAGE_OF_END])
        for (const row of rows) {
          const { number: offset, content } = blobOf(row, 'actor_entry')
          const entry = decodeEntry(content)
          if (entry.r.length === 0) continue
          return { version: entry.v + entry.r.length, recordedAt: offset }
        }
        if (rows.length < PAGE_OF_END) break
        before = rows.at(-1)!['n'] as number
      }
    }
    return { version: 0, recordedAt: 0 }
  }
}

/** Rows of a partition's end that are read at a time. */
const PAGE_OF_END = 16

async function verifySnapshot(audit: TableAudit, row: Row, name: string): Promise<void> {
  const { offset, value } = textOf(row, name)
  const pid = String(row['pid'])
  await verifyReach(audit, pid, { name, offset })
  const { n, version } = value as { n?: number; version?: number }
  if (typeof n !== 'number' || typeof version !== 'number') {
    return audit.report(`${name}: names no entry and no version`)
  }
  const query = `SELECT body FROM ${audit.keyspace}.actor_entry WHERE pid = ? AND bucket = ? AND n = ?`
  const [last] = await audit.session.read(query, [pid, bucketOf(n), n])
  if (last === undefined) return
  const { content, number } = blobOf(last, name)
  const entry = decodeEntry(content)
  // An entry of a later life of this number: what the snapshot ended with has expired.
  if (number > offset) return
  const ended = entry.v + entry.r.length
  if (entry.r.length > 0 && ended !== version)
    audit.report(`${name}: is at version ${version}, entry ${n} ends at ${ended}`)
}

function verifyAlias(audit: TableAudit, row: Row, name: string): void {
  const { value } = textOf(row, name)
  const isRead =
    Array.isArray(value) &&
    value.every(({ actorId, messageId }) => {
      return typeof actorId === 'string' && typeof messageId === 'string'
    })
  if (!isRead) audit.report(`${name}: holds no claims`)
}

function verifyMark(audit: TableAudit, row: Row, name: string): void {
  const { value } = textOf(row, name)
  if (value['messageId'] !== row['id']) audit.report(`${name}: holds another message`)
}

async function verifyConsumer(audit: TableAudit, row: Row, name: string): Promise<void> {
  // Of a generation of the index it says nothing: there may be more of them than entries.
  if (GENERATIONS.has(row['consumer'])) return
  const offset = Number(row['off'])
  if (await audit.reaches(row['shard'] as number, offset)) return
  audit.report(`${name}: is above the head of its log`)
}
