// `npm run bench -- scale-out`: what 1, 2 and 4 members do when each has the same share of a CPU,
// engines outside the shares. The share is chosen so that the machine keeps idle time at the most
// members: a run without that shows the machine's limit, not the cluster's, and doesn't count.
// Source: ARCHITECTURE 8.

import { setTimeout as delay } from 'node:timers/promises'
import { closedLoop } from '../load/closed-loop.ts'
import { loadResult } from '../load/load.ts'
import type { LoadResult } from '../load/load.ts'
import { Recorder } from '../load/recorder.ts'
import { inTurn, post } from '../load/requests.ts'
import { benchOrder, createMessages } from '../orders.ts'
import { ENGINE_NAMES } from './engines.ts'
import type { ClusterEngines, EngineName } from './engines.ts'
import { Members } from './members.ts'
import type { Quotas } from './quota.ts'
import { MachineTime } from './machine-time.ts'

export interface ScaleOutOptions {
  readonly engines: ClusterEngines
  readonly quotas: Quotas
  /** Numbers of members, in rising order. */
  readonly members: readonly number[]
  /** CPUs of a member; null: the largest of SHARES that leaves the machine idle enough. */
  readonly quota: number | null
  readonly seconds: number
  readonly warmUpSeconds: number
  /** Connections to each member. */
  readonly connections: number
  readonly shards: number
  readonly runs: number
  readonly tell: (line: string) => void
}

export interface ScaleOutRun {
  readonly members: number
  /** CPUs of each. */
  readonly quota: number
  readonly rate: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly failed: number
  /** CPU of the members an order, until the index had everything, microseconds. */
  readonly cpuUs: number
  /** The same in the measured time alone. */
  readonly cpuInTimeUs: number
  /** Envelopes over the wire an order; null: the members don't say. */
  readonly envelopes: number | null
  /** Entries an append. */
  readonly entriesPerCommit: number | null
  /** CPUs that each engine used in the measured time. */
  readonly engines: Readonly<Record<EngineName, number>>
  readonly generator: number
  /** Share of the machine's CPU that nobody used. */
  readonly idle: number
  readonly catchUpSeconds: number
  /** The machine was idle enough: it counts. */
  readonly counts: boolean
}

/** What the machine must keep. */
export const IDLE_MIN = 0.2
const SHARES = [0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05]
/** The first warm-up, as a multiple of those of each run. */
const ENGINES_WARM_UPS = 3
const CALIBRATE_SECONDS = 6
const SETTLE_MS = 1_500
const CATCH_UP_MS = 300_000
const POLL_MS = 250
const VARIETY = 1_000

/** The runs, and the share of a CPU that each member had; null: none left the machine idle. */
export async function scaleOut(
  options: ScaleOutOptions,
): Promise<{ readonly quota: number | null; readonly runs: readonly ScaleOutRun[] }> {
  const { members, runs, tell } = options
  const done: ScaleOutRun[] = []
  let { quota } = options
  // The most members first: they find the share. Each number has members and a store of its own:
  // one process that goes on from four to two to one is the best compiled when it is alone.
  for (const count of members.toReversed()) {
    const cluster = new Members(options)
    try {
      await cluster.add(count)
      await warmUp(cluster, options, ENGINES_WARM_UPS)
      quota ??= await chooseQuota(cluster, options)
      if (quota === null) break
      for (let i = 0; i < runs; i++) done.push(await measured(cluster, quota, options))
    } finally {
      await cluster.stop()
    }
  }
  for (const run of done) if (!run.counts) tell(`${run.members} members: not idle enough`)
  return { quota, runs: done.toSorted((a, b) => a.members - b.members) }
}

/**
 * Load without a share. The machine does so much in a second, however many members share it: for
 * the same work a member, and the same compiled code, it lasts as many times as long.
 */
async function warmUp(
  cluster: Members,
  { connections, warmUpSeconds }: ScaleOutOptions,
  times: number,
): Promise<void> {
  const seconds = times * warmUpSeconds * cluster.all.length
  await load(cluster, { connections, seconds }, nothing())
}

/** The largest share at which the machine keeps what it must. */
async function chooseQuota(cluster: Members, options: ScaleOutOptions): Promise<number | null> {
  const { tell } = options
  for (const quota of SHARES) {
    const run = await measured(cluster, quota, { ...options, seconds: CALIBRATE_SECONDS })
    const idle = Math.round(run.idle * 100)
    tell(`${quota} CPUs each: ${Math.round(run.rate)} orders/s, the machine is ${idle} % idle`)
    if (run.counts) return quota
  }
  return null
}

async function measured(
  cluster: Members,
  quota: number,
  options: ScaleOutOptions,
): Promise<ScaleOutRun> {
  const { engines, seconds, tell } = options
  // Compilers are warm before a member is held to its share.
  await warmUp(cluster, options, 1)
  await caughtUp(cluster)
  for (const member of cluster.all) member.hold(quota)
  await delay(SETTLE_MS)
  const readings = new Readings(cluster, engines)
  const result = await load(cluster, options, readings)
  const began = performance.now()
  await caughtUp(cluster)
  const catchUpSeconds = (performance.now() - began) / 1_000
  const run = await readings.run({ result, quota, seconds, catchUpSeconds })
  for (const member of cluster.all) member.hold(null)
  tell(
    `${run.members} members at ${quota} CPUs: ${Math.round(run.rate)} orders/s, ` +
      `${Math.round(run.cpuUs)} us an order, ${Math.round(run.idle * 100)} % idle` +
      [...result.failures].map(([what, n]) => `, ${n} x ${what}`).join(''),
  )
  return run
}

