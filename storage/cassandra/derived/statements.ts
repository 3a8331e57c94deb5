// Derived rows as statements: each a register that only moves forward, for its offset is its
// timestamp. Pure. Source: PROTOCOL 3.0 "USING TIMESTAMP <offset>", 3.12 (what expires, what must
// be there before what).

import { LIMITS } from '../../../config/limits.ts'
import { decodeEntry, holdsRecords } from '../../../protocol/entry/entry.ts'
import type { DerivedRow } from '../../journal.ts'
import { isPassing } from '../../row-expiry.ts'
import { bucketOf, encodeBlob, encodeParked, encodeTextBlob } from './rows.ts'
import type { BatchBounds, Statement } from '../session/session.ts'

const FOREVER = 0

/** Statements of rows, by request; `second` and `aside` (snapshots) wait for all of `first`. */
export interface Stages {
  readonly first: readonly (readonly Statement[])[]
  readonly second: readonly (readonly Statement[])[]
  readonly aside: readonly (readonly Statement[])[]
}

interface Placed {
  readonly partition: string
  /** Names the register within its partition. */
  readonly name: string
  readonly offset: number
  readonly statement: Statement
}

export interface Place {
  readonly keyspace: string
  readonly shard: number
  readonly bounds: BatchBounds
  /** Behind an accepted loss entries are found by the numbers before it: these must all stay. */
  readonly keepsRejections: boolean
}

/**
 * Rows as requests. Of two rows of one register the later one counts, unless it is older. Rows of
 * one partition are one mutation; several partitions share a request within the bounds, which
 * saves CPU of the engine and of the client (bench/README "Measured choices").
 */
export function stagesOf(place: Place, rows: readonly DerivedRow[]): Stages {
  const stages: Record<keyof Stages, Map<string, Registers>> = {
    first: new Map(),
    second: new Map(),
    aside: new Map(),
  }
  for (const row of rows) {
    for (const placed of placedOf(place, row)) add(stages[stageOf(row)], placed)
  }
  return {
    first: requestsOf(stages.first, place.bounds),
    second: requestsOf(stages.second, place.bounds),
    aside: requestsOf(stages.aside, place.bounds),
  }
}

/** An actor's entries and marks before its snapshot, the shard's own row before any consumer's. */
function stageOf({ kind }: DerivedRow): keyof Stages {
  if (kind === 'snapshot') return 'aside'
  return kind === 'consumer' ? 'second' : 'first'
}

function add(stage: Map<string, Registers>, placed: Placed): void {
  const registers = stage.get(placed.partition)
  if (registers === undefined) {
    stage.set(placed.partition, new Map([[placed.name, placed]]))
    return
  }
  const there = registers.get(placed.name)
  if (there === undefined || there.offset <= placed.offset) registers.set(placed.name, placed)
}

interface Mutation {
  readonly statements: readonly Statement[]
  readonly bytes: number
}

type Registers = Map<string, Placed>

function requestsOf(stage: ReadonlyMap<string, Registers>, bounds: BatchBounds): Statement[][] {
  const requests: Statement[][] = []
  let request: Statement[] = []
  let bytes = 0
  let partitions = 0
  for (const registers of stage.values()) {
    for (const mutation of mutationsOf(registers)) {
      const isFull = bytes + mutation.bytes > bounds.bytes || partitions >= bounds.partitions
      if (request.length > 0 && isFull) {
        requests.push(request)
        request = []
        bytes = 0
        partitions = 0
      }
      request.push(...mutation.statements)
      bytes += mutation.bytes
      partitions++
    }
  }
  if (request.length > 0) requests.push(request)
  return requests
}

/** The rows of one partition, divided where one mutation would become too heavy. */
function mutationsOf(registers: Registers): Mutation[] {
  const mutations: Mutation[] = []
  let statements: Statement[] = []
  let bytes = 0
  for (const { statement } of registers.values()) {
    const own = bytesOf(statement)
    if (statements.length > 0 && bytes + own > LIMITS.cassandra.registerMutationBytesMax) {
      mutations.push({ statements, bytes })
      statements = []
      bytes = 0
    }
    statements.push(statement)
    bytes += own
  }
  mutations.push({ statements, bytes })
  return mutations
}

/** What the engine adds to a row's blob when it weighs a batch. */
const ROW_BYTES = 100

function bytesOf({ params }: Statement): number {
  let bytes = ROW_BYTES
  for (const param of params) if (Buffer.isBuffer(param)) bytes += param.length
  return bytes
}

