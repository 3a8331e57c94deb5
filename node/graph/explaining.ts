// One explained query (`?explain`): its plan, what the engine was asked, and where the time went.
// Source: CONTRACT 1.4 "Explain".

import { assert } from '../../protocol/errors.ts'
import {
  type ToldStep,
  type ToldTo,
  toldPlan,
  toldWork,
} from '../../protocol/graph/explain/told-plan.ts'
import { type Explained, rounded } from '../../protocol/graph/explain/trace.ts'
import type { GraphPlan } from '../../protocol/graph/plan.ts'
import type { GraphAccess, PlanNotes } from '../../protocol/graph/planning.ts'
import type { GraphSchema } from '../../protocol/graph/schema.ts'

/** What is told instead of an answer. */
export interface Explanation {
  readonly plan: readonly ToldStep[]
  readonly engine: { readonly name: string; readonly steps: ReturnType<typeof toldWork> }
  /** Milliseconds. */
  readonly timings: {
    readonly totalMs: number
    readonly planningMs: number
    /** Waiting for what X-Consistency names. */
    readonly consistencyMs: number
    /** Waiting for others, and the way to a reader and back. */
    readonly queueMs: number
    readonly engineMs: number
    readonly assemblingMs: number
  }
}

type Part = 'consistency' | 'planning' | 'run'

export class Explaining {
  readonly #nowMs: () => number
  readonly #access: GraphAccess
  readonly #spentMs: Record<Part, number> = { consistency: 0, planning: 0, run: 0 }
  #part: Part = 'planning'
  #sinceMs: number
  #plan: GraphPlan | null = null
  #to: ToldTo | null = null

  constructor(nowMs: () => number, access: GraphAccess) {
    this.#nowMs = nowMs
    this.#access = access
    this.#sinceMs = nowMs()
  }

  /** From here on time is spent on this. */
  begin(part: Part): void {
    const nowMs = this.#nowMs()
    this.#spentMs[this.#part] += nowMs - this.#sinceMs
    this.#sinceMs = nowMs
    this.#part = part
  }

  hasPlan(plan: GraphPlan, schema: GraphSchema, notes: PlanNotes): void {
    this.#plan = plan
    this.#to = { schema, notes, access: this.#access }
  }

  /** `json`: what the reader told, an `Explained`. */
  told(json: string): Explanation {
    this.begin('planning')
    const [plan, to] = [this.#plan, this.#to]
    assert(plan !== null && to !== null, 'what was run was planned')
    const { engine, steps, engineMs, totalMs } = JSON.parse(json) as Explained
    const { consistency, planning, run } = this.#spentMs
    return {
      plan: toldPlan(plan.steps, to),
      engine: { name: engine, steps: toldWork(plan.steps, steps, to) },
      timings: {
        totalMs: rounded(consistency + planning + run),
        planningMs: rounded(planning),
        consistencyMs: rounded(consistency),
        queueMs: rounded(Math.max(0, run - totalMs)),
        engineMs,
        assemblingMs: rounded(Math.max(0, totalMs - engineMs)),
      },
    }
  }
}
