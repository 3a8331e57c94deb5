// The beat inside its own thread: takes up incarnations as it is told, and beats for one while the
// main loop's counter moves, for a wedged loop must not look alive. Source: PROTOCOL 3.3.2.

import type { MessagePort } from 'node:worker_threads'
import { systemClock } from '../../cluster/clock.ts'
import type { Clock } from '../../cluster/clock.ts'
import { BeatLoop } from '../../cluster/membership/beat.ts'
import type { BeatLoopOptions, MemberIncarnation } from '../../cluster/membership/beat.ts'
import { LIMITS } from '../../config/limits.ts'
import type { Log } from '../../protocol/log.ts'
import { Outage } from '../../protocol/outage.ts'
import { sharedMs } from './beat-messages.ts'
import type { FromBeatWorker, LogLevel, ToBeatWorker } from './beat-messages.ts'

/** The rows that a beat needs, and their connection. */
export interface BeatControl {
  readonly control: BeatLoopOptions['control']
  close(): Promise<void>
}

export interface BeatServiceOptions {
  readonly port: MessagePort
  readonly ticks: SharedArrayBuffer
  /** Rejects while the store can't be reached; then it is called again. */
  readonly connect: (log: Log) => Promise<BeatControl>
  /** `threadClock()` but for tests. */
  readonly clock: Clock
}

export class BeatService {
  readonly #options: BeatServiceOptions
  readonly #counter: Int32Array
  readonly #log: Log
  #loop: BeatLoop | null = null
  #connected: BeatControl | null = null
  #wanted: { readonly round: number; readonly own: MemberIncarnation } | null = null
  #isClosed = false
  #seen = -1

  constructor(options: BeatServiceOptions) {
    this.#options = options
    this.#counter = new Int32Array(options.ticks)
    this.#log = logOver((message) => this.#post(message))
  }

  /** Until the main thread says that it is over. */
  serve(): void {
    this.#options.port.on('message', (message: ToBeatWorker) => this.#hear(message))
    void this.#open()
  }

  #post(message: FromBeatWorker): void {
    const { port } = this.#options
    port.postMessage(message)
  }

  #hear(message: ToBeatWorker): void {
    switch (message.kind) {
      case 'start':
        this.#wanted = message
        return this.#begin()
      case 'stop':
        this.#wanted = null
        return this.#loop?.stop()
      case 'close':
        void this.#close()
    }
  }

  async #open(): Promise<void> {
    const { clock, connect } = this.#options
    const outage = new Outage({
      log: this.#log,
      now: () => clock.monotonicMs(),
      failing: 'the beat has no connection to the control rows',
      back: 'the beat has its connection to the control rows',
    })
    for (;;) {
      try {
        this.#connected = await connect(this.#log)
        outage.answered()
        break
      } catch (error) {
        outage.failed({ error: textOf(error) })
        await new Promise<void>(
          (resolve) => void clock.after(LIMITS.membership.beatEveryMs, resolve),
        )
        if (this.#isClosed) return
      }
    }
    if (this.#isClosed) {
      await this.#connected.close()
      return
    }
    const { control } = this.#connected
    const mayBeat = (): boolean => this.#moves()
    this.#loop = new BeatLoop({ control, clock, log: this.#log, mayBeat })
    this.#begin()
  }

  /** Whether the main loop has moved its counter since this was last asked. */
  #moves(): boolean {
    const now = Atomics.load(this.#counter, 0)
    const moves = now !== this.#seen
    this.#seen = now
    return moves
  }

  #begin(): void {
    if (this.#loop === null || this.#wanted === null) return
    const { round, own } = this.#wanted
    this.#loop.start(own, {
      applied: (sent) => this.#post({ kind: 'applied', round, sent }),
      failed: () => this.#post({ kind: 'failed', round }),
      lost: (why) => this.#post({ kind: 'lost', round, why }),
    })
  }

  async #close(): Promise<void> {
    this.#isClosed = true
    this.#loop?.close()
    await this.#connected?.close().catch(() => undefined)
    this.#options.port.close()
  }
}

/** The clock of a thread: its monotonic times are those of all threads of the process. */
export function threadClock(): Clock {
  return { ...systemClock(), monotonicMs: sharedMs }
}

function logOver(post: (message: FromBeatWorker) => void): Log {
  const say = (level: LogLevel) => (fields: object, text: string) => {
    const { err, ...more } = fields as { err?: unknown }
    // Errors of a driver hold what can't be sent to another thread.
    post({ kind: 'log', level, fields: err ? { ...more, error: textOf(err) } : more, text })
  }
  return { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
