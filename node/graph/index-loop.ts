// The life of the projector in its thread: a batch when there is something, sleep when there is
// nothing, a growing pause when journal or index can't be used. It stands between the projector and
// the numbers shared with the main thread. Source: PROTOCOL 3.13.

import { LIMITS } from '../../config/limits.ts'
import type { Projector, Step } from '../../cluster/feed/projector.ts'
import type { SharedProgress } from './shared-progress.ts'

export interface IndexLoopOptions {
  readonly projector: Pick<
    Projector,
    'start' | 'step' | 'offsets' | 'timesMs' | 'whole' | 'parkedCount'
  >
  readonly progress: SharedProgress
  readonly generation: string
  /** Somebody waits for the index, and it has moved. */
  readonly onApplied: () => void
  /** A batch failed and will be tried again. */
  readonly onFailure: (error: unknown) => void
  /** One has succeeded, after some that failed. */
  readonly onBack: () => void
  /** Monotonic milliseconds. */
  readonly clock: () => number
  /** Runs after a while; 0: as soon as what has arrived was handled. */
  readonly after: (ms: number, run: () => void) => void
}

/** How often it is looked whether somebody has begun to wait. */
const GATHER_STEP_MS = 5

export class IndexLoop {
  readonly #options: IndexLoopOptions
  #wake: (() => void) | null = null
  #woken = false
  #stopped = false
  #failureMs: number = LIMITS.projectorRetryMs
  #hasFailed = false
  readonly #heads = new Map<number, number>()
  /** Offsets as the main thread knows them. */
  readonly #published = new Map<number, number>()

  constructor(options: IndexLoopOptions) {
    this.#options = options
  }

  /** Runs until it is stopped; never rejects. */
  async run(): Promise<void> {
    while (!this.#stopped && !(await this.#start())) await this.#backOff()
    while (!this.#stopped) {
      const next = await this.#step()
      if (next === 'failed') await this.#backOff()
      else if (next === 'later') await this.#pause(LIMITS.projectorRetryMs)
      else if (next === 'idle') {
        await this.#sleep()
        await this.#gather()
      }
      // Messages (rows made durable, a stop) must get their turn between batches.
      await new Promise<void>((resolve) => this.#options.after(0, resolve))
    }
  }

  /** There are new heads, or something to try again. */
  wake(): void {
    this.#woken = true
    this.#wake?.()
  }

  stop(): void {
    this.#stopped = true
    this.wake()
  }

  async #start(): Promise<boolean> {
    const { projector, progress, generation } = this.#options
    try {
      const kept = await projector.start(progress.heads(this.#heads), generation)
      if (kept === 'reset') progress.count('resets', 1)
      this.#goesOn()
      this.#publish()
      return true
    } catch (error) {
      this.#failed(error)
      return false
    }
  }

  async #step(): Promise<Step['next'] | 'failed'> {
    const { projector, progress, clock } = this.#options
    const startedMs = clock()
    try {
      const step = await projector.step(progress.heads(this.#heads))
      if (step.entries > 0) {
        progress.count('entries', step.entries)
        progress.count('writes', step.writes)
        progress.count('batches', 1)
        progress.count('batchUs', (clock() - startedMs) * 1_000)
      }
      this.#failureMs = LIMITS.projectorRetryMs
      this.#goesOn()
      this.#publish()
      return step.next
    } catch (error) {
      this.#failed(error)
      return 'failed'
    }
  }

  #failed(error: unknown): void {
    this.#hasFailed = true
    this.#options.progress.count('failures', 1)
    this.#options.onFailure(error)
  }

  #goesOn(): void {
    if (!this.#hasFailed) return
    this.#hasFailed = false
    this.#options.onBack()
  }

  #publish(): void {
    const { projector, progress } = this.#options
    for (const shard of this.#heads.keys()) {
      const offset = projector.offsets.get(shard) ?? 0
      if (this.#published.get(shard) === offset) continue
      this.#published.set(shard, offset)
      progress.setApplied(shard, offset, projector.timesMs.get(shard) ?? 0)
    }
    progress.set('parked', projector.parkedCount)
    progress.ready = projector.whole
    if (progress.awaited) this.#options.onApplied()
  }

  /** Waits longer each time, as long as nothing gets better. */
  async #backOff(): Promise<void> {
    const ms = this.#failureMs
    this.#failureMs = Math.min(ms * 2, LIMITS.projectorRetryMsMax)
    await this.#pause(ms)
  }

  async #pause(ms: number): Promise<void> {
    if (this.#stopped) return
    await new Promise<void>((resolve) => {
      this.#options.after(ms, resolve)
      this.#wake = () => {
        if (this.#stopped) resolve()
      }
    })
    this.#wake = null
  }

  /**
   * Under load a batch a commit would write the same pages again and again: lets some entries come
   * together first, unless somebody waits for the index.
   */
  async #gather(): Promise<void> {
    const { progress } = this.#options
    for (let waited = 0; waited < LIMITS.projectorGatherMs; waited += GATHER_STEP_MS) {
      if (progress.awaited || this.#stopped) return
      await this.#pause(GATHER_STEP_MS)
    }
  }

  async #sleep(): Promise<void> {
    const { progress, projector } = this.#options
    progress.fallAsleep()
    // A head that was set before this thread fell asleep woke nobody.
    for (const [shard, head] of progress.heads(this.#heads)) {
      if (head > (projector.offsets.get(shard) ?? 0)) this.#woken = true
    }
    if (!this.#woken) await new Promise<void>((resolve) => (this.#wake = resolve))
    this.#wake = null
    this.#woken = false
    progress.takeAsleep()
  }
}
