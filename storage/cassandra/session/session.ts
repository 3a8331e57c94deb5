// The one way in which statements reach Cassandra: what is conditional is never repeated by the
// driver and answers applied, refused or unknown; reads and registers may be repeated. Source:
// PROTOCOL 3.1 "Driver".

import { Client, errors, policies, types, type QueryOptions } from 'cassandra-driver'
import { faultOf, loginFault } from '../../../config/engine-faults.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { Outage } from '../../../protocol/outage.ts'
import type { Outcome } from '../../control.ts'
import { Limiter } from './limiter.ts'
import { type SessionOptions, clientOptions } from './client-options.ts'

export type SerialLevel = 'LOCAL_SERIAL' | 'SERIAL'

export interface Statement {
  readonly query: string
  readonly params: readonly unknown[]
}

/** What one request may carry for several partitions, as the engine's own warnings have it. */
export interface BatchBounds {
  readonly bytes: number
  readonly partitions: number
}

export type Row = types.Row

export interface Page {
  readonly rows: readonly Row[]
  /** null: there are no more. */
  readonly next: string | null
}

/** One Cassandra node as the settings check sees it. */
export type Host = NonNullable<QueryOptions['host']>

/** How many milliseconds after the first of its kind a failure is told again. */
const TELL_AGAIN_MS = 60_000
/** Some of its nodes may be away, and statements that need them fail. */
const BACK_AFTER_MS = 5_000

export class Session {
  readonly #client: Client
  readonly #options: SessionOptions
  readonly #reads: Limiter
  readonly #registers: Limiter
  readonly #toldAt = new Map<string, number>()
  readonly #outage: Outage
  #quorum = types.consistencies.localQuorum
  #serial = types.consistencies.localSerial
  #timeoutMs: number = LIMITS.cassandra.timeoutMs
  /** What a request for several partitions may carry. */
  bounds: BatchBounds = { bytes: 0, partitions: 1 }