interface Watch {
  readonly recorder: Recorder
  started(): void
  ended(): void
}

/** Of a load that is not looked at. */
function nothing(): Watch {
  return { recorder: new Recorder(), started: () => undefined, ended: () => undefined }
}

/** Creates over every member at once. */
async function load(
  cluster: Members,
  { seconds, connections }: Pick<ScaleOutOptions, 'seconds' | 'connections'>,
  watch: Watch,
): Promise<LoadResult> {
  const { recorder } = watch
  const loops = await Promise.all(
    cluster.all.map(async ({ installation }, i) => {
      const to = await installation.destination()
      const bytes = Array.from({ length: VARIETY }, (_, n) => ({
        kind: 'create' as const,
        bytes: post(to, '/resources/actors/order/new', createMessages(benchOrder(n * 31 + i))),
      }))
      const readings = i === 0 ? watch : nothing()
      return { to, connections, seconds, warmUpSeconds: 0.5, next: inTurn(bytes), readings }
    }),
  )
  const results = await Promise.all(loops.map((loop) => closedLoop({ ...loop, recorder })))
  return loadResult(recorder, results[0]!.measuredMs)
}

/** Waits until the graph has everything; derived rows are written before it. */
async function caughtUp(cluster: Members): Promise<void> {
  const until = performance.now() + CATCH_UP_MS
  while ((await cluster.lag()) > 0) {
    if (performance.now() > until) throw new Error('the index does not catch up')
    await delay(POLL_MS)
  }
}

/** What is read around the measured time. */
class Readings implements Watch {
  readonly recorder = new Recorder()
  #before = 0
  readonly #cluster: Members
  readonly #engines: ClusterEngines
  readonly #machine = new MachineTime()
  readonly #metrics: Promise<(number | null)[]>
  #cpuMs = 0
  #cpuEndMs = 0
  #engineMs: Record<EngineName, number>
  #generator = process.cpuUsage()

  constructor(cluster: Members, engines: ClusterEngines) {
    this.#cluster = cluster
    this.#engines = engines
    this.#engineMs = engines.cpuMs()
    this.#metrics = this.#readMetrics()
  }

  #readMetrics(): Promise<(number | null)[]> {
    const names = [
      'kontor_wire_parcels_total',
      'kontor_commit_entries_total',
      'kontor_commit_groups_total',
    ]
    return Promise.all(names.map((name) => this.#cluster.metric(name)))
  }

  started(): void {
    this.#before = this.recorder.acknowledged.create
    this.#machine.start()
    this.#cpuMs = this.#cluster.cpuMs()
    this.#engineMs = this.#engines.cpuMs()
    this.#generator = process.cpuUsage()
  }

  ended(): void {
    this.#machine.stop()
    this.#cpuEndMs = this.#cluster.cpuMs()
    const after = this.#engines.cpuMs()
    for (const name of ENGINE_NAMES) this.#engineMs[name] = after[name] - this.#engineMs[name]
    this.#generator = process.cpuUsage(this.#generator)
  }

  async run(of: {
    readonly result: LoadResult
    readonly quota: number
    readonly seconds: number
    readonly catchUpSeconds: number
  }): Promise<ScaleOutRun> {
    const { result, quota, seconds, catchUpSeconds } = of
    const [before, after] = [await this.#metrics, await this.#readMetrics()]
    const [parcels, entries, groups] = after.map((value, i) => {
      const first = before[i] ?? null
      return value === null || first === null ? null : value - first
    })
    const all = result.acknowledged.create
    const cpus = ENGINE_NAMES.map((name) => [name, this.#engineMs[name] / 1_000 / seconds] as const)
    const { idle } = this.#machine
    const { user, system } = this.#generator
    return {
      members: this.#cluster.all.length,
      quota,
      rate: result.rate,
      p50Ms: result.latencies.p50Us / 1_000,
      p99Ms: result.latencies.p99Us / 1_000,
      failed: [...result.failures.values()].reduce((sum, n) => sum + n, 0),
      cpuUs: ((this.#cluster.cpuMs() - this.#cpuMs) * 1_000) / (all - this.#before),
      cpuInTimeUs: ((this.#cpuEndMs - this.#cpuMs) * 1_000) / result.answered,
      envelopes: parcels === undefined || parcels === null ? null : parcels / all,
      entriesPerCommit: !entries || !groups ? null : entries / groups,
      engines: Object.fromEntries(cpus) as Record<EngineName, number>,
      generator: (user + system) / 1e6 / seconds,
      idle,
      catchUpSeconds,
      counts: idle >= IDLE_MIN,
    }
  }
}
