// A request's way through the server, step by step: route, framing, who, body, operation. Each step
// may end the way with a refusal.

import { RequestError } from '../../protocol/errors.ts'
import { callerOf } from '../access/identity.ts'
import type { Identity } from '../access/identity.ts'
import { networkOf } from '../access/network.ts'
import { release } from './arriving.ts'
import { framingOf, gatherBody, isNdjson, isPacked, mediaFault, readBody } from './body.ts'
import type { BodyHeaders } from './body.ts'
import type { HttpCore, Route } from './core.ts'
import { Exchange } from './exchange.ts'
import { BAD_TOKEN, NO_TOKEN } from './guard/challenge.ts'
import type { RateLimit } from './guard/rate-limit.ts'
import type { OperationResponse } from './operation.ts'
import type { Found, Router } from './router.ts'
import { serveStream } from './stream.ts'
import { Unpacking } from './unpacking.ts'
import type { HttpRequest, HttpResponse } from './uws.ts'

export class Dispatcher {
  private readonly core: HttpCore
  private readonly router: Router<Route>
  private readonly sockets: ReadonlySet<string>
  private readonly unpacking: Unpacking

  /** `sockets`: paths where a WebSocket may begin. */
  constructor(core: HttpCore, router: Router<Route>, sockets: ReadonlySet<string>) {
    this.core = core
    this.router = router
    this.sockets = sockets
    this.unpacking = new Unpacking(core.limits)
  }

  /** Takes a request from uWebSockets.js. Never throws: there is nobody to catch it. */
  accept(res: HttpResponse, req: HttpRequest): void {
    this.run(new Exchange(this.core, res, req), (x) => this.begin(x))
  }

  /** Answers a request that was refused before it came here, and closes its connection. */
  refuse(res: HttpResponse, req: HttpRequest, refused: RequestError): void {
    this.run(new Exchange(this.core, res, req), (x) => x.failAndClose(refused))
  }

  private run(x: Exchange, step: (x: Exchange) => void): void {
    const { core } = this
    if (core.arrivedTogether++ === 0) setImmediate(this.nextTurn)
    core.corked = true
    try {
      step(x)
    } catch (error) {
      x.fail(error)
    } finally {
      core.corked = false
    }
  }

  private readonly nextTurn = (): void => {
    this.core.arrivedTogether = 0
    this.core.turn++
  }

  private begin(x: Exchange): void {
    const framing = framingOf(x)
    if (framing instanceof RequestError) {
      x.failAndClose(framing)
      return
    }
    x.bodyPending = framing.present
    // uWebSockets.js reads chunks more freely than RFC 9112 7.1: what follows may not be a request.
    if (framing.length === null) x.closesAfter = true
    // Behind a header without a name it shows no others: a length may have been among them.
    else if (!framing.present && mayHaveBody(x.method) && x.header('content-length') === '') {
      x.closesAfter = true
    }
    if (x.urlChars > this.core.limits.urlCharsMax) {
      const { urlCharsMax } = this.core.limits
      x.fail(new RequestError('TOO_LARGE', `the URL has more than ${urlCharsMax} characters`))
      return
    }
    const found = this.find(x)
    if (found === null) {
      this.refuseStray(x)
      return
    }
    x.route = found.target
    if (!setParams(x, found)) {
      x.fail(new RequestError('MALFORMED_REQUEST', 'the path has a % that starts no UTF-8 escape'))
      return
    }
    if (this.core.open.size >= this.core.limits.requestsInFlightMax) {
      x.fail(new RequestError('TOO_BUSY', 'too many requests are under way; nothing was done'))
      return
    }
    const { access, rate } = found.target.operation
    if (rate === 'sign-in' && this.isTooMany(x, this.core.rates.signIn, networkOf(x.address).own)) {
      return
    }
    if (access === 'none' || (access === 'either' && x.header('authorization') === '')) {
      // Whom a token says is who it is, whatever its address; and to look takes time.
      if (this.core.peers.isForged(x.res)) x.failAndClose(new RequestError(...FORGED))
      else this.enter(x, framing, null)
      return
    }
    const who = x.identityNow()
    if (who instanceof Promise) {
      x.hold()
      this.enter(
        x,
        framing,
        who.then((known) => void this.admit(x, known)),
      )
    } else if (this.admit(x, who)) {
      this.enter(x, framing, null)
    }
  }

