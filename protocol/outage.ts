// What is said of an engine that is away: once, then once a minute with how often it has failed,
// then that it is back. Everybody who asks it fails many times a second meanwhile.

import type { Log } from './log.ts'

const TELL_EVERY_MS = 60_000

export interface OutageOptions {
  readonly log: Pick<Log, 'info' | 'warn'>
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Said of each failure that is told. */
  readonly failing: string
  /** Said once it answers again. */
  readonly back: string
  /**
   * Milliseconds without a failure before it is back, 0 by default. For who asks for many things at
   * once: an engine of which some parts answer isn't back between two failures of the others.
   */
  readonly quietMs?: number
}

export class Outage {
  readonly #options: OutageOptions
  #failures = 0
  #toldAtMs = -Infinity
  #failedAtMs = -Infinity

  constructor(options: OutageOptions) {
    this.#options = options
  }

  /** It has failed; `fields` say how. `failures` among them: since it last answered for a while. */
  failed(fields: object): void {
    const { log, now, failing } = this.#options
    const nowMs = now()
    this.#failures++
    this.#failedAtMs = nowMs
    if (nowMs - this.#toldAtMs < TELL_EVERY_MS) return
    this.#toldAtMs = nowMs
    log.warn({ ...fields, failures: this.#failures }, failing)
  }

  /** It has answered. Cheap enough to be said of every answer. */
  answered(): void {
    if (this.#failures === 0) return
    const { log, now, back, quietMs = 0 } = this.#options
    if (now() - this.#failedAtMs < quietMs) return
    log.info({ failures: this.#failures }, back)
    this.#failures = 0
    this.#toldAtMs = -Infinity
  }
}
