// The embedded store row by row, for a move. Every row is checked as it is read. Whoever else has
// the directory open is fenced first, and found out if it writes all the same. Source: PROTOCOL
// 3.12, 3.16.

import { join } from 'node:path'
import { decodeEntry } from '../../../protocol/entry/entry.ts'
import { SYSTEM_SHARD, type FillRandom } from '../../../protocol/ids.ts'
import type { DerivedOf, ShardExtent, StoreSource } from '../../copy.ts'
import type { AliasRow, DerivedRow, LogRow, ShardStatus, StoreIdentity } from '../../journal.ts'
import { NodeDisk } from '../../segment-log/node-disk.ts'
import { PlaceReader } from '../../segment-log/place-reader.ts'
import { headsOf } from './catch-up.ts'
import { getEnded, type Ended } from '../../lmdb/ended.ts'
import { openEnvironment, type JournalEnvironment, type Table } from '../../lmdb/environment.ts'
import {
  contentOf,
  derivedBody,
  derivedOffset,
  derivedShard,
  entryNumber,
  isWhole,
  shardOfKey,
  uuidAt,
  uuidKey,
} from '../../lmdb/layout.ts'
import { EmbeddedDerivedReader, EmbeddedLogReader } from './read.ts'
import { LOG_FOLDER, openEmbeddedJournal, type JournalLog } from './journal.ts'
import { LogTail } from '../../segment-log/tail.ts'
import { shardsOf } from '../store-shards.ts'

const READ_BYTES = 4 * 1024 * 1024
const UUID_BYTES = 16
const SHARD_BYTES = 2

export interface CopyOptions {
  readonly dir: string
  readonly log: JournalLog
  readonly random: FillRandom
  /** Milliseconds since 1970. */
  readonly clock: () => number
}

/**
 * Opens the store in `dir` for a copy. Throws JournalDamage when it is not whole, and Error when
 * its newest accepted loss has not been worked through yet.
 */
export async function openForCopy(options: CopyOptions): Promise<StoreSource> {
  const { dir } = options
  const identity = await fence(options)
  const env = openEnvironment(dir, false)
  const places = new PlaceReader(new NodeDisk(join(dir, LOG_FOLDER)))
  try {
    return new EmbeddedSource(env, places, identity)
  } catch (error) {
    await env.root.close()
    throw error
  }
}

/** Raises every epoch, so that a node that still runs on this directory loses its shards. */
async function fence({ dir, log, random, clock }: CopyOptions): Promise<StoreIdentity> {
  const journal = await openEmbeddedJournal({
    dir,
    shards: null,
    log,
    random,
    clock,
    onFatal: (error) => {
      throw error
    },
  })
  for (let shard = SYSTEM_SHARD; shard < journal.identity.shards; shard++) {
    await journal.log.claim(shard)
  }
  await journal.close()
  return journal.identity
}

class EmbeddedSource implements StoreSource {
  readonly identity: StoreIdentity
  readonly extents: readonly ShardExtent[]
  readonly #env: JournalEnvironment
  readonly #places: PlaceReader
  readonly #log: EmbeddedLogReader
  readonly #derived: EmbeddedDerivedReader

  constructor(env: JournalEnvironment, places: PlaceReader, identity: StoreIdentity) {
    this.#env = env
    this.#places = places
    this.identity = identity
    const nothing = new LogTail()
    // A journal that was closed has written all places.
    const status = (shard: number): ShardStatus => headsOf(env).status(shard)
    this.#log = new EmbeddedLogReader({ env, places, tail: () => nothing, status })
    this.#derived = new EmbeddedDerivedReader(env, places)
    this.extents = this.#extents()
    for (const extent of this.extents) this.#checkLosses(extent)
  }

  #extents(): ShardExtent[] {
    const heads = headsOf(this.#env)
    return [...shardsOf(this.identity)].map((shard) => {
      const { epoch, head } = heads.status(shard)
      return { shard, epoch, floor: Math.max(0, this.#resumedAt(shard)), head }
    })
  }

  /** Where the shard goes on behind its newest loss; -1: it has lost nothing. */
  #resumedAt(shard: number): number {
    const losses = (this.identity.losses ?? []).filter((loss) => loss.shard === shard)
    return Math.max(-1, ...losses.map(({ resumedAt }) => resumedAt))
  }

  /** The log is copied from behind the newest loss on: nothing below may still be needed. */
  #checkLosses({ shard }: ShardExtent): void {
    const newest = this.#resumedAt(shard)
    if (newest < 0) return
    const flush = this.#derived.consumer(shard, 'flush') ?? 0
    const own = this.#derived.shard(shard)
    const memory = own === null ? {} : (JSON.parse(own.body.toString()) as object)
    const { relayed = 0 } = memory as { relayed?: number }
    if (Math.min(flush, relayed) >= newest) return
    throw new Error(
      `${this.#env.file}: shard ${shard}: what lies behind its accepted loss has not been worked ` +
        'through yet: start the node once, stop it, and move the store then',
    )
  }