  /** A HEAD is served as the GET of its path, without the body. */
  private find(x: Exchange): Found<Route> | null {
    return this.router.find(x.method === 'HEAD' ? 'GET' : x.method, x.path)
  }

  private refuseStray(x: Exchange): void {
    const methods = this.router.methodsOf(x.path)
    if (this.core.starting && methods.length === 0) {
      x.fail(new RequestError('UNAVAILABLE', 'this node is starting; nothing was done'))
      return
    }
    if (methods.length === 0 && this.sockets.has(x.path)) {
      const message = 'this is a WebSocket: ask with Connection: Upgrade (RFC 6455)'
      const headers = { Upgrade: 'websocket', Connection: 'Upgrade' }
      x.fail(new RequestError('UPGRADE_REQUIRED', message), headers)
      return
    }
    if (methods.length === 0) {
      x.fail(new RequestError('NOT_FOUND', `there is nothing at ${x.path.slice(0, 200)}`))
      return
    }
    if (methods.includes('GET')) methods.push('HEAD')
    const allow = [...methods, 'OPTIONS'].join(', ')
    if (x.method === 'OPTIONS' && isPreflight(x)) {
      // With a body, whose reader is watched: as many as come.
      x.answer({ status: 200, headers: this.core.cors.preflight(methods), raw: 'ok\n' })
      return
    }
    if (x.method === 'OPTIONS' && this.mayAnswerBare()) {
      x.answer({ status: 204, headers: { Allow: allow } })
      return
    }
    if (x.method === 'OPTIONS') {
      x.fail(new RequestError('TOO_BUSY', 'too many such requests; nothing was done'))
      return
    }
    const message = `${x.method.slice(0, 20)} is not known here; allowed: ${allow}`
    x.fail(new RequestError('METHOD_NOT_ALLOWED', message), { Allow: allow })
  }

  /**
   * Of an answer without a body uWebSockets.js doesn't tell whether its client takes it: so few are
   * given to requests that mean nothing.
   */
  private mayAnswerBare(): boolean {
    const second = Math.floor(this.core.clock.monotonicMs() / 1000)
    if (second !== this.bareSecond) this.bareAnswers = 0
    this.bareSecond = second
    return ++this.bareAnswers <= this.core.limits.strayBareAnswersMax
  }

  private bareSecond = -1
  private bareAnswers = 0

  private admit(x: Exchange, who: Identity | RequestError): boolean {
    if (!(who instanceof RequestError)) {
      const isFirst = x.who === null
      x.who = who
      return !isFirst || !this.isTooMany(x, this.core.rates.client, callerOf(who).group)
    }
    if (who.errors[0]!.code !== 'UNAUTHENTICATED') {
      x.fail(who)
      return false
    }
    const challenge = x.header('authorization') === '' ? NO_TOKEN : BAD_TOKEN
    x.fail(who, { 'WWW-Authenticate': challenge })
    return false
  }

  /** Counts the request; refuses it when it is one too many (429). */
  private isTooMany(x: Exchange, limit: RateLimit | null, whose: string): boolean {
    if (limit === null) return false
    const taken = limit.take(whose)
    x.guarded += taken.text
    if (!taken.isOver) return false
    const seconds = String(taken.seconds)
    const message = `too many requests in a minute; nothing was done: try again in ${seconds} s`
    x.fail(new RequestError('RATE_LIMITED', message), { 'Retry-After': seconds })
    return true
  }

  /**
   * Reads the body on the way to the operation. `admitted`: the token is still being looked up; the
   * body is gathered meanwhile, and the operation waits.
   */
  private enter(x: Exchange, framing: BodyHeaders, admitted: Promise<void> | null): void {
    const { stream, body } = x.route!.operation
    const contentType = x.header('content-type')
    if (stream !== undefined && (body?.type === 'ndjson' || isNdjson(contentType))) {
      const refused = mediaFault(contentType, 'ndjson')
      const packed = refused ?? isPacked(x)
      if (packed instanceof RequestError) x.fail(packed)
      else serveStream(x, { present: framing.present, packed, admitted })
      return
    }
    const take =
      admitted === null
        ? this.takeNow
        : (_: Exchange, bytes: Buffer): void => {
            admitted.then(() => this.take(x, bytes)).catch((error: unknown) => x.fail(error))
          }
    if (body === undefined || !framing.present) {
      take(x, EMPTY)
      return
    }
    const refused = mediaFault(contentType, body.type)
    const packed = refused ?? isPacked(x)
    if (packed instanceof RequestError) x.fail(packed)
    else gatherBody(x, framing.length, take)
  }

