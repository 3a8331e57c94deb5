// One connection of `/ws`: who it is, what it sends, what it is sent, and when it ends.
//
//   stranger --auth--> checking --good--> open --close--> closed
//       |                  |               |
//       10 s, other frame  refused         token ends, no pong, flood, slow reader
//
// Source: CONTRACT 1.10.

import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { Log } from '../../../protocol/log.ts'
import type { Socket, SocketHandler } from '../../http/socket/sockets.ts'
import { networkOf } from '../../access/network.ts'
import type { FairRoom } from '../../queues/fair-room.ts'
import type { Place } from './admission.ts'
import type { AccessBook, CallerAccess, FollowedAccess } from './caller-access.ts'
import { FrameAllowance } from './frame-allowance.ts'
import { malformed, readFrame, requestIdOf } from './frames.ts'
import type { Connection, Frame, FrameType } from './frames.ts'

/** Why a connection is closed: its code (RFC 6455 7.4; from 4000 on ours). */
export const CLOSE = {
  /** The node stops. */
  leaving: 1001,
  /** A binary frame. */
  binary: 1003,
  /** Too many frames. */
  flood: 1008,
  /** A frame beyond the bound. */
  tooLarge: 1009,
  /** It does not read, or the node can't tell whether its token stands: come back later. */
  later: 1013,
  /** No token, or one that has ended. */
  authFailed: 4401,
  /** No `pong`. */
  silent: 4408,
} as const

/** What all connections of a node share. */
export interface ConnectionContext {
  readonly frames: ReadonlyMap<string, FrameType>
  readonly book: AccessBook
  readonly clock: Clock
  readonly log: Log
  readonly counts: SocketCounts
  /** Characters of frames that wait while a token is looked up, by networks. */
  readonly waiting: FairRoom
  /** 0 to 1. */
  readonly chance: () => number
}

/** Since the start. */
export interface SocketCounts {
  framesIn: number
  framesOut: number
}

type State = 'stranger' | 'checking' | 'open' | 'closed'

export class SocketConnection implements Connection, SocketHandler {
  readonly id: number
  readonly #context: ConnectionContext
  readonly #socket: Socket
  readonly #place: Place
  #state: State = 'stranger'
  #access: FollowedAccess | null = null
  /** Frames that came while the token was looked up. */
  readonly #waiting: Frame[] = []
  #waitingChars = 0
  readonly #beganMs: number
  #pingedMs: number
  #isPongDue = false
  readonly #allowance: FrameAllowance
  readonly #onClose: (() => void)[] = []
  readonly #onDrained: (() => void)[] = []

  constructor(
    id: number,
    { socket, place }: { readonly socket: Socket; readonly place: Place },
    context: ConnectionContext,
  ) {
    this.id = id
    this.#socket = socket
    this.#place = place
    this.#context = context
    this.#beganMs = context.clock.monotonicMs()
    this.#pingedMs = this.#beganMs
    this.#allowance = new FrameAllowance(context.clock)
  }

  get isStranger(): boolean {
    return this.#access === null
  }

  get access(): CallerAccess {
    return this.#access!
  }

  get bufferedBytes(): number {
    return this.#socket.bufferedBytes
  }

  send(frame: object): boolean {
    return this.sendText(JSON.stringify(frame))
  }

