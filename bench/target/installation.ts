// The installation under load: a node of our own in a temporary folder, or a running one behind an
// address. Token, graph counts, readings.

import { setTimeout as delay } from 'node:timers/promises'
import type { Destination } from '../load/requests.ts'
import { diskUsage, type DiskUsage } from './disk-usage.ts'
import { fetchMetrics, LAG_ENTRIES, type Metrics } from './metrics.ts'
import { OwnNode, type Downtime, type Ending } from './own-node.ts'
import { processUsage, type ProcessUsage } from './process-usage.ts'

const TIMEOUT_MS = 30_000
const POLL_MS = 100
const LAG_POLL_MS = 25

export interface Credentials {
  readonly clientId: string
  readonly clientSecret: string
}

/** A running installation: its address, and a token or credentials for one. */
export interface Given {
  readonly url: string
  readonly access: { readonly token: string } | Credentials
  /** Process to read CPU and memory of, when it is on this machine. */
  readonly pid: number | null
}

export class Installation {
  readonly url: string
  readonly #access: Given['access']
  #token: string | null = null
  #tokenMs = 0
  readonly #pid: number | null
  readonly #own: OwnNode | null

  private constructor(given: Given, own: OwnNode | null) {
    this.url = given.url
    this.#pid = given.pid
    this.#access = given.access
    this.#own = own
  }

  /** Uses one that runs already; it is not stopped. */
  static given(given: Given): Installation {
    return new Installation(given, null)
  }

  /** Starts a node with an empty store of its own. */
  static async start(name: string): Promise<Installation> {
    const own = await OwnNode.start(name)
    const access = { clientId: 'bootstrap', clientSecret: own.secret }
    return new Installation({ url: own.url, access, pid: null }, own)
  }

  async stop(): Promise<void> {
    await this.#own?.remove()
  }

  /** Ends the node and starts it again on its data; null when it isn't ours to end. */
  async restart(ending: Ending): Promise<Downtime | null> {
    return this.#own === null ? null : this.#own.restart(ending)
  }

  /** null: there is a token only. */
  get credentials(): Credentials | null {
    return 'token' in this.#access ? null : this.#access
  }

  async destination(): Promise<Destination> {
    const { hostname, port } = new URL(this.url)
    return { host: hostname, port: Number(port || 80), token: await this.#freshToken() }
  }

  /** Sends one request of the preparation; throws with the answer when it is not 200. */
  post<T>(path: string, body: unknown): Promise<T> {
    return this.#ask<T>(path, JSON.stringify(body))
  }

  /** Reads; throws with the answer when it is not 200. */
  get<T>(path: string): Promise<T> {
    return this.#ask<T>(path, null)
  }

  async #ask<T>(path: string, body: string | null): Promise<T> {
    const response = await fetch(this.url + path, {
      method: body === null ? 'GET' : 'POST',
      headers: {
        Authorization: `Bearer ${await this.#freshToken()}`,
        'Content-Type': 'application/json',
      },
      body,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text.slice(0, 500)}`)
    return JSON.parse(text) as T
  }

  /** Orders in the graph. */
  async countOrders(): Promise<number> {
    const { orders } = await this.post<{ orders: number }>('/resources/graph', [
      { edge: 'orders', count: true },
    ])
    return orders
  }

  /** Waits until the graph has so many orders; gives the number that it has at the end. */
  async ordersReach(expected: number, withinMs: number): Promise<number> {
    const until = performance.now() + withinMs
    for (;;) {
      const orders = await this.countOrders()
      if (orders >= expected || performance.now() > until) return orders
      await delay(POLL_MS)
    }
  }

  /** Waits until the index has every entry, or until it doesn't say, or the time is over. */
  async indexCaughtUp(withinMs: number): Promise<void> {
    const until = performance.now() + withinMs
    for (;;) {
      const lag = (await this.metrics())?.get(LAG_ENTRIES) ?? 0
      if (lag === 0 || performance.now() > until) return
      await delay(LAG_POLL_MS)
    }
  }

  async metrics(): Promise<Metrics | null> {
    return fetchMetrics(this.url, await this.#freshToken())
  }

  usage(): ProcessUsage | null {
    return this.#own === null ? processUsage(this.#pid) : this.#own.usage()
  }

  /** Of its data directory; null where that can't be seen. */
  disk(): DiskUsage | null {
    return diskUsage(this.#own?.dataDir ?? null)
  }

  /** Access tokens last an hour; a long bench takes a new one in time. */
  async #freshToken(): Promise<string> {
    if ('token' in this.#access) return this.#access.token
    if (this.#token === null || performance.now() - this.#tokenMs > 30 * 60_000) {
      this.#token = await this.#fetchToken(this.#access)
      this.#tokenMs = performance.now()
    }
    return this.#token
  }

  async #fetchToken({ clientId, clientSecret }: Credentials): Promise<string> {
    const response = await fetch(`${this.url}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: clientId,
        client_secret: clientSecret,
      }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`/oauth/token: ${response.status} ${text.slice(0, 300)}`)
    return (JSON.parse(text) as { access_token: string }).access_token
  }
}
