// Events over `/ws`: the frames that subscribe, and what each connection is sent. Source: CONTRACT
// 1.10.

import { Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { callerOf } from '../../access/identity.ts'
import type { Metrics } from '../../metrics.ts'
import { FairRoom } from '../../queues/fair-room.ts'
import { frameType } from '../socket/frames.ts'
import type { Connection, FrameType } from '../socket/frames.ts'
import type { EventStream, EventTaker } from './event-stream.ts'
import { mayWatch, maySee, neededAce, readTopic } from './topic.ts'
import type { PlatformEvent, Topic } from './topic.ts'

export interface EventFramesOptions {
  readonly stream: EventStream
  readonly behaviours: ReadonlyMap<string, Behaviour>
  readonly metrics: Metrics
}

const ID = Type.String({ minLength: 1, maxLength: LIMITS.live.subscriptionIdCharsMax })

const SUBSCRIPTION = Type.Object(
  {
    id: ID,
    path: Type.String({ minLength: 1, maxLength: LIMITS.live.topicCharsMax }),
    events: Type.Array(Type.String(), { minItems: 1, maxItems: 16, uniqueItems: true }),
  },
  { additionalProperties: false },
)

const MANY = { minItems: 1, maxItems: LIMITS.live.subscriptionsMax }

/** Rows of the table of frames. */
export function eventFrames(options: EventFramesOptions): readonly FrameType[] {
  const all = new WeakMap<Connection, Subscriptions>()
  const room = new FairRoom(() => LIMITS.live.subscriptionsCharsMax)
  const sent = options.metrics.counter('kontor_events_sent_total', 'Events sent to sockets.')
  const dropped = options.metrics.counter(
    'kontor_events_dropped_total',
    'Events that were not sent: their clients do not read, or the token could not be checked.',
  )
  const of = (connection: Connection): Subscriptions => {
    let own = all.get(connection)
    if (own === undefined) {
      own = new Subscriptions(connection, { ...options, room }, { sent, dropped })
      all.set(connection, own)
    }
    return own
  }
  return [
    frameType(
      'subscribeEvents',
      { subscriptions: Type.Array(SUBSCRIPTION, MANY) },
      (connection, { requestId, subscriptions }) =>
        of(connection).subscribe(subscriptions, requestId),
    ),
    frameType(
      'unsubscribeEvents',
      { ids: Type.Array(ID, MANY) },
      (connection, { requestId, ids }) => of(connection).unsubscribe(ids, requestId),
    ),
  ]
}

/** What a subscription takes, beside its texts. */
const SUBSCRIPTION_CHARS = 400

const charsOf = (id: string, { path }: Topic): number =>
  SUBSCRIPTION_CHARS + id.length + path.length

const tooLarge = (message: string): RequestError => new RequestError('TOO_LARGE', message)

/** What is answered to a frame carries its id. */
function about(requestId: string | undefined): { readonly requestId?: string } {
  return requestId === undefined ? {} : { requestId }
}

const rests = new WeakMap<PlatformEvent, string>()

/** What is the same in the frames of all connections, written once. */
function restOf(event: PlatformEvent): string {
  let rest = rests.get(event)
  if (rest === undefined) {
    const { eventType, path, data, timestamp } = event
    rest = JSON.stringify({ eventType, path, data, timestamp }).slice(1)
    rests.set(event, rest)
  }
  return rest
}

/** Those of one connection. */
class Subscriptions implements EventTaker {
  readonly #connection: Connection
  readonly #options: EventFramesOptions & { readonly room: FairRoom }
  readonly #counts: { readonly sent: { add(): void }; readonly dropped: { add(): void } }
  readonly #topics = new Map<string, Topic>()
  /** How many there are at a path. */
  readonly #ofPath = new Map<string, number>()
  /** Who has them all. */
  #owner = ''

  constructor(
    connection: Connection,
    options: EventFramesOptions & { readonly room: FairRoom },
    counts: { readonly sent: { add(): void }; readonly dropped: { add(): void } },
  ) {
    this.#connection = connection
    this.#options = options
    this.#counts = counts
    connection.onClose(() => this.#end([...this.#topics.keys()]))
    connection.access.onChange(() => this.#recheck())
  }

  /** All of them, or none. */
  async subscribe(
    asked: readonly {
      readonly id: string
      readonly path: string
      readonly events: readonly string[]
    }[],
    requestId: string | undefined,
  ): Promise<void> {
    const { stream, behaviours } = this.#options
    const { identity } = this.#connection.access
    if (identity === null) {
      throw new RequestError('UNAVAILABLE', 'tokens cannot be checked at the moment; try again')
    }
    const topics = new Map<string, Topic>()
    for (const one of asked) {
      if (this.#topics.has(one.id) || topics.has(one.id)) {
        throw new RequestError('DUPLICATE_ID', `the subscription ${one.id} is there already`)
      }
      const topic = readTopic(one, behaviours)
      if (!mayWatch(identity.acl, topic)) {
        throw new RequestError('FORBIDDEN', `${one.path} needs the ACE ${neededAce(topic)}`)
      }
      topics.set(one.id, topic)
    }
    this.#owner = callerOf(identity).group
    this.#checkRoom(topics)
    for (const [id, topic] of topics) this.#enter(id, topic)
    await stream.subscribe(this, topics)
    const subscriptions = Array.from(topics, ([id, { path, events }]) => ({ id, path, events }))
    this.#connection.send({ type: 'subscribedEvents', ...about(requestId), subscriptions })
  }

  /** Throws past a bound: an event names all of a connection's subscriptions that it belongs to. */
  #checkRoom(topics: ReadonlyMap<string, Topic>): void {
    const { subscriptionsMax, subscriptionsOfPathMax } = LIMITS.live
    if (this.#topics.size + topics.size > subscriptionsMax) {
      throw tooLarge(`a connection has at most ${subscriptionsMax} subscriptions`)
    }
    const ofPath = new Map(this.#ofPath)
    let chars = 0
    for (const [id, topic] of topics) {
      const { path } = topic
      const own = (ofPath.get(path) ?? 0) + 1
      ofPath.set(path, own)
      if (own > subscriptionsOfPathMax) {
        throw tooLarge(`a connection has at most ${subscriptionsOfPathMax} subscriptions of a path`)
      }
      chars += charsOf(id, topic)
    }
    if (this.#options.room.hasRoom(this.#owner, chars)) return
    const text = "a caller's subscriptions take no more than there is room for beside them"
    throw new RequestError('TOO_BUSY', `${text}; nothing was done`)
  }

  #enter(id: string, topic: Topic): void {
    this.#topics.set(id, topic)
    this.#ofPath.set(topic.path, (this.#ofPath.get(topic.path) ?? 0) + 1)
    this.#options.room.add(this.#owner, charsOf(id, topic))
  }

  #leave(id: string, topic: Topic): void {
    this.#topics.delete(id)
    const left = this.#ofPath.get(topic.path)! - 1
    if (left > 0) this.#ofPath.set(topic.path, left)
    else this.#ofPath.delete(topic.path)
    this.#options.room.add(this.#owner, -charsOf(id, topic))
  }

  /** Those that are not there are gone already. */
  unsubscribe(ids: readonly string[], requestId: string | undefined): void {
    this.#end(ids)
    this.#connection.send({ type: 'unsubscribedEvents', ...about(requestId), ids })
  }

  take(event: PlatformEvent, subscriptionIds: readonly string[]): void {
    const { access, bufferedBytes } = this.#connection
    const { identity } = access
    if (identity !== null && !maySee(identity.acl, event)) return
    // Events are best effort: who doesn't read loses some before the connection is lost for it.
    if (identity === null || bufferedBytes > LIMITS.live.socketBufferBytesMax / 2) {
      this.#counts.dropped.add()
      return
    }
    this.#counts.sent.add()
    const ids = JSON.stringify(subscriptionIds)
    this.#connection.sendText(`{"type":"event","subscriptionIds":${ids},${restOf(event)}`)
  }

  #end(ids: readonly string[]): void {
    const ended = new Map<string, Topic>()
    for (const id of ids) {
      const topic = this.#topics.get(id)
      if (topic === undefined) continue
      ended.set(id, topic)
      this.#leave(id, topic)
    }
    if (ended.size > 0) this.#options.stream.unsubscribe(this, ended)
  }

  /** What the caller may not see any more ends. */
  #recheck(): void {
    const { identity } = this.#connection.access
    if (identity === null) return
    const lost = [...this.#topics].filter(([, topic]) => !mayWatch(identity.acl, topic))
    if (lost.length === 0) return
    const ids = lost.map(([id]) => id)
    this.#end(ids)
    const error = new RequestError('FORBIDDEN', 'these subscriptions lost their permission')
    this.#connection.sendError(error, { ids })
  }
}
