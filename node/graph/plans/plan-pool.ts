// Runs plans against the search engine: so many at once, of all callers and of each; more wait, in
// turns, and past a bound they are told to come back. The engine has no lanes for heavy ones: so
// none has all places. Source: PROTOCOL 3.10, 3.13.4.

import { LIMITS } from '../../../config/limits.ts'
import type { Clock } from '../../../cluster/clock.ts'
import type { GraphReader } from '../../../storage/search.ts'
import { FairQueue, type QueueBounds } from '../../queues/fair-queue.ts'
import type { PlanRunner } from '../graph.ts'
import type { ReadyPlan } from './plan-cache.ts'
import { type Caller, GRAPH_QUEUE, neverRun, noRoom } from './plan-queue.ts'

/** Plans at once. */
export interface PlansAtOnce {
  readonly max: number
  readonly identityMax: number
  readonly sessionMax: number
}

export interface PlanPoolOptions {
  /** Reader of a generation (IndexWatch.generation). */
  readonly readerOf: (generation: number) => GraphReader
  readonly clock: Clock
  readonly atOnce?: PlansAtOnce
  readonly queue?: QueueBounds
}

/** Totals since the start. */
export interface PlanStats {
  queries: number
  /** Time that queries took, waiting for others not included, milliseconds. */
  queryMs: number
  refused: number
  failed: number
}

interface Waiting {
  readonly caller: Caller
  readonly go: () => void
  readonly refuse: (error: Error) => void
}

const AT_ONCE: PlansAtOnce = {
  max: LIMITS.graph.plansInFlightMax,
  identityMax: LIMITS.graph.plansOfIdentityMax,
  sessionMax: LIMITS.graph.plansOfSessionMax,
}

export class PlanPool implements PlanRunner {
  readonly stats: PlanStats = { queries: 0, queryMs: 0, refused: 0, failed: 0 }
  readonly #options: PlanPoolOptions
  readonly #atOnce: PlansAtOnce
  /** Callers of the plans that run. */
  readonly #running: Caller[] = []
  readonly #queue: FairQueue<Waiting>

  constructor(options: PlanPoolOptions) {
    this.#options = options
    this.#atOnce = options.atOnce ?? AT_ONCE
    this.#queue = new FairQueue(options.queue ?? GRAPH_QUEUE)
  }

  /** Plans on their way, those that wait included. */
  get waiting(): number {
    return this.#running.length + this.#queue.size
  }

  async run(
    { plan, explains }: ReadyPlan,
    deadlineMs: number,
    generation: () => number,
    caller: Caller,
  ): Promise<string> {
    const { clock, readerOf } = this.#options
    const endMs = clock.monotonicMs() + deadlineMs
    await this.#enter(caller)
    const startedMs = clock.monotonicMs()
    this.stats.queries++
    try {
      if (startedMs >= endMs) throw neverRun()
      const budgetMs = Math.min(endMs - startedMs, LIMITS.graph.workMs)
      const reader = readerOf(generation())
      const answer = explains ? reader.explain(plan, budgetMs) : reader.query(plan, budgetMs)
      return JSON.stringify(await answer)
    } catch (error) {
      this.stats.failed++
      throw error
    } finally {
      this.stats.queryMs += clock.monotonicMs() - startedMs
      this.#running.splice(this.#running.indexOf(caller), 1)
      this.#goOn()
    }
  }

  async #enter(caller: Caller): Promise<void> {
    if (this.#queue.size === 0 && this.#mayRun(caller)) {
      this.#running.push(caller)
      return
    }
    await new Promise<void>((go, refuse) => {
      const dropped = this.#queue.push(caller, { caller, go, refuse })
      if (dropped !== null) {
        this.stats.refused++
        dropped.refuse(noRoom(this.#queue.size))
      }
      this.#goOn()
    })
  }

  /** Lets those in whose turn it is; from here on they count as running. */
  #goOn(): void {
    const mayGo = (caller: Caller): boolean => this.#mayRun(caller)
    for (let next = this.#queue.take(mayGo); next !== null; next = this.#queue.take(mayGo)) {
      this.#running.push(next.caller)
      next.go()
    }
  }

  #mayRun({ group, name }: Caller): boolean {
    const { max, identityMax, sessionMax } = this.#atOnce
    if (this.#running.length >= max) return false
    const own = this.#running.filter((caller) => caller.group === group)
    if (own.length >= identityMax) return false
    return own.filter((caller) => caller.name === name).length < sessionMax
  }
}
