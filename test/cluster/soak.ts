// Minutes of load on three members with everything that can happen to them: one is killed, one
// stands still past its death, Redis forgets all and is restarted, Cassandra is restarted,
// Elasticsearch is away. soak.faults.ts runs it for a short while, `npm run soak` for as long as
// asked. Source: PROTOCOL 4.2 (F2, F3, F8, F18, F36).

import { tick } from '../harness/patience.ts'
import type { Owner } from './harness/cluster.ts'
import type { OwnEngines } from './harness/engines.ts'
import { quantile } from './probes.ts'
import { Random } from './random.ts'
import { Stage } from './stage.ts'
import type { Judgement } from './stage.ts'

export interface SoakOptions {
  readonly engines: OwnEngines
  readonly seconds: number
  readonly seed: number
  readonly tell: (line: string) => void
}

export interface SoakResult extends Judgement {
  /** Milliseconds until every shard answered over every member left, one for each death. */
  readonly takeoversMs: readonly number[]
}

const MEMBERS = ['a', 'b', 'c']
/** A member that stands still for so long has been declared dead. */
const PAST_DEATH_MS = 4_000
/** Of the whole time: how long Elasticsearch is away (a minute of five). */
const INDEX_AWAY_SHARE = 0.2

export async function soak(owner: Owner, options: SoakOptions): Promise<SoakResult> {
  const { engines, seed, tell } = options
  const stage = await Stage.open(owner, engines, { members: MEMBERS, load: { seed } })
  const run = new Soak(stage, options)
  try {
    await run.play()
    const judgement = await stage.judge()
    if (judgement.problems.length > 0) tell(`history and logs: ${stage.keep()}`)
    return { ...judgement, takeoversMs: run.takeoversMs }
  } catch (error) {
    await stage.stop()
    tell(`history and logs: ${stage.keep()}`)
    throw error
  }
}

class Soak {
  readonly takeoversMs: number[] = []
  readonly #stage: Stage
  readonly #o: SoakOptions
  readonly #random: Random
  readonly #began = performance.now()
  /** While it is set, members are left alone: an engine is away that takeovers need. */
  #engineIsAway = false
  #ended = false

  constructor(stage: Stage, options: SoakOptions) {
    this.#stage = stage
    this.#o = options
    this.#random = new Random(options.seed)
  }

  async play(): Promise<void> {
    const members = this.#harmMembers()
    const engines = this.#harmEngines().then(() => this.#until(1))
    try {
      // The first that fails ends the run; the other has time to come to its end.
      await Promise.race([engines, members.then(() => engines)])
    } finally {
      this.#ended = true
      await Promise.allSettled([engines, members])
    }
  }

  #say(what: string): void {
    const second = ((performance.now() - this.#began) / 1_000).toFixed(1)
    this.#o.tell(`${second.padStart(6)} s  ${what}`)
  }

  /** Resolves when that share of the time is over. */
  async #until(share: number): Promise<void> {
    const leftMs = this.#began + share * this.#o.seconds * 1_000 - performance.now()
    if (leftMs > 0) await tick(leftMs)
  }

  async #harmEngines(): Promise<void> {
    const { cluster } = this.#stage
    await this.#until(0.12)
    this.#say('Redis: FLUSHALL')
    await cluster.flushRedis()
    await this.#until(0.2)
    this.#say('Redis: kill -9, restarted without its data')
    await cluster.killEngine('redis')
    await cluster.startEngine('redis')
    await cluster.flushRedis()
    await this.#until(0.32)
    this.#engineIsAway = true
    this.#say('Cassandra: restart')
    await cluster.restartEngine('cassandra')
    this.#say('Cassandra: is back')
    await cluster.settled()
    this.#engineIsAway = false
    await this.#until(0.6)
    this.#say('Elasticsearch: stopped')
    await cluster.stopEngine('elasticsearch')
    await this.#until(0.6 + INDEX_AWAY_SHARE)
    await cluster.startEngine('elasticsearch')
    this.#say('Elasticsearch: is back')
  }

  /** One after the other dies or stands still, with a pause between: there are two left. */
  async #harmMembers(): Promise<void> {
    while (!this.#ended) {
      await tick(this.#random.between(2_000, 8_000))
      if (this.#ended || this.#engineIsAway) continue
      const name = this.#random.one(MEMBERS)
      await (this.#random.share() < 0.6 ? this.#kill(name) : this.#freeze(name))
    }
  }

  async #kill(name: string): Promise<void> {
    const { cluster } = this.#stage
    this.#say(`${name}: kill -9`)
    await cluster.kill(name)
    // Some are back before anybody has missed them.
    const isAtOnce = this.#random.share() < 0.3
    if (!isAtOnce) await this.#takeover(name)
    const began = performance.now()
    await cluster.start(name)
    this.#say(`${name}: serves again, ${Math.round(performance.now() - began)} ms after its start`)
  }

  async #freeze(name: string): Promise<void> {
    const { cluster } = this.#stage
    this.#say(`${name}: SIGSTOP`)
    cluster.freeze(name)
    await this.#takeover(name)
    await tick(this.#random.between(0, PAST_DEATH_MS))
    cluster.thaw(name)
    this.#say(`${name}: SIGCONT`)
  }

  async #takeover(name: string): Promise<void> {
    const ms = Math.round(await this.#stage.probes.allAnswer(60_000))
    if (this.#engineIsAway) return
    this.takeoversMs.push(ms)
    this.#say(`${name}: every shard answers over the others after ${ms} ms`)
  }
}

/** The figures of a run as lines. */
export function soakReport({ report, takeoversMs, problems, orders }: SoakResult): string[] {
  const at = (share: number): number => quantile(takeoversMs, share)
  return [
    ...report,
    `takeovers: ${takeoversMs.length}, median ${at(0.5)} ms, longest ${at(1)} ms`,
    `orders: ${orders}; K1 K2 K3 K4 K5 K7 K8 K9: ${problems.length} problems`,
    ...problems,
  ]
}
