// Derived rows out of Cassandra: one read a question, at quorum. An actor's entries lie in
// partitions of 256; the last one of each never expires, so that a reader knows where to stop.
// Source: PROTOCOL 3.0, 3.12.

import { LOSS_JUMP } from '../../../protocol/entry/entry.ts'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import type {
  AliasClaim,
  AliasRow,
  DerivedReader,
  EntryRange,
  EntryRow,
  StoreIdentity,
} from '../../journal.ts'
import { readBytes } from '../session/pages.ts'
import { BUCKET_ENTRIES, bucketOf, decodeBlob, endsBucket, parkedBody, type Blob } from './rows.ts'
import type { Row, Session } from '../session/session.ts'

/** The greatest number of an entry that a column holds. */
const N_MAX = 2 ** 31 - 1
/** Rows of a page where each may be large. */
const LARGE_ROWS = 16

export class CassandraDerivedReader implements DerivedReader {
  protected readonly session: Session
  protected readonly keyspace: string
  readonly #hasLosses: boolean

  constructor(session: Session, keyspace: string, identity: StoreIdentity) {
    this.session = session
    this.keyspace = keyspace
    this.#hasLosses = (identity.losses ?? []).length > 0
  }

  async alias(keyType: string, key: string): Promise<AliasRow | null> {
    const query = `SELECT body FROM ${this.keyspace}.alias WHERE type = ? AND key = ?`
    const blob = await this.#one(query, [keyType, key])
    if (blob === null) return null
    return { keyType, key, claims: JSON.parse(blob.content.toString()) as AliasClaim[] }
  }

