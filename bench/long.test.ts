// soak and growth over a small installation in memory: what they count, watch and find out; and
// the sentences that are made of it.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Course, Window } from './course.ts'
import type { BenchSettings } from './options.ts'
import { findings } from './report/course.ts'
import { resultPage } from './report/html.ts'
import { resultTable } from './report/table.ts'
import type { BenchResult, CaseResult, RunFigures } from './result.ts'
import { Rounds } from './rounds.ts'
import { chosenScenarios } from './scenarios/scenarios.ts'
import { diskUsage } from './target/disk-usage.ts'
import type { Installation } from './target/installation.ts'
import { COMMITS, ENTRIES, LAG_ENTRIES, LAG_SECONDS } from './target/metrics.ts'
import { FakeInstallation } from './testing/fake-installation.ts'
import { Windows } from './windows.ts'

const NEVER = Number.MAX_SAFE_INTEGER
const SETTINGS: BenchSettings = {
  scenarios: ['soak'],
  concurrencies: [1],
  seconds: 0.05,
  warmUpSeconds: 0.05,
  runs: 2,
  rate: null,
  steadyRate: 1,
  steadySeconds: 1,
  soakRate: 300,
  soakMinutes: 2 / 60,
  restartAtMinutes: null,
  growthOrders: 2_000,
  growthMinutes: 1,
  windowSeconds: 0.25,
  preload: 1,
  watchers: 1,
  standing: 1,
  liveRate: 1,
  seenWithinMs: 1,
  retailFile: null,
  retailRows: 100,
  driver: 'embedded',
  floors: true,
}

const ABOUT = {
  format: 1,
  date: '2026-01-01T00:00:00.000Z',
  machine: { hostname: 'm', cpu: 'c', cores: 2, memoryMiB: 1, system: 's', loadBefore: 0 },
  nodeVersion: '22',
  revision: 'abc',
  durability: 'on',
  target: 'own',
  settings: {},
} as const

/** The one case that the settings make, and its one run. */
async function run(settings: BenchSettings, installation: Installation) {
  const cases = await new Rounds({
    settings,
    scenarios: chosenScenarios(settings),
    install: () => Promise.resolve(installation),
    tell: () => {},
  }).run()
  const figures = cases[0]!.runs[0]! as RunFigures & { readonly course: Course }
  return { cases, figures, result: { ...ABOUT, cases } as BenchResult }
}

t.test('soak: windows of the rate, with figures; once, and without floors', async (t) => {
  const fake = new FakeInstallation(NEVER)
  const { cases, figures, result } = await run(SETTINGS, await fake.start(t))
  t.equal(cases.length, 1)
  t.equal(cases[0]!.runs.length, 1, 'the second round has none')
  t.same(figures.problems, [])
  t.same(figures.slices, [])
  const { windows } = figures.course
  t.ok(windows.length >= 6 && windows.length <= 9, `${windows.length} windows in 2 s`)
  t.ok(windows.every((window, i) => window.atSeconds > (windows[i - 1]?.atSeconds ?? 0)))
  t.ok(windows.at(-1)!.orders > 400 && windows.at(-1)!.orders <= 600)
  for (const { p50, p99, ownP50, lagEntries, rssAnonMiB, seconds } of windows) {
    t.ok(p50! > 0 && p50! <= p99! && ownP50! > 0 && seconds > 0.1)
    t.equal(lagEntries, 0)
    t.ok(rssAnonMiB! > 1)
  }
  const text = resultTable(result)
  t.match(text, /soak:\n *s +orders +rate\/s/)
  t.match(text, /windows held 98 % of 300\/s/)
  const page = resultPage(JSON.parse(JSON.stringify(result)) as BenchResult)
  for (const title of ['Orders a second', 'CPU an order', 'Index behind', 'Memory of its own']) {
    t.match(page, title)
  }
  t.notMatch(page, /NaN|undefined|Infinity/)
})

