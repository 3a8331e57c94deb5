// `npm run bench -- cluster-soak`: three members at a rate that they carry, for minutes, while the
// log is trimmed and rolled often: whether latency and what the engines hold stay as they are. The
// bounds that are lowered are those of a test's long life. Source: PROTOCOL 3.12, 4.2.

import type { Window } from '../course.ts'
import { openLoop } from '../load/open-loop.ts'
import { Recorder } from '../load/recorder.ts'
import { inTurn, post } from '../load/requests.ts'
import { benchOrder, createMessages } from '../orders.ts'
import { LAG_ENTRIES, LAG_SECONDS, type Metrics } from '../target/metrics.ts'
import type { ProcessUsage } from '../target/process-usage.ts'
import { Windows } from '../windows.ts'
import { EngineWatch, type EngineReading } from './engine-watch.ts'
import type { ClusterEngines } from './engines.ts'
import { Members } from './members.ts'

export interface ClusterSoakOptions {
  readonly engines: ClusterEngines
  readonly shards: number
  /** Orders a second, over all members. */
  readonly rate: number
  readonly minutes: number
  readonly warmUpSeconds: number
}

export interface ClusterSoak {
  readonly windows: readonly Window[]
  readonly engines: readonly EngineReading[]
  readonly failures: Readonly<Record<string, number>>
  /** Acknowledged, and those of them that the graph had at the end. */
  readonly acknowledged: number
  readonly inGraph: number
}

const MEMBERS = 3
const CONNECTIONS = 32
const WINDOW_SECONDS = 30
const READ_EVERY_SECONDS = 30
const VARIETY = 1_000
const CATCH_UP_MS = 120_000

/** What is minutes to days in production is seconds to minutes here. */
const LIMITS = {
  'storage.edgeMarkMs': 60_000,
  'storage.callerMarkMs': 90_000,
  'storage.derivedTtlSeconds': 120,
  'sharding.flushStoredMs': 2_000,
  'sharding.trimEveryMs': 5_000,
  'sharding.feedRetentionMs': 20_000,
  'storage.segmentRowsMax': 1_000,
  'sharding.passivateMs': 20_000,
}

export async function clusterSoak(options: ClusterSoakOptions): Promise<ClusterSoak> {
  const { engines, rate, minutes, warmUpSeconds } = options
  const members = new Members({ ...options, quotas: null, limits: LIMITS })
  try {
    await members.add(MEMBERS)
    const watch = new EngineWatch({ ports: engines.ports, dir: engines.dir, store: members.store })
    const windows = new Windows(sourceOf(members), WINDOW_SECONDS)
    const recorder = new Recorder(windows)
    const { installation: first } = members.all[0]!
    const before = await first.countOrders()
    const loads = members.all.map(async ({ installation }, i) => {
      const to = await installation.destination()
      const bytes = Array.from({ length: VARIETY }, (_, n) => ({
        kind: 'create' as const,
        bytes: post(to, '/resources/actors/order/new', createMessages(benchOrder(n * 31 + i))),
      }))
      const readings = {
        started: () => i === 0 && windows.resume(),
        ended: () => undefined,
      }
      return openLoop({
        ...{ to, connections: CONNECTIONS, rate: rate / MEMBERS, seconds: minutes * 60 },
        ...{ warmUpSeconds, next: inTurn(bytes), readings, recorder },
      })
    })
    watch.start(READ_EVERY_SECONDS)
    await Promise.all(loads)
    await windows.pause()
    await watch.stop()
    const acknowledged = recorder.acknowledged.create
    const inGraph = (await first.ordersReach(before + acknowledged, CATCH_UP_MS)) - before
    const failures = Object.fromEntries(recorder.failures)
    return { windows: windows.done, engines: watch.readings, failures, acknowledged, inGraph }
  } finally {
    await members.stop()
  }
}

/** All members as one server. */
function sourceOf(members: Members): ConstructorParameters<typeof Windows>[0] {
  return {
    usage: (): ProcessUsage | null => {
      const sum = { cpuMs: 0, rssMiB: 0, rssAnonMiB: 0 }
      for (const { installation } of members.all) {
        const one = installation.usage()
        if (one === null) return null
        sum.cpuMs += one.cpuMs
        sum.rssMiB += one.rssMiB
        sum.rssAnonMiB += one.rssAnonMiB
      }
      return sum
    },
    metrics: async (): Promise<Metrics | null> => {
      const all = await Promise.all(members.all.map(({ installation }) => installation.metrics()))
      const of = (name: string): number[] => all.map((one) => one?.get(name) ?? 0)
      return new Map([
        [LAG_ENTRIES, of(LAG_ENTRIES).reduce((sum, n) => sum + n, 0)],
        [LAG_SECONDS, Math.max(...of(LAG_SECONDS))],
      ])
    },
    disk: () => null,
  }
}

/** A row for each reading of the engines, with the window that ended before it. */
export function clusterSoakText(of: ClusterSoak): string {
  const title =
    '     s  rate/s  p50 ms  p99 ms  cpu us  anon MiB  lag s |' +
    ' files  MiB  tombs p99   max | redis MiB | segments    docs  deleted   MiB'
  const rows = of.engines.map((engine) => {
    const window = of.windows.findLast(({ atSeconds }) => atSeconds <= engine.atSeconds + 1)
    const cell = (value: number | null | undefined, width: number, digits = 0): string =>
      (value === null || value === undefined ? '-' : value.toFixed(digits)).padStart(width)
    const ms = (us: number | null | undefined): number | null => (us ? us / 1_000 : null)
    return (
      cell(engine.atSeconds, 6) +
      cell(window?.rate, 8) +
      cell(ms(window?.p50), 8, 1) +
      cell(ms(window?.p99), 8, 1) +
      cell(window?.cpu, 8) +
      cell(window?.rssAnonMiB, 10) +
      cell(window?.lagSeconds, 7, 1) +
      ` |${cell(engine.cassandraFiles, 6)}${cell(engine.cassandraMiB, 5)}` +
      `${cell(engine.tombstonesP99, 11)}${cell(engine.tombstonesMax, 6)} |` +
      `${cell(engine.redisMiB, 10, 1)} |${cell(engine.elasticSegments, 9)}` +
      `${cell(engine.elasticDocs, 8)}${cell(engine.elasticDeleted, 9)}${cell(engine.elasticMiB, 6)}`
    )
  })
  const failed = Object.entries(of.failures).map(([what, n]) => `, ${n} x ${what}`)
  const end = `${of.acknowledged} acknowledged, ${of.inGraph} in the graph${failed.join('')}`
  return `${[title, ...rows, end].join('\n')}\n`
}
