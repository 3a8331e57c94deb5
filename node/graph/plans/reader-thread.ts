// The main thread's side of one reader thread: its plans, the deadline of each, and a new thread
// when one is stuck or dies. The pool says whose plan is next. Source: ARCHITECTURE 5, PROTOCOL
// 3.10.

import { Worker } from 'node:worker_threads'
import { type ErrorCode, RequestError, assert } from '../../../protocol/errors.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { Clock } from '../../../cluster/clock.ts'
import type { JournalAccess } from '../../../storage/embedded/journal/journal.ts'
import { GiveWay } from './give-way.ts'
import type { ThreadLog } from '../../thread-log.ts'
import {
  indexAway,
  type PlanOutcome,
  type PlanThread,
  type ReaderStats,
  type ThreadPlan,
  type ThreadState,
} from './plan-thread.ts'
import {
  type FromReader,
  type PlansIndex,
  type ReaderWorkerData,
  type ToReader,
  threadsMs,
} from './reader-messages.ts'
import type { SchemaVersion } from '../live-schema.ts'
import { BEHAVIOUR_TABLE } from '../table.ts'

/** An index, and the schema that it is read by. */
export interface ReadIndex {
  readonly version: SchemaVersion
  /** Of the directory's indexes. */
  readonly number: number
}

export interface ReaderThreadOptions {
  readonly journal: JournalAccess
  readonly clock: Clock
  readonly log: ThreadLog
  /** What is read now, and the version of the schema that a plan that is given now was made on. */
  readonly read: () => ReadIndex
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
  readonly resolve: (outcome: PlanOutcome) => void
  readonly reject: (error: Error) => void
}

export class ReaderThread implements PlanThread {
  readonly #options: ReaderThreadOptions
  readonly #stats: ReaderStats
  readonly #onChange: () => void
  readonly #cell = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  readonly #giveWay = new GiveWay(this.#cell, threadsMs)
  #worker: Worker | null = null
  /** What the worker reads. */
  #reads: ReadIndex | null = null
  #isReady = false
  /** In the order they were sent, which is the order they are answered in. */
  readonly #pending = new Map<number, Pending>()
  #nextId = 1
  /** Heavy plans that the worker was heard to have had. */
  #round = 0
  #watching: (() => void) | null = null
  #restartMs: number = LIMITS.storage.retryMs
  #closing = false

  /** Starts it. `onChange` is called when `state` has changed. */
  constructor(options: ReaderThreadOptions, stats: ReaderStats, onChange: () => void) {
    this.#options = options
    this.#stats = stats
    this.#onChange = onChange
    this.#start()
  }

  get state(): ThreadState {
    if (this.#worker === null) return 'away'
    return this.#isReady ? 'ready' : 'starting'
  }

  run({ plan, leftMs, generation, mayStop }: ThreadPlan): Promise<PlanOutcome> {
    assert(this.#worker !== null, 'a plan for a thread that is there')
    this.follow()
    const id = this.#nextId++
    const round = this.#round
    const message: ToReader = {
      id,
      plan: plan.json,
      explains: plan.explains === true,
      endsAtMs: threadsMs() + leftMs,
      generation,
      mayStop,
      round,
    }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
    this.#worker.postMessage(message)
    return new Promise((resolve, reject) => {
      const endsAtMs = this.#options.clock.monotonicMs() + leftMs
      this.#pending.set(id, { endsAtMs, resolve, reject })
      this.#watch()
    })
  }

  /** Plans come behind what they are to be run against. */
  follow(): void {
    const { version, number } = this.#options.read()
    const isSame = version === this.#reads?.version && number === this.#reads.number
    if (isSame || this.#worker === null) return
    this.#reads = { version, number }
    const message: PlansIndex = { nodeTypes: version.types, number }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
    this.#worker.postMessage(message)
  }

  giveWay(wanted: boolean): void {
    this.#giveWay.ask(wanted)
  }

  /** Ends the thread; what is still running is refused. */
  async close(): Promise<void> {
    this.#closing = true
    this.#watching?.()
    await this.#worker?.terminate()
    this.#refuse()
  }

  #start(): void {
    const { journal, table, read } = this.#options
    this.#reads = read()
    const { version, number } = this.#reads
    const workerData: ReaderWorkerData = {
      journal,
      table: table ?? BEHAVIOUR_TABLE,
      reads: { nodeTypes: version.types, number },
      giveWay: this.#cell,
    }
    const entry = this.#options.entry ?? new URL('./reader-worker.ts', import.meta.url)
    const worker = new Worker(entry, { workerData, name: 'graph-reader' })
    this.#worker = worker
    this.#isReady = false
    this.#round = 0
    worker.on('message', (message: FromReader) => {
      if (this.#worker === worker) this.#hear(message)
    })
    worker.on('error', (err) => {
      this.#options.log.error({ err }, 'a graph reader thread has failed')
    })
    worker.on('exit', () => {
      if (this.#worker === worker) this.#replace()
    })
  }

  #hear(message: FromReader): void {
    if (message === 'ready') {
      this.#isReady = true
      this.#onChange()
      return
    }
    if (message.isLong) this.#round++
    const pending = this.#pending.get(message.id)
    if (pending === undefined) return
    this.#pending.delete(message.id)
    this.#restartMs = LIMITS.storage.retryMs
    this.#stats.queryUs += message.us
    const { isHeavy, isLong } = message
    pending.resolve({ isHeavy, isLong, answer: this.#answerOf(message) })
  }

  #answerOf(message: Exclude<FromReader, 'ready'>): PlanOutcome['answer'] {
    if ('gaveWay' in message) {
      if (message.isHeavy) this.#stats.gaveWay++
      return null
    }
    this.#stats.queries++
    if ('json' in message) return message.json
    this.#stats.failed++
    if ('errors' in message) {
      const { code, message: text, details } = message.errors[0]!
      return new RequestError(code as ErrorCode, text, details)
    }
    this.#options.log.error({ error: message.failure }, 'a graph query has failed')
    return new Error(message.failure)
  }

  /** Looks now and then whether the oldest plan's time is over for good: then it is stuck. */
  #watch(): void {
    if (this.#watching !== null) return
    const { clock, log } = this.#options
    const stuckMs = this.#options.stuckMs ?? LIMITS.graph.stuckMs
    const look = (): void => {
      this.#watching = null
      const oldest = this.#pending.values().next().value
      if (oldest === undefined || this.#closing) return
      if (clock.monotonicMs() < oldest.endsAtMs + stuckMs) return this.#watch()
      log.error({}, 'a graph reader thread is stuck; replaced')
      this.#replace()
    }
    // Not in the timer itself: after a long pause of this thread answers may lie there unread.
    this.#watching = clock.after(Math.min(stuckMs, WATCH_MS), () => clock.defer(look))
  }

  #replace(): void {
    const stuck = this.#worker
    this.#worker = null
    void stuck?.terminate()
    this.#refuse()
    if (this.#closing) return
    this.#stats.restarts++
    this.#onChange()
    const ms = this.#restartMs
    this.#restartMs = Math.min(ms * 2, LIMITS.storage.retryMsMax)
    this.#options.clock.after(ms, () => {
      if (this.#closing) return
      this.#start()
      this.#onChange()
    })
  }

  #refuse(): void {
    const pending = [...this.#pending.values()]
    this.#pending.clear()
    for (const { reject } of pending) reject(indexAway())
  }
}
