// A subscription: a live query whose changes are taken one by one, as fast as its client takes
// them. While nobody takes one nothing is told, so what a slow client costs is the difference
// between what it has and what is. Source: CONTRACT 1.4.1, 1.10.

import type { ExecutionResult, GraphQLFormattedError } from 'graphql'
import { RequestError } from '../../../protocol/errors.ts'
import { type Identity, callerOf } from '../../access/identity.ts'
import { type FilterFields, graphAccess } from '../../graph/access.ts'
import type { Change } from '../../graph/graphql/changes.ts'
import { Refused } from '../../graph/graphql/refused.ts'
import type { Subscription } from '../../graph/graphql/service.ts'
import type { SchemaVersion } from '../../graph/live-schema.ts'
import type { ListChange } from '../queries/list-changes.ts'
import { type LivePlan, planLive } from '../queries/live-plan.ts'
import type { LivePositions } from '../queries/live-positions.ts'
import type { LiveQueries } from '../queries/live-queries.ts'
import type { LiveNode } from '../queries/live-window.ts'
import type { QueryTaker, StandingQuery } from '../queries/standing-query.ts'
import type { OperationsConnection, Standing } from './operations-connection.ts'

export interface ListOptions {
  readonly queries: Pick<LiveQueries, 'open' | 'read' | 'replan' | 'wake' | 'end' | 'heard'>
  readonly positions: LivePositions
  readonly served: () => SchemaVersion
  readonly filterFields: FilterFields
}

/** Why it ended, as its client is told. */
export class SubscriptionFailed extends Error {
  readonly errors: readonly GraphQLFormattedError[]

  constructor(errors: readonly GraphQLFormattedError[]) {
    super(errors[0]!.message)
    this.errors = errors
  }
}

interface Asking {
  /** What is asked, by what this identity may see. */
  readonly asks: (who: Identity) => Subscription
  readonly identity: Identity
  /** Of the message that asks. */
  readonly chars: number
}

type Result = IteratorResult<ExecutionResult, undefined>

const DONE: Result = { done: true, value: undefined }

