// One request and its answer. A uWebSockets.js response must not be touched once it has ended or
// its client has gone. All writing goes through here, and here alone is known whether it still may.

import { RequestError, assert } from '../../protocol/errors.ts'
import type { Identity } from '../access/identity.ts'
import { RETRY_AFTER_SECONDS, acceptsGzip, asksToRetry, refusal, statusLine } from './answer.ts'
import { release } from './arriving.ts'
import type { Arriving } from './arriving.ts'
import type { Authenticate, BodyPool, HttpCore, Route } from './core.ts'
import { checkHeader } from './guard/answer-headers.ts'
import { insufficientScope } from './guard/challenge.ts'
import type { OperationRequest, OperationResponse } from './operation.ts'
import { beginBody, UnreadAnswer } from './unread.ts'
import type { AnswerBody } from './unread.ts'
import type { HttpRequest, HttpResponse } from './uws.ts'

/** An answer this large may take a slow reader a while: closing waits for it longer. */
const LARGE_ANSWER_BYTES = 64 * 1024
const LARGE_ANSWER_MS = 5_000
const SMALL_ANSWER_MS = 250

// Headers arrive by a callback for each; one function for all requests saves a closure for each.
let arriving: string[] = []
function arrive(name: string, value: string): void {
  arriving.push(name, value)
}

export class Exchange implements OperationRequest, Arriving {
  readonly core: HttpCore
  readonly res: HttpResponse
  readonly method: string
  readonly path: string
  readonly requestId: string
  readonly startedMs: number
  route: Route | null = null
  params: Record<string, string> = {}
  body: unknown = undefined
  bodyFault: RequestError | null = null
  bodyBytes: Uint8Array = NOTHING
  who: Identity | null = null
  /** The answer has been given (or dropped). */
  done = false
  /** Its place among the open ones. */
  slot = -1
  /** The client has gone: `res` is dead. */
  gone = false
  /** Body bytes are still to come; an answer now leaves the connection to its client to close. */
  bodyPending = false
  /** Waiting for body bytes on purpose: the sweep neither closes nor re-arms. */
  paused = false
  /** Of the body, for the sweep; on the monotonic clock. */
  lastByteMs: number
  received = 0
  /** A stream has its own pace: it has no deadline, and a least rate only while a line comes. */
  streaming = false
  partSinceMs: number | null = null
  receivedBefore = 0
  /** Since when a streamed answer waits for its client to read; on the monotonic clock. */
  fullSinceMs: number | null = null
  /** When the client has gone, after `gone` is set. */
  onGone: (() => void) | null = null
  readonly aborted = (): boolean => this.gone
  /** HttpCore.turn. */
  private readonly arrivedIn: number
  private readonly headers: readonly string[]
  private readonly queryText: string
  private queryParsed: URLSearchParams | null = null
  /** The connection ends with the answer. */
  closesAfter = false
  /** What its client has not taken of the answer yet. */
  unread: UnreadAnswer | null = null
  /** Headers that guards of this request add to its answer, as text. */
  guarded = ''
  arrived = 0
  pool: BodyPool | null = null
  private held = false
  private failing = false

  constructor(core: HttpCore, res: HttpResponse, req: HttpRequest) {
    this.core = core
    this.arrivedIn = core.turn
    this.res = res
    this.method = req.getCaseSensitiveMethod()
    this.path = req.getUrl()
    this.queryText = req.getQuery() ?? ''
    arriving = []
    req.forEach(arrive)
    this.headers = arriving
    this.requestId = this.chooseRequestId()
    if (core.cors.isOn) this.guarded = core.cors.textOf(this.header('origin'))
    this.startedMs = core.clock.monotonicMs()
    this.lastByteMs = this.startedMs
  }

  get isKnown(): boolean {
    return this.who !== null
  }

  get identity(): Identity {
    assert(this.who !== null, 'an operation without a token has no identity')
    return this.who
  }

  get address(): string {
    return this.gone || this.done
      ? ''
      : this.core.peers.addressOf(this.res, this.header('x-forwarded-for'))
  }

  /** Who calls, looked up at this moment. */
  identityNow(): ReturnType<Authenticate> {
    return this.core.authenticate(this.header('authorization'), () => this.address)
  }

  get query(): URLSearchParams {
    return (this.queryParsed ??= new URLSearchParams(this.queryText))
  }

  get budgetMs(): number {
    const spent = this.core.clock.monotonicMs() - this.startedMs
    return Math.max(0, this.core.limits.requestBudgetMs - spent)
  }

  get urlChars(): number {
    return this.path.length + this.queryText.length
  }

  header(name: string): string {
    const headers = this.headers
    let value = ''
    for (let i = 0; i < headers.length; i += 2) {
      if (headers[i] === name)
        value = value === '' ? headers[i + 1]! : `${value}, ${headers[i + 1]}`
    }
    return value
  }

  /** How often a header was sent. */
  headerCount(name: string): number {
    let count = 0
    for (let i = 0; i < this.headers.length; i += 2) if (this.headers[i] === name) count++
    return count
  }

