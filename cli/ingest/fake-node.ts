// A node as the ingest command sees it, for tests: token, bulk and graph over real HTTP, with an
// order store in memory that keeps idempotency keys, and faults on demand.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { stampUuid7, formatUuid } from '../../protocol/ids.ts'
import type { OrderCreateBody } from './online-retail/order.ts'
import { fromE4, parseE4, rowPennies } from './online-retail/amount.ts'

export interface FakeOrder {
  readonly id: string
  readonly key: string
  readonly body: OrderCreateBody
  readonly total: number
}

export interface Line {
  readonly idempotencyKey: string
  readonly messages: readonly { readonly body: OrderCreateBody }[]
}

/** What a fault does with the n-th bulk line (from 1): an error item, a cut, or nothing. */
export type Fault = (line: Line, n: number) => { code: string; message: string } | 'cut' | null

export class FakeNode {
  readonly orders = new Map<string, FakeOrder>()
  readonly keys = new Map<string, FakeOrder>()
  fault: Fault = () => null
  /** Answers to the next bulk requests as a whole, used up one by one; null: serve. */
  refusals: ({ status: number; retryAfter?: string } | null)[] = []
  tokensGiven = 0
  bulkRequests = 0
  linesSeen = 0
  /** Orders of the graph; by default all at once. */
  graph = (): Iterable<FakeOrder> => this.orders.values()
  readonly #server = createServer((request, response) => void this.#serve(request, response))
  readonly #sockets = new Set<Socket>()
  url = ''

  async start(): Promise<this> {
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => this.#sockets.delete(socket))
    })
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
    return this
  }

  stop(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.on('error', () => {})
    if (request.url === '/oauth/token') return this.#token(await text(request), response)
    if (request.url === '/resources/actors/order') return this.#bulk(request, response)
    if (request.url === '/resources/graph') return this.#graph(await text(request), response)
    response.writeHead(404).end()
  }

  #token(form: string, response: ServerResponse): void {
    const right = form.includes('client_secret=right')
    this.tokensGiven++
    response.setHeader('X-Request-Id', uuidNow())
    response.writeHead(right ? 200 : 401, { 'Content-Type': 'application/json' })
    response.end(
      JSON.stringify(
        right ? { access_token: `token-${this.tokensGiven}` } : { error: 'invalid_client' },
      ),
    )
  }

  async #bulk(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.bulkRequests++
    const refusal = this.refusals.shift() ?? null
    if (refusal !== null) {
      const headers = refusal.retryAfter === undefined ? {} : { 'Retry-After': refusal.retryAfter }
      response.writeHead(refusal.status, headers).end('{"errors":[]}')
      return
    }
    response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
    let rest = ''
    try {
      for await (const chunk of request.setEncoding('utf8')) {
        const lines = (rest + String(chunk)).split('\n')
        rest = lines.pop()!
        for (const line of lines) {
          const answer = this.#line(JSON.parse(line) as Line)
          if (answer === 'cut') {
            // What was answered before the cut has left.
            await new Promise((resolve) => setImmediate(resolve))
            request.socket.destroy()
            return
          }
          response.write(`${JSON.stringify(answer)}\n`)
        }
      }
      response.end()
    } catch {
      // The client went away: its matter.
    }
  }

  #line(line: Line): object | 'cut' {
    const fault = this.fault(line, ++this.linesSeen)
    if (fault === 'cut') return 'cut'
    if (fault !== null) return { id: 'new', paths: [], data: null, results: [], errors: [fault] }
    const { body } = line.messages[0]!
    let order = this.keys.get(line.idempotencyKey)
    if (order === undefined) {
      if (this.orders.has(body.orderNumber)) {
        const taken = { code: 'ALREADY_EXISTS', message: 'taken' }
        return { id: 'new', paths: [], data: null, results: [], errors: [taken] }
      }
      order = { id: uuidNow(), key: line.idempotencyKey, body, total: totalOf(body) }
      this.orders.set(body.orderNumber, order)
      this.keys.set(line.idempotencyKey, order)
    }
    return { id: order.id, paths: [], data: {}, results: [{ type: 'create', success: true }] }
  }

  #graph(body: string, response: ServerResponse): void {
    const { filter } = (JSON.parse(body) as [{ filter: string }])[0]
    const wanted = new Set([...filter.matchAll(/'([^']*)'/g)].map((match) => match[1]!))
    const orders = [...this.graph()]
      .filter((order) => wanted.has(order.body.orderNumber))
      .map((order) => ({ orderNumber: order.body.orderNumber, orderTotal: order.total }))
    response.writeHead(200, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify({ orders }))
  }
}

function totalOf(body: OrderCreateBody): number {
  let pennies = 0n
  for (const command of body.commands) {
    if (command.type !== 'createOrderLine') continue
    const { quantity, unitPrice } = command as unknown as { quantity: number; unitPrice: number }
    pennies += rowPennies(parseE4(String(quantity))!, parseE4(String(unitPrice))!)
  }
  return fromE4(Number(pennies) * 100)
}

let made = 0
function uuidNow(): string {
  const bytes = new Uint8Array(16)
  new DataView(bytes.buffer).setUint32(12, ++made)
  return formatUuid(stampUuid7(bytes, Date.now()))
}

async function text(request: IncomingMessage): Promise<string> {
  let all = ''
  for await (const chunk of request.setEncoding('utf8')) all += String(chunk)
  return all
}