t.test(
  'soak: a restart in the middle excuses what fails meanwhile, and nothing else',
  async (t) => {
    const fake = new FakeInstallation(NEVER)
    const installation = await fake.start(t)
    installation.restart = async (ending) => {
      await fake.vanish()
      // Who comes back has seen that its connection was broken.
      await fake.listenUntilConnected()
      return { ending, endedMs: 1, readyMs: 2 }
    }
    const settings = { ...SETTINGS, restartAtMinutes: 0.7 / 60 }
    const { figures } = await run(settings, installation)
    t.same(figures.problems, [])
    const { restart, windows } = figures.course
    t.equal(restart!.ending, 'stopped')
    t.ok(restart!.atSeconds >= 0.6 && restart!.atSeconds < 1.5, String(restart!.atSeconds))
    t.ok(windows.at(-1)!.orders > 400, 'and the load went on')

    installation.restart = () => Promise.reject(new Error('it does not serve'))
    const broken = await run(settings, installation)
    t.match(broken.figures.problems, [/1 x restart: it does not serve/])
  },
)

t.test('growth: tenths, single callers, kill -9, and the orders that are there then', async (t) => {
  const fake = new FakeInstallation(NEVER)
  const installation = await fake.start(t)
  const endings: string[] = []
  installation.restart = async (ending) => {
    endings.push(ending)
    return { ending, endedMs: 1, readyMs: 2 }
  }
  const { figures, result } = await run({ ...SETTINGS, scenarios: ['growth'] }, installation)
  t.same(figures.problems, [])
  t.same(endings, ['killed'])
  const { tenths, single, restart, windows } = figures.course
  t.equal(tenths!.length, 10)
  t.ok(tenths!.every((rate) => rate > 0))
  t.same(
    single!.map(({ orders }) => Math.floor(orders / 500)),
    [0, 2, 4],
    'before, in the middle, after',
  )
  t.ok(figures.count >= 2_000 && figures.count < 2_200, String(figures.count))
  t.equal(restart!.graph!.orders, fake.orders.length)
  t.equal(restart!.graph!.expected, fake.orders.length)
  t.ok(windows.length >= 1)
  t.match(resultTable(result), /orders\/s by tenths: \d+, .*\n.*a single caller.*\n.*killed at/)
  t.match(resultPage(result), /Rate by tenths/)
})

t.test('growth: too few in its time, and orders that were lost, are problems', async (t) => {
  const settings = { ...SETTINGS, scenarios: ['growth'], growthOrders: 1e9, growthMinutes: 0.01 }
  const installation = await new FakeInstallation(7).start(t)
  installation.ordersReach = () => installation.countOrders()
  const { figures } = await run(settings, installation)
  t.match(figures.problems.join('\n'), /orders were acknowledged, the graph has/)
  t.match(figures.problems.join('\n'), /\d+ of 1000000000 orders in 0.01 minutes/)
  t.match(figures.problems.join('\n'), /order O\d+ has no checkpoint/)
  t.equal(figures.course.restart, null, 'a node that is not ours is not killed')
})

