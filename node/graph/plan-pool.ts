// Runs plans against the search engine: so many at once, more wait, past a bound they are told to
// come back. It stands between the graph and the driver. Source: PROTOCOL 3.10, 3.13.4.

import { RequestError } from '../../protocol/errors.ts'
import { LIMITS } from '../../config/limits.ts'
import type { Clock } from '../../cluster/clock.ts'
import type { GraphReader } from '../../storage/search.ts'
import type { PlanRunner } from './graph.ts'
import type { ReadyPlan } from './plan-cache.ts'

export interface PlanPoolOptions {
  /** Reader of a generation (IndexWatch.life). */
  readonly readerOf: (generation: number) => GraphReader
  readonly clock: Clock
  readonly inFlightMax?: number
  readonly queueMax?: number
}

/** Totals since the start. */
export interface PlanStats {
  queries: number
  /** Time that queries took, waiting for others not included, milliseconds. */
  queryMs: number
  refused: number
  failed: number
}

export class PlanPool implements PlanRunner {
  readonly stats: PlanStats = { queries: 0, queryMs: 0, refused: 0, failed: 0 }
  readonly #options: PlanPoolOptions
  #inFlight = 0
  readonly #queue: (() => void)[] = []

  constructor(options: PlanPoolOptions) {
    this.#options = options
  }

  /** Plans on their way, those that wait included. */
  get waiting(): number {
    return this.#inFlight + this.#queue.length
  }

  async run({ plan }: ReadyPlan, deadlineMs: number, life: number): Promise<string> {
    const { clock, readerOf } = this.#options
    const endMs = clock.monotonicMs() + deadlineMs
    await this.#enter()
    const startedMs = clock.monotonicMs()
    this.stats.queries++
    try {
      if (startedMs >= endMs) {
        throw new RequestError(
          'UNAVAILABLE',
          'the query waited for others until its time was over; it was not run',
        )
      }
      return JSON.stringify(await readerOf(life).query(plan, endMs - startedMs))
    } catch (error) {
      this.stats.failed++
      throw error
    } finally {
      this.stats.queryMs += clock.monotonicMs() - startedMs
      this.#inFlight--
      this.#queue.shift()?.()
    }
  }

  async #enter(): Promise<void> {
    const { inFlightMax, queueMax } = this.#options
    if (this.#inFlight >= (inFlightMax ?? LIMITS.graphPlansInFlightMax)) {
      if (this.#queue.length >= (queueMax ?? LIMITS.graphQueueMax)) {
        this.stats.refused++
        const text = `${this.#queue.length} graph requests are waiting already; try again in a moment`
        throw new RequestError('TOO_BUSY', text)
      }
      await new Promise<void>((resolve) => this.#queue.push(resolve))
    }
    this.#inFlight++
  }
}
