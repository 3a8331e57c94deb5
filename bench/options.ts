// The bench's arguments. All mistakes are told at once.

import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { LONG_SCENARIO_NAMES, SCENARIO_NAMES } from './scenarios/names.ts'

export const DRIVERS = ['embedded', 'cluster'] as const
export type Driver = (typeof DRIVERS)[number]

export interface BenchSettings {
  /** Names of the scenarios to run. */
  readonly scenarios: readonly string[]
  readonly concurrencies: readonly number[]
  readonly seconds: number
  readonly warmUpSeconds: number
  readonly runs: number
  /** Requests a second of an open loop; null: closed loops. */
  readonly rate: number | null
  readonly steadyRate: number
  readonly steadySeconds: number
  /** Orders a second of a soak, for so many minutes; a live-soak has the rate of the live ones. */
  readonly soakRate: number
  readonly soakMinutes: number
  /** The node is stopped and started again after so many minutes of a soak; null: never. */
  readonly restartAtMinutes: number | null
  /** A growth ends with so many orders, or after so many minutes. */
  readonly growthOrders: number
  readonly growthMinutes: number
  /** Length of a window of the long ones. */
  readonly windowSeconds: number
  /** Orders in the store of the graph scenarios. */
  readonly preload: number
  /** Sockets of the live scenarios, queries of live-standing, and changes a second. */
  readonly watchers: number
  readonly standing: number
  readonly liveRate: number
  /** How long after its change a watcher may still be told of it. */
  readonly seenWithinMs: number
  /** In the layout of the Online Retail data set; null: a stand-in of so many rows. */
  readonly retailFile: string | null
  readonly retailRows: number
  readonly floors: boolean
  /** Of own nodes. */
  readonly driver: Driver
}

const SEEN_WITHIN_MS = 10_000

type LongSettings = Pick<
  BenchSettings,
  | 'soakRate'
  | 'soakMinutes'
  | 'restartAtMinutes'
  | 'growthOrders'
  | 'growthMinutes'
  | 'windowSeconds'
>

export interface BenchOptions {
  readonly settings: BenchSettings
  readonly url: string | null
  readonly token: string | null
  readonly clientId: string | null
  readonly clientSecret: string | null
  readonly pid: number | null
  readonly out: string | null
  readonly html: string | null
  readonly compare: readonly [string, string] | null
  readonly smoke: boolean
}

export const USAGE = `usage: npm run bench -- [options]
       npm run bench -- --compare A.json B.json
       npm run bench -- scale-out | handoff | takeover [options]    a cluster

Measures the public API beside the floors of the machine, prints a table, writes JSON.

  --scenarios LIST       of ${SCENARIO_NAMES.join(', ')}
                         (default: all; the beginning of a name stands for all that begin so);
                         or, only by their whole names, ${LONG_SCENARIO_NAMES.join(', ')}, which take minutes
  --concurrency LIST     connections, default 1,16,64
  --seconds N            measured time of a run, default 5; --warm-up N before it, default 1
  --runs N               runs of each case, default 3: medians and spreads
  --rate N               open loop: N requests a second, whatever the answers do
  --steady-rate N        rate of the scenario steady, default 7500; --steady-seconds N, default 30
  --soak-rate N          rate of soak, default 3000; --soak-minutes N, default 20,
                         of soak and live-soak;
                         --restart-at N stops and starts the node after N minutes of it
  --growth-orders N      orders that growth makes, default 5000000; --growth-minutes N, default 60:
                         it gives up then
  --window N             seconds of a window of the long ones, default 10
  --preload N            orders in the store of graph-get and graph-page, default 100000
  --watchers N           sockets of live-fanout, live-fanout-hot, live-writers and live-soak,
                         default 1000
  --standing N           queries of live-standing, default 10000, compared with 100
  --live-rate N          changes a second of live-fanout, live-standing and live-soak, default
                         1000
  --retail-file FILE     real orders that graph-filter, -count, -phrase and graphql-page ask of, as
                         npm run ingest takes them (.csv or .csv.gz of the Online Retail layout);
                         default: a stand-in of --retail-rows N, default 240000
  --driver NAME          of own nodes: embedded (default), or cluster: a member on Cassandra,
                         Elasticsearch and Redis of the bench's own
  --no-floors            leave the floors out
  --url URL              a running installation instead of own nodes, with
                         --token T or --client-id ID --client-secret S; --pid N to read its CPU
  --out FILE             JSON, default bench-<date>.json; --html FILE draws it as one page
  --smoke                a short run of everything that asserts correctness, not times
`

