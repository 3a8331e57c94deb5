// Runs a consumer of the feed: a step when there is something, sleep when there is nothing, a
// growing pause while what it reads or writes is away. The consumer says what a step is. Source:
// PROTOCOL 3.13.1.

import { LIMITS } from '../../config/limits.ts'

/**
 * What comes after a step: `now` there is more; `later` something is to be tried again; `idle` it
 * has everything; `failed` nothing of it was done.
 */
export type Next = 'now' | 'later' | 'idle' | 'failed'

export interface Consumer {
  /** Comes before the first step, until it is true. Never rejects. */
  begin?(): Promise<boolean>
  /** Takes some of what there is. Never rejects. */
  step(): Promise<Next>
  /** Somebody waits for it: no time is spent on gathering. */
  isAwaited(): boolean
  /** It goes to sleep; true: something has come that woke nobody. */
  fallAsleep?(): boolean
  awake?(): void
}

export interface ConsumerLoopOptions {
  readonly consumer: Consumer
  /** Runs after a while, unless it is called off by what it gives. */
  readonly after: (ms: number, run: () => void) => () => void
  /** Runs as soon as what has arrived was handled. */
  readonly defer: (run: () => void) => void
  /** How often it is looked whether somebody has begun to wait, milliseconds. */
  readonly gatherStepMs: number
}

export class ConsumerLoop {
  readonly #options: ConsumerLoopOptions
  #wake: (() => void) | null = null
  #woken = false
  #stopped = false
  #failureMs: number = LIMITS.storage.retryMs

  constructor(options: ConsumerLoopOptions) {
    this.#options = options
  }

  get isStopped(): boolean {
    return this.#stopped
  }

  /** Runs until it is stopped, and then to the end of the step that is under way; never rejects. */
  async run(): Promise<void> {
    const { consumer, defer } = this.#options
    while (!this.#stopped && !((await consumer.begin?.()) ?? true)) await this.#backOff()
    while (!this.#stopped) {
      const next = await consumer.step()
      if (next === 'failed') {
        await this.#backOff()
        continue
      }
      this.#failureMs = LIMITS.storage.retryMs
      if (next === 'later') await this.pause(LIMITS.storage.retryMs)
      else if (next === 'idle') {
        await this.#sleep()
        await this.#gather()
      }
      // What has arrived meanwhile (rows made durable, requests, a stop) gets its turn.
      await new Promise<void>((resolve) => defer(resolve))
    }
  }

  /** There is something, or something to try again. */
  wake(): void {
    this.#woken = true
    this.#wake?.()
  }

  stop(): void {
    this.#stopped = true
    this.wake()
  }

  /** Waits so long; a stop ends it early, nothing else does. */
  async pause(ms: number): Promise<void> {
    if (this.#stopped) return
    await new Promise<void>((resolve) => {
      const callOff = this.#options.after(ms, resolve)
      this.#wake = () => {
        if (!this.#stopped) return
        callOff()
        resolve()
      }
    })
    this.#wake = null
  }

  /** Waits longer each time, as long as nothing gets better. */
  async #backOff(): Promise<void> {
    const ms = this.#failureMs
    this.#failureMs = Math.min(ms * 2, LIMITS.storage.retryMsMax)
    await this.pause(ms)
  }

  async #sleep(): Promise<void> {
    const { consumer } = this.#options
    if (consumer.fallAsleep?.() === true) this.#woken = true
    if (!this.#woken && !this.#stopped) await new Promise<void>((resolve) => (this.#wake = resolve))
    this.#wake = null
    this.#woken = false
    consumer.awake?.()
  }

  /**
   * Under load a step a commit would write the same again and again: some entries come together
   * first, unless somebody waits for them.
   */
  async #gather(): Promise<void> {
    const { consumer, gatherStepMs } = this.#options
    for (let waited = 0; waited < LIMITS.feed.projectorGatherMs; waited += gatherStepMs) {
      if (consumer.isAwaited() || this.#stopped) return
      await this.pause(gatherStepMs)
    }
  }
}
