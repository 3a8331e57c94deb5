// The rounds of a bench: in each, at each concurrency, the floors and then the scenarios, so that
// every figure has its floor from the same minute of the same machine. Nodes and floors are started
// when first needed and live to the end.

import { closedLoop } from './load/closed-loop.ts'
import { unsure, type LoadResult } from './load/load.ts'
import { inTurn, post } from './load/requests.ts'
import { Measurement } from './measurement.ts'
import type { BenchSettings } from './options.ts'
import { benchOrder, createMessages } from './orders.ts'
import { caseKey, spreadsOf, type CaseResult, type RunFigures } from './result.ts'
import type { Scenario } from './scenarios/scenario.ts'
import { Floor, type FloorName } from './target/floor.ts'
import type { Installation } from './target/installation.ts'

const FLOOR_VARIETY = 2_000
/** How long the index may take after a run before that is a problem. */
const CATCH_UP_MS = 300_000

export interface RoundsOptions {
  readonly settings: BenchSettings
  readonly scenarios: readonly Scenario[]
  /** Gives the installation for a node's name. */
  readonly install: (node: string) => Promise<Installation>
  readonly tell: (line: string) => void
}

type AboutCase = Omit<CaseResult, 'runs' | 'spreads'>

export class Rounds {
  readonly #o: RoundsOptions
  readonly #cases = new Map<string, AboutCase & { runs: RunFigures[] }>()
  readonly #floors = new Map<FloorName, Floor>()
  readonly #nodes = new Map<string, Installation>()
  #round = 0
  /** Floor figures of this round. */
  #floorRuns = new Map<string, RunFigures>()

  constructor(options: RoundsOptions) {
    this.#o = options
  }

  async run(): Promise<readonly CaseResult[]> {
    try {
      for (const scenario of this.#o.scenarios) {
        this.#o.tell(`preparing ${scenario.name}`)
        await scenario.prepare(await this.#node(scenario))
      }
      for (this.#round = 1; this.#round <= this.#o.settings.runs; this.#round++) {
        this.#floorRuns = new Map()
        await this.#runRound()
      }
      return [...this.#cases.values()]
        .map((one) => ({ ...one, spreads: spreadsOf(one.runs) }))
        .sort((x, y) => Number(y.kind === 'floor') - Number(x.kind === 'floor'))
    } finally {
      for (const floor of this.#floors.values()) await floor.stop()
      for (const node of new Set(this.#nodes.values())) await node.stop()
    }
  }

  async #runRound(): Promise<void> {
    const steps = this.#o.scenarios
      .filter((scenario) => this.#round === 1 || scenario.once !== true)
      .flatMap((scenario) => scenario.connections.map((connections) => ({ scenario, connections })))
    // By concurrency, so that a floor is measured right before what is compared with it.
    steps.sort(
      (a, b) =>
        a.scenario.floorConnections(a.connections) - b.scenario.floorConnections(b.connections),
    )
    for (const { scenario, connections } of steps) {
      if (this.#o.settings.floors) {
        for (const floor of scenario.floors) {
          await this.#runFloor(floor, scenario.floorConnections(connections))
        }
      }
      await this.#runScenario(scenario, connections)
    }
  }

  async #runFloor(name: FloorName, connections: number): Promise<void> {
    if (this.#floorRuns.has(`${name} ${connections}`)) return
    let floor = this.#floors.get(name)
    if (floor === undefined) this.#floors.set(name, (floor = await Floor.start(name)))
    const { seconds, warmUpSeconds } = this.#o.settings
    const { to } = floor
    const prepared = Array.from({ length: FLOOR_VARIETY }, (_, n) => ({
      kind: 'create' as const,
      bytes: post(to, '/resources/actors/order/new', createMessages(benchOrder(n))),
    }))
    const measurement = new Measurement(() => floor.usage())
    const result = await closedLoop({
      to,
      connections,
      seconds,
      warmUpSeconds,
      next: inTurn(prepared),
      readings: measurement,
    })
    const figures = measurement.figures({ result, round: this.#round, problems: [] })
    this.#floorRuns.set(`${name} ${connections}`, figures)
    this.#add(
      { name: `floor-${name}`, kind: 'floor', connections, loop: 'closed', askedRate: null },
      figures,
    )
  }

  async #runScenario(scenario: Scenario, connections: number): Promise<void> {
    const { settings } = this.#o
    const installation = await this.#node(scenario)
    const ordersBefore = await installation.countOrders()
    const measurement = new Measurement(() => installation.usage())
    await measurement.metricsBefore(installation)
    const run = { installation, settings, connections, readings: measurement }
    const result = await scenario.load(run)
    await measurement.metricsAfter(installation)
    const problems = [
      ...(await this.#catchUp(installation, ordersBefore, result, measurement)),
      ...(await scenario.verify(installation)),
    ]
    const figures = measurement.figures({
      result,
      round: this.#round,
      problems,
      floors: this.#floorsOf(scenario, connections),
    })
    this.#add(
      {
        name: scenario.name,
        kind: 'scenario',
        connections,
        loop: scenario.loop,
        askedRate: scenario.askedRate,
      },
      figures,
    )
  }

  /** Waits until the index has everything; every acknowledged order must be in the graph then. */
  async #catchUp(
    installation: Installation,
    ordersBefore: number,
    result: LoadResult,
    measurement: Measurement,
  ): Promise<string[]> {
    const made = result.acknowledged.create
    const until = performance.now() + CATCH_UP_MS
    await installation.indexCaughtUp(CATCH_UP_MS)
    const orders = await installation.ordersReach(
      ordersBefore + made,
      Math.max(0, until - performance.now()),
    )
    measurement.caughtUp()
    const appeared = orders - ordersBefore
    if (appeared >= made && appeared <= made + unsure(result.failures)) return []
    return [`${made} orders were acknowledged, the graph has ${appeared} more than before`]
  }

  #floorsOf(scenario: Scenario, connections: number): Map<FloorName, RunFigures> {
    const at = scenario.floorConnections(connections)
    const found = new Map<FloorName, RunFigures>()
    for (const name of scenario.floors) {
      const figures = this.#floorRuns.get(`${name} ${at}`)
      if (figures !== undefined) found.set(name, figures)
    }
    return found
  }

  #add(about: AboutCase, figures: RunFigures): void {
    const key = caseKey(about)
    const known = this.#cases.get(key)
    if (known === undefined) this.#cases.set(key, { ...about, runs: [figures] })
    else known.runs.push(figures)
    const problems = figures.problems.length === 0 ? '' : ` PROBLEM: ${figures.problems.join('; ')}`
    this.#o.tell(
      `round ${this.#round} ${key}: ${Math.round(figures.rate)}/s, ` +
        `p99 ${(figures.p99 / 1000).toFixed(2)} ms, ${figures.failed} failed${problems}`,
    )
  }

  async #node({ node }: Scenario): Promise<Installation> {
    let installation = this.#nodes.get(node)
    if (installation === undefined) {
      installation = await this.#o.install(node)
      this.#nodes.set(node, installation)
    }
    return installation
  }
}
