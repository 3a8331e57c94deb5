// Live queries over `/ws`: the frames that make and delete them, and what each connection is told.
// Source: CONTRACT 1.10.

import { Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { callerOf } from '../../access/identity.ts'
import type { Identity } from '../../access/identity.ts'
import { type FilterFields, graphAccess } from '../../graph/access.ts'
import type { SchemaVersion } from '../../graph/live-schema.ts'
import { frameType } from '../socket/frames.ts'
import type { Connection, FrameType } from '../socket/frames.ts'
import { FrameTexts, listOf } from './frame-texts.ts'
import type { FrameText } from './frame-texts.ts'
import type { ListChange } from './list-changes.ts'
import { planLive } from './live-plan.ts'
import type { LivePlan } from './live-plan.ts'
import type { LivePositions } from './live-positions.ts'
import type { LiveQueries } from './live-queries.ts'
import type { LiveNode } from './live-window.ts'
import type { QueryTaker, StandingQuery } from './standing-query.ts'

export interface QueryFramesOptions {
  readonly queries: LiveQueries
  readonly positions: LivePositions
  readonly served: () => SchemaVersion
  readonly filterFields: FilterFields
}

interface OwnOptions extends QueryFramesOptions {
  readonly texts: FrameTexts
}

const ID = Type.String({ minLength: 1, maxLength: LIMITS.live.queryIdCharsMax })
const RESUME = Type.String({ maxLength: LIMITS.live.queryPositionCharsMax })

type Query = Readonly<Record<string, unknown>>

interface Asked {
  readonly liveQueryId: string
  readonly query: Query
  readonly resume?: string
  readonly requestId?: string
}

/** Rows of the table of frames. */
export function queryFrames(given: QueryFramesOptions): readonly FrameType[] {
  const options = { ...given, texts: new FrameTexts(given.queries, given.positions) }
  const all = new WeakMap<Connection, ConnectionQueries>()
  const of = (connection: Connection): ConnectionQueries => {
    const own = all.get(connection) ?? new ConnectionQueries(connection, options)
    all.set(connection, own)
    return own
  }
  return [
    frameType(
      'createLiveQuery',
      {
        liveQueryId: ID,
        query: Type.Record(Type.String(), Type.Unknown()),
        resume: Type.Optional(RESUME),
      },
      (connection, frame) => of(connection).create(frame),
    ),
    frameType('deleteLiveQuery', { liveQueryId: ID }, (connection, { liveQueryId, requestId }) =>
      of(connection).delete(liveQueryId, requestId),
    ),
  ]
}

/** Those of one connection. */
class ConnectionQueries {
  readonly #connection: Connection
  readonly #options: OwnOptions
  readonly #all = new Map<string, OneQuery>()

  constructor(connection: Connection, options: OwnOptions) {
    this.#connection = connection
    this.#options = options
    connection.onClose(() => {
      for (const one of this.#all.values()) one.end()
      this.#all.clear()
    })
    connection.onDrained(() => {
      for (const one of this.#all.values()) one.wake()
    })
    connection.access.onChange(() => {
      for (const one of this.#all.values()) one.accessChanged()
    })
  }

  async create(asked: Asked): Promise<void> {
    const { liveQueryId } = asked
    const { queriesMax } = LIMITS.live
    let one: OneQuery | null = null
    try {
      if (this.#all.has(liveQueryId)) {
        throw new RequestError('DUPLICATE_ID', `the live query ${liveQueryId} is there already`)
      }
      if (this.#all.size >= queriesMax) {
        throw new RequestError('TOO_LARGE', `a connection has at most ${queriesMax} live queries`)
      }
      const gone = (): void => void this.#all.delete(liveQueryId)
      one = new OneQuery(this.#connection, this.#options, { asked, gone })
      this.#all.set(liveQueryId, one)
      await one.begin()
    } catch (error) {
      if (one === null) tellFault(this.#connection, asked, error)
      else one.failed(error)
    }
  }

  /** One that is not there is gone already. */
  delete(liveQueryId: string, requestId: string | undefined): void {
    this.#all.get(liveQueryId)?.end()
    this.#all.delete(liveQueryId)
    const about = requestId === undefined ? {} : { requestId }
    this.#connection.send({ type: 'liveQueryDeleted', ...about, liveQueryId })
  }
}

class OneQuery implements QueryTaker {
  readonly #connection: Connection
  readonly #options: OwnOptions
  #asked: Asked
  readonly #gone: () => void
  /** null: it has not had its turn yet. */
  #query: StandingQuery | null = null
  #isEnded = false
  /** Its answer is still to come. */
  #isNew = true

  constructor(
    connection: Connection,
    options: OwnOptions,
    { asked, gone }: { readonly asked: Asked; readonly gone: () => void },
  ) {
    this.#connection = connection
    this.#options = options
    this.#asked = asked
    this.#gone = gone
  }

  async begin(): Promise<void> {
    const { queries, positions, texts } = this.#options
    // Where it was is of no use any more: it stands for long, and a position is large.
    const { resume, ...asked } = this.#asked
    const { requestId } = asked
    this.#asked = asked
    // Plans of many that come together are made some at a time.
    await queries.turn(callerOf(this.#identity))
    if (this.#isEnded) return
    const query = this.#open(this.#identity)
    const from = resume === undefined ? null : positions.decode(resume)
    await queries.read(query, from?.offsets ?? new Map())
    if (this.#isEnded) return
    if (this.#connection.access.identity === null || !query.list.isLive) {
      throw new RequestError('UNAVAILABLE', 'what the caller may see has just changed; try again')
    }
    const nodes = query.begin()
    const { digest, hasMore } = query
    const isAnew = from?.digest !== digest.toString(36)
    this.#isNew = false
    const answer = requestId === undefined ? '' : `,"requestId":${JSON.stringify(requestId)}`
    const list = isAnew ? listOf(nodes) : ''
    const members = `${answer}${texts.position(digest)}${list},"hasMore":${hasMore}`
    this.#tell({ type: 'liveQueryCreated', members })
  }

  /** Throws where it can't be told. */
  get #identity(): Identity {
    const { identity } = this.#connection.access
    if (identity !== null) return identity
    throw new RequestError('UNAVAILABLE', 'tokens cannot be checked at the moment; try again')
  }

  #open(identity: Identity): StandingQuery {
    this.#query = this.#options.queries.open(this.#plan(identity), this, callerOf(identity))
    return this.#query
  }

  get isReady(): boolean {
    const { access, bufferedBytes } = this.#connection
    return access.identity !== null && bufferedBytes < LIMITS.live.queryHoldBytes
  }

  changed(changes: readonly ListChange[], digest: bigint): void {
    for (const frame of this.#options.texts.changes(changes, digest)) this.#tell(frame)
  }

  reset(nodes: readonly LiveNode[], digest: bigint): void {
    this.#tell(this.#options.texts.reset(nodes, digest))
  }

  failed(error: unknown): void {
    if (this.#isEnded) return
    const { liveQueryId, requestId } = this.#asked
    const about = this.#isNew && requestId !== undefined ? { requestId } : {}
    this.end()
    this.#gone()
    tellFault(this.#connection, { liveQueryId, ...about }, error)
  }

  wake(): void {
    if (this.#query !== null) this.#options.queries.wake(this.#query)
  }

  accessChanged(): void {
    const { identity } = this.#connection.access
    const query = this.#query
    if (identity === null || this.#isEnded || query === null) return
    try {
      const plan = this.#plan(identity)
      if (plan.text === query.plan.text) this.wake()
      else this.#options.queries.replan(query, plan)
    } catch (error) {
      this.failed(error)
    }
  }

  schemaChanged(): void {
    this.accessChanged()
  }

  end(): void {
    this.#isEnded = true
    if (this.#query !== null) this.#options.queries.end(this.#query)
  }

  #plan({ acl }: Identity): LivePlan {
    const { served, filterFields } = this.#options
    const { schema } = served()
    return planLive(this.#asked.query, { schema, access: graphAccess(acl, filterFields) })
  }

  #tell({ type, members }: FrameText): void {
    const id = JSON.stringify(this.#asked.liveQueryId)
    this.#connection.sendText(`{"type":"${type}","liveQueryId":${id}${members}}`)
  }
}

function tellFault(
  connection: Connection,
  { liveQueryId, requestId }: { readonly liveQueryId: string; readonly requestId?: string },
  error: unknown,
): void {
  if (!(error instanceof RequestError)) {
    connection.sendError(error, { liveQueryId, ...(requestId !== undefined && { requestId }) })
    return
  }
  const about = requestId === undefined ? {} : { requestId }
  connection.send({ type: 'liveQueryError', liveQueryId, ...about, ...error.errors[0]! })
}
