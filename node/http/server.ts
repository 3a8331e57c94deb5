// The HTTP server: compiles the table of operations, listens, and closes gracefully.

import { randomFillSync } from 'node:crypto'
import { accessSync, constants } from 'node:fs'
import { LIMITS } from '../../config/limits.ts'
import type { Settings } from '../../config/settings.ts'
import { ReleasingSet } from '../../protocol/releasing-map.ts'
import { assert } from '../../protocol/errors.ts'
import { uuidMaker } from '../../protocol/ids.ts'
import type { FillRandom } from '../../protocol/ids.ts'
import { compileShape } from '../../protocol/json/validation.ts'
import { SECONDS } from '../metrics.ts'
import type { Counter, Metrics } from '../metrics.ts'
import { encoderOf } from './answer.ts'
import type { Authenticate, Clock, HttpCore, HttpLimits, Log, Route, RouteCounts } from './core.ts'
import { Dispatcher } from './dispatch.ts'
import { doorOf } from './doors.ts'
import type { Exchange } from './exchange.ts'
import { AnswerHeaders } from './guard/answer-headers.ts'
import { Cors } from './guard/cors.ts'
import { RateLimit } from './guard/rate-limit.ts'
import { openApiOperation } from './openapi.ts'
import { openFilesMax } from './open-files.ts'
import type { Operation } from './operation.ts'
import { Packing } from './packing.ts'
import { Peers } from './peer.ts'
import { Router } from './router.ts'
import { Sockets } from './socket/sockets.ts'
import type { SocketPath } from './socket/sockets.ts'
import { SWEEP_MS, sweep } from './sweep.ts'
import { UnreadAnswers } from './unread.ts'
import { App, listenAlone, SSLApp, us_listen_socket_close, us_socket_local_port } from './uws.ts'
import type { TemplatedApp, us_listen_socket } from './uws.ts'

export interface HttpServerOptions {
  readonly settings: Pick<
    Settings['http'],
    'host' | 'port' | 'tlsKeyFile' | 'tlsCertFile' | 'connectionsMax' | 'proxyFrom'
  > &
    Partial<Pick<Settings['http'], 'baseUrl' | 'corsOrigins' | 'forwardedFrom'>>
  /** Requests in a minute; 0, and the default: any number. */
  readonly rates?: Partial<Pick<Settings['rates'], 'client' | 'signInAddress'>>
  readonly operations: readonly Operation[]
  /** More come with `serve`; until then all others are answered 503 UNAVAILABLE. Default: false. */
  readonly isStarting?: boolean
  readonly authenticate: Authenticate
  readonly log: Log
  readonly metrics: Metrics
  readonly clock: Clock
  /** Random bytes for request ids. */
  readonly random?: FillRandom
  /** Other bounds than LIMITS, for tests. */
  readonly limits?: Partial<HttpLimits>
  /** Shown in the OpenAPI document. */
  readonly version?: string
}

export interface HttpServer {
  /** Port that is listened on; 0 before `listen`. */
  readonly port: number
  /** Rejects when the address can't be had. */
  listen(): Promise<{ readonly port: number }>
  /** From now on these are the operations, and all others are 404 NOT_FOUND. */
  serve(operations: readonly Operation[], sockets?: readonly SocketPath[]): void
  /**
   * Stops accepting; open connections are served on, each answer with `Connection: close`; resolves
   * when all are closed, at the latest after `graceMs`.
   */
  close(graceMs: number): Promise<void>
}

function httpLimits(others: Partial<HttpLimits> = {}): HttpLimits {
  return {
    ...LIMITS.http,
    jsonDepthMax: LIMITS.protocol.jsonDepthMax,
    requestBudgetMs: LIMITS.sharding.requestBudgetMs,
    systemStaleMs: LIMITS.cluster.systemStaleMs,
    unknownOutcomeMs: LIMITS.sharding.unknownOutcomeMs,
    ...others,
  }
}

