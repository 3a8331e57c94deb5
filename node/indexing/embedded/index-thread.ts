// The main thread's side of the index: tells the worker of new heads, writes the rows of parked
// actors for it, starts it again when it dies, and knows how far it is behind. Source: PROTOCOL
// 3.11, 3.13, ARCHITECTURE 8.

import { Worker } from 'node:worker_threads'
import { LIMITS } from '../../../config/limits.ts'
import type { Clock } from '../../../cluster/clock.ts'
import { ackDelayMs, type Lag, LagMeter } from '../../../cluster/feed/lag.ts'
import { INDEX_CONSUMER } from '../../../cluster/feed/parked-actors.ts'
import { encodeParked, reasonOf } from '../../../cluster/feed/projection-batch.ts'
import { Outage } from '../../../protocol/outage.ts'
import type { JournalAccess } from '../../../storage/embedded/journal/journal.ts'
import type { DerivedRow, Maybe } from '../../../storage/journal.ts'
import { layoutOf } from '../../../storage/sqlite/layout.ts'
import type { LiveSchema, SchemaVersion } from '../../graph/live-schema.ts'
import type { FromIndexWorker, IndexWorkerData, ToIndexWorker } from './index-messages.ts'
import { ProgressWatch } from './index-watch.ts'
import { SharedProgress } from './shared-progress.ts'
import { BEHAVIOUR_TABLE } from '../../graph/table.ts'
import type { ThreadLog } from '../../thread-log.ts'

export interface IndexThreadOptions {
  readonly journal: JournalAccess
  readonly shards: number
  readonly generation: string
  readonly clock: Clock
  readonly log: ThreadLog
  /** A change of it that lays the index out anew has it filled anew. */
  readonly schema: LiveSchema
  /**
   * Newest committed offsets, at the start, of the shards that are to be followed: one whose actors
   * have no graph nodes can be left out.
   */
  readonly heads: Iterable<{ readonly shard: number; readonly offset: number }>
  /** Writes derived rows of a shard; rejects when they are not durable. */
  readonly writeRows: (shard: number, rows: readonly DerivedRow[]) => Promise<void>
  /** Offset up to which the shard's derived rows are written. */
  readonly flushed: (shard: number) => Maybe<number>
  /** Module of the actor types; the platform's own by default. */
  readonly table?: string
  /** The worker's code; another one in tests. */
  readonly entry?: URL
}

/** The lag is looked at again after this long; in between the last look holds. */
const LAG_HOLDS_MS = 5

export class IndexThread {
  readonly progress: SharedProgress
  readonly watch: ProgressWatch
  readonly #options: IndexThreadOptions
  readonly #meter: LagMeter
  #worker: Worker | null = null
  #restartMs: number = LIMITS.storage.retryMs
  #restarts = 0
  #stopping = false
  #startedAtMs = 0
  /** By which the worker's index is laid out. */
  #laidOut: SchemaVersion
  /** The worker was told to stop, for the next one to begin with another layout. */
  #isLaidAnew = false
  readonly #unfollow: () => void
  readonly #opened = new Set<() => void>()
  #isOpen = false
  #ended: () => void = () => undefined
  #lag: Lag = { entries: 0, ageMs: 0 }
  #lagAtMs = Number.NEGATIVE_INFINITY
  readonly #outage: Outage

