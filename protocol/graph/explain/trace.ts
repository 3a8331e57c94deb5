// What running a plan took: of each step what it found, and what the engine was asked for it, in
// the engine's own words and without a value. Executions keep one where somebody asks (`?explain`),
// else none. Source: CONTRACT 1.4 "Explain".

import type { Step } from '../plan.ts'
import { cutText } from './condition-text.ts'

/** Bounds of what is told; part of LIMITS.graph. */
export const EXPLAIN_LIMITS = {
  /** Of one text: a filter, a statement, a query of the engine. */
  explainCharsMax: 8_192,
  /** Of all texts of one answer. */
  explainAllCharsMax: 262_144,
  /** Texts that are kept of a step, and lines of the plan of one. */
  explainQueriesMax: 16,
  explainLinesMax: 64,
} as const

/** What the engine was asked, as often as it was. */
export interface EngineQuery {
  readonly text: string
  runs: number
  /** What came back, of all runs. */
  rows: number
  ms: number
}

export interface StepWork {
  /** Nodes from which it went; null: it is a base set. */
  parents: number | null
  /** Nodes that it found. */
  rows: number
  ms: number
  readonly queries: ReadonlyMap<string, EngineQuery>
  /** Texts past the bound. */
  left: number
}

interface Work extends StepWork {
  readonly queries: Map<string, EngineQuery>
}

export class Trace {
  readonly #now: () => number
  readonly #works = new Map<Step, Work>()
  readonly #beganMs: number
  #current: Work | null = null
  #sinceMs = 0

  /** `now` in milliseconds, monotonic. */
  constructor(now: () => number) {
    this.#now = now
    this.#beganMs = now()
  }

  get now(): () => number {
    return this.#now
  }

  /** Milliseconds since it was made. */
  get totalMs(): number {
    return this.#now() - this.#beganMs
  }

  /** The nodes of a step are looked for now; what is asked from here on is asked for them. */
  begin(step: Step, parents: number | null): void {
    let work = this.#works.get(step)
    if (work === undefined) {
      work = { parents, rows: 0, ms: 0, queries: new Map(), left: 0 }
      this.#works.set(step, work)
    }
    this.#current = work
    this.#sinceMs = this.#now()
  }

  end(rows: number): void {
    const work = this.#current!
    work.rows += rows
    work.ms += this.#now() - this.#sinceMs
    this.#current = null
  }

  /** One request to the engine: its text without values, what came back, and since when. */
  query(text: string, rows: number, sinceMs: number): void {
    const work = this.#current
    if (work === null) return
    const known = work.queries.get(text)
    if (known === undefined && work.queries.size >= EXPLAIN_LIMITS.explainQueriesMax) {
      work.left++
      return
    }
    const query = known ?? { text, runs: 0, rows: 0, ms: 0 }
    if (known === undefined) work.queries.set(text, query)
    query.runs++
    query.rows += rows
    query.ms += this.#now() - sinceMs
  }

  of(step: Step): StepWork | null {
    return this.#works.get(step) ?? null
  }
}

/** What an engine did for a step, as it is told. */
export interface ToldWork {
  readonly at: string
  readonly parents: number | null
  readonly rows: number
  readonly ms: number
  readonly queries: readonly ToldQuery[]
  /** Texts that had no room. */
  readonly left?: number
}

export interface ToldQuery {
  readonly query: string
  /** How the engine goes about it, a line each, where it tells. */
  readonly plan?: readonly string[]
  readonly runs?: number
  readonly rows?: number
  readonly ms: number
}

/** What a reader tells of a plan that it ran. */
export interface Explained {
  readonly engine: string
  readonly steps: readonly ToldWork[]
  /** In the engine, and in all. */
  readonly engineMs: number
  readonly totalMs: number
}

export interface Telling {
  readonly engine: string
  /** Lines of the engine's own plan of a text; absent: it tells none. */
  readonly planOf?: (text: string) => readonly string[]
}

/** Everything that a trace has of a plan's steps, which were not all reached. */
export function told(steps: readonly Step[], trace: Trace, { engine, planOf }: Telling): Explained {
  const totalMs = trace.totalMs
  const works: ToldWork[] = []
  let room: number = EXPLAIN_LIMITS.explainAllCharsMax
  eachStep(steps, (step, at) => {
    const work = trace.of(step)
    if (work === null) return
    const queries: ToldQuery[] = []
    let { left } = work
    for (const { text, runs, rows, ms } of work.queries.values()) {
      const plan = planOf?.(text).slice(0, EXPLAIN_LIMITS.explainLinesMax)
      const query = cutText(text, EXPLAIN_LIMITS.explainCharsMax)
      room -= query.length + (plan ?? []).join('').length
      if (room < 0) left++
      else queries.push({ query, ...(plan && { plan }), runs, rows, ms: rounded(ms) })
    }
    const { parents, rows, ms } = work
    works.push({ at, parents, rows, ms: rounded(ms), queries, ...(left > 0 && { left }) })
  })
  const engineMs = works.reduce((sum, { ms }) => sum + ms, 0)
  return { engine, steps: works, engineMs: rounded(engineMs), totalMs: rounded(totalMs) }
}

/** All steps with their places in the body, each before those below it. */
export function eachStep(
  steps: readonly Step[],
  act: (step: Step, at: string) => void,
  within = '',
): void {
  for (const [i, step] of steps.entries()) {
    const at = `${within}/${i}`
    act(step, at)
    eachStep(step.plan.steps, act, `${at}/node/navigate`)
  }
}

/** Milliseconds with their microseconds. */
export const rounded = (ms: number): number => Math.round(ms * 1_000) / 1_000