  private constructor(client: Client, options: SessionOptions) {
    this.#client = client
    this.#options = options
    this.#outage = new Outage({
      log: options.log,
      now: options.now,
      failing: 'statements to Cassandra fail',
      back: 'Cassandra answers again',
      quietMs: BACK_AFTER_MS,
    })
    this.#reads = new Limiter({
      inFlightMax: LIMITS.cassandra.readsInFlightMax,
      waitingMax: LIMITS.cassandra.readsWaitingMax,
    })
    this.#registers = new Limiter({
      inFlightMax: LIMITS.cassandra.registersInFlightMax,
      // Bounded by LIMITS.sharding.unflushedBytesMax of every shard.
      waitingMax: Number.MAX_SAFE_INTEGER,
    })
  }

  /** Throws Error when no contact point answers or the data centre is not there. */
  static async connect(options: SessionOptions): Promise<Session> {
    const client = new Client(clientOptions(options))
    try {
      await client.connect()
    } catch (error) {
      abandon(client)
      const at = options.contactPoints.join(', ')
      throw new Error(`Cassandra at ${at}: ${textOf(error)}`, { cause: error })
    }
    endReplacedHosts(client)
    return new Session(client, options)
  }

  /** Statements from now on use this level. */
  use(level: SerialLevel): void {
    const { quorum, localQuorum, serial, localSerial } = types.consistencies
    this.#quorum = level === 'SERIAL' ? quorum : localQuorum
    this.#serial = level === 'SERIAL' ? serial : localSerial
  }

  /** Statements from now on wait this long for their answer, and batches keep these bounds. */
  fit(to: { readonly timeoutMs: number; readonly bounds: BatchBounds }): void {
    this.#timeoutMs = to.timeoutMs
    this.bounds = to.bounds
  }

  /** Nodes of the data centre that answer. */
  hosts(): readonly Host[] {
    return this.#client.hosts.values().filter((host) => host.isUp())
  }

  /** Nodes of the data centre, whether they answer or not. */
  nodes(): number {
    const { datacenter } = this.#options
    return this.#client.hosts.values().filter((host) => host.datacenter === datacenter).length
  }

  /** A conditional statement. Never rejects for what an engine does. */
  conditional(query: string, params: readonly unknown[]): Promise<Outcome> {
    return this.#outcome(() => this.#client.execute(query, [...params], this.#conditionalOptions()))
  }

  /** Conditional statements on one partition: all are applied or none. */
  conditionalBatch(statements: readonly Statement[]): Promise<Outcome> {
    const queries = statements.map(({ query, params }) => ({ query, params: [...params] }))
    return this.#outcome(() =>
      // One partition: the batch log has nothing to do, and conditional batches never use it.
      this.#client.batch(queries, { ...this.#conditionalOptions(), logged: true }),
    )
  }

  #conditionalOptions(): QueryOptions {
    return {
      prepare: true,
      isIdempotent: false,
      retry: FALLTHROUGH,
      consistency: this.#quorum,
      serialConsistency: this.#serial,
      readTimeout: this.#timeoutMs,
    }
  }

  async #outcome(send: () => Promise<types.ResultSet>): Promise<Outcome> {
    try {
      return (await send()).wasApplied() ? 'applied' : 'refused'
    } catch (error) {
      if (isOurMistake(error)) throw error
      this.#tell(error)
      return 'unknown'
    }
  }

  /** All rows at quorum. Rejects with 503 when the engine can't answer, as every read here. */
  async read(
    query: string,
    params: readonly unknown[],
    pageRows: number = LIMITS.cassandra.pageRows,
  ): Promise<readonly Row[]> {
    const all: Row[] = []
    for (let from: string | null = null; ;) {
      const page = await this.readPage(query, params, { rows: pageRows, from })
      if (from === null && page.next === null) return page.rows
      all.push(...page.rows)
      if (page.next === null) return all
      from = page.next
    }
  }

  /** Rows of one partition at the serial level: what is undecided is brought to an end first. */
  async readSerial(query: string, params: readonly unknown[]): Promise<readonly Row[]> {
    return (await this.#select(query, params, { consistency: this.#serial })).rows
  }

  /** Some rows at quorum, and where the next ones begin. */
  readPage(
    query: string,
    params: readonly unknown[],
    page: { readonly rows: number; readonly from: string | null },
  ): Promise<Page> {
    return this.#select(query, params, {
      consistency: this.#quorum,
      fetchSize: page.rows,
      ...(page.from === null ? {} : { pageState: page.from }),
    })
  }

  async #select(query: string, params: readonly unknown[], options: QueryOptions): Promise<Page> {
    const all = { prepare: true, isIdempotent: true, readTimeout: this.#timeoutMs, ...options }
    try {
      const found = await this.#reads.run(() => this.#client.execute(query, [...params], all))
      this.#outage.answered()
      return { rows: found.rows ?? [], next: found.pageState ?? null }
    } catch (error) {
      if (isOurMistake(error) || error instanceof RequestError) throw error
      this.#tell(error)
      throw unavailable(error)
    }
  }

  /** Writes registers in one request. Rejects with 503 when it is not sure that they are in. */
  async put(statements: readonly Statement[]): Promise<void> {
    const options = {
      prepare: true,
      isIdempotent: true,
      consistency: this.#quorum,
      readTimeout: this.#timeoutMs,
    }
    try {
      await this.#registers.run(async () => {
        if (statements.length === 1) {
          await this.#client.execute(statements[0]!.query, [...statements[0]!.params], options)
          return
        }
        const queries = statements.map(({ query, params }) => ({ query, params: [...params] }))
        await this.#client.batch(queries, { ...options, logged: false })
      })
    } catch (error) {
      if (isOurMistake(error)) throw error
      this.#tell(error)
      throw unavailable(error)
    }
  }

  /** Changes the schema, and waits until the nodes agree on it. */
  async define(statement: string): Promise<void> {
    const options = { prepare: false, isIdempotent: false, readTimeout: LIMITS.cassandra.ddlMs }
    const { info } = await this.#client.execute(statement, [], options)
    // The driver's types leave it out.
    if (!(info as { isSchemaInAgreement?: boolean }).isSchemaInAgreement) {
      throw new Error('the nodes of Cassandra do not agree on the schema: start again')
    }
  }

  /** Whether this table can be read yet: while it is being made, not every node knows it. */
  async knows(table: string): Promise<boolean> {
    try {
      await this.#client.execute(`SELECT * FROM ${table} LIMIT 1`, [], { prepare: false })
      return true
    } catch (error) {
      if (isRefusal(error)) return false
      throw unavailable(error)
    }
  }

  /** One node's answer, for what every node has of its own. */
  async askHost(host: Host, query: string): Promise<readonly Row[]> {
    return (await this.#client.execute(query, [], { host, readTimeout: this.#timeoutMs })).rows
  }

  /** Rows at quorum over all data centres. */
  async readEverywhere(query: string, params: readonly unknown[]): Promise<readonly Row[]> {
    return (await this.#select(query, params, { consistency: types.consistencies.quorum })).rows
  }

  async close(): Promise<void> {
    await this.#client.shutdown()
  }

  /** An outage is thousands of failures; a statement that is not understood is no weather. */
  #tell(error: unknown): void {
    const { log, now } = this.#options
    const { name, code } = error as { name?: string; code?: number | string }
    const kind = `${name ?? 'Error'} ${code ?? ''}`
    const fields = { error: textOf(error), kind }
    if (!isRefusal(error)) return this.#outage.failed(fields)
    const nowMs = now()
    const toldAt = this.#toldAt.get(kind)
    if (toldAt !== undefined && nowMs - toldAt < TELL_AGAIN_MS) return
    this.#toldAt.set(kind, nowMs)
    log.error(fields, 'Cassandra refuses a statement')
  }
}