  // One function for all requests: a closure for each would cost more than the step.
  private readonly takeNow = (x: Exchange, bytes: Buffer): void => {
    const { length } = bytes
    if (length === 0 || length > this.core.limits.bodyTogetherBytesMax || isPacked(x) === true) {
      this.take(x, bytes)
    } else if (this.arrived.push({ x, bytes }) === 1) setImmediate(this.takeArrived)
  }

  /** Small bodies of this tick. */
  private arrived: { readonly x: Exchange; readonly bytes: Buffer }[] = []

  /**
   * What arrived in one tick goes step by step, each step for all of them: the code of a step stays
   * in the processor's caches (bench/README.md).
   */
  private readonly takeArrived = (): void => {
    const { arrived } = this
    this.arrived = []
    const read: Exchange[] = []
    for (const { x, bytes } of arrived) {
      if (x.done) continue
      const declared = x.route!.operation.body
      const fault = declared === undefined ? null : readBody(x, bytes, declared)
      if (fault === null) read.push(x)
      else x.fail(fault)
    }
    for (const x of read) this.admitted(x)
  }

  private take(x: Exchange, bytes: Buffer): void {
    if (x.done) return
    const packed = bytes.length > 0 && isPacked(x) === true
    if (!packed) {
      this.read(x, bytes)
      return
    }
    x.hold()
    this.unpacking
      .unpack(bytes, x.route!.door.bytesMax, callerOf(x.identity))
      .then((plain) => {
        release(x)
        if (plain instanceof RequestError) x.fail(plain)
        else this.read(x, plain)
      })
      .catch((error: unknown) => x.fail(error))
  }

  private read(x: Exchange, bytes: Buffer): void {
    const declared = x.route!.operation.body
    const fault = declared === undefined ? null : readBody(x, bytes, declared)
    if (fault === null) this.admitted(x)
    else x.fail(fault)
  }

  /** A body may be long on its way: who sent it is looked up again, for that may have ended. */
  private admitted(x: Exchange): void {
    const { clock, limits } = this.core
    if (x.who === null || clock.monotonicMs() - x.startedMs < limits.systemStaleMs) {
      this.handle(x)
      return
    }
    const who = x.identityNow()
    if (who instanceof Promise) {
      who
        .then((known) => {
          if (!x.done && this.admit(x, known)) this.handle(x)
        })
        .catch((error: unknown) => x.fail(error))
    } else if (this.admit(x, who)) this.handle(x)
  }

  private handle(x: Exchange): void {
    let response: OperationResponse | Promise<OperationResponse>
    try {
      response = x.route!.operation.handle(x)
    } catch (error) {
      x.fail(error)
      return
    }
    if (response instanceof Promise) x.settleWith(response)
    else x.answer(response)
  }
}

/** Whose clients say how long their body is, though it is empty (RFC 9110 8.6). */
function mayHaveBody(method: string): boolean {
  return method === 'POST' || method === 'PUT' || method === 'PATCH'
}

/** Fetch 3.2.2; of an origin that may not read anything here the answer is that of any OPTIONS. */
function isPreflight(x: Exchange): boolean {
  const { cors } = x.core
  return cors.allows(x.header('origin')) && x.header('access-control-request-method') !== ''
}

const EMPTY = Buffer.alloc(0)

const FORGED = [
  'MALFORMED_REQUEST',
  'a PROXY preamble is taken from the proxies in KONTOR_HTTP_PROXY_FROM only, and not from here',
] as const

function setParams(x: Exchange, found: Found<Route>): boolean {
  const { names, values } = found
  for (let i = 0; i < names.length; i++) {
    const value = values[i]!
    if (!value.includes('%')) {
      x.params[names[i]!] = value
      continue
    }
    try {
      x.params[names[i]!] = decodeURIComponent(value)
    } catch {
      return false
    }
  }
  return true
}
