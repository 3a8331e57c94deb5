// The projector in its thread as a consumer of the feed: it tells the main thread how far the index
// is, and falls asleep so that a commit wakes it. Source: PROTOCOL 3.13.

import { ConsumerLoop, type Next } from '../../../cluster/feed/consumer-loop.ts'
import type { Projector } from '../../../cluster/feed/projector.ts'
import type { SharedProgress } from './shared-progress.ts'

export interface IndexLoopOptions {
  readonly projector: Pick<
    Projector,
    'start' | 'step' | 'offsets' | 'timesMs' | 'whole' | 'parkedCount'
  >
  readonly progress: SharedProgress
  readonly generation: string
  /** Of its time it may work so much, 1 at most; all of it by default. */
  readonly share?: () => number
  /** Somebody waits for the index, and it has moved. */
  readonly onApplied: () => void
  /** A batch failed and will be tried again. */
  readonly onFailure: (error: unknown) => void
  /** One has succeeded, after some that failed. */
  readonly onBack: () => void
  /** Monotonic milliseconds. */
  readonly clock: () => number
  /** Runs after a while, unless it is called off by what it gives. */
  readonly after: (ms: number, run: () => void) => () => void
  /** Runs as soon as what has arrived was handled. */
  readonly defer: (run: () => void) => void
}

/** How often the loop looks whether a request has begun to wait. */
const GATHER_STEP_MS = 5

export class IndexLoop {
  readonly #options: IndexLoopOptions
  readonly #loop: ConsumerLoop
  #hasFailed = false
  readonly #heads = new Map<number, number>()
  /** Offsets as the main thread knows them. */
  readonly #published = new Map<number, number>()

  constructor(options: IndexLoopOptions) {
    this.#options = options
    const { after, defer, progress } = options
    this.#loop = new ConsumerLoop({
      ...{ after, defer, gatherStepMs: GATHER_STEP_MS },
      consumer: {
        begin: () => this.#start(),
        step: () => this.#step(),
        isAwaited: () => progress.awaited,
        fallAsleep: () => this.#fallAsleep(),
        awake: () => progress.takeAsleep(),
      },
    })
  }

  /** Runs until it is stopped; never rejects. */
  run(): Promise<void> {
    return this.#loop.run()
  }

  /** There are new heads, or something to try again. */
  wake(): void {
    this.#loop.wake()
  }

  stop(): void {
    this.#loop.stop()
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

  async #step(): Promise<Next> {
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
      this.#goesOn()
      this.#publish()
      await this.#rest(clock() - startedMs)
      return step.next
    } catch (error) {
      this.#failed(error)
      return 'failed'
    }
  }

  /** For as long as its share of the time asks for, after work of so many milliseconds. */
  async #rest(workedMs: number): Promise<void> {
    const share = this.#options.share?.() ?? 1
    if (share < 1) await this.#loop.pause(workedMs / share - workedMs)
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

  /** True: a head that was set before this thread fell asleep woke nobody. */
  #fallAsleep(): boolean {
    const { progress, projector } = this.#options
    progress.fallAsleep()
    for (const [shard, head] of progress.heads(this.#heads)) {
      if (head > (projector.offsets.get(shard) ?? 0)) return true
    }
    return false
  }
}