  constructor(options: IndexThreadOptions) {
    this.#options = options
    this.#outage = new Outage({
      log: options.log,
      now: () => options.clock.monotonicMs(),
      failing: 'the graph index could not go on; it tries again',
      back: 'the graph index goes on',
    })
    this.progress = new SharedProgress(options.shards)
    this.#meter = new LagMeter(this.progress, () => options.clock.nowMs())
    const { clock, flushed } = options
    const follows = (shard: number): boolean => this.heads.has(shard)
    this.watch = new ProgressWatch({ progress: this.progress, clock, flushed, follows })
    for (const { shard, offset } of options.heads) this.#setHead(shard, offset)
    this.#laidOut = options.schema.current
    this.#unfollow = options.schema.follow((version) => this.#follow(version))
    this.#start()
  }

  /** The shard's log is committed up to here. Called once per group, in any order of shards. */
  committed(shard: number, head: number): void {
    this.#setHead(shard, head)
    if (this.progress.takeAsleep()) this.#post({ kind: 'wake' })
  }

  /** Newest committed offsets of the shards that are followed. */
  get heads(): ReadonlyMap<number, number> {
    return this.#meter.heads
  }

  /** How far the index is behind the journal. */
  lag(): Lag {
    const nowMs = this.#options.clock.monotonicMs()
    if (nowMs - this.#lagAtMs >= LAG_HOLDS_MS) {
      this.#lag = this.#meter.lag()
      this.#lagAtMs = nowMs
    }
    return this.#lag
  }

  /**
   * How long acknowledgements should be held back now, milliseconds (ARCHITECTURE 8). While the
   * index is filled anew nobody is slowed down for it: what it has to reach does not move.
   */
  throttleMs(): number {
    return this.progress.ready ? ackDelayMs(this.lag()) : 0
  }

  /** Resolves once the worker has opened the index: from then on it can be read. */
  opened(): Promise<void> {
    if (this.#isOpen) return Promise.resolve()
    return new Promise((resolve) => this.#opened.add(resolve))
  }

  /** Times that the worker had to be started again. */
  get restarts(): number {
    return this.#restarts
  }

  /** Lets parked actors be projected again: all, or one (PROTOCOL 3.11). */
  retryParked(actorId: string | null = null): void {
    this.#post({ kind: 'retry', actorId })
  }

  /** Ends the worker after the batch it is at; what is left is for the next start. */
  async close(): Promise<void> {
    this.#stopping = true
    this.#unfollow()
    const worker = this.#worker
    if (worker === null) return
    const ended = new Promise<void>((resolve) => (this.#ended = resolve))
    this.#post({ kind: 'stop' })
    const cancel = this.#options.clock.after(LIMITS.graph.deadlineMs, () => void worker.terminate())
    await ended
    cancel()
  }

  /** Who has no other layout has no other index. */
  #follow(version: SchemaVersion): void {
    const isSame = fingerprintOf(version) === fingerprintOf(this.#laidOut)
    this.#laidOut = version
    if (isSame || this.#worker === null) return
    this.#isLaidAnew = true
    this.#post({ kind: 'stop' })
  }

  #setHead(shard: number, head: number): void {
    this.#meter.committed(shard, head)
    this.progress.setHead(shard, head)
  }

  #post(message: ToIndexWorker): void {
    this.#worker?.postMessage(message)
  }

  #start(): void {
    const { journal, shards, generation, entry, table } = this.#options
    this.#isLaidAnew = false
    const workerData: IndexWorkerData = {
      journal,
      shards,
      generation,
      table: table ?? BEHAVIOUR_TABLE,
      nodeTypes: this.#laidOut.types,
      progress: this.progress.buffer,
    }
    this.#startedAtMs = this.#options.clock.monotonicMs()
    // What another run of the worker said of itself no longer holds.
    this.progress.ready = false
    this.progress.takeAsleep()
    const worker = new Worker(entry ?? new URL('./index-worker.ts', import.meta.url), {
      workerData,
      name: 'graph-index',
    })
    this.#worker = worker
    worker.on('message', (message: FromIndexWorker) => this.#hear(worker, message))
    worker.on('error', (err) => {
      this.#options.log.error({ err }, 'the graph index thread has failed')
    })
    worker.on('exit', () => this.#exited(worker))
  }

  #exited(worker: Worker): void {
    if (this.#worker === worker) this.#worker = null
    if (this.#stopping) return this.#ended()
    if (this.#isLaidAnew) return this.#start()
    this.#restarts++
    const livedMs = this.#options.clock.monotonicMs() - this.#startedAtMs
    if (livedMs > LIMITS.storage.retryMsMax) this.#restartMs = LIMITS.storage.retryMs
    const ms = this.#restartMs
    this.#restartMs = Math.min(ms * 2, LIMITS.storage.retryMsMax)
    this.#options.clock.after(ms, () => {
      if (!this.#stopping) this.#start()
    })
  }

  #hear(worker: Worker, message: FromIndexWorker): void {
    if (message.kind === 'applied') return this.watch.applied()
    if (message.kind === 'opened') {
      this.watch.generation++
      this.#isOpen = true
      for (const resolve of this.#opened) resolve()
      return this.#opened.clear()
    }
    if (message.kind === 'failed') {
      this.#outage.failed({ error: message.error })
      return
    }
    if (message.kind === 'back') return this.#outage.answered()
    if (message.kind === 'reset') {
      const { why } = message
      this.#options.log.error({ why }, 'the graph index is emptied and filled from the journal')
      return
    }
    const { id } = message
    const answer = (error: string | null): void => {
      const kept: ToIndexWorker = { kind: 'kept', id, error }
      if (this.#worker !== worker) return
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
      worker.postMessage(kept)
    }
    this.#keep(message).then(
      () => answer(null),
      (error: unknown) => answer(reasonOf(error)),
    )
  }

  async #keep({ kind, parked }: Extract<FromIndexWorker, { id: number }>) {
    const { actorId, shard, offset, reason } = parked
    if (kind === 'park') {
      this.#options.log.error(
        { actor: actorId, shard, offset, reason },
        'an actor can not be shown in the graph; it is parked, the others go on',
      )
    }
    // The row moves forward only, by offset: what clears it must not be older than what wrote it.
    const row: DerivedRow = {
      kind: 'parked',
      consumer: INDEX_CONSUMER,
      actorId,
      body: kind === 'park' ? encodeParked(parked) : null,
      offset: Math.max(offset, this.progress.applied(shard)),
    }
    await this.#options.writeRows(shard, [row])
  }
}

const fingerprintOf = ({ schema }: SchemaVersion): string => layoutOf(schema).fingerprint
