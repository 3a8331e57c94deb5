// Fills a keyspace with what another store holds, under a new generation: the derived rows with
// their offsets, the log as segments. While it is under way no member opens the store; a fill that
// was cut short goes on where it was. Source: PROTOCOL 3.12 (a store that was moved), 3.0.

import { setTimeout as delay } from 'node:timers/promises'
import { LIMITS } from '../../../config/limits.ts'
import { uuidMaker } from '../../../protocol/ids.ts'
import type { DerivedOf, ShardExtent, StoreSource } from '../../copy.ts'
import { NIL_INCARNATION } from '../../control.ts'
import type { DerivedRow } from '../../journal.ts'
import { CassandraControl } from '../control.ts'
import { CassandraDerived } from '../derived/derived.ts'
import { fillLog } from './fill-log.ts'
import { insertSecretRow, makeStore, readStore } from '../identity.ts'
import { CassandraSegments } from '../segments.ts'
import type { Session } from '../session/session.ts'
import { connectSession, prepareKeyspace, type CassandraOptions } from '../store.ts'

export interface FillReport {
  readonly generation: string
  readonly derivedRows: number
  readonly groups: number
  readonly entries: number
}

/** Called now and then with how far it has come. */
export type Progress = (done: Omit<FillReport, 'generation'>) => void

/** Rows of one shard that are written together. */
const ROWS_TOGETHER = 500
const BYTES_TOGETHER = 1_048_576
const WRITES_IN_FLIGHT = 16
const ATTEMPTS = 20
const RETRY_MS = 250

/**
 * Copies a store. Throws when the keyspace holds another store, when the source changes meanwhile,
 * or when Cassandra stays away; then the same call goes on where this one has ended.
 */
export async function fillCassandra(
  options: CassandraOptions,
  source: StoreSource,
  progress: Progress,
): Promise<FillReport> {
  const keyspace = options.keyspace.toLowerCase()
  const session = await connectSession(options)
  try {
    const newUuid = uuidMaker(options.random)
    await prepareKeyspace(session, options, newUuid(options.clock()))
    const generation = await begin(session, options, source, newUuid(options.clock()))
    const done = { derivedRows: 0, groups: 0, entries: 0 }
    const tell = (): void => progress({ ...done })
    const { identity } = source
    const derived = new CassandraDerived(session, keyspace, { identity, now: options.now })
    await fillDerived(derived, source, (rows) => {
      done.derivedRows += rows
      tell()
    })
    const segments = new CassandraSegments(session, keyspace)
    const control = new CassandraControl(session, keyspace)
    await side(source.extents, LIMITS.cassandra.appendsInFlightMax, async (extent) => {
      const segment = await fillLog(segments, source, extent, (groups, entries) => {
        done.groups += groups
        done.entries += entries
        tell()
      })
      await makeShard(control, extent, segment)
    })
    source.assertUnchanged()
    if (identity.secretsKey !== undefined) {
      await insertSecretRow(session, keyspace, 'keyName', identity.secretsKey)
    }
    await end(session, keyspace, identity.generation)
    return { generation, ...done }
  } finally {
    await session.close()
  }
}

/** The store's row, which says that it is being filled from this source. Answers its generation. */
async function begin(
  session: Session,
  options: CassandraOptions,
  { identity }: StoreSource,
  generation: string,
): Promise<string> {
  const keyspace = options.keyspace.toLowerCase()
  const serial = options.serial ?? 'LOCAL_SERIAL'
  if (options.shards !== null && options.shards !== identity.shards) {
    throw new Error(
      `the store has ${identity.shards} shards and ${options.shards} are configured ` +
        '(KONTOR_SHARDS): a move keeps the number, leave the setting out',
    )
  }
  const there =
    (await readStore(session, keyspace)) ??
    (await makeStore(session, {
      keyspace,
      shards: identity.shards,
      serial,
      datacenter: serial === 'LOCAL_SERIAL' ? options.datacenter : null,
      generation,
      filling: identity.generation,
      losses: identity.losses,
    }))
  if (there.filling === identity.generation) return there.generation
  throw new Error(
    there.filling === null
      ? `keyspace ${keyspace} holds a store already: name another one (KONTOR_CASSANDRA_KEYSPACE)`
      : `keyspace ${keyspace}: another store is being moved into it`,
  )
}

async function end(session: Session, keyspace: string, filling: string): Promise<void> {
  await insist('the end of the move', async () => {
    const query = `UPDATE ${keyspace}.store SET filling = null WHERE id = 0 IF filling = ?`
    if ((await session.conditional(query, [filling])) === 'applied') return true
    return (await readStore(session, keyspace))?.filling === null
  })
}

/** The shard's row, of nobody yet; an earlier attempt may have made it with a lower epoch. */
async function makeShard(
  control: CassandraControl,
  { shard, epoch }: ShardExtent,
  segment: number,
): Promise<void> {
  const unowned = { owner: '', incarnation: NIL_INCARNATION }
  await insist(`the row of shard ${shard}`, async () => {
    const made = await control.insertShard({ shard, epoch, ...unowned, segment })
    if (made === 'applied') return true
    const there = await control.shard(shard)
    if (there.epoch < epoch) await control.updateShard(shard, { epoch, ...unowned }, there)
    if (there.segment < segment) await control.hintSegment(shard, segment, { epoch })
    const now = await control.shard(shard)
    return now.epoch === epoch && now.segment === segment
  })
}

async function fillDerived(
  derived: CassandraDerived,
  source: StoreSource,
  written: (rows: number) => void,
): Promise<void> {
  const inFlight = new Set<Promise<void>>()
  for (const { shard, rows } of gathered(source.derived())) {
    const write = insist(`derived rows of shard ${shard}`, async () => {
      return (await derived.write(shard, 0, rows)) === 'committed'
    }).then(() => {
      inFlight.delete(write)
      written(rows.length)
    })
    // Heard of below.
    write.catch(() => undefined)
    inFlight.add(write)
    if (inFlight.size >= WRITES_IN_FLIGHT) await Promise.race(inFlight)
  }
  await Promise.all(inFlight)
}

/** Rows by shard, in portions. */
function* gathered(
  all: Iterable<DerivedOf>,
): Iterable<{ readonly shard: number; readonly rows: readonly DerivedRow[] }> {
  const waiting = new Map<number, { rows: DerivedRow[]; bytes: number }>()
  for (const { shard, row } of all) {
    let own = waiting.get(shard)
    if (own === undefined) waiting.set(shard, (own = { rows: [], bytes: 0 }))
    own.rows.push(row)
    own.bytes += 'body' in row ? (row.body?.length ?? 0) : 0
    if (own.rows.length < ROWS_TOGETHER && own.bytes < BYTES_TOGETHER) continue
    waiting.delete(shard)
    yield { shard, rows: own.rows }
  }
  for (const [shard, { rows }] of waiting) yield { shard, rows }
}

/** Tries until it is so. Throws when it isn't after a while. */
async function insist(what: string, once: () => Promise<boolean>): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    if (await once().catch(() => false)) return
    await delay(RETRY_MS * attempt)
  }
  throw new Error(`Cassandra has not taken ${what}: see to it, then run the same command again`)
}

/** Some of them side by side. */
async function side<T>(
  all: readonly T[],
  atOnce: number,
  work: (one: T) => Promise<void>,
): Promise<void> {
  const left = [...all]
  const workers = Array.from({ length: atOnce }, async () => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) await work(one)
  })
  await Promise.all(workers)
}
