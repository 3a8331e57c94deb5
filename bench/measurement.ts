// One measured run: readings of CPU, memory and metrics around a load, put together with its
// latencies.

import type { LoadResult, Readings } from './load/load.ts'
import { spread, type RunFigures } from './result.ts'
import type { FloorName } from './target/floor.ts'
import type { Installation } from './target/installation.ts'
import { COMMITS, ENTRIES, LAG_ENTRIES, type Metrics } from './target/metrics.ts'
import type { ProcessUsage } from './target/process-usage.ts'

const SAMPLE_MS = 500

export interface FiguresOptions {
  readonly result: LoadResult
  readonly round: number
  readonly problems: readonly string[]
  readonly floors?: ReadonlyMap<FloorName, RunFigures>
}

export class Measurement implements Readings {
  readonly #usage: () => ProcessUsage | null
  #before: ProcessUsage | null = null
  #after: ProcessUsage | null = null
  #settled: ProcessUsage | null = null
  /** The most that was seen. */
  #rssMiB = 0
  #rssAnonMiB = 0
  #generator = process.cpuUsage()
  #generatorMs = 0
  #endedAt = 0
  #caughtUpMs: number | null = null
  #metricsBefore: Metrics | null = null
  #metricsAfter: Metrics | null = null
  #timer: NodeJS.Timeout | null = null

  constructor(usage: () => ProcessUsage | null) {
    this.#usage = usage
  }

  started(): void {
    this.#before = this.#read()
    this.#generator = process.cpuUsage()
    this.#timer = setInterval(() => this.#read(), SAMPLE_MS)
  }

  ended(): void {
    this.#endedAt = performance.now()
    this.#after = this.#read()
    const { user, system } = process.cpuUsage(this.#generator)
    this.#generatorMs = (user + system) / 1000
    if (this.#timer !== null) clearInterval(this.#timer)
  }

  async metricsBefore(installation: Installation): Promise<void> {
    this.#metricsBefore = await installation.metrics()
  }

  async metricsAfter(installation: Installation): Promise<void> {
    this.#metricsAfter = await installation.metrics()
  }

  /** Everything is in the index. */
  caughtUp(): void {
    this.#caughtUpMs = performance.now() - this.#endedAt
    this.#settled = this.#read()
  }

  figures({ result, round, problems, floors }: FiguresOptions): RunFigures {
    const { answered, latencies, rate, slices, failures, course } = result
    const count = Math.max(answered, 1)
    const cpu = perAnswer(this.#before, this.#after, count)
    const found = [...problems, ...troubles(result)]
    return {
      round,
      rate,
      count: answered,
      failed: [...failures.values()].reduce((a, b) => a + b, 0),
      p50: latencies.p50Us,
      p99: latencies.p99Us,
      p999: latencies.p999Us,
      max: latencies.maxUs,
      cpu,
      cpuAll: perAnswer(this.#before, this.#settled, count),
      generatorCpu: (this.#generatorMs * 1000) / count,
      rssMiB: this.#before && this.#rssMiB,
      rssAnonMiB: this.#before && this.#rssAnonMiB,
      lagEntries: this.#metricsAfter?.get(LAG_ENTRIES) ?? null,
      catchUpMs: this.#caughtUpMs,
      // A process that was started anew counts from nothing: its windows know.
      entriesPerCommit: course
        ? (spread(course.windows.map((window) => window.entriesPerCommit))?.median ?? null)
        : this.#entriesPerCommit(),
      floors: Object.fromEntries(
        [...(floors ?? [])].map(([name, floor]) => [
          name,
          {
            rate: rate / floor.rate,
            cpu: cpu === null || floor.cpu === null ? null : cpu / floor.cpu,
          },
        ]),
      ),
      slices,
      ...(course && { course }),
      problems: found,
    }
  }

  #read(): ProcessUsage | null {
    const usage = this.#usage()
    this.#rssMiB = Math.max(this.#rssMiB, usage?.rssMiB ?? 0)
    this.#rssAnonMiB = Math.max(this.#rssAnonMiB, usage?.rssAnonMiB ?? 0)
    return usage
  }

  #entriesPerCommit(): number | null {
    const entries = this.#grown(ENTRIES)
    const commits = this.#grown(COMMITS)
    return entries === null || commits === null || commits === 0 ? null : entries / commits
  }

  #grown(name: string): number | null {
    const before = this.#metricsBefore?.get(name)
    const after = this.#metricsAfter?.get(name)
    return before === undefined || after === undefined ? null : after - before
  }
}

function troubles({ acknowledged, failures, course }: LoadResult): string[] {
  // What a node can't answer while it is made to start again is no trouble.
  const excused = course?.restart?.failed ?? {}
  const failed = [...failures]
    .map(([what, times]) => [what, times - (excused[what] ?? 0)] as const)
    .filter(([, times]) => times > 0)
    .map(([what, times]) => `${times} x ${what}`)
  const found = failed.length === 0 ? [] : [`failed: ${failed.join(', ')}`]
  const { create, command, read } = acknowledged
  return create + command + read > 0 ? found : [...found, 'nothing was acknowledged']
}

function perAnswer(
  before: ProcessUsage | null,
  after: ProcessUsage | null,
  count: number,
): number | null {
  return before === null || after === null ? null : ((after.cpuMs - before.cpuMs) * 1000) / count
}
