// The keyspace and its tables: numbered files, each applied once, under a lock, so that members
// that start together don't define the same table twice. Source: PROTOCOL 3.0, ARCHITECTURE 3
// "schema changes".

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { LIMITS } from '../../config/limits.ts'
import { formatUuid } from '../../protocol/ids.ts'
import type { Session } from './session/session.ts'

export interface SchemaOptions {
  readonly keyspace: string
  readonly datacenter: string
  /** Copies of each row in a keyspace that is made; null: min(3, nodes of the data centre). */
  readonly replication: number | null
  /** Of this opening: UUID, the lock's owner. */
  readonly owner: string
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Where the numbered files are; the project's own unless a test says otherwise. */
  readonly folder?: string
}

interface SchemaFile {
  readonly version: number
  readonly statements: readonly string[]
}

/** Brings the keyspace to the newest version. A keyspace that is newer still is left alone. */
export async function applySchema(session: Session, options: SchemaOptions): Promise<void> {
  const { keyspace } = options
  const files = readSchema(options.folder ?? join(import.meta.dirname, 'schema'), keyspace)
  const newest = files.at(-1)!.version
  await makeKeyspace(session, options)
  const table = `${keyspace}.schema_version`
  if (!(await hasTable(session, keyspace, 'schema_version'))) {
    // Its id is made of the keyspace's name: two nodes that make it at once make the same table.
    await session.define(
      `CREATE TABLE IF NOT EXISTS ${table} (id int PRIMARY KEY, version int, owner uuid)
       WITH ID = ${idOf(`${keyspace}.schema_version`)}`,
    )
  }
  const lock = new SchemaLock(session, table, options.owner)
  const deadlineMs = options.now() + LIMITS.cassandra.schemaWaitMs
  while (!(await session.knows(table))) {
    if (options.now() > deadlineMs) throw new Error(`${table} can't be read: see what holds it`)
    await delay(LIMITS.cassandra.schemaRetryMs)
  }
  while ((await lock.version()) < newest) {
    if (await lock.take()) return applyFiles(session, lock, files)
    if (options.now() > deadlineMs) {
      throw new Error(
        `${table}: another member has been changing the schema for ` +
          `${LIMITS.cassandra.schemaWaitMs / 1_000} s: see what became of it, then start again`,
      )
    }
    await delay(LIMITS.cassandra.schemaRetryMs)
  }
}

async function applyFiles(
  session: Session,
  lock: SchemaLock,
  files: readonly SchemaFile[],
): Promise<void> {
  const from = await lock.version()
  for (const { version, statements } of files) {
    if (version <= from) continue
    for (const statement of statements) {
      await lock.keep()
      await session.define(statement)
    }
    await lock.applied(version)
  }
  await lock.release()
}

/** One row: the version of the schema, and who changes it now. The lock ends by itself. */
class SchemaLock {
  readonly #session: Session
  readonly #table: string
  readonly #owner: string

  constructor(session: Session, table: string, owner: string) {
    this.#session = session
    this.#table = table
    this.#owner = owner
  }

  async version(): Promise<number> {
    return Number((await this.#row())?.['version'] ?? 0)
  }

  async #row() {
    const query = `SELECT version, owner FROM ${this.#table} WHERE id = 0`
    return (await this.#session.readSerial(query, []))[0]
  }

  async #isMine(): Promise<boolean> {
    return String((await this.#row())?.['owner'] ?? '') === this.#owner
  }

  async take(): Promise<boolean> {
    const outcome = await this.#session.conditional(
      `UPDATE ${this.#table} USING TTL ${LIMITS.cassandra.schemaLockSeconds} SET owner = ? WHERE id = 0
       IF owner = null`,
      [this.#owner],
    )
    return outcome === 'applied' || (outcome === 'unknown' && (await this.#isMine()))
  }

  /** Throws when the lock has ended meanwhile: what follows may be another's to do. */
  async keep(): Promise<void> {
    await this.#mine(
      `UPDATE ${this.#table} USING TTL ${LIMITS.cassandra.schemaLockSeconds} SET owner = ? WHERE id = 0
       IF owner = ?`,
      [this.#owner, this.#owner],
    )
  }

  async applied(version: number): Promise<void> {
    await this.#mine(`UPDATE ${this.#table} SET version = ? WHERE id = 0 IF owner = ?`, [
      version,
      this.#owner,
    ])
  }

  async #mine(query: string, params: readonly unknown[]): Promise<void> {
    const outcome = await this.#session.conditional(query, params)
    if (outcome === 'applied' || (outcome === 'unknown' && (await this.#isMine()))) return
    throw new Error(`${this.#table}: the change of the schema took too long: start again`)
  }

  /** One that is not heard of ends by itself. */
  async release(): Promise<void> {
    await this.#session.conditional(
      `UPDATE ${this.#table} SET owner = null WHERE id = 0 IF owner = ?`,
      [this.#owner],
    )
  }
}

/** The files by their numbers, which have no gaps. */
function readSchema(folder: string, keyspace: string): SchemaFile[] {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith('.cql'))
    .sort()
  return names.map((name, i) => {
    const version = Number(name.slice(0, 3))
    if (version !== i + 1) throw new Error(`${folder}: ${name} is out of order`)
    const statements = readFileSync(join(folder, name), 'utf8')
      .replaceAll(/--.*$/gm, '')
      .replaceAll('$keyspace', keyspace)
      .split(';')
      .map((statement) => statement.trim())
    return { version, statements: statements.filter((statement) => statement !== '') }
  })
}

async function makeKeyspace(session: Session, options: SchemaOptions): Promise<void> {
  const { keyspace, datacenter } = options
  const query = 'SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?'
  const [row] = await session.read(query, [keyspace])
  if (row === undefined) {
    const copies =
      options.replication ?? Math.min(LIMITS.cassandra.replicationDefault, session.nodes())
    const name = datacenter.replaceAll("'", "''")
    await session.define(
      `CREATE KEYSPACE IF NOT EXISTS ${keyspace}
       WITH replication = {'class': 'NetworkTopologyStrategy', '${name}': ${copies}}`,
    )
    return
  }
  const replication = row['replication'] as Record<string, string>
  const isByDatacenter = replication['class']?.endsWith('NetworkTopologyStrategy') === true
  if (isByDatacenter && !(datacenter in replication)) {
    const { class: _, ...copies } = replication
    throw new Error(
      `keyspace ${keyspace} has no copies in the data centre ${datacenter} ` +
        `(KONTOR_CASSANDRA_DATACENTER), but in ${Object.keys(copies).join(', ')}: ` +
        'name one of these, or change the replication of the keyspace',
    )
  }
}

export async function hasTable(
  session: Session,
  keyspace: string,
  table: string,
): Promise<boolean> {
  const query =
    'SELECT table_name FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?'
  return (await session.read(query, [keyspace, table])).length > 0
}

/** A UUID made of a name (RFC 9562 5.3). */
function idOf(name: string): string {
  const bytes = createHash('md5').update(name).digest()
  bytes[6] = (bytes[6]! & 0x0f) | 0x30
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return formatUuid(bytes)
}
