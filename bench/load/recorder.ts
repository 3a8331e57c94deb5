// What a load measured: latencies in a histogram of three significant digits (HdrHistogram, as
// Node brings it), and the same in slices of time. It stands between the load loops and the
// figures of the result.

import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import type { RequestKind } from './requests.ts'

const SLICE_MS = 250
const HIGHEST_US = 120_000_000

export interface Slice {
  /** Milliseconds from the start of the measurement to the end of the slice. */
  readonly atMs: number
  readonly rate: number
  readonly p50Us: number
  readonly p99Us: number
}

export interface Latencies {
  readonly count: number
  readonly meanUs: number
  readonly p50Us: number
  readonly p99Us: number
  readonly p999Us: number
  readonly maxUs: number
}

export class Recorder {
  /** Answers with success, by kind, since the load began: warm-up included. */
  readonly acknowledged: Record<RequestKind, number> = { create: 0, command: 0, read: 0 }
  /** Anything else: status or reason of each, counted. */
  readonly failures = new Map<string, number>()
  readonly slices: Slice[] = []
  /** Answers with success in the measured time. */
  answered = 0
  readonly #all = histogram()
  readonly #slice = histogram()
  #sliceStart = 0
  #start = 0
  #measuring = false

  startMeasuring(nowMs: number): void {
    this.#measuring = true
    this.#start = nowMs
    this.#sliceStart = nowMs
  }

  stopMeasuring(nowMs: number): void {
    if (this.#measuring && nowMs - this.#sliceStart > SLICE_MS / 2) this.#closeSlice(nowMs)
    this.#measuring = false
  }

  success(kind: RequestKind, fromMs: number, nowMs: number): void {
    this.acknowledged[kind]++
    if (!this.#measuring || nowMs < this.#start) return
    this.answered++
    // The latency of what was sent, or due, in the warm-up is not of the measured time.
    if (fromMs < this.#start) return
    if (nowMs - this.#sliceStart >= SLICE_MS) this.#closeSlice(nowMs)
    const us = Math.min(Math.max(1, Math.round((nowMs - fromMs) * 1000)), HIGHEST_US)
    this.#all.record(us)
    this.#slice.record(us)
  }

  failure(what: string): void {
    this.failures.set(what, (this.failures.get(what) ?? 0) + 1)
  }

  latencies(): Latencies {
    const all = this.#all
    return {
      count: all.count,
      meanUs: all.count === 0 ? 0 : all.mean,
      p50Us: all.percentile(50),
      p99Us: all.percentile(99),
      p999Us: all.percentile(99.9),
      maxUs: all.count === 0 ? 0 : all.max,
    }
  }

  #closeSlice(nowMs: number): void {
    const slice = this.#slice
    this.slices.push({
      atMs: nowMs - this.#start,
      rate: (slice.count * 1000) / (nowMs - this.#sliceStart),
      p50Us: slice.count === 0 ? 0 : slice.percentile(50),
      p99Us: slice.count === 0 ? 0 : slice.percentile(99),
    })
    slice.reset()
    this.#sliceStart = nowMs
  }
}

function histogram(): RecordableHistogram {
  return createHistogram({ lowest: 1, highest: HIGHEST_US, figures: 3 })
}