export class SubscribedList
  implements QueryTaker, Standing, AsyncIterableIterator<ExecutionResult>
{
  readonly chars: number
  readonly #connection: OperationsConnection
  readonly #options: ListOptions
  readonly #asks: (who: Identity) => Subscription
  readonly #query: StandingQuery
  #asked: Subscription
  #isBegun = false
  #isEnded = false
  #failure: SubscriptionFailed | null = null
  /** Told by the live query, and not taken yet. */
  #changes: Change[] = []
  /** Who waits for the next one. */
  #takes: PromiseWithResolvers<Result> | null = null

  constructor(
    connection: OperationsConnection,
    options: ListOptions,
    { asks, identity, chars }: Asking,
  ) {
    this.chars = chars
    this.#connection = connection
    this.#options = options
    this.#asks = asks
    this.#asked = asks(identity)
    this.#query = options.queries.open(this.#plan(identity), this, callerOf(identity))
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<Result> {
    const change = this.#changes.shift()
    if (change !== undefined) return Promise.resolve(this.#resultOf(change))
    if (this.#failure !== null) {
      const failure = this.#failure
      this.#failure = null
      return Promise.reject(failure)
    }
    if (this.#isEnded) return Promise.resolve(DONE)
    this.#takes = Promise.withResolvers()
    const { promise } = this.#takes
    if (this.#isBegun) this.wake()
    else void this.#begin()
    return promise
  }

  return(): Promise<Result> {
    this.#connection.leave(this)
    this.end()
    return Promise.resolve(DONE)
  }

  async #begin(): Promise<void> {
    this.#isBegun = true
    try {
      await this.#read()
    } catch (error) {
      this.failed(error)
    }
  }

  async #read(): Promise<void> {
    const { queries, positions } = this.#options
    const { resume } = this.#asked
    const from = resume === null ? null : positions.decode(resume)
    await queries.read(this.#query, from?.offsets ?? new Map())
    if (this.#isEnded) return
    if (this.#connection.identity === null || !this.#query.list.isLive) {
      throw new RequestError('UNAVAILABLE', 'what the caller may see has just changed; try again')
    }
    const nodes = this.#query.begin()
    const { digest } = this.#query
    const isAnew = from?.digest !== digest.toString(36)
    this.#push({
      kind: 'created',
      hasMore: this.#query.hasMore,
      ...(isAnew && { nodes: nodes.map(({ text }) => text) }),
      position: this.#position(digest),
    })
  }

  // --- what the live query tells ----------------------------------------------------------

  get isReady(): boolean {
    const { identity, takes } = this.#connection
    return this.#takes !== null && takes && identity !== null
  }

  changed(changes: readonly ListChange[], digest: bigint): void {
    for (const [i, change] of changes.entries()) {
      const { node, ...others } = change
      // Between two changes of one moment there is nothing to go on from.
      const position = this.#position(i === changes.length - 1 ? digest : null)
      const { kind, ...places } = others
      const { shownId } = node
      const told = { ...places, ...(shownId !== null && { id: shownId }), position }
      if (kind === 'remove') this.#push({ kind: 'removed', ...told })
      else this.#push({ kind: kind === 'add' ? 'added' : 'updated', ...told, node: node.text })
    }
  }

  reset(nodes: readonly LiveNode[], digest: bigint): void {
    this.#push({
      kind: 'reset',
      nodes: nodes.map(({ text }) => text),
      hasMore: this.#query.hasMore,
      position: this.#position(digest),
    })
  }

  schemaChanged(): void {
    this.accessChanged()
  }

  failed(error: unknown): void {
    if (this.#isEnded) return
    this.#connection.leave(this)
    this.#changes = []
    this.#failure = new SubscriptionFailed(this.#told(error))
    this.#stop()
    const takes = this.#takes
    this.#takes = null
    if (takes === null) return
    takes.reject(this.#failure)
    this.#failure = null
  }

  // --- what its connection tells ----------------------------------------------------------

  wake(): void {
    if (!this.#isEnded) this.#options.queries.wake(this.#query)
  }

  accessChanged(): void {
    const { identity } = this.#connection
    if (identity === null || this.#isEnded) return
    try {
      const asked = this.#asks(identity)
      const plan = this.#planOf(asked, identity)
      this.#asked = asked
      if (plan.text === this.#query.plan.text) this.wake()
      else {
        this.#changes = []
        this.#options.queries.replan(this.#query, plan)
      }
    } catch (error) {
      this.failed(error)
    }
  }

  end(): void {
    this.#changes = []
    this.#stop()
    this.#takes?.resolve(DONE)
    this.#takes = null
  }

  #stop(): void {
    this.#isEnded = true
    this.#options.queries.end(this.#query)
  }

  #push(change: Change): void {
    const takes = this.#takes
    if (takes === null) {
      this.#changes.push(change)
      return
    }
    this.#takes = null
    takes.resolve(this.#resultOf(change))
  }

  #resultOf(change: Change): Result {
    return { value: this.#asked.result(change) }
  }

  #plan(identity: Identity): LivePlan {
    return this.#planOf(this.#asked, identity)
  }

  #planOf(asked: Subscription, { acl }: Identity): LivePlan {
    const { served, filterFields } = this.#options
    const { schema } = served()
    try {
      return planLive({ ...asked.query }, { schema, access: graphAccess(acl, filterFields) })
    } catch (error) {
      throw asked.refusal(error)
    }
  }

  /** null: of a list that nobody has. */
  #position(digest: bigint | null): () => string {
    const { queries, positions } = this.#options
    const text = digest === null ? '-' : digest.toString(36)
    return () => positions.encode({ offsets: queries.heard, digest: text })
  }

  #told(error: unknown): readonly GraphQLFormattedError[] {
    if (error instanceof Refused) return error.errors.map((one) => one.toJSON())
    if (error instanceof RequestError) {
      return error.errors.map(({ code, message, details }) => ({
        message,
        extensions: details === undefined ? { code } : { code, details },
      }))
    }
    this.#connection.note(error)
    return [{ message: 'a fault of the node', extensions: { code: 'INTERNAL_ERROR' } }]
  }
}
