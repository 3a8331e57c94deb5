// Windows of a long load: latencies as they come, and readings of CPU, memory, index and disk each
// second and at each window's end. Keeps no more than a few numbers a window.

import type { RecordableHistogram } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { Window } from './course.ts'
import { histogram, latencyUs, percentile, type Listener } from './load/recorder.ts'
import { DISK_KINDS, type DiskKind, type DiskUsage } from './target/disk-usage.ts'
import type { Installation } from './target/installation.ts'
import { COMMITS, ENTRIES, LAG_ENTRIES, LAG_SECONDS, type Metrics } from './target/metrics.ts'

/** The index is asked how far it is this often. */
const SAMPLE_MS = 1_000

type Source = Pick<Installation, 'usage' | 'metrics' | 'disk'>

/** Readings of the server at a window's edge. */
interface Reading {
  readonly atMs: number
  readonly cpuMs: number | null
  readonly metrics: Metrics | null
}

export class Windows implements Listener {
  /** In their order. */
  readonly done: Window[] = []
  readonly #source: Source
  readonly #windowMs: number
  readonly #latencies = histogram()
  readonly #own = histogram()
  /** When the load began, and with how much on the disk. */
  #start: number | null = null
  #disk: DiskUsage | null = null
  #orders = 0
  #failed = 0
  #lagEntries: number | null = null
  #lagSeconds: number | null = null
  #before: Reading = { atMs: 0, cpuMs: null, metrics: null }
  #paused = new AbortController()
  #watching: Promise<void> = Promise.resolve()

  constructor(source: Source, windowSeconds: number) {
    this.#source = source
    this.#windowMs = windowSeconds * 1000
  }

  /** Since the load began, pauses included. */
  get elapsedSeconds(): number {
    return this.#start === null ? 0 : (performance.now() - this.#start) / 1000
  }

  success(fromMs: number, leftMs: number, nowMs: number): void {
    this.#orders++
    this.#latencies.record(latencyUs(fromMs, nowMs))
    this.#own.record(latencyUs(leftMs, nowMs))
  }

  failure(times: number): void {
    this.#failed += times
  }

  /** Begins the first window, or the next one after a pause. */
  resume(): void {
    this.#paused = new AbortController()
    this.#disk ??= this.#source.disk()
    this.#open(null)
    this.#start ??= this.#before.atMs
    this.#watching = this.#watch()
  }

  /** Ends the window under way; less than half of one is left out, unless nothing else is there. */
  async pause(): Promise<void> {
    const endMs = performance.now()
    this.#paused.abort()
    await this.#watching
    const isWorth = endMs - this.#before.atMs >= this.#windowMs / 2 || this.done.length === 0
    if (isWorth) this.#close(await this.#source.metrics(), endMs)
  }

  async #watch(): Promise<void> {
    const { signal } = this.#paused
    const from = this.#before.atMs
    let due = from + this.#windowMs
    this.#before = { ...this.#before, metrics: await this.#source.metrics() }
    while (!signal.aborted) {
      const waitMs = Math.max(0, Math.min(SAMPLE_MS, due - performance.now()))
      // Aborted: the pause closes the window.
      await delay(waitMs, undefined, { signal }).catch(() => {})
      const metrics = await this.#source.metrics()
      this.#lagEntries = most(this.#lagEntries, metrics?.get(LAG_ENTRIES))
      this.#lagSeconds = most(this.#lagSeconds, metrics?.get(LAG_SECONDS))
      if (signal.aborted || performance.now() < due) continue
      this.#close(metrics, performance.now())
      this.#open(metrics)
      // A window that took longer than it should has not moved the edges of the next.
      while (due <= performance.now()) due += this.#windowMs
    }
  }

  #open(metrics: Metrics | null): void {
    const cpuMs = this.#source.usage()?.cpuMs ?? null
    this.#before = { atMs: performance.now(), cpuMs, metrics }
    this.#latencies.reset()
    this.#own.reset()
    this.#failed = 0
    this.#lagEntries = null
    this.#lagSeconds = null
  }

  #close(metrics: Metrics | null, nowMs: number): void {
    const before = this.#before
    const usage = this.#source.usage()
    const { count } = this.#latencies
    const seconds = (nowMs - before.atMs) / 1000
    const entries = grown(before.metrics, metrics, ENTRIES)
    const commits = grown(before.metrics, metrics, COMMITS)
    this.done.push({
      atSeconds: (nowMs - this.#start!) / 1000,
      seconds,
      orders: this.#orders,
      rate: count / seconds,
      failed: this.#failed,
      ...percentiles(this.#latencies, this.#own),
      cpu: perOrder(usage === null ? null : usage.cpuMs * 1000, before.cpuMs, count),
      entriesPerCommit: entries === null || !commits ? null : entries / commits,
      rssAnonMiB: usage?.rssAnonMiB ?? null,
      lagEntries: this.#lagEntries,
      lagSeconds: this.#lagSeconds,
      diskPerOrder: this.#diskPerOrder(),
    })
  }

  #diskPerOrder(): Record<DiskKind, number> | null {
    const [before, after] = [this.#disk, this.#source.disk()]
    if (before === null || after === null || this.#orders === 0) return null
    const each = DISK_KINDS.map((kind) => [kind, (after[kind] - before[kind]) / this.#orders])
    return Object.fromEntries(each) as Record<DiskKind, number>
  }
}

/** Null where nothing was answered. */
function percentiles(latencies: RecordableHistogram, own: RecordableHistogram) {
  const of = (from: RecordableHistogram, share: number): number | null =>
    from.count === 0 ? null : percentile(from, share)
  return {
    p50: of(latencies, 50),
    p99: of(latencies, 99),
    ownP50: of(own, 50),
    ownP99: of(own, 99),
  }
}

function perOrder(afterUs: number | null, beforeMs: number | null, count: number): number | null {
  if (afterUs === null || beforeMs === null || count === 0) return null
  return (afterUs - beforeMs * 1000) / count
}

/** How much a counter has grown; one that fell began again at nothing, with its process. */
function grown(before: Metrics | null, after: Metrics | null, name: string): number | null {
  const [from, to] = [before?.get(name), after?.get(name)]
  if (from === undefined || to === undefined) return null
  return to < from ? to : to - from
}

function most(a: number | null, b: number | undefined): number | null {
  if (b === undefined) return a
  return Math.max(a ?? 0, b)
}