t.test('windows: a stall is a window, counters may begin anew, a pause ends one', async (t) => {
  let metrics: Map<string, number> | null = new Map([
    [ENTRIES, 1_000],
    [COMMITS, 100],
    [LAG_ENTRIES, 7],
    [LAG_SECONDS, 0.5],
  ])
  let bytes = 1_000
  const usage = () => ({ cpuMs: performance.now(), rssMiB: 2, rssAnonMiB: 1 })
  const disk = () => ({ log: bytes, places: 0, graph: 0, other: 64 })
  const windows = new Windows({ usage, disk, metrics: () => Promise.resolve(metrics) }, 0.1)
  const reach = async (count: number) => {
    while (windows.done.length < count) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  windows.resume()
  await reach(1)
  t.match(windows.done[0], { rate: 0, p50: null, cpu: null, lagEntries: 7, lagSeconds: 0.5 })
  const now = performance.now()
  windows.success(now - 20, now - 10, now)
  windows.failure(3)
  bytes = 5_000
  metrics = new Map([
    [ENTRIES, 40],
    [COMMITS, 4],
  ])
  await reach(2)
  const second = windows.done[1]!
  t.match(second, { orders: 1, failed: 3, entriesPerCommit: 10 })
  t.match(second.diskPerOrder, { log: 4_000, places: 0, graph: 0, other: 0 })
  t.ok(second.p50! >= 19_900 && second.ownP50! <= 10_100, `${second.p50} ${second.ownP50}`)
  metrics = null
  await reach(3)
  t.match(windows.done[2], { failed: 0, entriesPerCommit: null, lagEntries: null })
  await windows.pause()
  const count = windows.done.length
  t.ok(count <= 4)
  windows.resume()
  await windows.pause()
  t.equal(windows.done.length, count, 'next to nothing is no window')
})

t.test('disk: by what files are for', (t) => {
  const dir = t.testdir()
  mkdirSync(join(dir, 'log'))
  mkdirSync(join(dir, 'places', 'day-1'), { recursive: true })
  const files = ['data.mdb', 'log/0000000001.log', 'places/day-1/data.mdb', 'graph.sqlite-wal']
  for (const file of [...files, 'store.json'])
    writeFileSync(join(dir, file), Buffer.alloc(20_000, 1))
  const usage = diskUsage(dir)!
  const one = usage.other
  t.ok(one >= 20_000 && one < 40_000, String(one))
  t.same(usage, { log: 2 * one, places: one, graph: one, other: one })
  t.equal(diskUsage(null), null)
  t.equal(diskUsage(join(dir, 'none')), null)
  t.end()
})

/** Ten-second windows, 3,000/s and all well unless said otherwise. */
function windowsOf(count: number, change: (i: number) => Partial<Window>): Window[] {
  return Array.from({ length: count }, (_, i) => ({
    atSeconds: (i + 1) * 10,
    seconds: 10,
    orders: (i + 1) * 30_000,
    rate: 3_000,
    failed: 0,
    p50: 3_000,
    p99: 9_000,
    ownP50: 3_000,
    ownP99: 9_000,
    cpu: 200,
    entriesPerCommit: 8,
    rssAnonMiB: 300,
    lagEntries: 100,
    lagSeconds: 0.1,
    diskPerOrder: { log: 3_000, places: 500, graph: 2_000, other: 0 },
    ...change(i),
  }))
}

t.test('what is said of a course: the fall, the flatness, the restart', (t) => {
  const restart = {
    ending: 'stopped',
    atSeconds: 100,
    endedMs: 500,
    readyMs: 1_500,
    failed: { closed: 2 },
    graph: null,
  } as const
  const fall = windowsOf(40, (i) => (i < 24 ? {} : { rate: 150, p99: 400_000, cpu: 900 }))
  const text = findings({ askedRate: 3_000 }, { windows: fall, restart }).join('\n')
  t.match(text, /24 of 40 windows held 98 % of 3000\/s; the first that has not ends at 250 s/)
  t.match(text, /p99 9.0 ms in the median window, 400.0 ms in the worst, which ends at 250 s/)
  t.match(text, /CPU an order x 4.50, RssAnon x 1.00; index at most 0.10 s behind; 5500 bytes/)
  t.match(
    text,
    /stopped at 100 s: gone in 0.50 s, ready 1.50 s later; meanwhile failed: 2 x closed/,
  )
  t.match(text, /from 10 s after that on: 150\/s at least, p99 400.0 ms at most/)
  const good = findings({ askedRate: 3_000 }, { windows: windowsOf(40, () => ({})), restart: null })
  t.match(good[0], /^40 of 40 windows held 98 % of 3000\/s$/)
  t.same(findings({ askedRate: null }, { windows: [], restart: null }), [])
  const runs = [{ course: { windows: fall, restart }, problems: [], floors: {}, slices: [] }]
  const one = { name: 'soak', kind: 'scenario', connections: 64, loop: 'open', askedRate: 3_000 }
  const cases = [{ ...one, runs, spreads: {} }] as unknown as CaseResult[]
  const rows = resultTable({ ...ABOUT, cases })
    .split('\n')
    .filter((line) => /^ *\d+ +\d+ +\d+ /.test(line))
  t.equal(rows.length, 20, 'a table of at most 20 rows')
  t.end()
})