function ratesOf({ rates, clock }: HttpServerOptions): HttpCore['rates'] {
  const nowMs = (): number => clock.monotonicMs()
  const limit = (name: string, max = 0): RateLimit | null =>
    max === 0 ? null : new RateLimit(name, max, nowMs)
  return { client: limit('client', rates?.client), signIn: limit('address', rates?.signInAddress) }
}

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { metrics, clock } = options
  const makeId = uuidMaker(options.random ?? ((bytes) => void randomFillSync(bytes)))
  const open = new ReleasingSet<Exchange>()
  const limits = httpLimits(options.limits)
  const core: HttpCore = {
    limits,
    clock,
    log: options.log,
    authenticate: options.authenticate,
    newRequestId: () => makeId(clock.nowMs()),
    headers: new AnswerHeaders(options.settings.baseUrl ?? ''),
    strays: countsOf(metrics, 'none'),
    open,
    bodies: {
      known: { bytesMax: limits.bodiesBytesMax, bytes: 0 },
      lines: { bytesMax: limits.linePartsBytesMax, bytes: 0 },
      strangers: { bytesMax: limits.strangerBodiesBytesMax, bytes: 0 },
    },
    cors: new Cors(options.settings.corsOrigins ?? []),
    rates: ratesOf(options),
    peers: new Peers(options.settings.proxyFrom, options.settings.forwardedFrom),
    packing: new Packing(limits.packingBytesMax),
    unread: new UnreadAnswers(limits.answersBytesMax),
    readAheadBytes: 0,
    arrivedTogether: 0,
    turn: 0,
    corked: false,
    starting: options.isStarting === true,
    closing: false,
    quietFromMs: 0,
  }
  const dispatcherOf = dispatcherMaker(core, { metrics, limits, version: options.version ?? '0' })
  const dispatcher = dispatcherOf(options.operations)
  const listener = new Listener({ core, open, dispatcherOf, metrics }, dispatcher, options.settings)
  metrics.collect(function* () {
    yield {
      name: 'kontor_http_requests_in_flight',
      help: 'Requests whose answer is still to come.',
      type: 'gauge',
      value: core.open.size,
    }
    yield {
      name: 'kontor_http_connections',
      help: 'Connections of callers.',
      type: 'gauge',
      value: listener.openConnections,
    }
    yield {
      name: 'kontor_http_line_parts_bytes',
      help: 'Bytes of long lines of streams that are here in part.',
      type: 'gauge',
      value: core.bodies.lines.bytes,
    }
    yield {
      name: 'kontor_socket_buffers_bytes',
      help: 'Bytes that clients of sockets have not taken yet.',
      type: 'gauge',
      value: listener.socketBufferBytes,
    }
    yield {
      name: 'kontor_http_unread_answers_bytes',
      help: 'Bytes of answers that their clients have not taken yet.',
      type: 'gauge',
      value: core.unread.bytes,
    }
  })
  return listener
}

function compile(
  operations: readonly Operation[],
  metrics: Metrics,
  limits: HttpLimits,
): Router<Route> {
  const router = new Router<Route>()
  for (const operation of operations) {
    const schema = operation.body?.schema
    router.add(operation.method, operation.path, {
      operation,
      check: schema === undefined ? null : compileShape(schema),
      encode: encoderOf(operation.response),
      counts: countsOf(metrics, `${operation.method} ${operation.path}`),
      door: doorOf(operation, limits),
    })
  }
  return router
}

function countsOf(metrics: Metrics, route: string): RouteCounts {
  const byStatus: (Counter | undefined)[] = []
  return {
    seconds: metrics.histogram(
      'kontor_http_request_duration_seconds',
      { help: 'Time from the head of a request to its answer.', bounds: SECONDS },
      { route },
    ),
    status: (status) =>
      (byStatus[status] ??= metrics.counter(
        'kontor_http_requests_total',
        'Answers by route and status.',
        { route, status: String(status) },
      )),
  }
}

const CLOSE_POLL_MS = 10
/** What an idle connection gets for a request that is on its way when closing starts. */
const QUIET_MS = 500

type DispatcherOf = (
  operations: readonly Operation[],
  sockets?: readonly SocketPath[],
) => Dispatcher

function dispatcherMaker(
  core: HttpCore,
  of: { readonly metrics: Metrics; readonly limits: HttpLimits; readonly version: string },
): DispatcherOf {
  const { metrics, limits, version } = of
  return (operations, sockets = []) => {
    const described = core.starting ? [] : [openApiOperation(operations, version)]
    const router = compile([...operations, ...described], metrics, limits)
    return new Dispatcher(core, router, new Set(sockets.map(({ path }) => path)))
  }
}

class Listener implements HttpServer {
  port = 0
  private readonly core: HttpCore
  private readonly open: Iterable<Exchange>
  private readonly dispatcherOf: DispatcherOf
  private dispatcher: Dispatcher
  private readonly settings: HttpServerOptions['settings']
  private readonly sockets: Sockets
  private app: TemplatedApp | null = null
  private socket: us_listen_socket | null = null
  private sweeper: NodeJS.Timeout | null = null
  private connections = 0
  private closed: Promise<void> | null = null

