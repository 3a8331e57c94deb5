// The index as it is asked for by whoever may update the search of one node type: there is one
// index of all, so it is made anew for one caller at a time and with a pause between, and how far
// it is is told in hundredths, not in what is written. Source: CONTRACT 1.1 "Search indexes".

import type { Clock } from '../../cluster/clock.ts'
import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import type { IndexRebuild, RebuildProgress } from './rebuild.ts'

export interface AskedProgress {
  readonly state: 'idle' | 'running'
  /** Of `total`: hundredths; 0 of 0 when idle. */
  readonly done: number
  readonly total: number
  readonly startedAt: number | null
}

const HUNDREDTHS = 100

export class AskedRebuilds {
  readonly #index: IndexRebuild
  readonly #clock: Clock
  /** When one was begun for somebody, by the monotonic clock. */
  #begunMs = Number.NEGATIVE_INFINITY
  #beginning: Promise<void> | null = null
  #lookedMs = Number.NEGATIVE_INFINITY
  #looking: Promise<RebuildProgress> | null = null
  #nextLook: Promise<RebuildProgress> | null = null

  constructor(index: IndexRebuild, clock: Clock) {
    this.#index = index
    this.#clock = clock
  }

  /** Without effect while one is under way. Rejects with 429 too soon after one, as it does 503. */
  rebuild(): Promise<void> {
    this.#beginning ??= this.#begin().finally(() => (this.#beginning = null))
    return this.#beginning
  }

  /** Of a moment after it was asked for. */
  async progress(): Promise<AskedProgress> {
    const { state, done, total, startedAt } = await this.#look()
    if (state === 'idle') return { state, done: 0, total: 0, startedAt }
    // One that was asked for and has not begun yet has no total.
    const share = total === 0 ? 0 : Math.min(done, total) / total
    const hundredths = Math.floor(share * HUNDREDTHS)
    return { state: 'running', done: hundredths, total: HUNDREDTHS, startedAt }
  }

  async #begin(): Promise<void> {
    if ((await this.#look()).state !== 'idle') return
    const nowMs = this.#clock.monotonicMs()
    const leftMs = this.#begunMs + LIMITS.indexing.askedAgainMs - nowMs
    if (leftMs > 0) {
      const text = `the index was made anew just now: it can be again in ${Math.ceil(leftMs / 1_000)} s`
      throw new RequestError('RATE_LIMITED', `${text}; nothing was done`)
    }
    await this.#index.rebuild()
    this.#begunMs = nowMs
    // Whoever looks next sees it.
    this.#lookedMs = Number.NEGATIVE_INFINITY
  }

  /**
   * In a cluster a look reads registers of all shards: one at a time, a moment apart, and whoever
   * comes meanwhile shares the next one.
   */
  #look(): Promise<RebuildProgress> {
    this.#nextLook ??= this.#lookNext()
    return this.#nextLook
  }

  async #lookNext(): Promise<RebuildProgress> {
    await this.#looking?.catch(() => undefined)
    const waitMs = this.#lookedMs + LIMITS.indexing.progressGapMs - this.#clock.monotonicMs()
    if (waitMs > 0) await new Promise<void>((resolve) => void this.#clock.after(waitMs, resolve))
    this.#lookedMs = this.#clock.monotonicMs()
    this.#nextLook = null
    this.#looking = Promise.resolve(this.#index.rebuildProgress())
    return this.#looking
  }
}
