// What a store in Cassandra is, written once: shards, serial level, data centre, format,
// generation. A member that is configured as something else is refused, for mixing serial levels is
// the likeliest way to two owners. Source: PROTOCOL 3.0, 3.1.

import type { AcceptedLoss, StoreIdentity } from '../journal.ts'
import { agreedKey, type SecretsKeyNames } from '../secrets-key.ts'
import type { Row, SerialLevel, Session } from './session/session.ts'

/** Format number of the tables' layout; a store of a newer one is refused. */
export const STORE_FORMAT = 1

const SHARDS_DEFAULT = 32
const SHARDS_MAX = 4_096

export interface IdentityOptions {
  readonly keyspace: string
  readonly datacenter: string
  /** null: as the store says, 32 for a new one. */
  readonly shards: number | null
  /** null: as the store says, LOCAL_SERIAL for a new one. */
  readonly serial: SerialLevel | null
  /** UUID for a store that is made now. */
  readonly generation: string
  /** Secret for a store that has none. */
  readonly secret: string
  /** null: secrets are not read. */
  readonly secretsKeys?: SecretsKeyNames | null
}

export interface CassandraIdentity extends StoreIdentity {
  readonly serial: SerialLevel
  /** Null with SERIAL: members may be in any. */
  readonly datacenter: string | null
}

/** The row of `store`; what is secret has rows of its own. */
interface StoreRow extends Bare {
  /** Generation of the store that is being copied into this one; null: it is whole. */
  readonly filling: string | null
}

/** The store's identity, made now if this is a new one. Throws when it is another's. */
export async function establishIdentity(
  session: Session,
  options: IdentityOptions,
): Promise<CassandraIdentity> {
  const there = await readStore(session, options.keyspace)
  if (there !== null) return whole(session, checked(there, options), options)
  const made = await makeStore(session, newStore(options))
  if (made.serial === 'SERIAL') session.use('SERIAL')
  return whole(session, checked(made, options), options)
}

type Bare = Omit<CassandraIdentity, 'secret' | 'secretsKey'>

async function whole(
  session: Session,
  identity: Bare,
  options: IdentityOptions,
): Promise<CassandraIdentity> {
  const { keyspace, secretsKeys = null } = options
  const secret = await secretOf(session, options)
  const name = await keyOf(session, keyspace, secretsKeys)
  return { ...identity, secret, ...(name === null ? {} : { secretsKey: name }) }
}

/** Rows of `store_secret`: its secret, and the name of the key of its members. */
const ROW = { secret: 0, keyName: 1 } as const

/** The secret that the first member gave the store: of several at once one wins, all have its. */
async function secretOf(session: Session, { keyspace, secret }: IdentityOptions): Promise<string> {
  const there = await readSecretRow(session, keyspace, 'secret')
  return there ?? insertSecretRow(session, keyspace, 'secret', secret)
}

/** The name of the key of all members; throws WrongSecretsKey when this one has another. */
async function keyOf(
  session: Session,
  keyspace: string,
  keys: SecretsKeyNames | null,
): Promise<string | null> {
  const stored = await readSecretRow(session, keyspace, 'keyName')
  if (keys === null) return stored
  const name = agreedKey(stored, keys)
  if (name === null || name === stored) return name
  if (stored !== null) {
    const update = `UPDATE ${keyspace}.store_secret SET secret = ? WHERE id = ? IF secret = ?`
    // Another member's newer one stays: this one is known to know it when it starts again.
    await session.conditional(update, [name, ROW.keyName, stored])
    return name
  }
  // Of several that start at once one wins, and the others compare theirs with it.
  return agreedKey(await insertSecretRow(session, keyspace, 'keyName', name), keys)
}

async function readSecretRow(
  session: Session,
  keyspace: string,
  row: keyof typeof ROW,
): Promise<string | null> {
  const query = `SELECT secret FROM ${keyspace}.store_secret WHERE id = ?`
  const [found] = await session.read(query, [ROW[row]])
  return found === undefined ? null : (found['secret'] as string)
}

/** What is there then, from whomever. */
export async function insertSecretRow(
  session: Session,
  keyspace: string,
  row: keyof typeof ROW,
  text: string,
): Promise<string> {
  const table = `${keyspace}.store_secret`
  const insert = `INSERT INTO ${table} (id, secret) VALUES (?, ?) IF NOT EXISTS`
  const outcome = await session.conditional(insert, [ROW[row], text])
  const query = `SELECT secret FROM ${table} WHERE id = ?`
  const [found] = await session.readEverywhere(query, [ROW[row]])
  if (found === undefined) throw new Error(`${table} could not be made: ${outcome}`)
  return found['secret'] as string
}

