// One connection of `/graphql`. What its messages mean is the library's matter
// (graphql-server.ts); here is who it is, what it may send, and when it ends.
//
//   stranger --connection_init--> checking --good--> open --close--> closed
//       |                            |                |
//       10 s: 4408                   refused: 4403    token ends: 4403; flood, no pong, slow reader
//
// Source: CONTRACT 1.4.1, 1.10, https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md.

import type { Server } from 'graphql-ws'
import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { Log } from '../../../protocol/log.ts'
import type { Identity } from '../../access/identity.ts'
import { networkOf } from '../../access/network.ts'
import type { Socket, SocketHandler } from '../../http/socket/sockets.ts'
import type { Flow } from '../../queues/fair-queue.ts'
import type { Place } from '../socket/admission.ts'
import type { AccessBook, FollowedAccess } from '../socket/caller-access.ts'
import { CLOSE, type SocketCounts } from '../socket/connection.ts'
import { FrameAllowance } from '../socket/frame-allowance.ts'
import type { HasMessages, MessageTurns } from './message-turns.ts'
import { OperationIds } from './operation-ids.ts'
import type { OperationsConnection, Standing } from './operations-connection.ts'

/** Why it is closed: of the subprotocol, beside those of `/ws`. */
const CLOSE_GRAPHQL = {
  badRequest: 4400,
  forbidden: 4403,
  initTimeout: 4408,
  idTaken: 4409,
  internalError: 4500,
} as const

/** What all connections of a node share. */
export interface ConnectionShared {
  readonly book: AccessBook
  readonly counts: SocketCounts
  readonly clock: Clock
  readonly log: Log
  readonly turns: MessageTurns
  readonly server: () => Promise<Server<OperationsConnection>>
}

export class GraphQlConnection implements SocketHandler, OperationsConnection, HasMessages {
  readonly #shared: ConnectionShared
  readonly #socket: Socket
  readonly #place: Place
  readonly #allowance: FrameAllowance
  readonly #beganMs: number
  #pingedMs: number
  #isPongDue = false
  #access: FollowedAccess | null = null
  #isClosed = false
  /** Takes messages; null: it is loaded. */
  #message: ((text: string) => Promise<void>) | null = null
  /** Messages that have not been taken yet. */
  readonly #waiting: string[] = []
  #waitingChars = 0
  /** Whose the messages that wait are: of an address, until it is known of whom. */
  #flow: Flow
  #ended: () => Promise<void> = () => Promise.resolve()
  readonly #standing = new Set<Standing>()
  #standingChars = 0
  readonly #ids = new OperationIds()
  /** Who goes on when the client has taken what it was sent. */
  readonly #writers: (() => void)[] = []

  constructor(
    id: number,
    { socket, place }: { readonly socket: Socket; readonly place: Place },
    shared: ConnectionShared,
  ) {
    const { clock } = shared
    this.#shared = shared
    this.#socket = socket
    this.#place = place
    this.#allowance = new FrameAllowance(clock)
    this.#flow = { group: networkOf(socket.address).own, name: String(id) }
    this.#beganMs = clock.monotonicMs()
    this.#pingedMs = this.#beganMs
    void this.#begin().catch((error: unknown) => this.fault(error))
  }

  get identity(): Identity | null {
    return this.#access?.identity ?? null
  }

  get flow(): Flow {
    return this.#flow
  }

  get takes(): boolean {
    return !this.#isClosed && this.#socket.bufferedBytes < LIMITS.live.queryHoldBytes
  }

