// A load and what came of it. Closed loop: each connection sends its next request when it has an
// answer. Open loop: requests are due at fixed times whatever the answers do, and latency counts
// from the due time, so a stalled server can't hide requests that it kept from being sent
// (coordinated omission). Bulk: lines over a streamed request (bulk-load.ts).

import type { Course } from '../course.ts'
import type { Destination, PreparedRequest } from './requests.ts'
import type { Latencies, Slice } from './recorder.ts'
import type { Recorder } from './recorder.ts'
import type { AnswerSample } from './sample.ts'

/** Called at the edges of the measured time, for readings of CPU and memory. */
export interface Readings {
  started(): void
  ended(): void
}

export interface LoadOptions {
  readonly to: Destination
  readonly connections: number
  /** Unmeasured seconds before: caches and compilers warm up. */
  readonly warmUpSeconds: number
  readonly seconds: number
  /** Asked when one leaves, for the request that was due at this time of performance.now(). */
  readonly next: (dueMs: number) => PreparedRequest
  readonly readings: Readings
  /** One for several loops, side by side or in turn; else the loop has its own. */
  readonly recorder?: Recorder
  /** Takes some of the answers with success. */
  readonly sample?: AnswerSample
}

export interface LoadResult {
  readonly acknowledged: Recorder['acknowledged']
  readonly failures: ReadonlyMap<string, number>
  readonly latencies: Latencies
  readonly slices: readonly Slice[]
  /** Answers with success in the measured time. */
  readonly answered: number
  /** Acknowledged a second in the measured time. */
  readonly rate: number
  readonly measuredMs: number
  /** Of a load that was watched in windows. */
  readonly course?: Course
}

/** What an open loop says of requests that were due and had to be given up. */
export const NEVER_SENT = 'never sent'

/** Requests that may have had their effect: without an answer, or with one that leaves it open. */
export function unsure(failures: LoadResult['failures']): number {
  let count = 0
  for (const [what, times] of failures) {
    const isRefused = /^[45]\d\d\b/.test(what) && !what.startsWith('504')
    if (!isRefused && what !== NEVER_SENT) count += times
  }
  return count
}

/** Answers under way at the end are waited for this long. */
export const DRAIN_MS = 30_000

export function loadResult(
  recorder: Recorder,
  measuredMs: number,
  answered = recorder.answered,
): LoadResult {
  return {
    acknowledged: recorder.acknowledged,
    failures: recorder.failures,
    answered,
    latencies: recorder.latencies(),
    slices: recorder.slices,
    rate: (answered * 1000) / measuredMs,
    measuredMs,
  }
}