function newStore(options: IdentityOptions): NewStore {
  const { keyspace, generation } = options
  const serial = options.serial ?? 'LOCAL_SERIAL'
  const shards = options.shards ?? SHARDS_DEFAULT
  if (shards < 1 || shards > SHARDS_MAX || (shards & (shards - 1)) !== 0) {
    throw new Error(`the number of shards must be a power of two up to ${SHARDS_MAX}: ${shards}`)
  }
  const datacenter = serial === 'LOCAL_SERIAL' ? options.datacenter : null
  return { keyspace, shards, serial, datacenter, generation, filling: null }
}

export interface NewStore {
  readonly keyspace: string
  readonly shards: number
  readonly serial: SerialLevel
  readonly datacenter: string | null
  readonly generation: string
  readonly filling: string | null
  readonly losses?: readonly AcceptedLoss[] | undefined
}

/** Inserts the store's row unless there is one, and answers what is there then. */
export async function makeStore(session: Session, store: NewStore): Promise<StoreRow> {
  const { keyspace, shards, serial, datacenter, generation, filling, losses } = store
  const outcome = await session.conditional(
    `INSERT INTO ${keyspace}.store
     (id, shards, serial, datacenter, format, generation, losses, filling)
     VALUES (0, ?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS`,
    [
      shards,
      serial,
      datacenter,
      STORE_FORMAT,
      generation,
      losses === undefined ? null : JSON.stringify(losses),
      filling,
    ],
  )
  const query = `SELECT * FROM ${keyspace}.store WHERE id = 0`
  const [row] = await session.readEverywhere(query, [])
  if (row === undefined) throw new Error(`${keyspace}.store could not be made: ${outcome}`)
  return storeOf(row)
}

/** What `store` says; null: nothing yet, in no data centre. */
export async function readStore(session: Session, keyspace: string): Promise<StoreRow | null> {
  const query = `SELECT * FROM ${keyspace}.store WHERE id = 0`
  const [here] = await session.read(query, [])
  const [row] = here === undefined ? await session.readEverywhere(query, []) : [here]
  return row === undefined ? null : storeOf(row)
}

function storeOf(row: Row): StoreRow {
  const losses = row['losses'] as string | null
  return {
    format: row['format'] as number,
    shards: row['shards'] as number,
    generation: row['generation'] as string,
    serial: row['serial'] as SerialLevel,
    datacenter: row['datacenter'] as string | null,
    filling: row['filling'] as string | null,
    ...(losses === null ? {} : { losses: JSON.parse(losses) as AcceptedLoss[] }),
  }
}

function checked(row: StoreRow, options: IdentityOptions): Bare {
  const { filling, ...identity } = row
  const { keyspace } = options
  if (identity.format > STORE_FORMAT) {
    throw new Error(
      `keyspace ${keyspace}: the store's format is ${identity.format}, this version of Kontor ` +
        `reads up to ${STORE_FORMAT}: start the newer version`,
    )
  }
  if (filling !== null) {
    throw new Error(
      `keyspace ${keyspace}: a store is being moved into it and is not whole: let the move ` +
        '(npm run move) come to its end, or drop the keyspace',
    )
  }
  if (options.shards !== null && options.shards !== identity.shards) {
    throw new Error(
      `keyspace ${keyspace}: the store was made with ${identity.shards} shards and ` +
        `${options.shards} are configured (KONTOR_SHARDS): leave the setting out, or set it to ` +
        'what the store has',
    )
  }
  if (options.serial !== null && options.serial !== identity.serial) {
    throw new Error(
      `keyspace ${keyspace}: the store was made for the serial level ${identity.serial}, ` +
        `${options.serial} is configured: two levels in one store mean two owners of a shard`,
    )
  }
  if (identity.datacenter !== null && identity.datacenter !== options.datacenter) {
    throw new Error(
      `keyspace ${keyspace}: the members of this store are in the data centre ` +
        `${identity.datacenter}, ${options.datacenter} is configured ` +
        '(KONTOR_CASSANDRA_DATACENTER)',
    )
  }
  return identity
}
