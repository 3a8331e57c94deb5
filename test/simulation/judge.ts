// The end of a run: all faults are over, everything must answer within ten seconds, the cluster
// must come to rest, every ledger is read over every member, and the checkers look at all that
// happened. The run is seeded or directed. Source: PROTOCOL 4.1.

import { foldLog } from './checkers/fold.ts'
import { checkGraph, checkLooks, shownDocuments } from './checkers/graph.ts'
import { checkHeard } from './checkers/heard.ts'
import { checkKeyRows, checkKeys } from './checkers/keys.ts'
import { checkLinearizable } from './checkers/linearizable.ts'
import { checkMismatches } from './checkers/mismatches.ts'
import { ANSWERS_WITHIN_MS, unrest } from './checkers/liveness.ts'
import { checkOrder } from './checkers/order.ts'
import { checkRest } from './checkers/rest.ts'
import { checkStore } from './checkers/store.ts'
import {
  AT_LAST,
  checkBatches,
  checkLastReads,
  checkRelays,
  checkTokens,
  placesOf,
} from './checkers/tokens.ts'
import type { Clients } from './clients/clients.ts'
import { LATE_MS } from './engines/engine.ts'
import { GRAPH_PREFIX } from './world.ts'
import type { World } from './world.ts'

const RESTS_WITHIN_MS = 60_000

/** What the checkers find in a run that has come to its end. */
export function judge(world: World, clients: Clients): string[] {
  const log = foldLog(world.engine.witness.rows)
  const { history } = clients
  return [
    ...new Set(world.alarms.map((alarm) => `alarm: ${alarm}`)),
    ...checkStore(world.engine, log),
    ...checkKeys(world.engine, log),
    ...checkKeyRows(world.engine, log),
    ...checkMismatches(history),
    ...checkLastReads(history, log),
    ...checkTokens(history, placesOf(log)),
    ...checkBatches(history),
    ...checkRelays(log),
    ...checkOrder(history, log),
    ...checkLinearizable(history),
    ...checkLooks(history.looks, log),
    ...checkHeard(world.watchings, log),
    ...(world.search ? checkGraph(shownDocuments(world.search.twin, GRAPH_PREFIX), log) : []),
  ]
}

/** Everything answers within ten seconds; then the cluster comes to rest, and is read once more. */
export async function settle(world: World, clients: Clients): Promise<string[]> {
  const { scheduler } = world
  const found: string[] = []
  const silent = new Set<string>()
  void probe(world, clients, silent)
  await scheduler.run(scheduler.nowMs + ANSWERS_WITHIN_MS, () => silent.size === 0)
  for (const what of silent) found.push(`K8: ${what} did not answer in ${ANSWERS_WITHIN_MS} ms`)
  // What was sent before the end of the faults may still land.
  await scheduler.run(scheduler.nowMs + scheduler.one([500, 500, 1_000, LATE_MS.to]))
  clients.stop()
  found.push(...(await comeToRest(world, clients)))
  await within(world, readAll(world, clients), found)
  return found
}

async function comeToRest(world: World, clients: Clients): Promise<string[]> {
  const { scheduler } = world
  const until = scheduler.nowMs + RESTS_WITHIN_MS
  const atRest = (): boolean => clients.idle && unrest(world).length === 0
  // Looking at every event would be dear.
  while (scheduler.nowMs < until && !atRest()) await scheduler.run(scheduler.nowMs + 100)
  return [...(clients.idle ? [] : ['K8: a client still waits']), ...unrest(world)]
}

async function within(world: World, done: Promise<void>, found: string[]): Promise<void> {
  const { scheduler } = world
  let isDone = false
  void done.then(() => (isDone = true))
  await scheduler.run(scheduler.nowMs + 10_000, () => isDone)
  if (!isDone) found.push('K8: the last requests were not answered')
}

/**
 * All have been started again, long after the last change: every ledger is there as it was left,
 * over every member, and takes new changes behind it.
 */
export async function readAgain(world: World, clients: Clients): Promise<string[]> {
  const found = await comeToRest(world, clients)
  await within(world, readAll(world, clients), found)
  await within(world, appendAll(world, clients), found)
  await within(world, readAll(world, clients, AT_LAST), found)
  found.push(...(await comeToRest(world, clients)))
  return [...found, ...checkRest(world)]
}

/** Asks every member for every ledger until it answers. */
async function probe(world: World, clients: Clients, silent: Set<string>): Promise<void> {
  const asked = world.living.filter(({ isLeaving }) => !isLeaving)
  const pairs = asked.flatMap((to) => clients.ledgers.map((id) => ({ to, id })))
  for (const { to, id } of pairs) silent.add(`ledger ${id} over ${to.name}`)
  const probeOne = async ({ to, id }: (typeof pairs)[number]): Promise<void> => {
    while (!clients.isStopped) {
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

async function appendAll(world: World, clients: Clients): Promise<void> {
  for (const [i, address] of clients.ledgers.entries()) {
    const messages = [{ type: 'append', body: { token: `last-${i}` } }]
    const operation = clients.begin({ client: 'the last', type: 'ledger', address, messages })
    await clients.over(world.scheduler.one(world.living), operation)
  }
}

async function readAll(world: World, clients: Clients, client = 'the last'): Promise<void> {
  for (const to of world.living.filter(({ isLeaving }) => !isLeaving)) {
    for (const address of clients.ledgers) {
      const messages = [{ type: 'read', body: {} }]
      await clients.over(to, clients.begin({ client, type: 'ledger', address, messages }))
    }
  }
}
