// Engines that stop, forget and come back, under load: Redis loses everything and is restarted,
// Cassandra is away, Elasticsearch is away. Nothing acknowledged is lost, and everything goes on by
// itself. Source: PROTOCOL 4.2 (F8, F10, F15, F18), ARCHITECTURE 3 (promise 9).

import t from 'tap'
import { tick, until } from '../harness/patience.ts'
import { fault } from './scene.ts'

/** After an engine's return. */
const BACK_MS = 10_000
const AWAY_MS = 6_000

fault(t, 'engines go away', { engines: 'own', ms: 300_000 }, async (scene) => {
  const { took, cluster, load, probes } = scene
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
  await tick(AWAY_MS)
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
  await tick(AWAY_MS)
  await cluster.startEngine('cassandra')
  await cluster.settled()
  await goesOn('a Cassandra that was killed and away')
})
