// One order in every shard of a cluster, looked at all the time over every member in turn: how long
// a shard is silent when it moves or its owner dies, as callers see it.

import { randomBytes } from 'node:crypto'
import { Agent, request } from 'node:http'
import { formatUuid, stampUuid7 } from '../../protocol/ids.ts'
import type { Destination } from '../load/requests.ts'
import type { Member, Members } from './members.ts'

export interface Look {
  readonly shard: number
  readonly sentAt: number
  readonly tookMs: number
  /** 0: the connection was lost. */
  readonly status: number
}

const EVERY_MS = 20
const LOOK_MS_MAX = 30_000
const QUERY = JSON.stringify([{ type: 'query', body: { fields: ['orderNumber'] } }])

export class ShardWatch {
  readonly looks: Look[] = []
  readonly #members: Members
  readonly #ids: readonly string[]
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256 })
  #stopped = false
  #watching: Promise<void>[] = []

  private constructor(members: Members, ids: readonly string[]) {
    this.#members = members
    this.#ids = ids
  }

  /** Makes the orders. */
  static async make(members: Members): Promise<ShardWatch> {
    const { installation } = members.all[0]!
    const ids = Array.from({ length: members.shards }, (_, shard) =>
      formatUuid(stampUuid7(randomBytes(16), Date.now(), shard)),
    )
    const body = { currencyCode: 'EUR', taxIncluded: true }
    for (const id of ids) {
      await installation.post(`/resources/actors/order/${id}`, [{ type: 'create', body }])
    }
    return new ShardWatch(members, ids)
  }

  start(): void {
    this.#stopped = false
    this.#watching = this.#ids.map((_, shard) => this.#watch(shard))
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#watching)
    this.#agent.destroy()
  }

  /** Milliseconds until every shard has answered over every member. */
  async allAnswer(members: readonly Member[]): Promise<number> {
    const began = performance.now()
    await Promise.all(
      members.flatMap((member) =>
        this.#ids.map(async (_, shard) => {
          while ((await this.#look(member, shard)).status !== 200) await pause()
        }),
      ),
    )
    return performance.now() - began
  }

  async #watch(shard: number): Promise<void> {
    for (let i = shard; !this.#stopped; i++) {
      const { all } = this.#members
      this.looks.push(await this.#look(all[i % all.length]!, shard))
      await pause()
    }
  }

  async #look(member: Member, shard: number): Promise<Look> {
    const to = await member.installation.destination()
    const sentAt = performance.now()
    const status = await this.#ask(to, `/resources/actors/order/${this.#ids[shard]!}`)
    return { shard, sentAt, tookMs: performance.now() - sentAt, status }
  }

  #ask({ host, port, token }: Destination, path: string): Promise<number> {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    const signal = AbortSignal.timeout(LOOK_MS_MAX)
    const options = { host, port, path, method: 'POST', headers, signal, agent: this.#agent }
    return new Promise((resolve) => {
      const sent = request(options, (response) => {
        response.on('error', () => resolve(0))
        response.on('end', () => resolve(response.statusCode ?? 0))
        response.resume()
      })
      sent.on('error', () => resolve(0))
      sent.end(QUERY)
    })
  }
}

/** By shard: its longest look of those that ended behind that moment. */
export function pausesMs(looks: readonly Look[], fromAt: number): readonly number[] {
  const longest = new Map<number, number>()
  for (const { shard, sentAt, tookMs } of looks) {
    if (sentAt + tookMs < fromAt) continue
    longest.set(shard, Math.max(tookMs, longest.get(shard) ?? 0))
  }
  return [...longest.values()].toSorted((x, y) => x - y)
}

function pause(): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, EVERY_MS))
}
