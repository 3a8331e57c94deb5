// Clients of `/ws` on a cluster whose members die: one keeps the list of a live query, goes on with
// its last position wherever it can, and is held to K6; one hears of orders that are made. Source:
// CONTRACT 1.10, PROTOCOL 4.1 (K6).

import { LiveView } from '../../node/live/queries/testing/live-view.ts'
import type { ShownNode } from '../../node/live/queries/testing/live-view.ts'
import { Patience, tick } from '../harness/patience.ts'
import { signIn } from '../harness/socket-client.ts'
import type { SocketClient } from '../harness/socket-client.ts'
import type { ClusterMember } from './harness/cluster.ts'

const AGAIN_MS = 100
const AGREES_MS = 60_000
/** Codes of sockets whose other end is no more, and that were closed from here. */
const CUT = 1006
const OWN = 1005

export interface LiveQuery {
  readonly edge: string
  readonly filter?: string
  readonly orderBy?: string
  readonly limit: number
  readonly node: object
}

export interface WatcherOptions {
  readonly query: LiveQuery
  readonly idField: string
  readonly versionOf: (node: ShownNode) => number
  /** Where it is begun; it goes on at any that is up. */
  readonly at: ClusterMember
  readonly up: () => readonly ClusterMember[]
}

/** Who follows one live query for as long as the test lasts. */
export class LiveWatcher {
  readonly view: LiveView
  /** How often it came back with a position, and how often because its member was no more. */
  resumes = 0
  deaths = 0
  /** Other reasons: an error that its query ended with, a code that its socket was closed with. */
  readonly reasons: string[] = []
  member: ClusterMember
  readonly #options: WatcherOptions
  readonly #running: Promise<void>
  #isStopped = false

  constructor(options: WatcherOptions) {
    this.#options = options
    this.member = options.at
    const { idField, versionOf, query } = options
    this.view = new LiveView({ idField, versionOf, limit: query.limit })
    this.#running = this.#run()
  }

  get name(): string {
    const { edge, filter = '', orderBy = '' } = this.#options.query
    return `${edge} ${filter} ${orderBy}`
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#running
  }

  /** Null as soon as its list is the graph's answer; else, in the end, how they differ. */
  async disagreement(member: ClusterMember): Promise<string | null> {
    const { query } = this.#options
    const patience = new Patience(AGREES_MS)
    for (;;) {
      const answer = await member.ask('/resources/graph', { body: [query] })
      const wanted = answer.status === 200 ? JSON.stringify(answer.json()[query.edge]) : answer.text
      const has = JSON.stringify(this.view.nodes)
      if (has === wanted) return null
      if (patience.isOver()) return `${this.name}: it has ${has}, the graph ${wanted}`
      await tick()
    }
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      try {
        await this.#follow(await signIn(this.member.node))
      } catch (error) {
        this.reasons.push((error as Error).message)
      }
      if (this.#isStopped) return
      await tick(AGAIN_MS)
      const up = this.#options.up()
      if (!up.includes(this.member) && up.length > 0) this.member = up[this.resumes % up.length]!
    }
  }

  async #follow(client: SocketClient): Promise<void> {
    const { position } = this.view
    if (position !== null) this.resumes++
    const { query } = this.#options
    const resume = position === null ? {} : { resume: position }
    client.send({ type: 'createLiveQuery', liveQueryId: 'q', query, ...resume })
    for (;;) {
      for (const frame of client.frames.splice(0)) {
        this.view.take(frame)
        if (frame.type !== 'liveQueryError') continue
        this.reasons.push(String(frame['message']))
        client.close()
      }
      if (this.#isStopped) client.close()
      if (client.end !== null) {
        const { code } = client.end
        if (code === CUT) this.deaths++
        else if (code !== OWN) this.reasons.push(String(code))
        return
      }
      await tick()
    }
  }
}

/** Who hears of orders that are made, on one member that stays. */
export class EventWatcher {
  /** UUIDs of orders. */
  readonly created = new Set<string>()
  readonly #client: SocketClient

  private constructor(client: SocketClient) {
    this.#client = client
  }

  /** From when it resolves on all is told. */
  static async open({ node }: ClusterMember): Promise<EventWatcher> {
    const client = await signIn(node)
    const subscriptions = [{ id: 's', path: 'actors/order', events: ['created'] }]
    client.send({ type: 'subscribeEvents', subscriptions })
    await client.frame('subscribedEvents')
    return new EventWatcher(client)
  }

  /** What of these it has not heard of. */
  missing(orders: readonly string[]): string[] {
    for (const { path } of this.#client.frames.splice(0)) {
      this.created.add(String(path).split('/').at(-1)!)
    }
    return orders.filter((id) => !this.created.has(id))
  }

  close(): void {
    this.#client.close()
  }
}
