// The main thread's side of the beat: a BeatSender that lets a thread of its own do the work, and
// moves the counter that shows that this loop runs. Source: PROTOCOL 3.3.2.

import { Worker } from 'node:worker_threads'
import type { Clock } from '../../cluster/clock.ts'
import type { BeatReport, BeatSender, MemberIncarnation } from '../../cluster/membership/beat.ts'
import { LIMITS } from '../../config/limits.ts'
import type { Log } from '../../protocol/log.ts'
import { sharedMs } from './beat-messages.ts'
import type {
  BeatWorkerData,
  ControlAddress,
  FromBeatWorker,
  ToBeatWorker,
} from './beat-messages.ts'

export interface BeatThreadOptions {
  readonly control: ControlAddress
  /** The machine's own clock: the thread's times are told by it. */
  readonly clock: Clock
  readonly log: Log
  /** The thread's code; another one in tests. */
  readonly entry?: URL
}

/** Starts its thread at once: connecting takes a while, and the first beat should not wait. */
export class BeatThread implements BeatSender {
  readonly #options: BeatThreadOptions
  readonly #ticks = new SharedArrayBuffer(4)
  readonly #counter = new Int32Array(this.#ticks)
  /** What this clock's monotonic time is ahead of the threads' common one. */
  readonly #aheadMs: number
  #worker: Worker | null = null
  #round = 0
  #report: BeatReport | null = null
  #isClosed = false

  constructor(options: BeatThreadOptions) {
    this.#options = options
    this.#aheadMs = options.clock.monotonicMs() - sharedMs()
    this.#tick()
    this.#spawn()
  }

  start(own: MemberIncarnation, report: BeatReport): void {
    this.#round++
    this.#report = report
    if (this.#worker === null) this.#spawn()
    this.#post({ kind: 'start', round: this.#round, own })
  }

  stop(): void {
    this.#round++
    this.#report = null
    this.#post({ kind: 'stop' })
  }

  close(): void {
    if (this.#isClosed) return
    this.stop()
    this.#isClosed = true
    this.#post({ kind: 'close' })
    // A connection that doesn't close must not keep the process.
    this.#worker?.unref()
  }

  #post(message: ToBeatWorker): void {
    this.#worker?.postMessage(message)
  }

  #tick(): void {
    Atomics.add(this.#counter, 0, 1)
    this.#options.clock.after(LIMITS.membership.beatTickMs, () => {
      if (!this.#isClosed) this.#tick()
    })
  }

  #spawn(): void {
    if (this.#isClosed) return
    const { control, entry, log } = this.#options
    const workerData: BeatWorkerData = { control, ticks: this.#ticks }
    const worker = new Worker(entry ?? new URL('./beat-worker.ts', import.meta.url), {
      workerData,
      name: 'beat',
    })
    this.#worker = worker
    worker.on('message', (message: FromBeatWorker) => this.#hear(message))
    worker.on('error', (err) => log.error({ err }, 'the beat thread has failed'))
    worker.on('exit', () => this.#exited(worker))
  }

  #hear(message: FromBeatWorker): void {
    if (message.kind === 'log') {
      this.#options.log[message.level](message.fields, message.text)
      return
    }
    const report = this.#report
    if (report === null || message.round !== this.#round) return
    switch (message.kind) {
      case 'applied': {
        const { monotonicMs, wallMs } = message.sent
        return report.applied({ monotonicMs: monotonicMs + this.#aheadMs, wallMs })
      }
      case 'failed':
        return report.failed()
      case 'lost':
        this.#report = null
        return report.lost(message.why)
    }
  }

  /** Nobody knows which of its statements may still land: this incarnation is given up. */
  #exited(worker: Worker): void {
    if (this.#worker === worker) this.#worker = null
    const report = this.#report
    this.#report = null
    if (!this.#isClosed) report?.lost('the thread of the beat has ended')
  }
}
