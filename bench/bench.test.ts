// The bench without a node: rounds over a small installation in memory that keeps or loses orders,
// the real floors, and the reports over the result.

import t from 'tap'
import { parseBenchOptions, type BenchSettings } from './options.ts'
import { benchOrder, createMessages } from './orders.ts'
import { compareResults, comparisonText } from './report/compare.ts'
import { resultPage } from './report/html.ts'
import { resultTable } from './report/table.ts'
import { spread, type BenchResult, type CaseResult, type RunFigures } from './result.ts'
import { Rounds } from './rounds.ts'
import { RETAIL_SCENARIO_NAMES, SCENARIO_NAMES } from './scenarios/names.ts'
import { chosenScenarios } from './scenarios/scenarios.ts'
import type { Installation } from './target/installation.ts'
import { parseMetrics } from './target/metrics.ts'
import { processUsage } from './target/process-usage.ts'
import { FakeInstallation } from './testing/fake-installation.ts'

const NEVER = Number.MAX_SAFE_INTEGER
/** Those that ask a whole shop need a graph that answers (test/processes/bench-retail.test.ts). */
const SIMPLE = SCENARIO_NAMES.filter(
  (name) => !(RETAIL_SCENARIO_NAMES as readonly string[]).includes(name),
)

const SETTINGS: BenchSettings = {
  scenarios: SIMPLE,
  concurrencies: [2],
  seconds: 0.05,
  warmUpSeconds: 0.01,
  runs: 2,
  rate: null,
  steadyRate: 100,
  steadySeconds: 0.1,
  soakRate: 100,
  soakMinutes: 0.01,
  restartAtMinutes: null,
  growthOrders: 200,
  growthMinutes: 1,
  windowSeconds: 1,
  preload: 120,
  watchers: 8,
  standing: 120,
  liveRate: 400,
  seenWithinMs: 10_000,
  retailFile: null,
  retailRows: 100,
  floors: false,
  driver: 'embedded',
}

function run(settings: BenchSettings, installation: Installation): Promise<readonly CaseResult[]> {
  return new Rounds({
    settings,
    scenarios: chosenScenarios(settings),
    install: () => Promise.resolve(installation),
    tell: () => {},
  }).run()
}

const about = {
  format: 1,
  date: '2026-01-01T00:00:00.000Z',
  machine: { hostname: 'm', cpu: 'c<pu>', cores: 2, memoryMiB: 1, system: 's', loadBefore: 0 },
  nodeVersion: '22',
  revision: 'abc',
  durability: 'on',
  target: 'own',
  settings: {},
} as const