const OPTIONS = {
  scenarios: { type: 'string' },
  concurrency: { type: 'string', default: '1,16,64' },
  seconds: { type: 'string', default: '5' },
  'warm-up': { type: 'string', default: '1' },
  runs: { type: 'string', default: '3' },
  rate: { type: 'string' },
  'steady-rate': { type: 'string', default: '7500' },
  'steady-seconds': { type: 'string', default: '30' },
  'soak-rate': { type: 'string', default: '3000' },
  'soak-minutes': { type: 'string', default: '20' },
  'restart-at': { type: 'string' },
  'growth-orders': { type: 'string', default: '5000000' },
  'growth-minutes': { type: 'string', default: '60' },
  window: { type: 'string', default: '10' },
  preload: { type: 'string', default: '100000' },
  watchers: { type: 'string', default: '1000' },
  standing: { type: 'string', default: '10000' },
  'live-rate': { type: 'string', default: '1000' },
  'retail-file': { type: 'string' },
  'retail-rows': { type: 'string', default: '240000' },
  driver: { type: 'string', default: 'embedded' },
  'no-floors': { type: 'boolean', default: false },
  url: { type: 'string' },
  token: { type: 'string' },
  'client-id': { type: 'string' },
  'client-secret': { type: 'string' },
  pid: { type: 'string' },
  out: { type: 'string' },
  html: { type: 'string' },
  compare: { type: 'boolean', default: false },
  smoke: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const

const SMOKE: BenchSettings = {
  scenarios: SCENARIO_NAMES,
  concurrencies: [1, 8],
  seconds: 0.5,
  warmUpSeconds: 0.1,
  runs: 1,
  rate: null,
  steadyRate: 200,
  steadySeconds: 1,
  soakRate: 200,
  soakMinutes: 0.05,
  restartAtMinutes: 0.025,
  growthOrders: 400,
  growthMinutes: 1,
  windowSeconds: 0.5,
  preload: 400,
  watchers: 20,
  standing: 200,
  liveRate: 100,
  seenWithinMs: SEEN_WITHIN_MS,
  retailFile: null,
  retailRows: 2_000,
  floors: true,
  driver: 'embedded',
}

type PositiveOption =
  | 'seconds'
  | 'runs'
  | 'preload'
  | 'watchers'
  | 'standing'
  | 'live-rate'
  | 'retail-rows'
  | 'steady-rate'
  | 'steady-seconds'
  | 'soak-rate'
  | 'soak-minutes'
  | 'growth-orders'
  | 'growth-minutes'
  | 'window'

/** What is wrong is gathered. */
interface Checks {
  readonly check: (right: boolean, what: string) => void
  readonly positive: (name: PositiveOption) => number
}

export type ParsedOptions =
  | { readonly options: BenchOptions }
  | { readonly problems: readonly string[] }
  | 'help'

export function parseBenchOptions(args: readonly string[]): ParsedOptions {
  let values, positionals
  try {
    ;({ values, positionals } = parseArgs({
      args: [...args],
      options: OPTIONS,
      allowPositionals: true,
    }))
  } catch (error) {
    return { problems: [(error as Error).message] }
  }
  if (values.help) return 'help'
  const problems: string[] = []
  const check = (right: boolean, what: string): void => void (right || problems.push(what))
  const positive = (name: PositiveOption): number => {
    const n = Number(values[name])
    check(n > 0, `--${name} ${values[name]}: must be more than 0`)
    return n
  }
  const concurrencies = values.concurrency.split(',').map(Number)
  check(concurrencies.every(isConnections), `--concurrency ${values.concurrency}: like 1,16,64`)
  const rate = values.rate === undefined ? null : Number(values.rate)
  check(rate === null || rate > 0, `--rate ${values.rate}: must be more than 0`)
  const pid = values.pid === undefined ? null : Number(values.pid)
  check(pid === null || Number.isInteger(pid), `--pid ${values.pid}: must be a process id`)
  const hasAccess = values.token !== undefined || values['client-secret'] !== undefined
  check(values.url === undefined || hasAccess, '--url needs --token, or --client-id and -secret')
  check(values.url === undefined || URL.canParse(values.url), `--url ${values.url}: no address`)
  const pair = values.compare ? positionals : []
  check(!values.compare || pair.length === 2, '--compare needs two files: A.json B.json')
  check(values.compare || positionals.length === 0, `not understood: ${positionals.join(' ')}`)
  const scenarios = chooseScenarios(values.scenarios, problems)
  const settings: BenchSettings = {
    scenarios,
    concurrencies,
    seconds: positive('seconds'),
    warmUpSeconds: Number(values['warm-up']),
    runs: positive('runs'),
    rate,
    steadyRate: positive('steady-rate'),
    steadySeconds: positive('steady-seconds'),
    ...longSettings(values, { check, positive }),
    preload: positive('preload'),
    watchers: positive('watchers'),
    standing: positive('standing'),
    liveRate: positive('live-rate'),
    seenWithinMs: SEEN_WITHIN_MS,
    ...targetSettings(values, { check, positive }),
    floors: !values['no-floors'],
  }
  if (problems.length > 0) return { problems }
  return {
    options: {
      settings: values.smoke ? { ...SMOKE, scenarios, driver: settings.driver } : settings,
      url: values.url?.replace(/\/+$/, '') ?? null,
      token: values.token ?? null,
      clientId: values['client-id'] ?? null,
      clientSecret: values['client-secret'] ?? null,
      pid,
      out: values.out ?? null,
      html: values.html ?? null,
      compare: pair.length === 2 ? [pair[0]!, pair[1]!] : null,
      smoke: values.smoke,
    },
  }
}

/** What own nodes are, and what a shop is loaded from. */
function targetSettings(
  values: {
    readonly 'retail-file'?: string | undefined
    readonly 'restart-at'?: string | undefined
    readonly driver: string
  },
  { check, positive }: Checks,
): Pick<BenchSettings, 'retailFile' | 'retailRows' | 'driver'> {
  const retailFile = values['retail-file'] ?? null
  check(
    retailFile === null || existsSync(retailFile),
    `--retail-file ${retailFile}: there is no such file`,
  )
  const driver = DRIVERS.find((name) => name === values.driver)
  check(driver !== undefined, `--driver ${values.driver}: must be ${DRIVERS.join(' or ')}`)
  check(driver !== 'cluster' || values['restart-at'] === undefined, '--restart-at: embedded only')
  return { retailFile, retailRows: positive('retail-rows'), driver: driver ?? 'embedded' }
}

/** Of soak and growth. */
function longSettings(
  values: { readonly 'restart-at'?: string | undefined; readonly url?: string | undefined },
  { check, positive }: Checks,
): LongSettings {
  const soakMinutes = positive('soak-minutes')
  const restartAt = values['restart-at']
  const restartAtMinutes = restartAt === undefined ? null : Number(restartAt)
  check(
    restartAtMinutes === null || (restartAtMinutes > 0 && restartAtMinutes < soakMinutes),
    `--restart-at ${restartAt}: must be within the minutes of the soak`,
  )
  check(restartAt === undefined || values.url === undefined, '--restart-at needs an own node')
  return {
    soakRate: positive('soak-rate'),
    soakMinutes,
    restartAtMinutes,
    growthOrders: positive('growth-orders'),
    growthMinutes: positive('growth-minutes'),
    windowSeconds: positive('window'),
  }
}

function isConnections(n: number): boolean {
  return Number.isInteger(n) && n >= 1 && n <= 4096
}

function chooseScenarios(list: string | undefined, problems: string[]): readonly string[] {
  if (list === undefined) return SCENARIO_NAMES
  const all = [...SCENARIO_NAMES, ...LONG_SCENARIO_NAMES]
  const chosen = new Set<string>()
  for (const wanted of list.split(',').map((name) => name.trim())) {
    const matching = [
      ...SCENARIO_NAMES.filter((name) => name.startsWith(wanted)),
      ...LONG_SCENARIO_NAMES.filter((name) => name === wanted),
    ]
    if (matching.length === 0 || wanted === '') {
      problems.push(`--scenarios ${wanted}: there are ${all.join(', ')}`)
    }
    for (const name of matching) chosen.add(name)
  }
  return all.filter((name) => chosen.has(name))
}
