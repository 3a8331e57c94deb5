// WebSockets over uWebSockets.js: the upgrade, frames in and out, back-pressure, closing. What
// frames mean is their station's matter, and another path may speak another subprotocol. Source:
// RFC 6455; CONTRACT 1.10.

import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { networkOf } from '../../access/network.ts'
import type { Counter, Metrics } from '../../metrics.ts'
import { FairRoom } from '../../queues/fair-room.ts'
import { isOwnOrigin } from './origin.ts'
import type { HttpCore } from '../core.ts'
import type {
  HttpRequest,
  HttpResponse,
  TemplatedApp,
  us_socket_context_t,
  WebSocket,
} from '../uws.ts'

/** One open socket. */
export interface Socket {
  /** IP address of the client. */
  readonly address: string
  /** The subprotocol that was agreed on; '' for none. */
  readonly protocol: string
  /** Bytes that the client has not taken yet. */
  readonly bufferedBytes: number
  /** Whose it is, once that is known: what a caller's sockets have not taken counts together. */
  belongTo(owner: string): void
  /** False: it is closed, or is closed now, because the client does not take what it is sent. */
  send(text: string): boolean
  /** What is on its way arrives first, as far as the client takes it soon. */
  close(code: number, reason: string): void
}

/** What a station does with one socket. */
export interface SocketHandler {
  text(text: string): void
  binary(): void
  /** All that was sent has been taken, after some of it was not. */
  drained(): void
  /** It is closed, or told to; may come twice. */
  closed(): void
  /** The node stops. */
  leaving(): void
  /** Looked in from time to time (LIMITS.live.sweepMs). */
  sweep(): void
}

export interface SocketPath {
  readonly path: string
  /** Subprotocols that are spoken, the best first; none: whatever is offered, none is agreed on. */
  readonly protocols: readonly string[]
  /** A client that speaks none of them is let in, for its station to close it with a code. */
  readonly opensOthers?: boolean
  /** One frame of a client; a larger one closes with 1009. */
  readonly frameBytesMax: number
  /** null: it may come in. */
  admit(address: string): RequestError | null
  open(socket: Socket): SocketHandler
  /** Before all handlers are looked in on. */
  sweep(): void
}

/** What uWebSockets.js keeps with a socket. */
interface Kept {
  readonly address: string
  readonly protocol: string
  open: OpenSocket | null
}

const SLOW = 1013
const TOO_LARGE = 1009
/**
 * Above the station's bound by so much, that a frame that is a bit too large is answered with a
 * code. Of a larger one uWebSockets.js reads nothing and cuts the connection.
 */
const FRAME_ROOM = 2
/** A connection without a word, and one whose client doesn't close it: more than ping to pong. */
const IDLE_SECONDS = 40
/** What a socket is sent in one tick waits for the end of it up to here. */
const WRITE_BYTES = 64 * 1024
/** Sockets that are written to before other work has its turn. */
const WRITTEN_TOGETHER = 64

export interface SocketsOptions {
  readonly metrics: Metrics
  /** Public address of the node. */
  readonly ownOrigin: string
  /** A connection that was counted is no more. */
  readonly onClosed: () => void
  /** Answers an upgrade that may not be. */
  readonly refuse: (res: HttpResponse, req: HttpRequest, refused: RequestError) => void
}

export class Sockets {
  readonly #core: HttpCore
  readonly #options: SocketsOptions
  readonly #open = new Set<OpenSocket>()
  readonly #paths: SocketPath[] = []
  readonly #closes = new Map<number, Counter>()
  readonly #due = new Set<OpenSocket>()
  readonly #buffers = new FairRoom(() => LIMITS.live.socketBuffersBytesMax)
  #sweeper: NodeJS.Timeout | null = null

  constructor(core: HttpCore, options: SocketsOptions) {
    this.#core = core
    this.#options = options
  }

  /** Bytes that clients have not taken yet. */
  get bufferedBytes(): number {
    return this.#buffers.taken
  }