t.test('all scenarios run, are counted right, and are reported', async (t) => {
  const fake = new FakeInstallation(NEVER)
  const cases = await run(SETTINGS, await fake.start(t))
  t.same(new Set(cases.map((one) => one.name)), new Set(SIMPLE))
  for (const one of cases) {
    t.equal(one.runs.length, 2, one.name)
    const rates = one.runs.map((figures) => figures.rate)
    t.equal(one.spreads.rate!.max, Math.max(...rates))
    for (const figures of one.runs) {
      t.same(figures.problems, [], one.name)
      t.ok(figures.p50 <= figures.p99 && figures.p99 <= figures.max)
      t.type(figures.cpu, 'number')
      t.ok(figures.rssMiB! > 10)
    }
  }
  const answers = cases.flatMap((one) => one.runs).reduce((n, figures) => n + figures.count, 0)
  t.ok(answers > 100, `${answers} answers in the measured times`)
  const result: BenchResult = { ...about, cases }
  const table = resultTable(result)
  t.match(table, /order-create\s+2\s+\d+/)
  t.notMatch(table, /PROBLEM/)
  const page = resultPage(JSON.parse(JSON.stringify(result)) as BenchResult)
  t.match(page, /<svg /)
  t.match(page, /c&lt;pu&gt;/)
  t.notMatch(page, /(?:src|href)=|url\(|@import|<script/, 'nothing is loaded from anywhere')
  t.notMatch(page, /NaN|undefined|Infinity/)
})

t.test('an installation that loses acknowledged orders is found out', async (t) => {
  const settings = { ...SETTINGS, scenarios: ['order-create'], runs: 1, seconds: 0.2 }
  const installation = await new FakeInstallation(50).start(t)
  // Patience is for real indexes; this one will never have them.
  installation.ordersReach = () => installation.countOrders()
  const [one] = await run(settings, installation)
  t.match(one!.runs[0]!.problems, [/\d+ orders were acknowledged, the graph has \d+ more/])
  t.match(resultTable({ ...about, cases: [one!] }), /PROBLEM: order-create @2, round 1/)
})

t.test('a watcher that is not told of its last change is found out', async (t) => {
  const settings = { ...SETTINGS, scenarios: ['live-fanout'], runs: 1, seconds: 0.2 }
  const good = await run(settings, await new FakeInstallation(NEVER).start(t))
  const [figures] = good[0]!.runs
  t.same(figures!.problems, [])
  t.ok(figures!.count > 60 && figures!.p50 > 0, `${figures!.count} changes`)
  const unseen = { ...settings, seenWithinMs: 50 }
  const [one] = await run(unseen, await new FakeInstallation(NEVER, 2).start(t))
  t.match(one!.runs[0]!.problems, [/x a watcher has not seen its last change/])
})

t.test('floors run as processes of their own and give ratios', async (t) => {
  const settings = { ...SETTINGS, scenarios: ['order-create'], runs: 1, floors: true }
  const cases = await run(settings, await new FakeInstallation(NEVER).start(t))
  t.same(
    cases.map((one) => one.name),
    ['floor-http', 'floor-lmdb', 'order-create'],
  )
  const [http, lmdb, scenario] = cases.map((one) => one.runs[0]!)
  t.same([http!.failed, lmdb!.failed], [0, 0])
  t.equal(scenario!.floors.http!.rate, scenario!.rate / http!.rate)
  t.equal(scenario!.floors.lmdb!.rate, scenario!.rate / lmdb!.rate)
})

function caseOf(rates: readonly number[], p99: number): CaseResult {
  const runs = rates.map((rate, i) => ({
    round: i + 1,
    rate,
    p50: 1,
    p99,
    p999: 1,
    floors: {},
    slices: [],
    problems: [],
  }))
  const rest = { kind: 'scenario', connections: 1, loop: 'closed', askedRate: null } as const
  return { name: 'x', ...rest, runs: runs as unknown as RunFigures[], spreads: {} }
}

t.test('comparison: what moved, and whether it is more than the spread', (t) => {
  const result = (rates: readonly number[], p99: number): BenchResult => ({
    ...about,
    cases: [caseOf(rates, p99)],
  })
  const verdict = (a: readonly number[], b: readonly number[], figure = 'rate/s') =>
    compareResults(result(a, 10), result(b, 20)).find((change) => change.figure === figure)!
  t.match(verdict([100, 110, 90], [150, 160, 111]), { verdict: 'better', change: 0.5 })
  t.match(verdict([100, 110, 90], [80, 70, 89]), { verdict: 'worse' })
  t.match(verdict([100, 110, 90], [130, 140, 109]), { verdict: 'within the spread' })
  t.match(verdict([100], [200]), { verdict: 'one run only' })
  t.match(verdict([1, 2], [1, 2], 'p99 us'), { verdict: 'worse', change: 1 })
  const other = { ...result([1, 2], 1), machine: { ...about.machine, hostname: 'n' } }
  t.match(comparisonText(result([1, 2], 1), other), /Different machines/)
  t.match(comparisonText({ ...about, cases: [] }, other), /x @1: only after/)
  t.end()
})

t.test('medians and spreads', (t) => {
  t.same(spread([3, null, 1, 2]), { median: 2, min: 1, max: 3 })
  t.same(spread([4, 1]), { median: 2.5, min: 1, max: 4 })
  t.equal(spread([null, undefined]), null)
  t.end()
})

t.test('arguments: all mistakes at once; scenarios by the beginning of their names', (t) => {
  t.match(parseBenchOptions(['--concurrency', '0', '--url', 'http://x', '--runs', 'x', 'stray']), {
    problems: [/--concurrency 0/, /--url needs/, /stray/, /--runs x/],
  })
  t.match(parseBenchOptions(['--scenarios', 'nope']), { problems: [/there are order-create/] })
  t.match(parseBenchOptions(['--scenarios', 'order-commands,bulk']), {
    options: { settings: { scenarios: ['order-commands-hot', 'order-commands-spread', 'bulk'] } },
  })
  const named = (list: string) => parseBenchOptions(['--scenarios', list])
  t.match(named('soak,growth'), { options: { settings: { scenarios: ['soak', 'growth'] } } })
  t.match(named('soa'), { problems: [/there are .*, soak, growth/] }, 'long ones by whole names')
  const all = parseBenchOptions([]) as { options: { settings: BenchSettings } }
  t.same(all.options.settings.scenarios, SCENARIO_NAMES, 'and not by default')
  t.match(all, { options: { settings: { soakRate: 3000, soakMinutes: 20, windowSeconds: 10 } } })
  t.match(parseBenchOptions(['--restart-at', '20']), {
    problems: [/--restart-at 20: must be with/],
  })
  t.match(parseBenchOptions(['--retail-file', '/nowhere', '--driver', 'x']), {
    problems: [/--retail-file \/nowhere: there is no/, /--driver x: must be embedded or cluster/],
  })
  t.match(parseBenchOptions(['--restart-at', '2', '--driver', 'cluster']), {
    problems: [/--restart-at/],
  })
  t.match(parseBenchOptions(['--compare', 'a', 'b']), { options: { compare: ['a', 'b'] } })
  t.match(parseBenchOptions(['--compare', 'a']), { problems: [/two files/] })
  t.match(parseBenchOptions(['--smoke']), {
    options: { smoke: true, settings: { runs: 1, scenarios: SCENARIO_NAMES } },
  })
  t.match(parseBenchOptions(['--nope']), { problems: [/--nope/] })
  t.equal(parseBenchOptions(['--help']), 'help')
  t.end()
})

t.test('metrics and process readings', (t) => {
  const metrics = parseMetrics('# HELP a b\na{x="1"} 2\na{x="2 }"} 3.5\nb NaN\nc 1e3\n')
  t.same(
    [...metrics],
    [
      ['a', 5.5],
      ['c', 1000],
    ],
  )
  const usage = processUsage(process.pid)!
  t.ok(usage.cpuMs > 0 && usage.rssAnonMiB > 0 && usage.rssMiB >= usage.rssAnonMiB)
  t.equal(processUsage(null), null)
  t.equal(processUsage(2 ** 30), null)
  t.end()
})

t.test('the orders: about 900 bytes, all different', (t) => {
  const sizes = [1, 2, 77].map((n) => JSON.stringify(createMessages(benchOrder(n))).length)
  t.ok(
    sizes.every((size) => size > 850 && size < 1050),
    sizes.join(),
  )
  t.not(JSON.stringify(benchOrder(1).body), JSON.stringify(benchOrder(2).body))
  t.end()
})