  /** From here on the answer may come later: counted in, and told when the client goes. */
  hold(): void {
    if (this.held) return
    this.held = true
    this.core.open.add(this)
    this.res.onAborted(() => this.goAway())
  }

  /** Stops reading from the connection until `readOn`. */
  readNoFurther(): void {
    if (this.done || this.gone || this.paused) return
    this.paused = true
    this.res.pause()
  }

  /** A write that fills the socket makes uWebSockets.js read on; this holds it to the pause. */
  stayPaused(): void {
    if (this.paused && !this.gone) this.res.pause()
  }

  readOn(): void {
    if (!this.paused) return
    this.paused = false
    // The silence was ours.
    this.lastByteMs = this.core.clock.monotonicMs()
    if (!this.done && !this.gone) this.res.resume()
  }

  /** Ends a streamed answer; `last` may write its head. */
  endStream(last: () => void, bytes: number): void {
    if (this.done) return
    this.done = true
    if (!this.gone) {
      // Behind a chunked body nothing is read that might be taken for a request: the connection
      // ends with its client, or as an idle one.
      if (this.closesAfter) this.res.pause()
      else this.readOnForTheNext()
      this.corked(() => {
        last()
        // Not `end('', true)`: after a `write` that puts its header amid the chunks.
        this.res.end()
      })
    }
    this.finish(200, bytes)
  }

  /** Answers when the promise does. */
  settleWith(promise: Promise<OperationResponse>): void {
    this.hold()
    // uWebSockets.js closes a connection whose next request comes before the answer to the last; in
    // the kernel's buffer it waits its turn. Two system calls, so only for methods that a client
    // may pipeline (RFC 9112 9.3.2).
    if (this.method !== 'POST' && this.method !== 'PATCH') this.readNoFurther()
    promise.then(
      (response) => this.answer(response),
      (error: unknown) => this.fail(error),
    )
  }

  /** Answers a refusal; anything but a RequestError is our mistake: 500, and the log has it. */
  fail(error: unknown, headers?: Readonly<Record<string, string>>): void {
    if (this.done) {
      if (!(error instanceof RequestError)) this.logFault(error)
      return
    }
    let refused = error
    if (!(refused instanceof RequestError)) {
      this.logFault(error)
      refused = new RequestError(
        'INTERNAL_ERROR',
        'a mistake of the server; its log has the details under the request id',
      )
    }
    const form = this.route?.operation.errors ?? 'platform'
    const response = refusal(refused as RequestError, this.requestId, form)
    if (headers === undefined) this.answer(response)
    else this.answer({ ...response, headers: { ...response.headers, ...headers } })
  }

  /** Refuses and closes: what follows on this connection can't be told from the body. */
  failAndClose(error: RequestError): void {
    this.closesAfter = true
    this.fail(error)
  }

