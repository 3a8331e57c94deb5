// The rests of a run: between two stretches of load hours or weeks pass in which nothing happens
// but that clocks and lives run down: members are stopped, asleep or shut down, all in one way or
// each in its own, engines' clocks step, streams and rows expire. Source: PROTOCOL 3.0 (lives of
// rows), 3.6 (lives of ids), 4.2 (F5-F7).

import { unowned } from './checkers/liveness.ts'
import type { Clients } from './clients/clients.ts'
import { CLOCK_OFF_MS } from './engines/engine.ts'
import type { Faults } from './faults.ts'
import type { SimulatedMember, World } from './world.ts'

const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS

/**
 * How a member passes a rest. `stopped`: its monotonic clock goes on (SIGSTOP). `asleep`: it stands
 * still (a suspended machine). `down`: killed, and started again afterwards.
 */
type Way = 'stopped' | 'asleep' | 'down'

const WAYS: readonly Way[] = ['stopped', 'asleep', 'down']

/** Around every incarnation that there is: of edges' ids, keys, rows that pass, tombstones. */
const RESTS_MS = [
  ...[12 * 60_000, 2 * HOUR_MS, 17 * HOUR_MS, 26 * HOUR_MS],
  ...[50 * HOUR_MS, 4 * DAY_MS, 11 * DAY_MS],
]

/** Several such rests are shorter than any row's incarnation. */
const SLEEP_MS = 12 * HOUR_MS

export interface RestsOptions {
  /** Requests under way come to their end first, and members are ready before the next. */
  readonly isCalm: boolean
}

export class Rests {
  readonly #world: World
  readonly #clients: Clients
  readonly #faults: Faults
  readonly #options: RestsOptions
  passedMs = 0

  constructor(world: World, clients: Clients, faults: Faults, options: RestsOptions) {
    this.#world = world
    this.#clients = clients
    this.#faults = faults
    this.#options = options
  }

  /** One rest of a length of the seed's choice, or of this one. */
  async take(ms: number = this.#world.scheduler.one(RESTS_MS)): Promise<void> {
    const world = this.#world
    const { scheduler } = world
    const { isCalm } = this.#options
    this.#clients.rest()
    if (isCalm) await this.#isQuiet()
    else await scheduler.run(scheduler.nowMs + scheduler.one([0, 0, 100, 3_000]))
    if (!isCalm && scheduler.chance() < 0.4) await this.#loseOne()
    this.#faults.rest()
    if (!isCalm) this.#engines()
    await this.#pass(ms)
    if (isCalm) await this.#isAwake()
    this.#faults.goOn()
    this.#clients.goOn()
  }

  /** The members stand still, each in its way, and time passes. */
  async #pass(ms: number): Promise<void> {
    const world = this.#world
    const { scheduler } = world
    const all = scheduler.chance() < 0.7 ? scheduler.one(WAYS) : null
    world.say(`rests for ${(ms / HOUR_MS).toFixed(1)} h, ${all ?? 'each in its way'}`)
    world.isResting = true
    const down: string[] = []
    const still = world.living.filter(({ process }) => process.state === 'running')
    for (const one of still) this.#still(one, all ?? scheduler.one(WAYS), down)
    if (ms > SLEEP_MS) this.#endSleepers(down)
    await scheduler.run(scheduler.nowMs + ms * scheduler.one([0.9, 1, 1.1]))
    this.passedMs += ms * 0.9
    world.redis.expire(ms)
    world.isResting = false
    const wake = (run: () => void): void => {
      const soonMs = scheduler.one([0, 0, 5, 700]) * scheduler.chance()
      scheduler.at(soonMs, 'wakes', run)
    }
    for (const { process } of still) wake(() => process.resume())
    for (const name of down) wake(() => world.startIfDown(name))
    for (const start of world.onceAwake.splice(0)) wake(start)
  }

  #still(one: SimulatedMember, way: Way, down: string[]): void {
    if (way === 'stopped') one.process.pause()
    else if (way === 'asleep') one.process.suspend()
    else {
      // Who was leaving has left.
      if (!one.isLeaving) down.push(one.name)
      this.#world.kill(one)
    }
  }

  /**
   * An edge that sleeps for days with a request in its hands, while nobody runs who could declare
   * it dead, would send it again when its key and its rows are over: nobody can tell then.
   */
  #endSleepers(down: string[]): void {
    for (const one of this.#world.living) {
      if (one.process.state !== 'suspended' || one.member.edge.pending === 0) continue
      if (!one.isLeaving) down.push(one.name)
      this.#world.kill(one)
    }
  }

  /** One member is away from before the rest until after it, and the others go on without it. */
  async #loseOne(): Promise<void> {
    const { scheduler } = this.#world
    const one = this.#faults.anyMember()
    if (one === null || this.#world.living.length < 2) return
    if (scheduler.chance() < 0.5) one.process.pause()
    else one.process.suspend()
    this.#world.say(`loses ${one.name} for the rest`)
    this.#faults.afterRest(() => one.process.resume())
    await scheduler.run(scheduler.nowMs + 4_500)
  }

  /** Engines are away over the rest, their clocks step. */
  #engines(): void {
    const { scheduler, engine, redis, search } = this.#world
    const is = (chance: number): boolean => scheduler.chance() < chance
    // Lives of rows are twice as long as what they follow: half a day more or less harms nobody.
    if (is(0.3)) engine.wallJumpMs = scheduler.one([-1, -0.1, 0.1, 1]) * CLOCK_OFF_MS
    if (search && is(0.4)) {
      search.away = true
      this.#faults.afterRest(() => (search.away = false))
    }
    if (is(0.2)) {
      redis.away = true
      this.#faults.afterRest(() => (redis.away = false))
    }
  }

  /** Nothing is under way. */
  async #isQuiet(): Promise<void> {
    const world = this.#world
    this.#faults.rest()
    const isQuiet = (): boolean =>
      this.#clients.idle && !world.living.some(({ isLeaving }) => isLeaving)
    await world.scheduler.run(world.scheduler.nowMs + 30_000, isQuiet)
  }

  /** Every shard is served again, by members with a lease, and nobody's stream is missing. */
  async #isAwake(): Promise<void> {
    const world = this.#world
    const { scheduler } = world
    const isReady = (): boolean =>
      unowned(world).length === 0 &&
      world.redis.isWhole &&
      world.living.every(({ member }) => member.knowsConfiguration)
    const until = scheduler.nowMs + 15_000
    while (scheduler.nowMs < until && !isReady()) await scheduler.run(scheduler.nowMs + 50)
  }

  /**
   * Everything is shut down until all that passes has passed, and a run's time is full; then it is
   * started again.
   */
  async last(atLeastMs: number): Promise<void> {
    const world = this.#world
    const { scheduler } = world
    const names = world.living.filter(({ isLeaving }) => !isLeaving).map(({ name }) => name)
    for (const one of world.living) world.kill(one)
    const ms = Math.max(5 * DAY_MS, atLeastMs - this.passedMs)
    world.say(`all are down for ${(ms / DAY_MS).toFixed(1)} days`)
    await scheduler.run(scheduler.nowMs + ms)
    world.redis.expire(ms)
    for (const name of names) world.start(name)
    const isStarted = (): boolean => names.every((name) => world.members.get(name)!.isReady)
    await scheduler.run(scheduler.nowMs + 20_000, isStarted)
  }
}
