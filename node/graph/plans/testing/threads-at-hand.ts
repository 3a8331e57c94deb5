// Reader threads that do nothing by themselves: a test says what becomes of each plan, and when.

import type { TestClock } from '../../../../cluster/testing/harness.ts'
import { settle } from '../../../../cluster/testing/harness.ts'
import { RequestError } from '../../../../protocol/errors.ts'
import type { QueueBounds } from '../../../queues/fair-queue.ts'
import type { ReadyPlan } from '../plan-cache.ts'
import type { PlanOutcome, PlanThread, ThreadPlan, ThreadState } from '../plan-thread.ts'
import { indexAway } from '../plan-thread.ts'
import { ReaderPool } from '../reader-pool.ts'

interface Given {
  readonly name: string
  readonly of: ThreadPlan
  readonly resolve: (outcome: PlanOutcome) => void
  readonly reject: (error: Error) => void
}

export class ThreadAtHand implements PlanThread {
  state: ThreadState = 'ready'
  isAsked = false
  readonly given: Given[] = []
  readonly #onChange: () => void

  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  run(of: ThreadPlan): Promise<PlanOutcome> {
    const name = of.plan.json
    return new Promise((resolve, reject) => this.given.push({ name, of, resolve, reject }))
  }

  follow(): void {
    // It has no index open.
  }

  giveWay(wanted: boolean): void {
    this.isAsked = wanted
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  /** What it has, the one that runs first. */
  get names(): string {
    return this.given.map(({ name }) => name).join(' ')
  }

  /** The plan that runs is answered. */
  async answer(isHeavy = false): Promise<void> {
    const { name, resolve } = this.given.shift()!
    resolve({ isHeavy, isLong: isHeavy, answer: name })
    await settle()
  }

  /** The plan that runs is answered after a while, and what is behind it comes back. */
  async answerLate(): Promise<void> {
    const [first, ...others] = this.given.splice(0)
    first!.resolve({ isHeavy: false, isLong: true, answer: first!.name })
    for (const { resolve } of others) resolve({ isHeavy: false, isLong: false, answer: null })
    await settle()
  }

  /** The plan that runs is stopped, and what is behind it comes back. */
  async stop(): Promise<void> {
    const [first, ...others] = this.given.splice(0)
    first!.resolve({ isHeavy: true, isLong: true, answer: null })
    for (const { resolve } of others) resolve({ isHeavy: false, isLong: false, answer: null })
    await settle()
  }

  async become(state: ThreadState): Promise<void> {
    this.state = state
    if (state === 'away') for (const { reject } of this.given.splice(0)) reject(indexAway())
    this.#onChange()
    await settle()
  }
}

/** A pool of them; what has ended stands in `ended`, in its order. */
export class PoolAtHand {
  readonly threads: ThreadAtHand[] = []
  readonly ended: string[] = []
  readonly pool: ReaderPool
  #generation: () => number = () => 1
  readonly #plans = new Map<string, ReadyPlan>()

  constructor(clock: TestClock, threads: number, queue?: QueueBounds) {
    this.pool = new ReaderPool({
      clock,
      threads,
      startThread: (_stats, onChange) => {
        const thread = new ThreadAtHand(onChange)
        this.threads.push(thread)
        return thread
      },
      ...(queue && { queue }),
    })
  }

  set generation(generation: () => number) {
    this.#generation = generation
  }

  /** Sends plans of a caller `group` or `group/name`. */
  async send(who: string, ...names: string[]): Promise<void> {
    const [group, flow = group] = who.split('/')
    const caller = { group: group!, name: flow! }
    for (const name of names) {
      const plan = this.#plans.get(name) ?? { plan: { steps: [] }, json: name, usesHistory: false }
      this.#plans.set(name, plan)
      this.pool
        .run(plan, 10_000, () => this.#generation(), caller)
        .then(
          () => this.ended.push(name),
          (error: unknown) => {
            const code = error instanceof RequestError ? error.errors[0]!.code : String(error)
            this.ended.push(`${name}: ${code}`)
          },
        )
    }
    await settle()
  }

  /** All that runs, and waits, is answered. */
  async answerAll(isHeavy = false): Promise<void> {
    for (let busy = this.#busy; busy !== null; busy = this.#busy) await busy.answer(isHeavy)
  }

  get #busy(): ThreadAtHand | null {
    return this.threads.find(({ given }) => given.length > 0) ?? null
  }

  /** What each thread has. */
  get seats(): readonly string[] {
    return this.threads.map(({ names }) => names)
  }
}