  /** Runs a later step of this request; what it throws is answered. */
  attempt(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.fail(error)
    }
  }

  /** Answers once; later calls and answers to clients that have gone are dropped. */
  answer(response: OperationResponse): void {
    if (this.done) return
    this.done = true
    try {
      this.encodeAndSend(response)
    } catch (error) {
      if (this.failing) {
        // Not even the refusal can be written: the connection ends rather than hang.
        this.logFault(error)
        if (!this.gone) this.res.close()
        return
      }
      this.failing = true
      this.done = false
      this.fail(error)
    }
  }

  /** Takes the exchange out of the count: its last byte is given to the socket, or dropped. */
  finish(status: number, bytes: number): void {
    const { core } = this
    core.open.delete(this)
    if (this.arrived > 0) release(this)
    const now = core.clock.monotonicMs()
    const counts = this.route?.counts ?? core.strays
    counts.status(status).add()
    counts.seconds.observe((now - this.startedMs) / 1000)
    const quietMs = bytes > LARGE_ANSWER_BYTES ? LARGE_ANSWER_MS : SMALL_ANSWER_MS
    core.quietFromMs = Math.max(core.quietFromMs, now + quietMs)
  }

  /** Runs `write` on the living socket as one packet. */
  corked(write: () => void): void {
    if (this.gone) return
    if (this.core.corked) write()
    else this.res.cork(write)
  }

  /** Status line and headers; the body follows by `write` or `end`. */
  writeHead(response: OperationResponse, encoding: string | null): void {
    const { res } = this
    const { status, headers } = response
    if (status !== 200) res.writeStatus(statusLine(status))
    const { requestId, core } = this
    const text = core.headers.textOf(response, encoding)
    res.writeHeader('X-Request-Id', requestId + text + this.guarded)
    if (asksToRetry(status) && headers?.['Retry-After'] === undefined) {
      res.writeHeader('Retry-After', RETRY_AFTER_SECONDS)
    }
  }

  logFault(error: unknown): void {
    const { requestId, method, path } = this
    this.core.log.error(
      { err: error, requestId, method, path },
      'a request failed by a fault of this node',
    )
  }

  private encodeAndSend(response: OperationResponse): void {
    const { headers } = response
    if (headers !== undefined) for (const name in headers) checkHeader(name, headers[name]!)
    if (response.status === 403) this.challenge(response)
    const payload = this.payloadOf(response)
    const { limits, packing } = this.core
    // Characters are at most bytes, and near enough to decide by.
    if (payload.length >= limits.gzipBytesMin && this.wantsGzip(response)) {
      if (payload.length <= limits.gzipInlineBytesMax) {
        this.send(response, packing.packNow(payload), 'gzip')
        return
      }
      const packed = packing.pack(payload)
      if (packed !== null) {
        this.hold()
        packed.then(
          (bytes) => this.send(response, bytes, 'gzip'),
          (error: unknown) => {
            this.logFault(error)
            this.send(response, payload, null)
          },
        )
        return
      }
    }
    this.send(response, payload, null)
  }

  /** Of a token that was good and isn't enough: what would be (RFC 6750 3.1). */
  private challenge(response: OperationResponse): void {
    if (this.who === null || response.headers?.['WWW-Authenticate'] !== undefined) return
    const challenge = insufficientScope(this.route?.operation, this.params, response)
    if (challenge !== null) this.guarded += `\r\nWWW-Authenticate: ${challenge}`
  }

  private payloadOf(response: OperationResponse): string | Uint8Array {
    if (response.raw !== undefined) return response.raw
    if (response.body === undefined) return ''
    const encode = response.status < 400 ? this.route?.encode : undefined
    return (encode ?? JSON.stringify)(response.body)
  }

  private wantsGzip(response: OperationResponse): boolean {
    if (response.headers?.['Content-Encoding'] !== undefined) return false
    return this.method !== 'HEAD' && acceptsGzip(this.header('accept-encoding'))
  }

  private send(
    response: OperationResponse,
    payload: string | Uint8Array,
    encoding: string | null,
  ): void {
    const { arrivedTogether, limits } = this.core
    // Also a promise that was kept at once: what came with the request is read behind its answer.
    const isEarly = this.arrivedIn === this.core.turn
    if (isEarly && (this.closesAfter || arrivedTogether > limits.answersTogetherMax)) {
      // It waits until what came with the request was read. Were there another one in it,
      // uWebSockets.js would serve that too, before it closes; so it closes at once.
      this.hold()
      setImmediate(() => this.send(response, payload, encoding))
      return
    }
    let all = true
    if (!this.gone) {
      this.readOnForTheNext()
      if (this.core.corked) all = this.put(response, payload, encoding)
      else this.res.cork(() => void (all = this.put(response, payload, encoding)))
    }
    if (all) this.finish(response.status, payload.length)
  }

  /** False: the rest follows when its client has taken what was sent. */
  private put(
    response: OperationResponse,
    payload: string | Uint8Array,
    encoding: string | null,
  ): boolean {
    const { res } = this
    this.writeHead(response, encoding)
    const { status } = response
    if (status === 204 || status === 304) {
      if (this.core.closing || this.closesAfter) res.writeHeader('Connection', 'close')
      // Nothing more is read: it ends with its client, or as an idle one.
      if (this.closesAfter) res.pause()
      // With arguments it leaves the answer unfinished in this version of uWebSockets.js.
      res.endWithoutBody()
      return true
    }
    const bare = this.method === 'HEAD'
    if (bare && (this.core.closing || this.closesAfter)) {
      res.writeHeader('Connection', 'close')
      if (this.closesAfter) res.pause()
    }
    let close = this.closesAfter && !bare
    if (this.core.closing && !close && !bare) {
      // Closing while body bytes are on their way resets the connection and may take the answer
      // with it; then the header asks the client to close.
      if (!this.bodyPending) close = true
      else if (response.headers?.['Connection'] === undefined)
        res.writeHeader('Connection', 'close')
    }
    if (close) {
      res.end(payload, true)
      return true
    }
    const body = { payload, bare }
    if (beginBody(res, body)) return true
    this.hold()
    this.waitForReader(body, status)
    return false
  }

  private waitForReader(body: AnswerBody, status: number): void {
    const { unread, clock } = this.core
    const rest = new UnreadAnswer(this.res, body, clock.monotonicMs())
    this.unread = rest
    rest.follow(
      () => clock.monotonicMs(),
      () => {
        this.letUnreadGo()
        this.finish(status, rest.bytes)
      },
    )
    unread.add(rest)
  }

  private letUnreadGo(): void {
    if (this.unread !== null) this.core.unread.delete(this.unread)
    this.unread = null
  }

  /** A socket that was paused goes on to its next request. */
  private readOnForTheNext(): void {
    if (!this.paused) return
    this.paused = false
    this.res.resume()
  }

  private goAway(): void {
    this.gone = true
    this.bodyPending = false
    release(this)
    this.letUnreadGo()
    this.core.open.delete(this)
    this.onGone?.()
  }

  private chooseRequestId(): string {
    const sent = this.header('x-request-id')
    if (sent !== '' && sent.length <= this.core.limits.requestIdCharsMax && isPrintable(sent)) {
      return sent
    }
    return this.core.newRequestId()
  }
}

const NOTHING = new Uint8Array(0)

function isPrintable(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c < 0x20 || c > 0x7e) return false
  }
  return true
}