  sendText(text: string): boolean {
    if (this.#state === 'closed') return false
    this.#context.counts.framesOut++
    return this.#socket.send(text)
  }

  sendError(error: unknown, about: { readonly requestId?: string } = {}): void {
    if (!(error instanceof RequestError)) {
      this.#context.log.error({ err: error }, 'a frame could not be handled')
    }
    const known =
      error instanceof RequestError
        ? error
        : new RequestError('INTERNAL_ERROR', 'a fault of the node')
    this.send({ type: 'error', ...about, ...known.errors[0]! })
  }

  onClose(run: () => void): void {
    this.#onClose.push(run)
  }

  onDrained(run: () => void): void {
    this.#onDrained.push(run)
  }

  // --- what comes -------------------------------------------------------------------------

  text(text: string): void {
    if (this.#state === 'closed') return
    this.#context.counts.framesIn++
    if (!this.#allowance.take()) {
      this.#close(CLOSE.flood, 'too many frames')
    } else if (this.isStranger && Buffer.byteLength(text) > LIMITS.live.authFrameBytesMax) {
      this.#close(CLOSE.tooLarge, 'the auth frame is too large')
    } else {
      const frame = readFrame(text)
      if (frame instanceof RequestError) this.#misread(frame)
      else this.#take(frame, text.length)
    }
  }

  binary(): void {
    this.#close(CLOSE.binary, 'frames are text')
  }

  drained(): void {
    for (const run of this.#onDrained) run()
  }

  /** The socket is no more. */
  closed(): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#waited()
    if (this.#access !== null) this.#context.book.release(this.#access)
    this.#place.leave()
    for (const run of this.#onClose) run()
    this.#onClose.length = 0
    this.#onDrained.length = 0
  }

  /** The node stops: clients come back, not all at once. */
  leaving(): void {
    const reconnectAfterMs = Math.round(this.#context.chance() * LIMITS.live.comeBackMsMax)
    this.send({ type: 'closing', reconnectAfterMs })
    this.#close(CLOSE.leaving, 'the node stops')
  }

  /** Who is late goes. */
  sweep(): void {
    const { authMs, pingMs, pongMs } = LIMITS.live
    const nowMs = this.#context.clock.monotonicMs()
    if (this.#state === 'stranger' || this.#state === 'checking') {
      if (nowMs - this.#beganMs >= authMs) this.#refuse('no auth frame came in time')
    } else if (this.#isPongDue) {
      if (nowMs - this.#pingedMs >= pongMs) this.#close(CLOSE.silent, 'no pong came in time')
    } else if (nowMs - this.#pingedMs >= pingMs) {
      this.#pingedMs = nowMs
      this.#isPongDue = true
      this.send({ type: 'ping' })
    }
  }

  #misread(error: RequestError): void {
    if (this.#state === 'open') this.sendError(error)
    else this.#refuse(error.message)
  }

  #take(frame: Frame, chars: number): void {
    if (this.#state === 'open') this.#handle(frame)
    else if (this.#state === 'checking') this.#wait(frame, chars)
    else if (frame.type === 'auth' && typeof frame['token'] === 'string') {
      void this.#authenticate(frame['token'], requestIdOf(frame))
    } else this.#refuse('the first frame is {"type":"auth","token":"<ACCESS_TOKEN>"}')
  }

  #wait(frame: Frame, chars: number): void {
    const hasPlace = this.#waiting.length < LIMITS.live.framesWaitingMax
    if (!hasPlace || !this.#context.waiting.enter(this.#network, chars)) {
      this.#close(CLOSE.flood, 'too many frames before the token was looked up')
      return
    }
    this.#waiting.push(frame)
    this.#waitingChars += chars
  }

  /** The frames that waited, which wait no more. */
  #waited(): readonly Frame[] {
    this.#context.waiting.add(this.#network, -this.#waitingChars)
    this.#waitingChars = 0
    return this.#waiting.splice(0)
  }

  get #network(): string {
    return networkOf(this.#socket.address).own
  }

  async #authenticate(token: string, requestId: string | undefined): Promise<void> {
    this.#state = 'checking'
    const { book } = this.#context
    const access = await book
      .open(token, {
        address: this.#socket.address,
        ended: ({ message }) => this.#refuse(message),
        unknowable: () => this.#close(CLOSE.later, 'tokens cannot be checked at the moment'),
      })
      .catch((error: unknown) => {
        this.#context.log.error({ err: error }, 'a token could not be looked up')
        return new RequestError('UNAVAILABLE', 'tokens cannot be checked at the moment; try again')
      })
    if (access instanceof RequestError) {
      this.#denied(access, requestId)
      return
    }
    if (this.#state !== 'checking') {
      book.release(access)
      return
    }
    this.#access = access
    this.#state = 'open'
    this.#pingedMs = this.#context.clock.monotonicMs()
    this.#place.known()
    this.#socket.belongTo(access.owner)
    this.send({ type: 'authenticated', ...(requestId !== undefined && { requestId }) })
    for (const frame of this.#waited()) this.#take(frame, 0)
  }

  /** What can't be told now is not the token's fault: such a client tries again. */
  #denied(error: RequestError, requestId: string | undefined): void {
    if (error.errors[0]!.code === 'UNAUTHENTICATED') {
      this.#refuse(error.message, requestId)
      return
    }
    this.sendError(error, requestId === undefined ? {} : { requestId })
    this.#close(CLOSE.later, error.message)
  }

  #handle(frame: Frame): void {
    const requestId = requestIdOf(frame)
    const about = requestId === undefined ? {} : { requestId }
    if (frame.type === 'pong') {
      this.#isPongDue = false
    } else {
      const row = this.#context.frames.get(frame.type)
      if (row === undefined) {
        const known = [...this.#context.frames.keys(), 'pong'].join(', ')
        this.sendError(malformed(`there is no such type of frame; there are ${known}`), about)
        return
      }
      const fault = row.check(frame)
      if (fault !== null) {
        const where = fault.member === '' ? '' : `${fault.member} `
        this.sendError(malformed(`${frame.type}: ${where}${fault.message}`), about)
        return
      }
      const answer = (error: unknown): void => this.sendError(error, about)
      try {
        row.handle(this, frame as never)?.catch(answer)
      } catch (error) {
        answer(error)
      }
    }
  }

  // --- its end ----------------------------------------------------------------------------

  #refuse(message: string, requestId?: string): void {
    const error = new RequestError('AUTH_FAILED', message)
    this.sendError(error, requestId === undefined ? {} : { requestId })
    this.#close(CLOSE.authFailed, 'AUTH_FAILED')
  }

  #close(code: number, reason: string): void {
    if (this.#state !== 'closed') this.#socket.close(code, reason)
  }
}
