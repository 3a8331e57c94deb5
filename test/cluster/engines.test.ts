// Engines that stop, forget and come back, under load: Redis loses everything and is restarted,
// Cassandra is away, Elasticsearch is away. Nothing acknowledged is lost, and everything goes on by
// itself. Source: PROTOCOL 4.2 (F8, F10, F15, F18), ARCHITECTURE 3 (promise 9).

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { tick, until } from '../harness/patience.ts'
import { quantile } from './probes.ts'
import { fault } from './scene.ts'

/** After an engine's return. */
const BACK_MS = 10_000
const AWAY_MS = 6_000
const LEASE_MS = LIMITS.leaseMs + 500
/** A request for a member that can't be reached is not kept waiting. */
const REFUSED_MS = 2_000

fault(t, 'engines go away', { engines: 'own', ms: 300_000 }, async (scene) => {
  const { t, took, cluster, load, probes } = scene
  const goesOn = async (what: string): Promise<void> => {
    const began = performance.now()
    await probes.allAnswer()
    const done = load.done
    await until(`the load goes on after ${what}`, () => load.done > done + 30)
    took(performance.now() - began, BACK_MS, `${what}: all is well after`)
  }

  await cluster.flushRedis()
  await goesOn('FLUSHALL')
  await cluster.killEngine('redis')
  await cluster.startEngine('redis')
  await cluster.flushRedis()
  await goesOn('a Redis that was killed and has lost its file')

  await cluster.stopEngine('redis')
  let from = load.now()
  await tick(AWAY_MS)
  let meanwhile = load.between(from, load.now())
  t.ok(
    meanwhile.some(({ outcome }) => outcome === 'ok'),
    'without Redis: what a member has itself is served',
  )
  const refused = meanwhile.filter(({ how }) => how.startsWith('503')).map(({ tookMs }) => tookMs)
  took(quantile(refused, 0.5), REFUSED_MS, 'without Redis: others are refused after')
  await cluster.startEngine('redis')
  await goesOn('a Redis that was away')

  await cluster.stopEngine('elasticsearch')
  const done = load.done
  await until('writes go on without the index', () => load.done > done + 150)
  await cluster.startEngine('elasticsearch')
  await goesOn('an Elasticsearch that was away')

  await cluster.restartEngine('cassandra')
  await cluster.settled()
  await goesOn('a Cassandra that was restarted')

  await cluster.killEngine('cassandra')
  // Until the leases are over, what is known already may be said again.
  await tick(LEASE_MS)
  from = load.now()
  await tick(AWAY_MS)
  meanwhile = load.between(from, load.now())
  const acknowledged = meanwhile.filter(({ op, outcome }) => op === 'create' && outcome === 'ok')
  t.equal(acknowledged.length, 0, `without Cassandra: ${meanwhile.length} requests, none is done`)
  await cluster.startEngine('cassandra')
  await cluster.settled()
  await goesOn('a Cassandra that was killed and away')
})
