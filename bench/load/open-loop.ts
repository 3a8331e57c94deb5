// Open loop: request n is due at start + n / rate, whatever became of those before it. When all
// connections are busy it leaves late, and its latency still counts from when it was due. Shows
// what callers who don't wait for each other see at a rate. See load.ts for the other loops.

import type { HttpSocket } from './http-socket.ts'
import { DRAIN_MS, loadResult, NEVER_SENT, type LoadOptions, type LoadResult } from './load.ts'
import { Pool } from './pool.ts'
import { Recorder } from './recorder.ts'

/** Requests that are due stay due; a server that falls behind more than this has lost the rate. */
const BEHIND_SECONDS_MAX = 30
const TICK_MS = 1

export interface OpenLoopOptions extends LoadOptions {
  /** Requests a second. */
  readonly rate: number
  /** The rate is given up when its last request is this late; 30 unless said otherwise. */
  readonly behindSecondsMax?: number
}

export function openLoop(options: OpenLoopOptions): Promise<LoadResult> {
  return new OpenLoop(options).run()
}

class OpenLoop {
  readonly #o: OpenLoopOptions
  readonly #recorder: Recorder
  readonly #pool: Pool
  readonly #idle: HttpSocket[] = []
  /** Requests of the warm-up and of the measured time. */
  #total: number
  #sent = 0
  #start = 0
  #done = false

  constructor(options: OpenLoopOptions) {
    this.#o = options
    this.#recorder = options.recorder ?? new Recorder()
    this.#total = Math.round((options.warmUpSeconds + options.seconds) * options.rate)
    this.#pool = new Pool({
      to: options.to,
      connections: options.connections,
      recorder: this.#recorder,
      sample: options.sample,
      answered: (socket, status) => this.#answered(socket, status),
      reopened: (socket) => this.#idle.push(socket),
    })
  }

  async run(): Promise<LoadResult> {
    const { warmUpSeconds, seconds, readings } = this.#o
    await this.#pool.open()
    this.#idle.push(...this.#pool.sockets)
    this.#start = performance.now()
    const measureFrom = this.#start + warmUpSeconds * 1000
    const giveUp = measureFrom + (seconds + (this.#o.behindSecondsMax ?? BEHIND_SECONDS_MAX)) * 1000
    this.#recorder.startMeasuring(measureFrom)
    let measuring = false
    while (!this.#done && performance.now() < giveUp) {
      this.#sendDue()
      if (!measuring && performance.now() >= measureFrom) {
        measuring = true
        readings.started()
      }
      await new Promise((resolve) => setTimeout(resolve, TICK_MS))
    }
    // So few requests that all were answered before.
    if (!measuring) readings.started()
    const end = performance.now()
    const left = this.#total - this.#sent
    // From here on no answer is followed by a request that was due.
    this.#total = this.#sent
    if (left > 0) this.#recorder.failure(NEVER_SENT, left)
    this.#recorder.stopMeasuring(end)
    readings.ended()
    await this.#pool.drain(DRAIN_MS)
    // A held rate is measured over its own time; a lost one over the time that it took.
    const tookMs = Math.max(end - measureFrom, seconds * 1000)
    // Of the measured time are the requests that were due in it; their answers may come later.
    return loadResult(this.#recorder, tookMs, this.#recorder.latencies().count)
  }

  #sendDue(): void {
    const now = performance.now()
    const due = Math.min(this.#total, Math.ceil(((now - this.#start) * this.#o.rate) / 1000))
    while (this.#sent < due) {
      const socket = this.#idle.pop()
      if (socket === undefined) return
      const dueMs = this.#start + (this.#sent * 1000) / this.#o.rate
      const request = this.#o.next(dueMs)
      socket.kind = request.kind
      socket.sentAt = dueMs
      this.#sent++
      socket.send(request.bytes)
    }
    this.#done = this.#sent === this.#total && this.#pool.busy === 0
  }

  #answered(socket: HttpSocket, status: number): void {
    if (status === 200) {
      this.#recorder.success(socket.kind, socket.sentAt, performance.now(), socket.leftAt)
    } else {
      this.#recorder.failure(socket.said)
    }
    this.#idle.push(socket)
    // Late ones leave at once, not at the next tick.
    this.#sendDue()
  }
}
