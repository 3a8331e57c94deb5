// A Cassandra in memory, behind the driver's own client: whoever connects speaks to it, and all of
// this folder runs on it without an engine. It is trusted because it passes the suites that a real
// one passes. Answers can be lost.

import { randomFillSync } from 'node:crypto'
import { Client, errors, type types, type QueryOptions } from 'cassandra-driver'
import type { Test } from 'tap'
import { Session } from '../session/session.ts'
import type { CassandraOptions } from '../store.ts'
import { parse, type Write } from './cql.ts'
import { recorder } from './recorder.ts'
import { MUTATION_BYTES_MAX, TwinTables, type Request } from './tables.ts'

const ADDRESS = '127.0.0.1:9042'
const DATACENTER = 'datacenter1'
const SETTINGS: Readonly<Record<string, string>> = {
  max_mutation_size: `${MUTATION_BYTES_MAX / 1_048_576}MiB`,
  commitlog_sync: 'group',
  paxos_variant: 'v2',
  cas_contention_timeout: '1800ms',
  write_request_timeout: '2s',
  read_request_timeout: '5s',
  range_request_timeout: '10s',
  batch_size_warn_threshold: '5KiB',
  unlogged_batch_across_partitions_warn_threshold: '10',
}

/** What becomes of a request: it gets no answer, having been carried out or not. */
export type Fault = 'not sent' | 'not answered' | null

/** As much of the driver's answer as the folder looks at. */
interface Answer {
  readonly rows: readonly types.Row[]
  readonly pageState: string | null
  readonly info: { readonly isSchemaInAgreement: boolean }
  wasApplied(): boolean
}

/** A Cassandra for tests, this one or a real one. */
export interface TestCassandra {
  /** Options of a keyspace that nobody else has; it is dropped with the test. */
  options(t: Test, more?: Partial<CassandraOptions>): CassandraOptions
  /** Statements beside a store, to look at its tables. */
  session(t: Test): Promise<Session>
}

export class TwinCassandra implements TestCassandra {
  /** Asked of each request, with the text of its statements and what the driver was told. */
  fault: (query: string, options: QueryOptions) => Fault | Promise<Fault> = () => null
  /** How far the engine's clock is ahead of this process. */
  aheadMs = 0
  readonly #tables = new TwinTables(() => Date.now() + this.aheadMs)
  #keyspaces = 0

  /** From here on, until the test is over, clients of the driver speak to this one. */
  constructor(t: Test) {
    const { connect, execute, batch } = Client.prototype
    // The driver's overloads are not needed.
    const prototype = Client.prototype as object
    const join = (client: Client): void => this.#connect(client)
    Object.assign(prototype, {
      async connect(this: Client): Promise<void> {
        join(this)
      },
      execute: (query: string, params: readonly unknown[], options: QueryOptions = {}) =>
        this.#answer(query, options, () => this.#execute(query, params, options)),
      batch: (queries: readonly Sent[], options: QueryOptions) => {
        const text = queries.map(({ query }) => query).join('; ')
        return this.#answer(text, options, () => this.#batch(queries))
      },
    })
    t.teardown(() => void Object.assign(prototype, { connect, execute, batch }))
  }

  options(_: Test, more: Partial<CassandraOptions> = {}): CassandraOptions {
    const keyspace = `twin_${++this.#keyspaces}`
    return { ...this.#base(), keyspace, replication: null, shards: 2, ...more }
  }

  async session(t: Test): Promise<Session> {
    const session = await Session.connect(this.#base())
    t.teardown(() => session.close())
    return session
  }

  #base() {
    return {
      contactPoints: [ADDRESS],
      datacenter: DATACENTER,
      log: recorder(),
      random: (into: Uint8Array) => void randomFillSync(into),
      clock: Date.now,
      now: () => performance.now(),
    }
  }

  #connect(client: Client): void {
    const { contactPoints, localDataCenter } = (client as unknown as { options: ClientSetup })
      .options
    if (!contactPoints.includes(ADDRESS)) {
      const refused = contactPoints.map((point) => [point, new Error(`ECONNREFUSED ${point}`)])
      throw new errors.NoHostAvailableError(Object.fromEntries(refused))
    }
    if (localDataCenter !== DATACENTER) {
      throw new errors.ArgumentError(`no '${localDataCenter}' but data centers: ${DATACENTER}`)
    }
    const host = { address: ADDRESS, datacenter: DATACENTER, cassandraVersion: '5.0.9' }
    const hosts = [{ ...host, isUp: () => true }]
    Object.assign(client, { hosts: { length: 1, values: () => hosts } })
  }

  async #answer(query: string, options: QueryOptions, work: () => Answer): Promise<Answer> {
    const fault = await this.fault(query, options)
    if (fault === 'not sent') throw new errors.OperationTimedOutError('the twin was not asked')
    const answer = work()
    if (fault !== null) throw new errors.OperationTimedOutError('the twin says nothing')
    return answer
  }

  #execute(query: string, params: readonly unknown[], options: QueryOptions): Answer {
    if (/^\s*(CREATE|ALTER|DROP|TRUNCATE) /.test(query)) {
      this.#tables.define(query)
      return answerOf([])
    }
    if (query.includes(' FROM system')) return answerOf(this.#system(query, params))
    const parsed = parse(query)
    if (parsed.kind !== 'select') return this.#written([{ query: parsed, params }])
    const rows = this.#tables.select({ query: parsed, params })
    const from = Number(options.pageState ?? 0)
    const end = from + (options.fetchSize ?? 5_000)
    // As the engine: a page that is full may be the last one.
    return answerOf(rows.slice(from, end), rows.length < end ? null : String(end))
  }

  #batch(queries: readonly Sent[]): Answer {
    return this.#written(
      queries.map(({ query, params }) => ({ query: parse(query) as Write, params })),
    )
  }

  #written(requests: readonly Request<Write>[]): Answer {
    const isApplied = this.#tables.write(requests)
    return answerOf(isApplied === null ? [] : [rowOf({ '[applied]': isApplied })])
  }

  #system(query: string, [keyspace, table]: readonly unknown[]): types.Row[] {
    if (query.includes('system_schema.keyspaces')) {
      const replication = this.#tables.keyspaces.get(String(keyspace))
      return replication === undefined ? [] : [rowOf({ replication })]
    }
    if (query.includes('system_schema.tables')) {
      const isThere = this.#tables.has(`${String(keyspace)}.${String(table)}`)
      return isThere ? [rowOf({ table_name: table })] : []
    }
    return Object.entries(SETTINGS)
      .filter(([name]) => query.includes(`'${name}'`))
      .map(([name, value]) => rowOf({ name, value }))
  }
}

interface Sent {
  readonly query: string
  readonly params: readonly unknown[]
}

interface ClientSetup {
  readonly contactPoints: readonly string[]
  readonly localDataCenter: string
}

function rowOf(fields: Readonly<Record<string, unknown>>): types.Row {
  return fields as unknown as types.Row
}

function answerOf(rows: readonly types.Row[], pageState: string | null = null): Answer {
  const isApplied = (rows[0]?.['[applied]'] as boolean | undefined) ?? true
  return { rows, pageState, info: { isSchemaInAgreement: true }, wasApplied: () => isApplied }
}