  *log(shard: number): Iterable<LogRow> {
    const { floor } = this.extents.find((extent) => extent.shard === shard)!
    for (let after = floor; ;) {
      const rows = this.#log.read(shard, after, READ_BYTES)
      yield* rows
      if (rows.length === 0) return
      after = rows.at(-1)!.offset
    }
  }

  *derived(): Iterable<DerivedOf> {
    const { entries, aliases, snapshots, marks, shards, consumers, parked, images } = this.#env
    yield* this.#rows('entries', entries, (key, { offset, body }, value) => {
      const content = contentOf(value)
      const own = 'file' in content ? this.#places.read(content) : body.subarray(1)
      const actorId = uuidAt(key, 0)
      const row = { kind: 'entry', actorId, n: entryNumber(key), offset, body: own } as const
      const f = this.#endOf(actorId) === null ? undefined : decodeEntry(own).f
      return f === undefined ? row : { ...row, passesFrom: f }
    })
    yield* this.#rows('aliases', aliases, (_, { offset, body }) => {
      return { kind: 'alias', offset, row: JSON.parse(body.toString()) as AliasRow }
    })
    yield* this.#rows('marks', marks, markOf)
    yield* this.#rows('images', images, (key, { offset, body }) => {
      return { kind: 'image', offset, part: Buffer.from(key).readUInt32BE(6), body }
    })
    yield* this.#rows('parked', parked, (key, { offset, body }) => {
      const consumer = Buffer.from(key.subarray(SHARD_BYTES, -UUID_BYTES - 1)).toString()
      const actorId = uuidAt(key, key.length - UUID_BYTES)
      // The first byte says whether the actor is still parked.
      return {
        kind: 'parked',
        consumer,
        actorId,
        offset,
        body: body[0] === 1 ? body.subarray(1) : null,
      }
    })
    yield* this.#rows('snapshots', snapshots, (key, base) => {
      const actorId = uuidAt(key, 0)
      const ended = this.#endOf(actorId)
      const row = { kind: 'snapshot', actorId, ...base } as const
      return ended === null ? row : { ...row, passesFrom: ended.from }
    })
    yield* this.#rows('shards', shards, (_, base) => ({ kind: 'shard', ...base }))
    yield* this.#rows('consumers', consumers, (key, { offset }) => {
      return {
        kind: 'consumer',
        consumer: Buffer.from(key.subarray(SHARD_BYTES)).toString(),
        offset,
      }
    })
  }

  /** Of an actor that is forgotten everything has its time to go. */
  #endOf(actorId: string): Ended | null {
    return getEnded(this.#env, uuidKey(actorId))
  }

  *#rows(
    name: string,
    table: Table,
    rowOf: (key: Buffer, base: { offset: number; body: Buffer }, value: Uint8Array) => DerivedRow,
  ): Iterable<DerivedOf> {
    for (const { key, value } of table.getRange({})) {
      this.#check(`table ${name}`, key, value)
      // What is kept by shard says so in its key, too.
      const shard = table === this.#env.shards ? shardOfKey(key) : derivedShard(value)
      // A copy: the page may be another one's by the time the row is written.
      const body = Buffer.from(derivedBody(value))
      const base = { offset: derivedOffset(value), body }
      yield { shard, row: rowOf(Buffer.from(key), base, value) }
    }
  }

  #check(what: string, key: Uint8Array, value: Uint8Array): void {
    if (isWhole(key, value)) return
    throw new Error(
      `${this.#env.file}: ${what}, row ${Buffer.from(key).toString('hex')}: its checksum doesn't ` +
        'match: see what npm run verify-log says, and restore the data directory from a backup',
    )
  }

  assertUnchanged(): void {
    this.#env.root.resetReadTxn()
    const now = JSON.stringify(this.#extents())
    if (now === JSON.stringify(this.extents)) return
    throw new Error(
      `${this.#env.file}: somebody has written to it meanwhile: stop the node that runs on this ` +
        'directory, then run the same command again',
    )
  }

  close(): Promise<void> {
    this.#places.close()
    return this.#env.root.close()
  }
}

/** The id in the key may be cut short; the mark itself has the whole one. */
function markOf(key: Uint8Array, { offset, body }: { offset: number; body: Buffer }): DerivedRow {
  const { messageId } = JSON.parse(body.toString()) as { messageId: string }
  const day = Buffer.from(key).readUInt32BE(UUID_BYTES)
  return { kind: 'mark', actorId: uuidAt(key, 0), day, messageId, offset, body }
}
