// What a reader thread does with what it is sent: runs plans, one after the other, and answers with
// ready JSON or with errors.

import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { Explained } from '../../../protocol/graph/explain/trace.ts'
import type { GraphPlan, GraphResult } from '../../../protocol/graph/plan.ts'
import { reasonOf } from '../../../cluster/feed/projection-batch.ts'
import { neverRun } from './plan-queue.ts'
import { GaveWay } from './give-way.ts'
import type { PlanAnswer, ToReader } from './reader-messages.ts'
import { KeptPlans } from './kept-plans.ts'

/** A GraphReader whose index is at hand. */
interface ReaderAtHand {
  query(plan: GraphPlan, budgetMs: number): GraphResult
  explain(plan: GraphPlan, budgetMs: number): Explained
  close(): void
}

/** By their JSON: the same object again lets a driver find its statements again. */
const KEPT = { max: LIMITS.graph.readerPlansMax, charsMax: LIMITS.graph.readerPlansCharsMax }

export class PlanServer {
  #reader: ReaderAtHand
  readonly #nowMs: () => number
  readonly #plans = new KeptPlans<GraphPlan>(KEPT)
  #generation: number | null = null

  /** `nowMs`: the clock by which deadlines are given. */
  constructor(reader: ReaderAtHand, nowMs: () => number) {
    this.#reader = reader
    this.#nowMs = nowMs
  }

  /** Plans from now on are made on the schema that this one reads by, and are run against it. */
  follow(reader: ReaderAtHand): void {
    this.#reader.close()
    this.#reader = reader
  }

  /** Never throws: whatever happens is an answer. */
  answer({ id, plan, explains, endsAtMs, generation }: ToReader): PlanAnswer {
    const startedMs = this.#nowMs()
    const us = (): number => Math.round((this.#nowMs() - startedMs) * 1_000)
    try {
      const leftMs = endsAtMs - startedMs
      if (leftMs <= 0) throw neverRun()
      // A reader that is closed opens the index at its next query.
      if (this.#generation !== null && this.#generation !== generation) this.#reader.close()
      this.#generation = generation
      const [reader, parsed] = [this.#reader, this.#plan(plan)]
      const answer = explains ? reader.explain(parsed, leftMs) : reader.query(parsed, leftMs)
      return { id, json: JSON.stringify(answer), us: us() }
    } catch (error) {
      if (error instanceof GaveWay) return { id, gaveWay: true, us: us() }
      if (error instanceof RequestError) return { id, errors: error.errors, us: us() }
      return { id, failure: reasonOf(error), us: us() }
    }
  }

  #plan(json: string): GraphPlan {
    const known = this.#plans.find(json)
    if (known !== null) return known
    const plan = JSON.parse(json) as GraphPlan
    this.#plans.keep(json, plan, json.length)
    return plan
  }
}
