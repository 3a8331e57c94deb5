// A small installation in memory for the bench's tests: it acknowledges every order, and keeps all
// of them or loses some.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { FakeWatching } from './fake-watching.ts'
import { Installation } from '../target/installation.ts'

interface FakeCommand {
  readonly type: string
  readonly value?: string
  readonly fields?: { readonly stamp?: number }
}

interface FakeMessage {
  readonly body?: {
    readonly orderNumber?: string
    readonly createdAt?: string
    readonly commands?: readonly FakeCommand[]
  }
}

interface FakeOrder {
  readonly id: string
  readonly number: string
  readonly createdAt: string
  readonly customer: string
}

/** Keeps all but each `loses`-th order. */
export class FakeInstallation {
  readonly orders: FakeOrder[] = []
  #made = 0
  #port = 0
  readonly #loses: number
  readonly #server = createServer((request, response) => this.#serve(request, response))

  readonly #watching: FakeWatching

  /** It tells who watches of all but each `losesChange`-th change. */
  constructor(loses: number, losesChange = Number.MAX_SAFE_INTEGER) {
    this.#loses = loses
    this.#watching = new FakeWatching(this.#server, losesChange)
  }

  async start(t: Test): Promise<Installation> {
    await this.listen()
    t.teardown(() => this.#server.close())
    const access = { clientId: 'bootstrap', clientSecret: 's' }
    return Installation.given({ url: `http://127.0.0.1:${this.#port}`, access, pid: process.pid })
  }

  /** Serves, after `vanish` on the same port. */
  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve))
    this.#port = (this.#server.address() as AddressInfo).port
  }

  /** Serves again, and waits for the first who comes. */
  async listenUntilConnected(): Promise<void> {
    const connected = once(this.#server, 'connection')
    await this.listen()
    await connected
  }

  /** Breaks all connections and takes no more. */
  async vanish(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    await closed
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (piece) => {
      body += String(piece)
      // Bulk is answered line by line, as it comes in.
      if (request.url !== '/resources/actors/order') return
      const lines = body.split('\n')
      body = lines.pop()!
      for (const line of lines) {
        const { messages } = JSON.parse(line) as { messages: FakeMessage[] }
        response.write(`${JSON.stringify(this.#create(messages[0]!))}\n`)
      }
    })
    request.on('end', () => response.end(this.#answer(request.url!, body)))
  }

  #answer(url: string, body: string): string {
    if (url === '/oauth/token') return '{"access_token":"t"}'
    if (url === '/metrics') return 'kontor_index_lag_entries{shard="1"} 0\nkontor_commits_total 5\n'
    if (url === '/resources/graph') return JSON.stringify(this.#graph(JSON.parse(body)))
    if (url === '/resources/actors/order/new') {
      return JSON.stringify(this.#create((JSON.parse(body) as FakeMessage[])[0]!))
    }
    if (url === '/resources/actors/order') return ''
    const order = this.orders.find(({ id }) => url.endsWith(`/${id}`))
    if (order !== undefined) this.#stamped(order, (JSON.parse(body) as FakeMessage[])[0]!)
    return JSON.stringify({ data: order === undefined ? [] : ['checkpoint'] })
  }

  #stamped({ number, customer }: FakeOrder, { body }: FakeMessage): void {
    const stamp = body?.commands?.find(({ fields }) => fields?.stamp !== undefined)?.fields?.stamp
    if (stamp !== undefined) this.#watching.changed([number, customer], stamp)
  }

  #create(message: FakeMessage): object {
    const n = ++this.#made
    const { body } = message
    const order = {
      id: `id-${n}`,
      number: body?.orderNumber ?? `O${n}`,
      createdAt: body?.createdAt ?? new Date(n).toISOString(),
      customer: body?.commands?.find(({ type }) => type === 'setCustomerNumber')?.value ?? '',
    }
    this.#stamped(order, message)
    if (n % this.#loses !== 0) this.orders.push(order)
    return { id: order.id, data: { orderId: order.id, orderNumber: order.number } }
  }

  #graph([{ count, filter = '', orderBy }]: [
    { count?: boolean; filter?: string; orderBy?: string },
  ]): object {
    if (count) return { orders: this.orders.length }
    const orderLines = [{ orderLineTotal: 1.25 }, { orderLineTotal: 2 }]
    const rest = { orderTotal: 3.25, deliveries: [{ shippingTotal: 0, orderLines }], orderLines }
    const found =
      orderBy === undefined
        ? this.orders.filter(
            ({ id, number }) => filter.includes(`'${id}'`) || filter.includes(`'${number}'`),
          )
        : [...this.orders].sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1)).slice(0, 50)
    return { orders: found.map(({ id, createdAt }) => ({ orderId: id, createdAt, ...rest })) }
  }
}
