// Stores for tests on a real Cassandra: a keyspace of its own each, gone when the test is over.

import { randomBytes, randomFillSync } from 'node:crypto'
import type { Test } from 'tap'
import { engine, type EngineAddress } from '../../../test/harness/engines.ts'
import { Session } from '../session/session.ts'
import { openCassandra, type CassandraOptions, type CassandraStore } from '../store.ts'
import { recorder } from './recorder.ts'
import type { TestCassandra } from './twin.ts'

/** The shared Cassandra of this run, or why this machine has none. */
export async function testCassandra(): Promise<TestCassandra | { readonly skipped: string }> {
  const at = await engine('cassandra')
  return 'skipped' in at ? at : new SharedCassandra(at)
}

const TABLES = [
  'store',
  'member',
  'shard',
  'log',
  'actor_entry',
  'actor_snap',
  'shard_snap',
  'alias',
  'mark',
  'parked',
  'system_image',
  'consumer_offset',
]

/**
 * Empty stores, one after the other, in one keyspace: making the tables takes seconds, emptying
 * those that hold something a tenth of that.
 */
export class StoreMaker {
  readonly #options: CassandraOptions
  #made: CassandraStore | null = null

  constructor(options: CassandraOptions) {
    this.#options = options
  }

  async make(t: Test, shards = 2): Promise<CassandraStore> {
    if (this.#made !== null) await this.#empty()
    const store = await openCassandra({ ...this.#options, shards })
    this.#made = store
    t.teardown(() => store.close())
    return store
  }

  async #empty(): Promise<void> {
    const session = await Session.connect(this.#options)
    for (const table of TABLES) {
      const name = `${this.#options.keyspace}.${table}`
      const rows = await session.readEverywhere(`SELECT * FROM ${name} LIMIT 1`, [])
      if (rows.length > 0) await session.define(`TRUNCATE ${name}`)
    }
    await session.close()
  }
}

class SharedCassandra implements TestCassandra {
  readonly #at: EngineAddress

  constructor(at: EngineAddress) {
    this.#at = at
  }

  options(t: Test, more: Partial<CassandraOptions> = {}): CassandraOptions {
    const keyspace = `test_${randomBytes(6).toString('hex')}`
    t.teardown(async () => {
      const session = await this.#connect()
      await session.define(`DROP KEYSPACE IF EXISTS ${keyspace}`)
      await session.close()
    })
    return { ...this.#base(), keyspace, replication: null, shards: 2, ...more }
  }

  async session(t: Test): Promise<Session> {
    const session = await this.#connect()
    t.teardown(() => session.close())
    return session
  }

  #connect(): Promise<Session> {
    return Session.connect(this.#base())
  }

  #base() {
    return {
      contactPoints: [`${this.#at.host}:${this.#at.port}`],
      datacenter: 'datacenter1',
      log: recorder(),
      random: (into: Uint8Array) => void randomFillSync(into),
      clock: Date.now,
      now: () => performance.now(),
    }
  }
}
