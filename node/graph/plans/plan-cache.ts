// Plans by the text of their query and the permissions they were made under: the same page of the
// same client is planned once. All are of one version of the schema.

import { LIMITS } from '../../../config/limits.ts'
import type { Acl } from '../../../protocol/ace.ts'
import type { GraphPlan } from '../../../protocol/graph/plan.ts'
import { type KeptBounds, KeptPlans } from './kept-plans.ts'

/** A plan, and its JSON as a worker thread gets it. */
export interface ReadyPlan {
  readonly plan: GraphPlan
  readonly json: string
  /** Some of its nodes are read from actors' records. */
  readonly usesHistory: boolean
  /** What it takes is asked for (`GraphReader.explain`), not its answer. */
  readonly explains?: true
}

/** Longer texts are not kept: they are seldom sent twice. */
const TEXT_CHARS_MAX = 4_096

/**
 * `now` is computed when a query is planned; an escape may spell it. Too many matches are harmless.
 */
const MAY_MEAN_NOW = /now|\\u/

export class PlanCache {
  readonly #bounds: KeptBounds
  #plans: KeptPlans<ReadyPlan>
  #schema = 0
  /** A changed permission makes a new Acl, which has a new number. */
  readonly #numbers = new WeakMap<Acl, number>()
  #next = 1

  constructor(max: number) {
    this.#bounds = { max, charsMax: LIMITS.graph.plansCharsMax }
    this.#plans = new KeptPlans(this.#bounds)
  }

  /** Plans of another version of the schema are forgotten. */
  follow(schema: number): void {
    if (this.#schema === schema) return
    this.#schema = schema
    this.#plans = new KeptPlans(this.#bounds)
  }

  find(acl: Acl, text: string): ReadyPlan | null {
    if (text.length > TEXT_CHARS_MAX) return null
    const number = this.#numbers.get(acl)
    if (number === undefined) return null
    return this.#plans.find(`${number} ${text}`)
  }

  keep(acl: Acl, text: string, plan: ReadyPlan): void {
    if (text.length > TEXT_CHARS_MAX || MAY_MEAN_NOW.test(text)) return
    let number = this.#numbers.get(acl)
    if (number === undefined) {
      number = this.#next++
      this.#numbers.set(acl, number)
    }
    this.#plans.keep(`${number} ${text}`, plan, plan.json.length)
  }
}
