// How the main thread has a reader thread stop a plan that others wait for: a cell of shared
// memory, for a thread at work in SQLite reads no messages. The thread looks at it whenever it
// looks at its time.

import { LIMITS } from '../../../config/limits.ts'

/** Thrown through a plan that makes room for others: it starts anew at another time. */
export class GaveWay extends Error {}

/** A plan that looked at its time less often has not worked: its thread had no processor. */
const LOOKS_MIN = 32
/** Unless it took so much longer than its time that it must have worked between two looks. */
const SURELY_HEAVY = 8

export class GiveWay {
  /** 1: others wait for the plan that runs; 0: nobody does. */
  readonly #wanted: Int32Array
  readonly #nowMs: () => number
  #mayStop = false
  #beganMs = 0
  #looks = 0

  /** Both threads make one of the same four bytes; `nowMs` is monotonic. */
  constructor(cell: SharedArrayBuffer, nowMs: () => number) {
    this.#wanted = new Int32Array(cell)
    this.#nowMs = nowMs
  }

  /** By the main thread: whether the plan that runs is to stop, once it has had its time. */
  ask(wanted: boolean): void {
    Atomics.store(this.#wanted, 0, Number(wanted))
  }

  /** By the reader thread: it begins with a plan. */
  begin(mayStop: boolean): void {
    this.#mayStop = mayStop
    this.#beganMs = this.#nowMs()
    this.#looks = 0
  }

  /** By the reader thread, amid a plan. Throws GaveWay. */
  check(): void {
    this.#looks++
    if (!this.#mayStop || Atomics.load(this.#wanted, 0) === 0) return
    if (this.#looks >= LOOKS_MIN && this.#tookMs >= LIMITS.graph.quantumMs) {
      throw new GaveWay('the plan gives way to others')
    }
  }

  /** By the reader thread: the plan has worked for longer than others should wait for it. */
  get isHeavy(): boolean {
    return this.#hasWorked(LIMITS.graph.quantumMs)
  }

  /** By the reader thread: the plan has worked for so long that others should not be behind it. */
  get isLong(): boolean {
    return this.#hasWorked(LIMITS.graph.companyMs)
  }

  #hasWorked(ms: number): boolean {
    return this.#tookMs >= (this.#looks >= LOOKS_MIN ? 1 : SURELY_HEAVY) * ms
  }

  get #tookMs(): number {
    return this.#nowMs() - this.#beganMs
  }
}
