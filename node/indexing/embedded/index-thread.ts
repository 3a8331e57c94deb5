// The main thread's side of one index file: its worker, started again when it dies, and the rows of
// parked actors that the worker may not write itself. Source: ARCHITECTURE 2, PROTOCOL 3.11, 3.13.

import { Worker } from 'node:worker_threads'
import { LIMITS } from '../../../config/limits.ts'
import type { Clock } from '../../../cluster/clock.ts'
import { encodeParked, reasonOf } from '../../../cluster/feed/projection-batch.ts'
import { Outage } from '../../../protocol/outage.ts'
import type { JournalAccess } from '../../../storage/embedded/journal/journal.ts'
import type { DerivedRow } from '../../../storage/journal.ts'
import { removeIndex } from '../../../storage/sqlite/file.ts'
import type { SchemaVersion } from '../../graph/live-schema.ts'
import { BEHAVIOUR_TABLE } from '../../graph/table.ts'
import type { ThreadLog } from '../../thread-log.ts'
import { fingerprintOf, type IndexFile, parkedConsumerOf } from './index-files.ts'
import type { FromIndexWorker, IndexWorkerData, ToIndexWorker } from './index-messages.ts'
import { SharedProgress } from './shared-progress.ts'

export interface IndexThreadOptions {
  readonly journal: JournalAccess
  readonly shards: number
  readonly generation: string
  readonly clock: Clock
  readonly log: ThreadLog
  /** Writes derived rows of a shard; rejects when they are not durable. */
  readonly writeRows: (shard: number, rows: readonly DerivedRow[]) => Promise<void>
  /** Module of the actor types; the platform's own by default. */
  readonly table?: string
  /** The worker's code; another one in tests. */
  readonly entry?: URL
}

/** What it tells the index that it is a file of. */
export interface IndexThreadHearer {
  /** The file is there, and may be another than before. */
  opened(): void
  /** It has moved, and somebody waits for it. */
  applied(): void
}

export class IndexThread {
  readonly progress: SharedProgress
  readonly number: number
  readonly #options: IndexThreadOptions
  readonly #hearer: IndexThreadHearer
  #worker: Worker | null = null
  #restartMs: number = LIMITS.storage.retryMs
  #restarts = 0
  #startedAtMs = 0
  #version: SchemaVersion
  #isFilling: boolean
  #isStopping = false
  /** It is to stop, for the next worker to begin with another layout. */
  #isLaidAnew = false
  #ended: () => void = () => undefined
  #served: (() => void) | null = null
  readonly #outage: Outage

  constructor(
    file: IndexFile,
    heads: ReadonlyMap<number, number>,
    options: IndexThreadOptions & {
      readonly hearer: IndexThreadHearer
      /** It begins behind these, which never reject. */
      readonly after: ReadonlySet<Promise<void>>
    },
  ) {
    this.number = file.number
    this.#version = file.version
    this.#isFilling = file.isFilling
    this.#options = options
    this.#hearer = options.hearer
    this.#outage = new Outage({
      log: options.log,
      now: () => options.clock.monotonicMs(),
      failing: 'the graph index could not go on; it tries again',
      back: 'the graph index goes on',
    })
    this.progress = new SharedProgress(options.shards)
    for (const [shard, head] of heads) this.progress.setHead(shard, head)
    if (options.after.size === 0) this.#start()
    else void Promise.all(options.after).then(() => (this.#isStopping ? undefined : this.#start()))
  }

  /** By which its file is laid out. */
  get version(): SchemaVersion {
    return this.#version
  }

  /** Times that the worker had to be started again. */
  get restarts(): number {
    return this.#restarts
  }

  committed(shard: number, head: number): void {
    this.progress.setHead(shard, head)
    if (this.progress.takeAsleep()) this.#post({ kind: 'wake' })
  }

  retryParked(actorId: string | null): void {
    this.#post({ kind: 'retry', actorId })
  }

  /** Works all the time from now on. */
  hurry(): void {
    this.#post({ kind: 'hurry' })
  }

  /** True: its file is the one that is read from the next start on; false: not known yet. */
  serve(waitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(waitMs, () => {
        this.#served = null
        resolve(false)
      })
      this.#served = () => {
        cancel()
        this.#served = null
        this.#isFilling = false
        resolve(true)
      }
      this.#post({ kind: 'serve' })
    })
  }

  /** Of the same layout, which the next worker writes into the file; or the file is made anew. */
  lay(version: SchemaVersion): void {
    const isSame = fingerprintOf(version) === fingerprintOf(this.#version)
    this.#version = version
    if (isSame || this.#worker === null) return
    this.#isLaidAnew = true
    this.#post({ kind: 'stop' })
  }

  /** Ends the worker after the batch it is at; what is left is for the next start. */
  async stop(): Promise<void> {
    this.#isStopping = true
    const worker = this.#worker
    if (worker === null) return
    const ended = new Promise<void>((resolve) => (this.#ended = resolve))
    this.#post({ kind: 'stop' })
    const cancel = this.#options.clock.after(LIMITS.graph.deadlineMs, () => void worker.terminate())
    await ended
    cancel()
  }

  /** Goes on after a stop. */
  goOn(): void {
    this.#isStopping = false
    this.#start()
  }

  /** Deletes the file of a worker that is stopped. */
  remove(): Promise<void> {
    return removeIndex({ dir: this.#options.journal.dir, number: this.number })
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
      number: this.number,
      table: table ?? BEHAVIOUR_TABLE,
      nodeTypes: this.#version.types,
      isFilling: this.#isFilling,
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
    if (this.#isStopping) return this.#ended()
    if (this.#isLaidAnew) return this.#start()
    this.#restarts++
    const livedMs = this.#options.clock.monotonicMs() - this.#startedAtMs
    if (livedMs > LIMITS.storage.retryMsMax) this.#restartMs = LIMITS.storage.retryMs
    const ms = this.#restartMs
    this.#restartMs = Math.min(ms * 2, LIMITS.storage.retryMsMax)
    this.#options.clock.after(ms, () => {
      if (!this.#isStopping && this.#worker === null) this.#start()
    })
  }

  #hear(worker: Worker, message: FromIndexWorker): void {
    const { log } = this.#options
    switch (message.kind) {
      case 'applied':
        return this.#hearer.applied()
      case 'opened':
        return this.#hearer.opened()
      case 'served':
        return this.#served?.()
      case 'failed':
        return this.#outage.failed({ error: message.error })
      case 'back':
        return this.#outage.answered()
      case 'reset': {
        const { why } = message
        return log.error({ why }, 'the graph index is emptied and filled from the journal')
      }
      default:
        return this.#keepFor(worker, message)
    }
  }

  #keepFor(worker: Worker, message: Extract<FromIndexWorker, { id: number }>): void {
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

  async #keep({ kind, parked }: Extract<FromIndexWorker, { id: number }>): Promise<void> {
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
      consumer: parkedConsumerOf(this.number),
      actorId,
      body: kind === 'park' ? encodeParked(parked) : null,
      offset: Math.max(offset, this.progress.applied(shard)),
    }
    await this.#options.writeRows(shard, [row])
  }
}
