// Reads everything that a store in Cassandra holds, while members serve, and says what isn't as it
// must be: the audit that backups, moves and fault tests rely on. It writes nothing unless it is
// told to put back what is missing. Source: PROTOCOL 4.1 (K4), 3.12.

import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import type { Behaviours } from '../../key-audit.ts'
import { CassandraControl } from '../control.ts'
import { CassandraDerivedReader } from '../derived/reader.ts'
import { readStore, STORE_FORMAT } from '../identity.ts'
import { bucketOf, encodeBlob } from '../derived/rows.ts'
import { hasTable } from '../schema.ts'
import { CassandraSegments } from '../segments.ts'
import type { Session } from '../session/session.ts'
import { connectSession, type CassandraOptions } from '../store.ts'
import type { Report } from '../../report.ts'
import { ShardVerification, type PutBack, type Stores } from './shard.ts'
import { verifyKeys } from './keys.ts'
import { verifyTables } from './tables.ts'

export interface VerifyReport {
  readonly findings: number
  readonly groups: number
  readonly entries: number
  readonly derivedRows: number
}

export interface VerifyOptions {
  /** What can be mended is. */
  readonly repair?: boolean
  /** What the actors of the store do: without them, the keys that lead to them aren't looked at. */
  readonly behaviours?: Behaviours
}

/** Shards that are read at once. */
const SHARDS_AT_ONCE = 4

/**
 * Verifies the store in a keyspace; `print` gets a line for each finding. Findings make a command's
 * exit code 1. `repair`: rows of actors' entries that are missing are put back out of the log, what
 * is needed and has a time to live loses that, natural keys that leaked are given back; nothing
 * else is changed. Throws when Cassandra can't be reached, never for what is in the tables.
 */
export async function verifyCassandra(
  options: CassandraOptions,
  print: Report,
  { repair = false, behaviours }: VerifyOptions = {},
): Promise<VerifyReport> {
  const counts = { findings: 0, groups: 0, entries: 0, derivedRows: 0 }
  const keyspace = options.keyspace.toLowerCase()
  const report: Report = (line) => {
    counts.findings++
    print(`${keyspace}: ${line}`)
  }
  const session = await connectSession(options)
  try {
    const found = await storesOf(session, keyspace, { nowMs: options.clock(), report })
    if (found === null) return counts
    const putBack = repair ? putBackInto(session, keyspace) : null
    const stores: Stores = { ...found, putBack }
    const heads = new Heads(stores)
    const shards = shardsOf(stores.identity.shards)
    const workers = Array.from({ length: SHARDS_AT_ONCE }, async () => {
      for (let shard = shards.pop(); shard !== undefined; shard = shards.pop()) {
        const verified = new ShardVerification(stores, shard, report)
        await verified.run()
        counts.groups += verified.groups
        counts.entries += verified.entries
        heads.set(shard, verified)
      }
    })
    await Promise.all(workers)
    counts.derivedRows = await verifyTables({
      session,
      keyspace,
      shards: stores.identity.shards,
      reaches: (shard, offset) => heads.reach(shard, offset),
      keepsRefusals: (stores.identity.losses ?? []).length > 0,
      putBack,
      report,
    })
    if (behaviours) await verifyKeys({ session, keyspace, stores, behaviours, repair, report })
  } finally {
    await session.close()
  }
  return counts
}

/** Writes a row of an entry again, without a time to live. */
function putBackInto(session: Session, keyspace: string): PutBack {
  const query = `UPDATE ${keyspace}.actor_entry USING TIMESTAMP ? SET body = ?
                 WHERE pid = ? AND bucket = ? AND n = ?`
  return ({ actorId, n, offset, body }, stamp) => {
    const params = [stamp, encodeBlob(offset, body), actorId, bucketOf(n), n]
    return session.put([{ query, params }])
  }
}

/** How far each log has come; looked at again when something is above what is known. */
class Heads {
  readonly #stores: Stores
  readonly #known = new Map<number, { segment: number; head: number }>()

  constructor(stores: Stores) {
    this.#stores = stores
  }

  set(shard: number, { segment, head }: { readonly segment: number; readonly head: number }): void {
    this.#known.set(shard, { segment, head })
  }

  async reach(shard: number, offset: number): Promise<boolean> {
    const known = this.#known.get(shard)
    if (known === undefined) return false
    while (offset > known.head) {
      const statics = await this.#stores.segments.statics({ shard, segment: known.segment })
      const next = { shard, segment: known.segment + 1 }
      known.head = statics?.head ?? known.head
      if (offset <= known.head) break
      if (statics?.sealed !== true || (await this.#stores.segments.statics(next)) === null)
        return false
      known.segment++
    }
    return true
  }
}

function shardsOf(shards: number): number[] {
  return Array.from({ length: shards + 1 }, (_, i) => i + SYSTEM_SHARD)
}

/** The store's parts for reading, or null when there is none that this version can read. */
async function storesOf(
  session: Session,
  keyspace: string,
  { nowMs, report }: { readonly nowMs: number; readonly report: Report },
): Promise<Omit<Stores, 'putBack'> | null> {
  const row = (await hasTable(session, keyspace, 'store'))
    ? await readStore(session, keyspace)
    : null
  if (row === null) {
    report('holds no store')
    return null
  }
  if (row.format > STORE_FORMAT) {
    report(`the store's format is ${row.format}, this version reads up to ${STORE_FORMAT}`)
    return null
  }
  if (row.filling !== null) report('a store is being moved into it and is not whole')
  session.use(row.serial)
  // Nothing that is verified is keyed by it.
  const identity = { ...row, secret: '' }
  return {
    identity,
    control: new CassandraControl(session, keyspace),
    segments: new CassandraSegments(session, keyspace),
    derived: new CassandraDerivedReader(session, keyspace, identity),
    nowMs,
  }
}
