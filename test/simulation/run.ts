// One run of the simulation: a seed becomes a cluster, clients and faults; then all faults end, the
// cluster comes to rest, every ledger is read over every member, and the checkers look at what
// happened. Source: PROTOCOL 4.1.

import { NOT_THERE, World } from './world.ts' // the first: it makes bounds small
import { isRetryable } from '../../protocol/errors.ts'
import { drawBounds } from './bounds.ts'
import { Clients } from './clients/clients.ts'
import { Faults } from './faults.ts'
import type { Weather } from './faults.ts'
import type { OperationHistory } from './clients/operation-history.ts'
import { judge, readAgain, settle } from './judge.ts'
import { KIND, drawNastiness } from './nastiness.ts'
import { DAY_MS, Rests } from './rests.ts'
import { Trace } from './scheduler/trace.ts'

export interface RunResult {
  readonly seed: number
  readonly weather: string
  /** What the checkers have found, worst first; empty when all hold. */
  readonly found: readonly string[]
  readonly hash: string
  readonly events: number
  readonly virtualMs: number
  readonly operations: { readonly ok: number; readonly fail: number; readonly info: number }
  /** Looks at the graph that were answered. */
  readonly looks: number
  /** Changes that members have heard of by watching one another. */
  readonly heard: number
}

const NAMES = ['a', 'b', 'c']
const GRAPH_EVERY = 3
const WATCHED_EVERY = 5
const JOINS_WITHIN_MS = 15_000
/** At least so much time passes in each run. */
const EXPIRY_MS = 30.5 * DAY_MS

export interface RunOptions {
  /** Gets every line of the trace. */
  readonly show?: ((line: string) => void) | null
  /** False: only its trace is wanted. */
  readonly isJudged?: boolean
}

/** Runs a seed. */
export async function runSeed(
  seed: number,
  { show = null, isJudged = true }: RunOptions = {},
): Promise<RunResult> {
  const trace = new Trace(show)
  // The index and watching are dear to simulate: some seeds have them.
  const hasGraph = seed % GRAPH_EVERY === 0
  const isWatched = seed % WATCHED_EVERY === 3
  const world = new World({ seed, trace, hasGraph, isWatched })
  const { scheduler } = world
  const weather = drawWeather(scheduler.chance())
  drawBounds(seed, weather === 'rough')
  const nastiness = weather === 'planned' ? KIND : drawNastiness(scheduler)
  const names = NAMES.slice(0, scheduler.one([2, 3, 3, 3]))
  const clients = new Clients(world, {
    clients: 3 + scheduler.pick(4),
    ledgers: 2 + scheduler.pick(6),
    pauseMs: scheduler.one([20, 60, 150]),
    numbers: 2 + scheduler.pick(5),
    operationsMax: 300,
  })
  const found: string[] = []

  for (const name of names) world.start(name)
  await scheduler.run(JOINS_WITHIN_MS, () => allReady(world))
  if (!allReady(world)) found.push('K8: the members did not start')
  world.engine.nastiness = nastiness
  world.redis.nastiness = nastiness
  if (world.search) world.search.nastiness = nastiness
  clients.start()
  const faults = new Faults(world, weather)
  faults.start()
  const rests = new Rests(world, clients, faults, { isCalm: weather !== 'rough' })
  const stretches = 2 + scheduler.pick(3)
  for (let i = 0; i < stretches; i++) {
    if (i > 0) await rests.take()
    await scheduler.run(scheduler.nowMs + 1_500 + scheduler.pick(4_000))
  }
  faults.end()

  found.push(...(await settle(world, clients)))
  await rests.last(EXPIRY_MS)
  found.push(...(await readAgain(world, clients)))
  if (isJudged) found.push(...judge(world, clients))
  if (weather === 'planned') found.push(...checkUnfailed(clients.history))
  return {
    seed,
    weather,
    found,
    hash: trace.digest(),
    events: scheduler.events,
    virtualMs: scheduler.nowMs,
    operations: countsOf(clients.history),
    looks: clients.history.looks.length,
    heard: world.watchings.flatMap(({ heard }) => heard.flatMap(({ items }) => items)).length,
  }
}

function drawWeather(share: number): Weather {
  if (share < 0.08) return 'still'
  return share < 0.2 ? 'planned' : 'rough'
}

function allReady(world: World): boolean {
  return [...world.members.values()].every(({ isReady }) => isReady)
}

/** Planned moves fail no request (F24); who finds nobody at an address asks at another. */
function checkUnfailed({ operations }: OperationHistory): string[] {
  const found: string[] = []
  for (const { id, attempts } of operations) {
    for (const { reply, member } of attempts) {
      if (reply === NOT_THERE || reply?.outcome === 'answered') continue
      if (reply?.outcome === 'refused' && !isRetryable(reply.error.code)) continue
      const why = reply === null ? 'no answer' : reply.error.code
      found.push(`F24: operation ${id} failed over ${member} in a planned move: ${why}`)
    }
  }
  return found
}

function countsOf({ operations }: OperationHistory): RunResult['operations'] {
  const count = (outcome: string): number =>
    operations.filter((operation) => operation.outcome === outcome).length
  return { ok: count('ok'), fail: count('fail'), info: count('info') }
}
