// One run of the simulation: a seed becomes a cluster, clients and faults; then all faults end, the
// cluster comes to rest, every ledger is read over every member, and the checkers look at what
// happened. It stands between a seed and what was found. Source: PROTOCOL 4.1.

import { NOT_THERE, World } from './world.ts' // the first: it makes bounds small
import { isRetryable } from '../../protocol/errors.ts'
import { foldLog } from './checkers/fold.ts'
import { checkKeys } from './checkers/keys.ts'
import { checkLinearizable } from './checkers/linearizable.ts'
import { ANSWERS_WITHIN_MS, checkFlags, unrest } from './checkers/liveness.ts'
import { checkOrder } from './checkers/order.ts'
import { checkStore } from './checkers/store.ts'
import { checkBatches, checkRelays, checkTokens, placesOf } from './checkers/tokens.ts'
import { Clients } from './clients.ts'
import { Faults } from './faults.ts'
import type { Weather } from './faults.ts'
import type { History } from './history.ts'
import { KIND, drawNastiness } from './nastiness.ts'
import { Trace } from './trace.ts'

export interface RunResult {
  readonly seed: number
  readonly weather: string
  /** What the checkers have found, worst first; empty when all hold. */
  readonly found: readonly string[]
  readonly hash: string
  readonly events: number
  readonly virtualMs: number
  readonly operations: { readonly ok: number; readonly fail: number; readonly info: number }
}

const NAMES = ['a', 'b', 'c']
const JOINS_WITHIN_MS = 15_000
const RESTS_WITHIN_MS = 60_000

/** Runs a seed. `show` gets every line of the trace. */
export async function runSeed(
  seed: number,
  show: ((line: string) => void) | null = null,
): Promise<RunResult> {
  const trace = new Trace(show)
  const world = new World({ seed, trace })
  const { scheduler } = world
  const weather = drawWeather(scheduler.chance())
  const nastiness = weather === 'planned' ? KIND : drawNastiness(scheduler)
  const names = NAMES.slice(0, scheduler.one([2, 3, 3, 3]))
  const clients = new Clients(world, {
    clients: 3 + scheduler.pick(4),
    ledgers: 2 + scheduler.pick(6),
    pauseMs: scheduler.one([20, 60, 150]),
    numbers: 2 + scheduler.pick(5),
    operationsMax: 600,
  })
  const found: string[] = []

  for (const name of names) world.start(name)
  await scheduler.run(JOINS_WITHIN_MS, () => allReady(world))
  if (!allReady(world)) found.push('K8: the members did not start')
  world.engine.nastiness = nastiness
  world.redis.nastiness = nastiness
  clients.start()
  const faults = new Faults(world, weather)
  faults.start()
  await scheduler.run(scheduler.nowMs + 4_000 + scheduler.pick(10_000))
  faults.end()

  found.push(...(await settle(world, clients)))
  const log = foldLog(world.engine.witness.rows)
  found.push(
    ...world.alarms.map((alarm) => `alarm: ${alarm}`),
    ...checkStore(world.engine, log),
    ...checkKeys(world.engine, log),
    ...checkTokens(clients.history, placesOf(log)),
    ...checkBatches(clients.history),
    ...checkRelays(log),
    ...checkOrder(clients.history, log),
    ...checkLinearizable(clients.history),
    ...checkFlags(world),
    ...(weather === 'planned' ? checkUnfailed(clients.history) : []),
  )
  return {
    seed,
    weather,
    found,
    hash: trace.digest(),
    events: scheduler.events,
    virtualMs: scheduler.nowMs,
    operations: countsOf(clients.history),
  }
}

function drawWeather(share: number): Weather {
  if (share < 0.08) return 'still'
  return share < 0.2 ? 'planned' : 'rough'
}

function allReady(world: World): boolean {
  return [...world.members.values()].every(({ isReady }) => isReady)
}

/** Everything answers within ten seconds; then the cluster comes to rest, and is read once more. */
async function settle(world: World, clients: Clients): Promise<string[]> {
  const { scheduler } = world
  const found: string[] = []
  const silent = new Set<string>()
  void probe(world, clients, silent)
  await scheduler.run(scheduler.nowMs + ANSWERS_WITHIN_MS)
  for (const what of silent) found.push(`K8: ${what} did not answer in ${ANSWERS_WITHIN_MS} ms`)
  clients.stop()
  const until = scheduler.nowMs + RESTS_WITHIN_MS
  const atRest = (): boolean => clients.idle && unrest(world).length === 0
  // Looking at every event would be dear.
  while (scheduler.nowMs < until && !atRest()) await scheduler.run(scheduler.nowMs + 100)
  if (!clients.idle) found.push('K8: a client still waits')
  found.push(...unrest(world))
  let isRead = false
  void readAll(world, clients).then(() => (isRead = true))
  await scheduler.run(scheduler.nowMs + 10_000, () => isRead)
  if (!isRead) found.push('K8: the last reads were not answered')
  return found
}

/** Asks every member for every ledger until it answers. */
async function probe(world: World, clients: Clients, silent: Set<string>): Promise<void> {
  const asked = world.living.filter(({ isLeaving }) => !isLeaving)
  const pairs = asked.flatMap((to) => clients.ledgers.map((id) => ({ to, id })))
  for (const { to, id } of pairs) silent.add(`ledger ${id} over ${to.name}`)
  const probeOne = async ({ to, id }: (typeof pairs)[number]): Promise<void> => {
    for (;;) {
      const now = world.members.get(to.name) ?? to
      const operation = clients.begin({
        client: `probe of ${to.name}`,
        type: 'ledger',
        address: id,
        messages: [{ type: 'read', body: {} }],
      })
      await clients.over(now, operation)
      if (operation.outcome === 'ok') break
      await clients.wait(250)
    }
    silent.delete(`ledger ${id} over ${to.name}`)
  }
  await Promise.all(pairs.map(probeOne))
}

async function readAll(world: World, clients: Clients): Promise<void> {
  for (const to of world.living.filter(({ isLeaving }) => !isLeaving)) {
    for (const address of clients.ledgers) {
      const messages = [{ type: 'read', body: {} }]
      await clients.over(
        to,
        clients.begin({ client: 'the last', type: 'ledger', address, messages }),
      )
    }
  }
}

/** Planned moves fail no request (F24); who finds nobody at an address asks at another. */
function checkUnfailed({ operations }: History): string[] {
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

function countsOf({ operations }: History): RunResult['operations'] {
  const count = (outcome: string): number =>
    operations.filter((operation) => operation.outcome === outcome).length
  return { ok: count('ok'), fail: count('fail'), info: count('info') }
}
