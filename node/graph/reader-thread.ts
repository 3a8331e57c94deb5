// The main thread's side of a reader thread: a bounded queue of plans, a deadline for each, and a
// new thread when one is stuck or dies. It stands between the graph and the thread that reads the
// index. Source: ARCHITECTURE 5, PROTOCOL 3.10.

import { Worker } from 'node:worker_threads'
import { type ErrorCode, RequestError } from '../../protocol/errors.ts'
import { LIMITS } from '../../config/limits.ts'
import type { Clock } from '../../cluster/clock.ts'
import type { JournalAccess } from '../../storage/embedded/journal.ts'
import type { PlanRunner } from './graph.ts'
import type { ThreadLog } from './index-thread.ts'
import type { ReadyPlan } from './plan-cache.ts'
import {
  type FromReader,
  type ReaderWorkerData,
  type ToReader,
  threadsMs,
} from './reader-messages.ts'
import { BEHAVIOUR_TABLE } from './table.ts'

export interface ReaderThreadOptions {
  readonly journal: JournalAccess
  readonly clock: Clock
  readonly log: ThreadLog
  readonly queueMax?: number
  readonly stuckMs?: number
  /** Module of the actor types; the platform's own by default. */
  readonly table?: string
  /** The thread's code; another one in tests. */
  readonly entry?: URL
}

/** How often a thread with work is looked at. */
const WATCH_MS = 250

interface Pending {
  readonly endsAtMs: number
  readonly resolve: (json: string) => void
  readonly reject: (error: Error) => void
}

/** Totals since the start. */
export interface ReaderStats {
  queries: number
  /** Time that queries took in the thread, microseconds. */
  queryUs: number
  refused: number
  failed: number
  restarts: number
}

export class ReaderThread implements PlanRunner {
  readonly stats: ReaderStats = { queries: 0, queryUs: 0, refused: 0, failed: 0, restarts: 0 }
  readonly #options: ReaderThreadOptions
  /** In the order they were sent, which is the order they are answered in. */
  readonly #pending = new Map<number, Pending>()
  #worker: Worker | null = null
  #nextId = 1
  #watching: (() => void) | null = null
  #restartMs: number = LIMITS.projectorRetryMs
  #closing = false

  constructor(options: ReaderThreadOptions) {
    this.#options = options
    this.#start()
  }

  get waiting(): number {
    return this.#pending.size
  }

  run(plan: ReadyPlan, deadlineMs: number, life: number): Promise<string> {
    const { clock, queueMax } = this.#options
    if (this.#pending.size >= (queueMax ?? LIMITS.graphQueueMax)) {
      this.stats.refused++
      const text = `${this.#pending.size} graph requests are waiting already; try again in a moment`
      return Promise.reject(new RequestError('TOO_BUSY', text))
    }
    if (this.#worker === null) return Promise.reject(away())
    const id = this.#nextId++
    const message: ToReader = { id, plan: plan.json, endsAtMs: threadsMs() + deadlineMs, life }
    const endsAtMs = clock.monotonicMs() + deadlineMs
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
    this.#worker.postMessage(message)
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { endsAtMs, resolve, reject })
      this.#watch()
    })
  }

  /** Ends the thread; what is still waiting is refused. */
  async close(): Promise<void> {
    this.#closing = true
    this.#watching?.()
    await this.#worker?.terminate()
    this.#refuseAll()
  }

  #start(): void {
    const { journal, table } = this.#options
    const workerData: ReaderWorkerData = { journal, table: table ?? BEHAVIOUR_TABLE }
    const entry = this.#options.entry ?? new URL('./reader-worker.ts', import.meta.url)
    const worker = new Worker(entry, { workerData, name: 'graph-reader' })
    this.#worker = worker
    worker.on('message', (message: FromReader) => this.#hear(message))
    worker.on('error', (err) => {
      this.#options.log.error({ err }, 'the graph reader thread has failed')
    })
    worker.on('exit', () => {
      if (this.#worker === worker) this.#replace()
    })
  }

  #hear(message: FromReader): void {
    const pending = this.#pending.get(message.id)
    if (pending === undefined) return
    this.#pending.delete(message.id)
    this.#restartMs = LIMITS.projectorRetryMs
    this.stats.queries++
    this.stats.queryUs += message.us
    if ('json' in message) return pending.resolve(message.json)
    this.stats.failed++
    if ('errors' in message) {
      const { code, message: text, details } = message.errors[0]!
      return pending.reject(new RequestError(code as ErrorCode, text, details))
    }
    this.#options.log.error({ error: message.failure }, 'a graph query has failed')
    return pending.reject(new Error(message.failure))
  }

  /** Looks now and then whether the oldest query's time is over for good: then it is stuck. */
  #watch(): void {
    if (this.#watching !== null) return
    const { clock, log } = this.#options
    const stuckMs = this.#options.stuckMs ?? LIMITS.graphStuckMs
    const look = (): void => {
      this.#watching = null
      const oldest = this.#pending.values().next().value
      if (oldest === undefined) return
      if (clock.monotonicMs() < oldest.endsAtMs + stuckMs) return this.#watch()
      log.error({ waiting: this.#pending.size }, 'the graph reader thread is stuck; replaced')
      this.#replace()
    }
    // Not in the timer itself: after a long pause of this thread answers may lie there unread.
    this.#watching = clock.after(Math.min(stuckMs, WATCH_MS), () => clock.defer(look))
  }

  #replace(): void {
    const stuck = this.#worker
    this.#worker = null
    void stuck?.terminate()
    this.#refuseAll()
    if (this.#closing) return
    this.stats.restarts++
    const ms = this.#restartMs
    this.#restartMs = Math.min(ms * 2, LIMITS.projectorRetryMsMax)
    this.#options.clock.after(ms, () => {
      if (!this.#closing) this.#start()
    })
  }

  #refuseAll(): void {
    const pending = [...this.#pending.values()]
    this.#pending.clear()
    for (const { reject } of pending) reject(away())
  }
}

function away(): RequestError {
  return new RequestError('UNAVAILABLE', 'the graph index can not be read now; try again')
}