  get openConnections(): number {
    return this.connections
  }

  get socketBufferBytes(): number {
    return this.sockets.bufferedBytes
  }

  constructor(
    state: {
      readonly core: HttpCore
      readonly open: Iterable<Exchange>
      readonly dispatcherOf: DispatcherOf
      readonly metrics: Metrics
    },
    dispatcher: Dispatcher,
    settings: HttpServerOptions['settings'],
  ) {
    this.core = state.core
    this.open = state.open
    this.dispatcherOf = state.dispatcherOf
    this.dispatcher = dispatcher
    this.settings = settings
    this.sockets = new Sockets(state.core, {
      metrics: state.metrics,
      ownOrigin: settings.baseUrl ?? '',
      // The filter that counts connections is not told of those that were upgraded.
      onClosed: () => this.connections--,
      refuse: (res, req, refused) => this.dispatcher.refuse(res, req, refused),
    })
  }

  listen(): Promise<{ readonly port: number }> {
    assert(this.app === null, 'the server listens once')
    const { host, port } = this.settings
    const app = this.makeApp()
    app.any('/*', (res, req) => this.dispatcher.accept(res, req))
    const connectionsMax = this.connectionsMax()
    app.filter((res, change) => {
      this.connections += change
      // Past the cap nothing is read: a process without a free descriptor can't serve anybody.
      if (change > 0 && this.connections > connectionsMax) res.close()
    })
    return new Promise((resolve, reject) => {
      const listening = (socket: us_listen_socket | false): void => {
        if (socket === false) {
          reject(new Error(`can't listen on ${host}:${port}: the port is taken, or not allowed`))
          return
        }
        this.app = app
        this.socket = socket
        this.port = us_socket_local_port(socket)
        const { bodyIdleMs } = this.core.limits
        this.sweeper = setInterval(
          () => sweep(this.core, this.open),
          Math.min(SWEEP_MS, bodyIdleMs / 4),
        )
        this.sweeper.unref()
        resolve({ port: this.port })
      }
      listenAlone(app, { host, port }, listening)
    })
  }

  serve(operations: readonly Operation[], sockets: readonly SocketPath[] = []): void {
    this.core.starting = false
    this.dispatcher = this.dispatcherOf(operations, sockets)
    for (const path of sockets) this.sockets.serve(this.app!, path)
  }

  close(graceMs: number): Promise<void> {
    return (this.closed ??= this.drain(graceMs))
  }

  private async drain(graceMs: number): Promise<void> {
    const { core } = this
    if (this.app === null) return
    core.closing = true
    if (this.socket !== null) us_listen_socket_close(this.socket)
    this.socket = null
    this.sockets.leave()
    const start = core.clock.monotonicMs()
    // An idle connection may have a request on its way: it gets a moment to arrive.
    core.quietFromMs = Math.max(core.quietFromMs, start + Math.min(graceMs / 2, QUIET_MS))
    while (this.connections > 0) {
      const now = core.clock.monotonicMs()
      if (now - start >= graceMs) break
      if (core.open.size === 0 && now >= core.quietFromMs) break
      await new Promise((resolve) => setTimeout(resolve, CLOSE_POLL_MS))
    }
    if (this.sweeper !== null) clearInterval(this.sweeper)
    this.sockets.stop()
    this.app.close()
  }

  /** What is set, and no more than the process may open beside its own files. */
  private connectionsMax(): number {
    const openFiles = openFilesMax()
    const { openFilesKept } = this.core.limits
    if (openFiles === null) return this.settings.connectionsMax
    return Math.max(1, Math.min(this.settings.connectionsMax, openFiles - openFilesKept))
  }

  private makeApp(): TemplatedApp {
    const { tlsKeyFile, tlsCertFile } = this.settings
    if (tlsKeyFile === null && tlsCertFile === null) return App()
    if (tlsKeyFile === null || tlsCertFile === null) {
      throw new Error('TLS needs both files, the key and the certificate')
    }
    // uWebSockets.js says nothing about a file that it can't read.
    accessSync(tlsKeyFile, constants.R_OK)
    accessSync(tlsCertFile, constants.R_OK)
    return SSLApp({ key_file_name: tlsKeyFile, cert_file_name: tlsCertFile })
  }
}
