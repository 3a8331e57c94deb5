// What a pool of threads that run plans asks of each.

import { RequestError } from '../../../protocol/errors.ts'
import type { ReadyPlan } from './plan-cache.ts'

export type ThreadState = 'starting' | 'ready' | 'away'

/** A plan for a thread. */
export interface ThreadPlan {
  readonly plan: ReadyPlan
  /** What is left of its time, milliseconds. */
  readonly leftMs: number
  readonly generation: number
  /** It may be stopped for others. */
  readonly mayStop: boolean
}

/** What became of a plan. */
export interface PlanOutcome {
  /** It worked for longer than others should wait for it. */
  readonly isHeavy: boolean
  /** It worked for so long that others should not be behind it; heavy ones are. */
  readonly isLong: boolean
  /** The answer as JSON, or why there is none; null: it was stopped for others, or not begun. */
  readonly answer: string | Error | null
}

/** A thread that runs plans one after the other, as they are given. */
export interface PlanThread {
  /** Nothing is given to one that is away. */
  readonly state: ThreadState
  /** Rejects with UNAVAILABLE when the thread is gone before the plan is done. */
  run(plan: ThreadPlan): Promise<PlanOutcome>
  /** What is read may be another index by now: the old one is closed. */
  follow(): void
  /** Whether others wait for what runs. */
  giveWay(wanted: boolean): void
  close(): Promise<void>
}

/** Totals since the start, of all threads of a pool. */
export interface ReaderStats {
  queries: number
  /** Time that plans took in the threads, microseconds. */
  queryUs: number
  refused: number
  failed: number
  /** Stops of a plan that others waited for. */
  gaveWay: number
  restarts: number
}

/** What a caller is told whose plan's thread has gone, or for whom there is none. */
export function indexAway(): RequestError {
  return new RequestError('UNAVAILABLE', 'the graph index can not be read now; try again')
}