const FALLTHROUGH = new policies.retry.FallthroughRetryPolicy()

/**
 * A client that never came to be connected keeps its first connection, and the process with it:
 * its own shutdown closes those of a connected one only.
 */
function abandon(client: Client): void {
  const { controlConnection } = client as unknown as {
    controlConnection: { shutdown(): void; connection: { close(): void } | null }
  }
  controlConnection.shutdown()
  controlConnection.connection?.close()
}

/**
 * When no node answers any more the driver begins anew with its contact points and puts new hosts
 * in the place of those that it has, which nobody ends: each would reconnect and hold its
 * connections for as long as the process lives.
 */
function endReplacedHosts(client: Client): void {
  client.on('hostRemove', (host: { shutdown(drain: boolean): Promise<void> }) => {
    // Not drained: a pool that is drained while it connects comes back.
    host.shutdown(false).catch(() => undefined)
  })
}

/** Values that the driver can't send: a mistake in this folder, nothing has left. */
function isOurMistake(error: unknown): boolean {
  return (
    error instanceof TypeError ||
    error instanceof RangeError ||
    error instanceof errors.ArgumentError
  )
}

/** Cassandra has understood the request and says that it is wrong. */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof errors.ResponseError)) return false
  const { syntaxError, unauthorized, invalid, configError } = types.responseErrorCodes
  const codes: readonly number[] = [syntaxError, unauthorized, invalid, configError]
  return codes.includes(error.code)
}

function unavailable(cause: unknown): RequestError {
  const error = new RequestError('UNAVAILABLE', 'the journal store does not answer')
  error.cause = cause
  return error
}

/** What failed, and at which nodes. */
function textOf(error: unknown): string {
  if (!(error instanceof errors.NoHostAvailableError)) return String(error)
  const tried = Object.entries(error.innerErrors as Record<string, unknown>)
  return tried.length === 0
    ? error.message
    : tried.map(([host, why]) => `${host}: ${reasonOf(why)}`).join('; ')
}

function reasonOf(why: unknown): string {
  if (!(why instanceof errors.AuthenticationError)) {
    return `${String(why)}${faultOf('CASSANDRA', why)}`
  }
  return `${why.message}${loginFault('CASSANDRA')}`
}
