// Faults of a run, one after the other as the seed has them, each with its end: members are killed,
// paused, put to sleep, cut off from an engine, stopped as planned, added; clocks jump; engines go
// away or forget. Source: PROTOCOL 4.2.

import { LIMITS } from '../../config/limits.ts'
import { KIND } from './nastiness.ts'
import type { SimulatedMember, World } from './world.ts'

/** Which faults a run has: planned moves alone must fail no request (F24). */
export type Weather = 'still' | 'planned' | 'rough'

type Fault = (faults: Faults) => void

export class Faults {
  readonly world: World
  readonly weather: Weather
  #over = false
  #isResting = false
  readonly #left = new Set<string>()
  /** What would have ended, or begun, while everything rested. */
  #waiting: (() => void)[] = []

  constructor(world: World, weather: Weather) {
    this.world = world
    this.weather = weather
  }

  /** Begins faults now and then until `end`. */
  start(): void {
    const { scheduler } = this.world
    const { faults, everyMs } = FAULTS[this.weather]
    const next = (): void => {
      if (this.#over || faults.length === 0) return
      if (this.#isResting) return void this.#waiting.push(next)
      scheduler.one(faults)(this)
      scheduler.at(scheduler.between(100, everyMs), 'faults', next)
    }
    scheduler.at(scheduler.between(500, 2_000), 'faults', next)
  }

  /** Nothing begins or ends any more until `goOn`: days would be full of it. */
  rest(): void {
    this.#isResting = true
  }

  goOn(): void {
    const { scheduler } = this.world
    this.#isResting = false
    const waiting = this.#waiting
    this.#waiting = []
    for (const run of waiting) {
      scheduler.at(scheduler.between(100, 3_000), 'a fault goes on', () => this.#unlessResting(run))
    }
  }

  /** Undone a while after the next rest. */
  afterRest(undo: () => void): void {
    this.#waiting.push(undo)
  }

  /** All is well from now on: who was killed is started, who sleeps wakes, what is cut is whole. */
  end(): void {
    this.#over = true
    this.#waiting = []
    const { world } = this
    world.say('all faults end')
    world.engine.away = false
    world.redis.away = false
    world.engine.nastiness = KIND
    world.redis.nastiness = KIND
    if (world.search) {
      world.search.away = false
      world.search.nastiness = KIND
    }
    for (const { process, name } of world.members.values()) {
      world.engine.heal(process)
      world.redis.heal(process)
      if (process.state === 'dead' && !this.#left.has(name)) world.start(name)
      else process.resume()
    }
  }

  /** One that runs, of those that may be hurt. */
  anyMember(): SimulatedMember | null {
    const running = this.world.living.filter(({ process }) => process.state === 'running')
    return running.length === 0 ? null : this.world.scheduler.one(running)
  }

  /** Undoes a fault later, unless everything has been undone. */
  later(lowMs: number, highMs: number, undo: () => void): void {
    const { scheduler } = this.world
    const ends = (): void => this.#unlessResting(undo)
    scheduler.at(scheduler.between(lowMs, highMs), 'a fault ends', ends)
  }

  #unlessResting(run: () => void): void {
    if (this.#isResting) this.#waiting.push(run)
    else if (!this.#over) run()
  }

  startAgain(name: string): void {
    this.#left.delete(name)
    this.world.startIfDown(name)
  }

  leave(one: SimulatedMember): void {
    this.#left.add(one.name)
    this.world.leave(one)
  }
}

function kill(faults: Faults): void {
  const one = faults.anyMember()
  if (one === null) return
  faults.world.kill(one)
  faults.later(10, 5_000, () => faults.startAgain(one.name))
}

function pause(faults: Faults): void {
  const one = faults.anyMember()
  if (one === null) return
  faults.world.say(`pauses ${one.name}`)
  one.process.pause()
  // About the lease, or far past it.
  const isShort = faults.world.scheduler.chance() < 0.6
  faults.later(100, isShort ? LIMITS.membership.leaseMs * 1.6 : 9_000, () => one.process.resume())
}

function suspend(faults: Faults): void {
  const one = faults.anyMember()
  if (one === null) return
  faults.world.say(`suspends ${one.name}`)
  one.process.suspend()
  faults.later(300, 8_000, () => one.process.resume())
}

function jump(faults: Faults): void {
  const one = faults.anyMember()
  if (one === null) return
  const { scheduler } = faults.world
  const ms = scheduler.one([-86_400_000 * 2, -3_600_000, -400, 400, 3_600_000, 86_400_000 * 2])
  faults.world.say(`the clock of ${one.name} jumps by ${ms}`)
  one.process.jumpWall(ms)
}

function cut(faults: Faults): void {
  const one = faults.anyMember()
  if (one === null) return
  const { world } = faults
  const engine = world.scheduler.one([world.engine, world.redis])
  const way = world.scheduler.one([
    { out: true, back: true },
    { out: true, back: false },
    { out: false, back: true },
  ])
  world.say(`cuts ${one.name} off ${engine === world.engine ? 'the store' : 'the wire'}`)
  engine.cut(one.process, way)
  faults.later(200, 6_000, () => engine.heal(one.process))
}

function storeAway(faults: Faults): void {
  const { engine } = faults.world
  if (engine.away) return
  faults.world.say('the store is away')
  engine.away = true
  faults.later(100, 5_000, () => (engine.away = false))
}

function wireAway(faults: Faults): void {
  const { redis } = faults.world
  if (redis.away) return
  faults.world.say('the wire is away')
  redis.away = true
  faults.later(100, 5_000, () => (redis.away = false))
}

function searchAway(faults: Faults): void {
  const { search } = faults.world
  if (!search || search.away) return
  faults.world.say('the search engine is away')
  search.away = true
  faults.later(100, 6_000, () => (search.away = false))
}

function flushWire(faults: Faults): void {
  faults.world.say('the wire forgets everything')
  faults.world.redis.flush()
}

function failOverWire(faults: Faults): void {
  faults.world.say('the wire loses its last entries')
  faults.world.redis.failOver()
}

/** A rolling restart of one member, or one fewer for a while. */
function leave(faults: Faults): void {
  const ready = faults.world.living.filter((one) => one.isReady && one.process.state === 'running')
  if (ready.length < 2) return
  const one = faults.world.scheduler.one(ready)
  faults.leave(one)
  one.process.onDeath(() => faults.later(10, 4_000, () => faults.startAgain(one.name)))
}

function join(faults: Faults): void {
  const { members } = faults.world
  const name = `m${members.size}`
  if (members.size < 5) faults.world.start(name)
}

const FAULTS: Readonly<Record<Weather, { faults: readonly Fault[]; everyMs: number }>> = {
  still: { faults: [], everyMs: 1_000 },
  planned: { faults: [leave, leave, join], everyMs: 6_000 },
  rough: {
    faults: [
      ...[kill, kill, kill, pause, pause, pause, suspend, jump, cut, cut, cut],
      ...[storeAway, searchAway, wireAway, flushWire, failOverWire, leave, leave, join],
    ],
    everyMs: 4_000,
  },
}