function placedOf({ keyspace, shard, keepsRejections }: Place, row: DerivedRow): Placed[] {
  const { offset } = row
  const seconds = isPassing(row) ? LIMITS.storage.derivedTtlSeconds : FOREVER
  switch (row.kind) {
    case 'entry': {
      const { actorId, n } = row
      const bucket = bucketOf(n)
      const statement = register(`${keyspace}.actor_entry`, ['pid', 'bucket', 'n'], {
        key: [actorId, bucket, n],
        body: encodeBlob(offset, row.body),
        offset,
        seconds: keepsRejections ? FOREVER : entrySeconds(row, seconds),
      })
      const placed = { partition: `e${actorId}${bucket}`, name: String(n), offset, statement }
      const isPassingEnd = row.passesFrom !== undefined && holdsRecords(row.body)
      return isPassingEnd && !keepsRejections ? [...removalsOf(keyspace, row), placed] : [placed]
    }
    case 'alias': {
      const { keyType, key, claims } = row.row
      const statement = register(`${keyspace}.alias`, ['type', 'key'], {
        key: [keyType, key],
        body: encodeTextBlob(offset, JSON.stringify(claims)),
        offset,
        seconds,
      })
      return [{ partition: `a${keyType}\0${key}`, name: '', offset, statement }]
    }
    case 'snapshot': {
      const body = encodeBlob(offset, row.body)
      const written = { key: [row.actorId], body, offset, seconds }
      const statement = register(`${keyspace}.actor_snap`, ['pid'], written)
      return [{ partition: `s${row.actorId}`, name: '', offset, statement }]
    }
    case 'mark': {
      const { actorId, day, messageId } = row
      const statement = register(`${keyspace}.mark`, ['pid', 'day', 'id'], {
        key: [actorId, day, messageId],
        body: encodeBlob(offset, row.body),
        offset,
        seconds,
      })
      return [{ partition: `m${actorId}${day}`, name: messageId, offset, statement }]
    }
    case 'shard': {
      const body = encodeBlob(offset, row.body)
      const written = { key: [shard], body, offset, seconds: FOREVER }
      const statement = register(`${keyspace}.shard_snap`, ['shard'], written)
      return [{ partition: 'shard', name: '', offset, statement }]
    }
    case 'consumer':
      return [consumerOf(keyspace, shard, row)]
    case 'parked': {
      const { consumer, actorId, body } = row
      const statement = register(`${keyspace}.parked`, ['shard', 'consumer', 'pid'], {
        key: [shard, consumer, actorId],
        body: encodeParked(offset, body),
        offset,
        seconds,
      })
      return [{ partition: `p${consumer}`, name: actorId, offset, statement }]
    }
    case 'image':
      return imageOf(keyspace, row)
  }
}

type EntryRowOf = Extract<DerivedRow, { kind: 'entry' }>

/** How long an entry stands that may go: one that ends its actor until that may be forgotten. */
function entrySeconds({ passesFrom, body }: EntryRowOf, seconds: number): number {
  if (passesFrom === undefined) return seconds
  const moreMs = Math.max(0, passesFrom - decodeEntry(body).c)
  const { endedTtlSecondsMax } = LIMITS.storage
  return Math.min(seconds + Math.ceil(moreMs / 1_000), endedTtlSecondsMax)
}

/**
 * Records that end an actor which is forgotten stand for all that was before them: that goes with
 * the same write, and with it whatever comes late. The entry itself goes by its time, when nothing
 * else has been there for long.
 */
function removalsOf(keyspace: string, { actorId, n, offset }: EntryRowOf): Placed[] {
  const stamp = offset - 1
  const query = `DELETE FROM ${keyspace}.actor_snap USING TIMESTAMP ? WHERE pid = ?`
  const statement = { query, params: [stamp, actorId] }
  const removals = [{ partition: `s${actorId}`, name: 'end', offset: stamp, statement }]
  for (let bucket = 0; bucket <= bucketOf(n); bucket++) {
    const of = `DELETE FROM ${keyspace}.actor_entry USING TIMESTAMP ? WHERE pid = ? AND bucket = ?`
    const removal = { query: of, params: [stamp, actorId, bucket] }
    const partition = `e${actorId}${bucket}`
    removals.push({ partition, name: 'end', offset: stamp, statement: removal })
  }
  return removals
}

function consumerOf(
  keyspace: string,
  shard: number,
  { consumer, offset }: Extract<DerivedRow, { kind: 'consumer' }>,
): Placed {
  const query = `UPDATE ${keyspace}.consumer_offset USING TIMESTAMP ? SET off = ?
                 WHERE shard = ? AND consumer = ?`
  const statement = { query, params: [offset, offset, shard, consumer] }
  return { partition: `c${consumer}`, name: '', offset, statement }
}

/** A part of an image may be larger than what one row should hold: it is written in chunks. */
function imageOf(
  keyspace: string,
  { offset, part, body }: Extract<DerivedRow, { kind: 'image' }>,
): Placed[] {
  const placed: Placed[] = []
  const bytes = LIMITS.storage.imageChunkBytes
  for (let chunk = 0; chunk === 0 || chunk * bytes < body.length; chunk++) {
    const statement = register(`${keyspace}.system_image`, ['at', 'part', 'chunk'], {
      key: [offset, part, chunk],
      body: encodeBlob(offset, body.subarray(chunk * bytes, (chunk + 1) * bytes)),
      offset,
      seconds: FOREVER,
    })
    placed.push({ partition: `i${offset}`, name: `${part}/${chunk}`, offset, statement })
  }
  return placed
}

interface Written {
  readonly key: readonly unknown[]
  readonly body: Buffer
  readonly offset: number
  /** 0: it stays. */
  readonly seconds: number
}

/** An UPDATE writes one cell and no marker of a row: the cell is the register. */
function register(table: string, columns: readonly string[], written: Written): Statement {
  const { key, body, offset, seconds } = written
  const where = columns.map((column) => `${column} = ?`).join(' AND ')
  return seconds === FOREVER
    ? {
        query: `UPDATE ${table} USING TIMESTAMP ? SET body = ? WHERE ${where}`,
        params: [offset, body, ...key],
      }
    : {
        query: `UPDATE ${table} USING TIMESTAMP ? AND TTL ? SET body = ? WHERE ${where}`,
        params: [offset, seconds, body, ...key],
      }
}