  async snapshot(actorId: string): Promise<{ offset: number; body: Uint8Array } | null> {
    const query = `SELECT body FROM ${this.keyspace}.actor_snap WHERE pid = ?`
    return registerOf(await this.#one(query, [actorId]))
  }

  async mark(actorId: string, day: number, messageId: string): Promise<Uint8Array | null> {
    const query = `SELECT body FROM ${this.keyspace}.mark WHERE pid = ? AND day = ? AND id = ?`
    return (await this.#one(query, [actorId, day, messageId]))?.content ?? null
  }

  async shard(shard: number): Promise<{ offset: number; body: Uint8Array } | null> {
    const query = `SELECT body FROM ${this.keyspace}.shard_snap WHERE shard = ?`
    return registerOf(await this.#one(query, [shard]))
  }

  async consumer(shard: number, consumer: string): Promise<number | null> {
    const query = `SELECT off FROM ${this.keyspace}.consumer_offset WHERE shard = ? AND consumer = ?`
    const [row] = await this.session.read(query, [shard, consumer])
    return row === undefined ? null : Number(row['off'])
  }

  async parked(
    shard: number,
    consumer: string,
  ): Promise<readonly { actorId: string; body: Uint8Array }[]> {
    const query = `SELECT pid, body FROM ${this.keyspace}.parked WHERE shard = ? AND consumer = ?`
    const rows = await this.session.read(query, [shard, consumer])
    const found = rows.flatMap((row) => {
      const body = parkedBody(blobOf(row, query).content)
      return body === null ? [] : [{ actorId: String(row['pid']), body }]
    })
    return found.sort((a, b) => (a.actorId < b.actorId ? -1 : 1))
  }

  async image(): Promise<{ offset: number; parts: readonly Uint8Array[] } | null> {
    const upTo = await this.consumer(SYSTEM_SHARD, 'image')
    if (upTo === null) return null
    const newest = await this.imageParts(upTo)
    if (newest.length > 0) return { offset: upTo, parts: newest }
    const below = (await this.imageOffsets()).filter((offset) => offset < upTo)
    const offset = below.at(-1)
    return offset === undefined ? null : { offset, parts: await this.imageParts(offset) }
  }

  /** Offsets of which there are parts of images, rising. */
  protected async imageOffsets(): Promise<number[]> {
    const rows = await this.session.read(
      `SELECT DISTINCT at FROM ${this.keyspace}.system_image`,
      [],
    )
    return rows.map((row) => Number(row['at'])).sort((a, b) => a - b)
  }

  /** The parts of one image, put together from their chunks. */
  protected async imageParts(offset: number): Promise<Buffer[]> {
    const query = `SELECT part, chunk, body FROM ${this.keyspace}.system_image WHERE at = ?`
    const rows = await this.session.read(query, [offset], LARGE_ROWS)
    const parts: Buffer[][] = []
    for (const row of rows) (parts[row['part'] as number] ??= []).push(blobOf(row, query).content)
    return parts.map((chunks) => Buffer.concat(chunks))
  }

  entries(actorId: string, range: EntryRange): Promise<readonly EntryRow[]> {
    return range.order === 'ascending'
      ? this.#ascending(actorId, range.after, range.bytesMax)
      : this.#descending(actorId, range)
  }

  async #ascending(actorId: string, after: number, bytesMax: number): Promise<EntryRow[]> {
    const found: EntryRow[] = []
    let bytes = 0
    let last = after
    let mayHaveJumped = this.#hasLosses
    for (let bucket = bucketOf(after + 1); ;) {
      const read = await readBytes(this.session, {
        query: `SELECT n, body FROM ${this.keyspace}.actor_entry
                WHERE pid = ? AND bucket = ? AND n > ?`,
        params: [actorId, bucket, last],
        bytesMax: bytesMax - bytes,
      })
      for (const row of read.rows) found.push(entryOf(actorId, row))
      bytes += read.bytes
      if (read.rows.length > 0) last = found.at(-1)!.n
      if (!read.isWhole || (found.length > 0 && bytes >= bytesMax)) return found
      if (read.rows.length > 0 && endsBucket(last)) bucket++
      else if (mayHaveJumped) {
        // Behind an accepted loss an actor's numbers go on this much higher.
        last += LOSS_JUMP
        bucket = bucketOf(last + 1)
        mayHaveJumped = false
      } else return found
    }
  }

  async #descending(
    actorId: string,
    { before, countMax, bytesMax }: Extract<EntryRange, { order: 'descending' }>,
  ): Promise<EntryRow[]> {
    const found: EntryRow[] = []
    let bytes = 0
    let low = Math.min(before, N_MAX)
    let bucket = bucketOf(low - 1)
    while (found.length < countMax && bucket >= 0 && low > 1) {
      const { rows, ...read } = await readBytes(this.session, {
        query: `SELECT n, body FROM ${this.keyspace}.actor_entry
                WHERE pid = ? AND bucket = ? AND n < ? ORDER BY n DESC LIMIT ?`,
        params: [actorId, bucket, low, countMax - found.length],
        bytesMax: bytesMax - bytes,
      })
      for (const row of rows) found.push(entryOf(actorId, row))
      bytes += read.bytes
      if (!read.isWhole || (found.length > 0 && bytes >= bytesMax)) return found
      if (rows.length > 0) bucket--
      else bucket = await this.#newestBelow(actorId, bucket)
      low = found.at(-1)?.n ?? low
    }
    return found
  }

  /** The newest partition below `bucket` that may have entries of the actor; -1: none. */
  async #newestBelow(actorId: string, bucket: number): Promise<number> {
    let newest = await this.#chainEnd(actorId, 0)
    while (this.#hasLosses) {
      const start = bucketOf((await this.#newestIn(actorId, newest)) + 1 + LOSS_JUMP)
      if (start >= bucket || (await this.#newestIn(actorId, start)) === start * BUCKET_ENTRIES)
        break
      newest = await this.#chainEnd(actorId, start)
    }
    return Math.min(newest, bucket - 1)
  }

  /** The first partition, from this one on, that is not full: doubling steps, then halving ones. */
  async #chainEnd(actorId: string, from: number): Promise<number> {
    let full = from - 1
    let step = 1
    while (await this.#isFull(actorId, full + step)) {
      full += step
      step *= 2
    }
    let open = full + step
    while (open - full > 1) {
      const middle = Math.floor((full + open) / 2)
      if (await this.#isFull(actorId, middle)) full = middle
      else open = middle
    }
    return open
  }

  async #isFull(actorId: string, bucket: number): Promise<boolean> {
    const query = `SELECT n FROM ${this.keyspace}.actor_entry WHERE pid = ? AND bucket = ? AND n = ?`
    const last = (bucket + 1) * BUCKET_ENTRIES
    return last <= N_MAX && (await this.session.read(query, [actorId, bucket, last])).length > 0
  }

  /** The newest entry's number in a partition; the last one below it when it is empty. */
  async #newestIn(actorId: string, bucket: number): Promise<number> {
    const query = `SELECT n FROM ${this.keyspace}.actor_entry WHERE pid = ? AND bucket = ?
                   ORDER BY n DESC LIMIT 1`
    const [row] = await this.session.read(query, [actorId, bucket])
    return row === undefined ? bucket * BUCKET_ENTRIES : (row['n'] as number)
  }

  /** In the order of the partitions' tokens: `after` is the last one of the page before. */
  async actors(after: string | null, limit: number): Promise<readonly string[]> {
    const found: string[] = []
    let last = after === null ? null : { pid: after, bucket: 0 }
    while (found.length < limit) {
      const from = last === null ? '' : 'WHERE token(pid, bucket) > token(?, ?)'
      const rows = await this.session.read(
        `SELECT DISTINCT pid, bucket FROM ${this.keyspace}.actor_entry ${from} LIMIT ?`,
        [...(last === null ? [] : [last.pid, last.bucket]), limit - found.length],
      )
      const end = rows.at(-1)
      if (end === undefined) return found
      for (const row of rows) if (row['bucket'] === 0) found.push(String(row['pid']))
      last = { pid: String(end['pid']), bucket: end['bucket'] as number }
    }
    return found
  }

  /** Returns the blob of the row with this whole key. */
  async #one(query: string, params: readonly unknown[]): Promise<Blob | null> {
    const [row] = await this.session.read(query, params)
    return row === undefined ? null : blobOf(row, query)
  }
}

function blobOf(row: Row, query: string): Blob {
  return decodeBlob(row['body'] as Buffer, () => query.slice(query.indexOf('FROM')))
}

function registerOf(blob: Blob | null): { offset: number; body: Uint8Array } | null {
  return blob === null ? null : { offset: blob.number, body: blob.content }
}

function entryOf(actorId: string, row: Row): EntryRow {
  const n = row['n'] as number
  const where = (): string => `actor ${actorId}, entry ${n}`
  const { number, content } = decodeBlob(row['body'] as Buffer, where)
  return { n, offset: number, body: content }
}
