// Opening a store in Cassandra: the keyspace made and brought up to date, the engine looked at, the
// store's identity compared, every shard given its rows. Source: PROTOCOL 3.0 "First start", 3.1.

import { LIMITS } from '../../config/limits.ts'
import type { EngineTls } from '../../config/settings.ts'
import { SYSTEM_SHARD, uuidMaker, type FillRandom } from '../../protocol/ids.ts'
import type { Log } from '../../protocol/log.ts'
import { NIL_INCARNATION, type ControlStore, type Outcome } from '../control.ts'
import type { DerivedStore } from '../journal.ts'
import { makeStoreSecret } from '../secret.ts'
import type { SecretsKeyNames } from '../secrets-key.ts'
import type { SegmentStore } from '../segments.ts'
import { CassandraControl } from './control.ts'
import { CassandraDerived } from './derived/derived.ts'
import { checkEngine } from './session/engine.ts'
import { establishIdentity, readStore, type CassandraIdentity } from './identity.ts'
import { applySchema, hasTable } from './schema.ts'
import { CassandraSegments } from './segments.ts'
import { Session, type SerialLevel } from './session/session.ts'
import type { Credentials } from './session/client-options.ts'

export interface CassandraOptions {
  /** `host:port`; other nodes are found through them, and have the same port. */
  readonly contactPoints: readonly string[]
  readonly datacenter: string
  /** Letters, digits and underscores; made when it is missing. */
  readonly keyspace: string
  /** Copies of each row in a keyspace that is made; null: min(3, nodes of the data centre). */
  readonly replication: number | null
  /** null: as the store says, 32 for a new one. */
  readonly shards: number | null
  /** null: as the store says, LOCAL_SERIAL for a new one. SERIAL: members in several centres. */
  readonly serial?: SerialLevel | null
  /** null: Cassandra asks for none. */
  readonly credentials?: Credentials | null
  /** null, the default: secrets are not read. */
  readonly secretsKeys?: SecretsKeyNames | null
  /** null: it is spoken to in the clear. */
  readonly tls?: EngineTls | null
  /** Statements are given up after this; LIMITS.cassandra.timeoutMs unless said otherwise. */
  readonly timeoutMsMax?: number
  readonly log: Log
  readonly random: FillRandom
  /** Milliseconds since 1970, for the generation's UUID. */
  readonly clock: () => number
  /** Monotonic milliseconds. */
  readonly now: () => number
}

export interface CassandraStore {
  readonly identity: CassandraIdentity
  readonly control: ControlStore
  readonly segments: SegmentStore
  readonly derived: DerivedStore
  /** Writes what waits, then closes the connections. */
  close(): Promise<void>
}

/**
 * Opens the store of a cluster, or makes one. Throws EngineUnfit when Cassandra is not what a
 * journal needs, WrongSecretsKey when other members have another key, and Error when nothing
 * answers or the store is another one than is configured.
 */
export async function openCassandra(options: CassandraOptions): Promise<CassandraStore> {
  const keyspace = options.keyspace.toLowerCase()
  const session = await connectSession(options)
  try {
    const newUuid = uuidMaker(options.random)
    const identity = await prepareStore(session, options, () => newUuid(options.clock()))
    const control = new CassandraControl(session, keyspace)
    const segments = new CassandraSegments(session, keyspace)
    const derived = new CassandraDerived(session, keyspace, { identity, now: options.now })
    await makeShards(control, segments, identity.shards)
    return {
      identity,
      control,
      segments,
      derived,
      async close() {
        await derived.settled()
        await session.close()
      },
    }
  } catch (error) {
    await session.close()
    throw error
  }
}

/** A session with the engine looked at. */
export async function connectSession(options: CassandraOptions): Promise<Session> {
  const { contactPoints, datacenter, credentials, tls, log, now } = options
  const session = await Session.connect({ contactPoints, datacenter, credentials, tls, log, now })
  try {
    const { timeoutMs, bounds } = await checkEngine(session, log)
    const timeoutMsMax = options.timeoutMsMax ?? LIMITS.cassandra.timeoutMs
    session.fit({ timeoutMs: Math.min(timeoutMs, timeoutMsMax), bounds })
    return session
  } catch (error) {
    await session.close()
    throw error
  }
}

/** The keyspace with its tables, and the store's identity in it. */
async function prepareStore(
  session: Session,
  options: CassandraOptions,
  newUuid: () => string,
): Promise<CassandraIdentity> {
  const { datacenter, shards, secretsKeys = null } = options
  const keyspace = options.keyspace.toLowerCase()
  const serial = options.serial ?? null
  await prepareKeyspace(session, options, newUuid())
  const made = { generation: newUuid(), secret: makeStoreSecret(options.random) }
  return establishIdentity(session, { keyspace, datacenter, shards, serial, secretsKeys, ...made })
}

/** Statements go at the store's serial level from the first one on. */
export async function prepareKeyspace(
  session: Session,
  options: CassandraOptions,
  owner: string,
): Promise<void> {
  const { datacenter, replication, now } = options
  const keyspace = options.keyspace.toLowerCase()
  const known = await knownSerial(session, keyspace)
  session.use(known ?? options.serial ?? 'LOCAL_SERIAL')
  await applySchema(session, { keyspace, datacenter, replication, owner, now })
}

async function knownSerial(session: Session, keyspace: string): Promise<SerialLevel | null> {
  if (!(await hasTable(session, keyspace, 'store'))) return null
  return (await readStore(session, keyspace))?.serial ?? null
}

/** Every shard's row, and before it the statics of its first segment. */
async function makeShards(
  control: CassandraControl,
  segments: CassandraSegments,
  shards: number,
): Promise<void> {
  const there = new Set((await control.shards()).map(({ shard }) => shard))
  const missing: number[] = []
  for (let shard = SYSTEM_SHARD; shard < shards; shard++) if (!there.has(shard)) missing.push(shard)
  const workers = Array.from({ length: LIMITS.cassandra.appendsInFlightMax }, async () => {
    for (let shard = missing.pop(); shard !== undefined; shard = missing.pop()) {
      const own = shard
      await decided(() => segments.open({ shard: own, segment: 1 }, { epoch: 0, head: 0 }))
      const row = { shard: own, epoch: 0, owner: '', incarnation: NIL_INCARNATION, segment: 1 }
      await decided(() => control.insertShard(row))
    }
  })
  await Promise.all(workers)
}

/** Of `IF NOT EXISTS` one answer is as good as the other; without one it is sent again. */
async function decided(send: () => Promise<Outcome>): Promise<void> {
  for (let attempt = 0; attempt < LIMITS.storage.claimAttemptsMax; attempt++) {
    if ((await send()) !== 'unknown') return
  }
  throw new Error('Cassandra does not say whether it has made the rows of the shards')
}
