// One order in every shard, asked again and again: how long a shard is silent when its owner dies
// or hands it over, as callers see it. Source: PROTOCOL 4.2 (F1, F24), ARCHITECTURE 8.

import { create } from '../harness/orders.ts'
import { Patience, tick } from '../harness/patience.ts'
import { stampUuid7 } from '../../protocol/ids.ts'
import { randomBytes } from 'node:crypto'
import { formatUuid } from '../../protocol/ids.ts'
import { answered } from './end.ts'
import type { Door } from './caller.ts'

/** One look at one shard. */
export interface Look {
  readonly shard: number
  readonly door: string
  /** Milliseconds of performance.now(). */
  readonly sentAt: number
  readonly tookMs: number
  /** HTTP status, or the name of the error. */
  readonly how: string
}

const QUERY = [{ type: 'query', body: { fields: ['orderNumber'] } }]
const LOOK_MS_MAX = 20_000

export class Probes {
  readonly #ids: readonly string[]
  readonly #doors: () => readonly Door[]
  readonly looks: Look[] = []
  readonly #watching: Promise<void>[] = []
  #stopped = false

  private constructor(ids: readonly string[], doors: () => readonly Door[]) {
    this.#ids = ids
    this.#doors = doors
  }

  /** Makes an order in each shard. */
  static async make(shards: number, doors: () => readonly Door[]): Promise<Probes> {
    const ids = Array.from({ length: shards }, (_, shard) =>
      formatUuid(stampUuid7(randomBytes(16), Date.now(), shard)),
    )
    await Promise.all(
      ids.map((id, i) => {
        const body = [create({ orderNumber: `PROBE-${i}` })]
        return answered(doors()[0]!, `/resources/actors/order/${id}`, { body })
      }),
    )
    return new Probes(ids, doors)
  }

  get count(): number {
    return this.#ids.length
  }

  /**
   * Resolves when every shard has answered over every door; gives the milliseconds until then.
   * Rejects after `ms`.
   */
  async allAnswer(ms = 30_000): Promise<number> {
    const began = performance.now()
    const patience = new Patience(ms)
    const doors = this.#doors()
    await Promise.all(
      doors.flatMap((door) =>
        this.#ids.map(async (_, shard) => {
          for (;;) {
            const { how } = await this.#look(door, shard)
            if (how === '200') return
            if (patience.isOver()) throw new Error(`shard ${shard} over ${door.name}: ${how}`)
            await tick()
          }
        }),
      ),
    )
    return performance.now() - began
  }

  /** Looks at every shard all the time, over every one of `doors` in turn, until `stop`. */
  watch(from: () => readonly Door[] = this.#doors, everyMs = 25): this {
    this.#stopped = false
    for (const shard of this.#ids.keys()) this.#watching.push(this.#watch(shard, from, everyMs))
    return this
  }

  async #watch(shard: number, from: () => readonly Door[], everyMs: number): Promise<void> {
    for (let i = shard; !this.#stopped; i++) {
      const doors = from()
      const door = doors[i % doors.length]
      if (door !== undefined) this.looks.push(await this.#look(door, shard))
      await tick(everyMs)
    }
  }

  async stop(): Promise<readonly Look[]> {
    this.#stopped = true
    await Promise.all(this.#watching)
    return this.looks
  }

  async #look(door: Door, shard: number): Promise<Look> {
    const sentAt = performance.now()
    const path = `/resources/actors/order/${this.#ids[shard]!}`
    const how = await door.ask(path, { body: QUERY, timeoutMs: LOOK_MS_MAX }).then(
      ({ status }) => String(status),
      (error: NodeJS.ErrnoException) => error.code ?? error.name,
    )
    return { shard, door: door.name, sentAt, tookMs: performance.now() - sentAt, how }
  }
}

/** By shard: its longest look of those that were sent or under way from then on. */
export function pauses(looks: readonly Look[], fromAt = 0): ReadonlyMap<number, number> {
  const longest = new Map<number, number>()
  for (const { shard, sentAt, tookMs } of looks) {
    if (sentAt + tookMs < fromAt) continue
    longest.set(shard, Math.max(tookMs, longest.get(shard) ?? 0))
  }
  return longest
}

/** The value below which that share of the values lies; 0 without any. */
export function quantile(values: Iterable<number>, share: number): number {
  const sorted = [...values].toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}
