// growth: new orders as fast as they go until the store has millions, the rate of each tenth, a
// caller by itself before, in the middle and after, and at the end kill -9 and what is there then.

import type { Restart, SingleCaller } from '../course.ts'
import { closedLoop } from '../load/closed-loop.ts'
import { loadResult, type LoadResult, type Readings } from '../load/load.ts'
import { Recorder } from '../load/recorder.ts'
import { AnswerSample } from '../load/sample.ts'
import type { BenchSettings } from '../options.ts'
import type { Installation } from '../target/installation.ts'
import { Windows } from '../windows.ts'
import { LONG_CONNECTIONS, newOrders, readBack, SAMPLED_MAX } from './acknowledged.ts'
import type { NewOrders } from './acknowledged.ts'
import { requestScenario, type Run, type Scenario } from './scenario.ts'

const TENTHS = 10
/** How long the index may take before a single caller, and after the kill. */
const CATCH_UP_MS = 300_000
const NO_READINGS: Readings = { started: () => {}, ended: () => {} }

export function growth(settings: BenchSettings): Scenario {
  const sample = new AnswerSample(SAMPLED_MAX)
  let made = 0
  return requestScenario(settings, {
    name: 'growth',
    node: 'growth',
    loop: 'closed',
    askedRate: null,
    connections: [LONG_CONNECTIONS],
    floors: [],
    once: true,
    async load(run) {
      const orders = await newOrders(run.installation)
      try {
        const result = await new Growth(run, orders, sample).load()
        made = result.answered
        return result
      } finally {
        orders.end()
      }
    },
    async verify(installation) {
      const { growthOrders, growthMinutes } = settings
      const short =
        made < growthOrders ? [`${made} of ${growthOrders} orders in ${growthMinutes} minutes`] : []
      return [...short, ...(await readBack(installation, sample))]
    },
  })
}

class Growth {
  readonly #run: Run
  readonly #installation: Installation
  readonly #orders: NewOrders
  readonly #sample: AnswerSample
  readonly #windows: Windows
  readonly #recorder: Recorder
  /** Loads beside the measured one: orders and failures count, their latencies don't. */
  readonly #beside: LoadResult[] = []
  readonly #single: SingleCaller[] = []
  readonly #tenths: number[] = []
  #measuredMs = 0

  constructor(run: Run, orders: NewOrders, sample: AnswerSample) {
    this.#run = run
    this.#installation = run.installation
    this.#orders = orders
    this.#sample = sample
    this.#windows = new Windows(run.installation, run.settings.windowSeconds)
    this.#recorder = new Recorder(this.#windows)
  }

  async load(): Promise<LoadResult> {
    const { readings } = this.#run
    const ordersBefore = await this.#installation.countOrders()
    await this.#warmUp()
    await this.#singleCaller()
    readings.started()
    this.#windows.resume()
    for (let tenth = 1; tenth <= TENTHS; tenth++) {
      if (tenth === TENTHS / 2 + 1) {
        await this.#windows.pause()
        await this.#singleCaller()
        this.#windows.resume()
      }
      await this.#tenth(tenth)
    }
    readings.ended()
    await this.#windows.pause()
    await this.#singleCaller()
    const result = this.#result()
    const restart = await this.#kill(ordersBefore + result.acknowledged.create)
    const course = { windows: this.#windows.done, tenths: this.#tenths, single: this.#single }
    return { ...result, course: { ...course, restart } }
  }

  async #tenth(tenth: number): Promise<void> {
    const { connections, settings } = this.#run
    const before = this.#recorder.answered
    const enough = (settings.growthOrders * tenth) / TENTHS
    const seconds = settings.growthMinutes * 60 - this.#measuredMs / 1000
    // The time is over: what is missing shows as that.
    if (seconds <= 0) return
    const { measuredMs } = await closedLoop({
      ...(await this.#load()),
      connections,
      seconds,
      recorder: this.#recorder,
      sample: this.#sample,
      enough: () => this.#recorder.answered >= enough,
    })
    this.#measuredMs += measuredMs
    this.#tenths.push(((this.#recorder.answered - before) * 1000) / measuredMs)
  }

  /** Code is compiled and caches are warm before the first caller is measured. */
  async #warmUp(): Promise<void> {
    const { connections, settings } = this.#run
    const seconds = settings.warmUpSeconds
    this.#beside.push(await closedLoop({ ...(await this.#load()), connections, seconds }))
  }

  /** One caller on a node that has nothing else to do. */
  async #singleCaller(): Promise<void> {
    await this.#installation.indexCaughtUp(CATCH_UP_MS)
    const { seconds } = this.#run.settings
    const orders = this.#recorder.answered
    const result = await closedLoop({ ...(await this.#load()), connections: 1, seconds })
    this.#beside.push(result)
    const { p50Us, p99Us } = result.latencies
    this.#single.push({ orders, rate: result.rate, p50: p50Us, p99: p99Us })
  }

  async #load() {
    const to = await this.#installation.destination()
    return { to, warmUpSeconds: 0, readings: NO_READINGS, next: this.#orders.next }
  }

  #result(): LoadResult {
    const result = loadResult(this.#recorder, this.#measuredMs)
    const acknowledged = { ...result.acknowledged }
    const failures = new Map(result.failures)
    for (const beside of this.#beside) {
      acknowledged.create += beside.acknowledged.create
      for (const [what, times] of beside.failures) {
        failures.set(what, (failures.get(what) ?? 0) + times)
      }
    }
    return { ...result, acknowledged, failures }
  }

  /** Ends the node without a word, starts it again, and looks how soon the graph has all orders. */
  async #kill(expected: number): Promise<Restart | null> {
    const atSeconds = this.#windows.elapsedSeconds
    const downtime = await this.#installation.restart('killed')
    if (downtime === null) return null
    const began = performance.now()
    const orders = await this.#installation.ordersReach(expected, CATCH_UP_MS)
    const graph = { expected, orders, ms: performance.now() - began }
    return { ...downtime, atSeconds, failed: {}, graph }
  }
}
