// A server on a free port with a table of operations made for tests, and a log that is kept. For
// the tests of this folder.

import { RequestError } from '../../../protocol/errors.ts'
import type { Identity } from '../../access/identity.ts'
import { Metrics } from '../../metrics.ts'
import type { Authenticate, HttpLimits } from '../core.ts'
import type { Operation, OperationRequest, OperationResponse } from '../operation.ts'
import { createHttpServer } from '../server.ts'
import type { HttpServer, HttpServerOptions } from '../server.ts'
import { RawClient } from './raw-client.ts'

export interface Logged {
  readonly level: string
  readonly fields: Record<string, unknown>
  readonly message: string
}

export interface TestServer {
  readonly server: HttpServer
  readonly port: number
  readonly metrics: Metrics
  readonly log: Logged[]
  /** A new connection, closed with the server. */
  readonly client: () => RawClient
  readonly stop: () => Promise<void>
}

const someone = { id: 'client-1', kind: 'client', sessionId: 'session-1' } as unknown as Identity

/** `Bearer good` is somebody, everything else nobody. */
export const authenticate: Authenticate = (authorization) =>
  authorization === 'Bearer good'
    ? someone
    : new RequestError('UNAUTHENTICATED', 'the token is missing or not known')

/** Whoever says nothing of who they are is somebody, too. */
const authenticateAll: Authenticate = (authorization) =>
  authorization === '' ? someone : authenticate(authorization)

export interface TestServerOptions {
  /** Every operation wants a token: their bodies have the bounds of callers who are known. */
  readonly known?: true
  readonly limits?: Partial<HttpLimits>
  readonly isStarting?: boolean
  readonly authenticate?: Authenticate
  readonly settings?: Partial<HttpServerOptions['settings']>
  readonly rates?: NonNullable<HttpServerOptions['rates']>
}

export async function startServer(
  operations: readonly Operation[],
  options: TestServerOptions = {},
): Promise<TestServer> {
  const log: Logged[] = []
  const keep =
    (level: string) =>
    (fields: object, message: string): void => {
      log.push({ level, fields: fields as Record<string, unknown>, message })
    }
  const metrics = new Metrics()
  const server = createHttpServer({
    settings: {
      host: '127.0.0.1',
      port: 0,
      tlsKeyFile: null,
      tlsCertFile: null,
      connectionsMax: 1_000,
      proxyFrom: [],
      ...options.settings,
    },
    operations: options.known
      ? operations.map((one) => ({ ...one, access: 'token' as const }))
      : operations,
    authenticate: options.authenticate ?? (options.known ? authenticateAll : authenticate),
    log: { error: keep('error'), warn: keep('warn'), info: keep('info') },
    metrics,
    clock: { nowMs: () => Date.now(), monotonicMs: () => performance.now() },
    isStarting: options.isStarting === true,
    ...(options.rates === undefined ? {} : { rates: options.rates }),
    ...(options.limits === undefined ? {} : { limits: options.limits }),
  })
  const { port } = await server.listen()
  const clients: RawClient[] = []
  return {
    server,
    port,
    metrics,
    log,
    client: () => {
      const client = new RawClient(port)
      clients.push(client)
      return client
    },
    stop: async () => {
      for (const client of clients) client.destroy()
      await server.close(1_000)
    },
  }
}

/** An operation with the usual parts filled in. */
export function operation(
  method: Operation['method'],
  path: string,
  handle: (request: OperationRequest) => OperationResponse | Promise<OperationResponse>,
  more: Partial<Operation> = {},
): Operation {
  return { method, path, summary: `${method} ${path}`, access: 'none', handle, ...more }
}

/** A request's text with its Host, and its Content-Length when it has a body. */
export function request(
  line: string,
  headers: Readonly<Record<string, string>> = {},
  body = '',
): string {
  const framed =
    body === '' ? headers : { 'Content-Length': String(Buffer.byteLength(body)), ...headers }
  const lines = Object.entries({ Host: 'test', ...framed }).map(
    ([name, value]) => `${name}: ${value}`,
  )
  return `${line} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`
}

/** The first error of an answer. */
export function errorOf(response: { readonly body: Buffer }): {
  code: string
  message: string
  details?: Record<string, unknown>
} {
  const { errors } = JSON.parse(response.body.toString()) as {
    errors: { code: string; message: string }[]
  }
  return errors[0]!
}

/**
 * A request in pieces of one byte, its first line excepted: this version of uWebSockets.js answers
 * 505 to a first line that comes in two (uNetworking/uWebSockets#1776).
 */
export function pieces(text: string): string[] {
  const lineEnd = text.indexOf('\r\n') + 2
  return [text.slice(0, lineEnd), ...text.slice(lineEnd).split('')]
}