  /** From now on sockets may come in there. */
  serve(app: TemplatedApp, path: SocketPath): void {
    this.#paths.push(path)
    app.ws<Kept>(path.path, {
      compression: 0,
      maxPayloadLength: FRAME_ROOM * path.frameBytesMax,
      // Ours is lower, and closes with a code.
      maxBackpressure: 0,
      idleTimeout: IDLE_SECONDS,
      sendPingsAutomatically: false,
      upgrade: (res, req, context) => this.#upgrade(path, res, req, context),
      open: (ws) => this.#opened(path, ws),
      message: (ws, message, isBinary) => {
        const { open } = ws.getUserData()
        if (open === null || open.ending !== null) return
        if (message.byteLength > path.frameBytesMax) {
          open.close(TOO_LARGE, `a frame has at most ${path.frameBytesMax} bytes`)
        } else if (isBinary) open.handler.binary()
        else open.handler.text(Buffer.from(message).toString())
      },
      drain: (ws) => ws.getUserData().open?.drained(),
      close: (ws, code) => this.#closed(ws.getUserData(), code),
    })
    this.#sweeper ??= setInterval(() => this.#sweep(), LIMITS.live.sweepMs).unref()
  }

  /** All clients are told to go. */
  leave(): void {
    for (const one of [...this.#open]) one.handler.leaving()
  }

  stop(): void {
    if (this.#sweeper !== null) clearInterval(this.#sweeper)
    for (const one of [...this.#open]) one.cut()
  }

  #upgrade(
    path: SocketPath,
    res: HttpResponse,
    req: HttpRequest,
    context: us_socket_context_t,
  ): void {
    const refused = this.#refusal(path, res, req)
    if (refused instanceof RequestError) {
      this.#options.refuse(res, req, refused)
      return
    }
    const address = this.#addressOf(res, req)
    const kept: Kept = { address, protocol: refused, open: null }
    res.upgrade<Kept>(
      kept,
      req.getHeader('sec-websocket-key'),
      kept.protocol,
      req.getHeader('sec-websocket-extensions'),
      context,
    )
  }

  /** Why it may not come in; else the subprotocol. */
  #refusal(path: SocketPath, res: HttpResponse, req: HttpRequest): RequestError | string {
    const { peers, closing, cors } = this.#core
    if (closing) return new RequestError('UNAVAILABLE', 'this node stops; nothing was done')
    if (peers.isForged(res)) {
      return malformed('a PROXY preamble is taken from the proxies in KONTOR_HTTP_PROXY_FROM only')
    }
    if (req.getHeader('sec-websocket-version') !== '13') {
      return malformed('Sec-WebSocket-Version is 13 (RFC 6455)')
    }
    const origin = req.getHeader('origin')
    const isOwn = isOwnOrigin(origin, req.getHeader('host'), this.#options.ownOrigin)
    if (!isOwn && !cors.allows(origin)) {
      return new RequestError('FORBIDDEN', `pages of ${origin.slice(0, 200)} may not connect here`)
    }
    const found = chosen(path.protocols, req.getHeader('sec-websocket-protocol'))
    const protocol = found ?? (path.opensOthers === true ? '' : null)
    if (protocol === null) {
      return malformed(`the subprotocol here is ${path.protocols.join(' or ')}`)
    }
    return path.admit(this.#addressOf(res, req)) ?? protocol
  }

  #addressOf(res: HttpResponse, req: HttpRequest): string {
    return this.#core.peers.addressOf(res, req.getHeader('x-forwarded-for'))
  }

  #opened(path: SocketPath, ws: WebSocket<Kept>): void {
    const kept = ws.getUserData()
    const shared = { core: this.#core, buffers: this.#buffers, writeSoon: this.#writeSoon }
    const open = new OpenSocket(ws, kept, shared)
    kept.open = open
    this.#open.add(open)
    open.handler = path.open(open)
  }

  #closed(kept: Kept, code: number): void {
    const { open } = kept
    if (open === null) return
    this.#open.delete(open)
    this.#count(open.ending?.code ?? code)
    open.ended()
    this.#options.onClosed()
  }

  #count(code: number): void {
    // Clients choose codes of their own.
    const known = code >= 1000 && code <= 1015 ? code : code >= 4400 && code < 4500 ? code : 0
    let counter = this.#closes.get(known)
    if (counter === undefined) {
      counter = this.#options.metrics.counter(
        'kontor_socket_closes_total',
        'Sockets that were closed, by code (0: any other).',
        { code: String(known) },
      )
      this.#closes.set(known, counter)
    }
    counter.add()
  }

  /**
   * What a socket is sent in one tick leaves as one packet, and some sockets at a time: a frame to
   * a thousand of them keeps nobody else waiting.
   */
  readonly #writeSoon = (open: OpenSocket): void => {
    this.#due.add(open)
    if (this.#due.size === 1) setImmediate(this.#write)
  }

  readonly #write = (): void => {
    let left = WRITTEN_TOGETHER
    for (const open of this.#due) {
      if (left-- === 0) break
      this.#due.delete(open)
      open.write()
    }
    if (this.#due.size > 0) setImmediate(this.#write)
  }

  #sweep(): void {
    for (const path of this.#paths) path.sweep()
    for (const one of [...this.#open]) one.sweep()
  }
}

/** What all open sockets have together. */
interface Shared {
  readonly core: HttpCore
  readonly buffers: FairRoom
  readonly writeSoon: (open: OpenSocket) => void
}

class OpenSocket implements Socket {
  readonly address: string
  readonly protocol: string
  handler!: SocketHandler
  ending: { readonly code: number; readonly reason: string; readonly untilMs: number } | null = null
  readonly #shared: Shared
  #ws: WebSocket<Kept> | null
  /** Frames of this tick. */
  #queue: string[] = []
  #queuedBytes = 0
  #buffered = 0
  #owner: string

  constructor(ws: WebSocket<Kept>, { address, protocol }: Kept, shared: Shared) {
    this.#ws = ws
    this.address = address
    this.protocol = protocol
    this.#shared = shared
    this.#owner = networkOf(address).own
  }

  belongTo(owner: string): void {
    this.#shared.buffers.add(this.#owner, -this.#buffered)
    this.#shared.buffers.add(owner, this.#buffered)
    this.#owner = owner
  }

  get bufferedBytes(): number {
    return this.#buffered
  }

  send(text: string): boolean {
    if (this.#ws === null || this.ending !== null) return false
    const bytes = Buffer.byteLength(text)
    // What the system has room for counts as taken.
    if (this.#queuedBytes + bytes > WRITE_BYTES) this.write()
    if (this.#isFull(bytes)) {
      this.close(SLOW, 'what was sent is not taken')
      return false
    }
    this.#queuedBytes += bytes
    this.#measure()
    if (this.#queue.push(text) === 1) this.#shared.writeSoon(this)
    return true
  }

  /** Gives what was sent to the socket. */
  write(): void {
    const queue = this.#queue
    if (this.#ws === null || queue.length === 0) return
    this.#queue = []
    this.#queuedBytes = 0
    this.#ws.cork(() => {
      for (const text of queue) this.#ws?.send(text, false, false)
    })
    this.#measure()
  }

  #isFull(bytes: number): boolean {
    // One frame may be larger than the bound: its maker has one for it.
    const isOwn = this.#buffered > 0 && this.#buffered + bytes > LIMITS.live.socketBufferBytesMax
    return isOwn || !this.#shared.buffers.hasRoom(this.#owner, bytes)
  }

  close(code: number, reason: string): void {
    if (this.#ws === null || this.ending !== null) return
    this.write()
    const untilMs = this.#shared.core.clock.monotonicMs() + LIMITS.live.closeMs
    this.ending = { code, reason, untilMs }
    if (this.#buffered === 0) this.#ws.end(code, reason)
    this.handler.closed()
  }

  cut(): void {
    this.#ws?.close()
  }

  drained(): void {
    this.#measure()
    if (this.#buffered > 0) return
    if (this.ending === null) this.handler.drained()
    else this.#ws?.end(this.ending.code, this.ending.reason)
  }

  sweep(): void {
    if (this.ending === null) this.handler.sweep()
    else if (this.#shared.core.clock.monotonicMs() >= this.ending.untilMs) this.cut()
  }

  ended(): void {
    this.#ws = null
    this.#shared.buffers.add(this.#owner, -this.#buffered)
    this.#buffered = 0
    this.handler.closed()
  }

  #measure(): void {
    const buffered = this.#queuedBytes + (this.#ws?.getBufferedAmount() ?? 0)
    if (buffered === this.#buffered) return
    this.#shared.buffers.add(this.#owner, buffered - this.#buffered)
    this.#buffered = buffered
  }
}

/** The first that is spoken of those offered; '' for none, null where none fits. */
function chosen(spoken: readonly string[], offered: string): string | null {
  if (spoken.length === 0) return ''
  const names = offered.split(',').map((name) => name.trim())
  return spoken.find((name) => names.includes(name)) ?? null
}

function malformed(message: string): RequestError {
  return new RequestError('MALFORMED_REQUEST', message)
}