  async #begin(): Promise<void> {
    const server = await this.#shared.server()
    if (this.#isClosed) return
    const closed = server.opened(
      {
        protocol: this.#socket.protocol,
        send: (text) => this.#send(this.#ids.outgoing(text)),
        close: (code, reason) => this.#close(code ?? CLOSE_GRAPHQL.internalError, reason ?? ''),
        onMessage: (take) => void (this.#message = take),
      },
      this,
    )
    this.#ended = () => closed(CLOSE_NORMAL, '')
    if (this.#waiting.length > 0) this.#shared.turns.add(this)
  }

  // --- what comes -------------------------------------------------------------------------

  text(text: string): void {
    if (this.#isClosed) return
    this.#shared.counts.framesIn++
    if (!this.#allowance.take()) {
      this.#close(CLOSE.flood, 'too many messages')
    } else if (this.#access === null && Buffer.byteLength(text) > LIMITS.live.authFrameBytesMax) {
      this.#close(CLOSE.tooLarge, 'the first message is too large')
    } else if (!this.#hasRoomFor(text)) {
      this.#close(CLOSE.flood, 'too many messages that have not been taken yet')
    } else {
      this.#waiting.push(text)
      this.#count(text.length)
      if (this.#message !== null) this.#shared.turns.add(this)
    }
  }

  #hasRoomFor({ length }: string): boolean {
    const { framesAtOnceMax, messagesCharsMax } = LIMITS.live
    if (this.#waiting.length >= framesAtOnceMax) return false
    const { room } = this.#shared.turns
    return this.#waitingChars + length <= messagesCharsMax && room.hasRoom(this.#flow.group, length)
  }

  #count(chars: number): void {
    this.#waitingChars += chars
    this.#shared.turns.room.add(this.#flow.group, chars)
  }

  takeMessage(): boolean {
    const text = this.#waiting.shift()
    if (text === undefined) return false
    this.#count(-text.length)
    const message = this.#ids.incoming(text)
    if ('taken' in message) {
      this.#close(CLOSE_GRAPHQL.idTaken, `Subscriber for ${message.taken} already exists`)
      return false
    }
    // The hooks answer for themselves: what is thrown here is a message that no client sends.
    void this.#message!(message.text)
      .catch(({ message: reason }: Error) => this.#close(CLOSE_GRAPHQL.badRequest, reason))
      .finally(message.over)
    return this.#waiting.length > 0
  }

  binary(): void {
    this.#close(CLOSE_GRAPHQL.badRequest, 'messages are text')
  }

  async authenticate(authorization: unknown): Promise<boolean> {
    const [scheme, token] = String(authorization).split(' ')
    if (scheme?.toLowerCase() !== 'bearer' || token === undefined) {
      this.#close(
        CLOSE_GRAPHQL.forbidden,
        'connection_init has the payload {"authorization": "Bearer <ACCESS_TOKEN>"}',
      )
      return false
    }
    const { book, log } = this.#shared
    const access = await book
      .open(token, {
        address: this.#socket.address,
        ended: ({ message }) => this.#close(CLOSE_GRAPHQL.forbidden, message),
        unknowable: () => this.#close(CLOSE.later, UNKNOWABLE),
      })
      .catch((error: unknown) => {
        log.error({ err: error }, 'a token could not be looked up')
        return new RequestError('UNAVAILABLE', UNKNOWABLE)
      })
    if (access instanceof RequestError) {
      const isRefused = access.errors[0]!.code === 'UNAUTHENTICATED'
      this.#close(isRefused ? CLOSE_GRAPHQL.forbidden : CLOSE.later, access.message)
      return false
    }
    if (this.#isClosed) {
      book.release(access)
      return false
    }
    this.#access = access
    const { room } = this.#shared.turns
    room.add(this.#flow.group, -this.#waitingChars)
    room.add(access.owner, this.#waitingChars)
    this.#flow = { ...this.#flow, group: access.owner }
    this.#pingedMs = this.#shared.clock.monotonicMs()
    this.#place.known()
    this.#socket.belongTo(access.owner)
    access.onChange(() => {
      for (const one of [...this.#standing]) one.accessChanged()
    })
    return true
  }

  idOf(operation: string): string {
    return this.#ids.idOf(operation)
  }

  pong(): void {
    this.#isPongDue = false
  }

  stand(one: Standing): void {
    if (this.#isClosed) {
      one.end()
      return
    }
    this.#standing.add(one)
    this.#standingChars += one.chars
  }

  leave(one: Standing): void {
    if (this.#standing.delete(one)) this.#standingChars -= one.chars
  }

  get standingChars(): number {
    return this.#standingChars
  }

  drained(): void {
    this.#goOn()
  }

  // --- what goes --------------------------------------------------------------------------

  /** Who sends a list of changes waits here while the client has much that it has not taken. */
  #send(text: string): Promise<void> | void {
    if (this.#isClosed) return
    this.#shared.counts.framesOut++
    this.#socket.send(text)
    if (this.takes || this.#isClosed) return
    return new Promise((resolve) => {
      this.#writers.push(resolve)
      // What is written at the end of this tick may be taken at once.
      this.#shared.clock.defer(() => this.#goOn())
    })
  }

  #goOn(): void {
    if (!this.takes && !this.#isClosed) return
    for (const resolve of this.#writers.splice(0)) resolve()
    for (const one of [...this.#standing]) one.wake()
  }

  // --- its end ----------------------------------------------------------------------------

  sweep(): void {
    const { authMs, pingMs, pongMs } = LIMITS.live
    const nowMs = this.#shared.clock.monotonicMs()
    if (this.#writers.length > 0) this.#goOn()
    if (this.#access === null) {
      if (nowMs - this.#beganMs < authMs) return
      this.#close(CLOSE_GRAPHQL.initTimeout, 'Connection initialisation timeout')
    } else if (this.#isPongDue) {
      if (nowMs - this.#pingedMs >= pongMs) this.#close(CLOSE.later, 'no pong came in time')
    } else if (nowMs - this.#pingedMs >= pingMs) {
      this.#pingedMs = nowMs
      this.#isPongDue = true
      void this.#send('{"type":"ping"}')
    }
  }

  leaving(): void {
    this.#close(CLOSE.leaving, 'the node stops')
  }

  note(error: unknown): void {
    this.#shared.log.error({ err: error }, 'an operation of GraphQL could not be handled')
  }

  fault(error: unknown): void {
    this.note(error)
    this.#close(CLOSE_GRAPHQL.internalError, 'a fault of the node')
  }

  /** The socket is no more, or is about to be. */
  closed(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#waiting.length = 0
    this.#count(-this.#waitingChars)
    if (this.#access !== null) this.#shared.book.release(this.#access)
    this.#place.leave()
    for (const one of this.#standing) one.end()
    this.#standing.clear()
    this.#goOn()
    void this.#ended().catch((error: unknown) => this.fault(error))
  }

  #close(code: number, reason: string): void {
    if (this.#isClosed) return
    this.#socket.close(code, reasonOf(reason))
  }
}

const UNKNOWABLE = 'tokens cannot be checked at the moment; try again'
const CLOSE_NORMAL = 1000
/** Bytes of a reason that a close frame has room for (RFC 6455 5.5). */
const REASON_BYTES = 123

function reasonOf(text: string): string {
  let short = text
  while (Buffer.byteLength(short) > REASON_BYTES) short = short.slice(0, -1)
  return short
}
