// What a load measured: latencies in a histogram of three significant digits (HdrHistogram, as Node
// brings it), and the same in slices of time.

import { createHistogram, type RecordableHistogram } from 'node:perf_hooks'
import type { RequestKind } from './requests.ts'

/** One slice of the measured time. */
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

/** Is told of each answer, beside the recorder: for windows of a long load. */
export interface Listener {
  /**
   * Success. Times of performance.now(): when its request left or was due, when it really left,
   * and when the answer was complete.
   */
  success(fromMs: number, leftMs: number, nowMs: number): void
  failure(times: number): void
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
  readonly #listener: Listener | null

  /** With a listener there are no slices: it has windows of its own. */
  constructor(listener: Listener | null = null) {
    this.#listener = listener
  }

  startMeasuring(nowMs: number): void {
    this.#measuring = true
    this.#start = nowMs
    this.#sliceStart = nowMs
  }

  stopMeasuring(nowMs: number): void {
    if (this.#measuring && nowMs - this.#sliceStart > SLICE_MS / 2) this.#closeSlice(nowMs)
    this.#measuring = false
  }

  success(kind: RequestKind, fromMs: number, nowMs: number, leftMs = fromMs): void {
    this.acknowledged[kind]++
    if (!this.#measuring || nowMs < this.#start) return
    this.answered++
    // The latency of what was sent, or due, in the warm-up is not of the measured time.
    if (fromMs < this.#start) return
    if (nowMs - this.#sliceStart >= SLICE_MS) this.#closeSlice(nowMs)
    const us = latencyUs(fromMs, nowMs)
    this.#all.record(us)
    this.#slice.record(us)
    this.#listener?.success(fromMs, leftMs, nowMs)
  }

  failure(what: string, times = 1): void {
    this.failures.set(what, (this.failures.get(what) ?? 0) + times)
    this.#listener?.failure(times)
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
    if (this.#listener === null) {
      this.slices.push({
        atMs: nowMs - this.#start,
        rate: (slice.count * 1000) / (nowMs - this.#sliceStart),
        p50Us: percentile(slice, 50),
        p99Us: percentile(slice, 99),
      })
    }
    slice.reset()
    this.#sliceStart = nowMs
  }
}

/** Microseconds; 0 of nothing. */
export function percentile(latencies: RecordableHistogram, share: number): number {
  return latencies.count === 0 ? 0 : latencies.percentile(share)
}

/** The microseconds between two times of performance.now(), as a histogram takes them. */
export function latencyUs(fromMs: number, nowMs: number): number {
  return Math.min(Math.max(1, Math.round((nowMs - fromMs) * 1000)), HIGHEST_US)
}

export function histogram(): RecordableHistogram {
  return createHistogram({ lowest: 1, highest: HIGHEST_US, figures: 3 })
}
