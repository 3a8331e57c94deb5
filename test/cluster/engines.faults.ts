// Engines that stop, forget and come back, under load: Redis loses everything and is restarted,
// Elasticsearch is away, Cassandra is away. Nothing acknowledged is lost, and everything goes on by
// itself. Source: PROTOCOL 4.2 (F8, F10, F15, F18), ARCHITECTURE 3 (promise 9).

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { tick, until } from '../harness/patience.ts'
import { quantile } from './probes.ts'
import { faults } from './scene.ts'
import type { Scene, Story } from './scene.ts'

/** After an engine's return. */
const BACK_MS = 10_000
const AWAY_MS = 6_000
const LEASE_MS = LIMITS.membership.leaseMs + 500
/** A request for a member that can't be reached is not kept waiting. */
const REFUSED_MS = 2_000

/** Every shard answers over every member, and the load goes on. */
async function goesOn({ took, load, probes }: Scene, what: string): Promise<void> {
  const began = performance.now()
  await probes.allAnswer()
  const done = load.done
  await until(`the load goes on after ${what}`, () => load.done > done + 30)
  took(performance.now() - began, BACK_MS, `${what}: all is well after`)
}

const redisForgets: Story = async (scene) => {
  const { cluster } = scene
  await cluster.flushRedis()
  await goesOn(scene, 'FLUSHALL')
  await cluster.killEngine('redis')
  await cluster.startEngine('redis')
  await cluster.flushRedis()
  await goesOn(scene, 'a Redis that was killed and has lost its file')
}

const redisIsAway: Story = async (scene) => {
  const { t, took, cluster, load } = scene
  await cluster.stopEngine('redis')
  const from = load.now()
  await tick(AWAY_MS)
  const meanwhile = load.between(from, load.now())
  t.ok(
    meanwhile.some(({ outcome }) => outcome === 'ok'),
    'what a member has itself is served',
  )
  const refused = meanwhile.filter(({ how }) => how.startsWith('503'))
  t.ok(refused.length > 0, `others are refused: ${refused.length} of ${meanwhile.length}`)
  const waited = quantile(
    refused.map(({ tookMs }) => tookMs),
    0.5,
  )
  took(waited, REFUSED_MS, 'half of those after')
  await cluster.startEngine('redis')
  await goesOn(scene, 'a Redis that was away')
}

const indexIsAway: Story = async (scene) => {
  const { cluster, load } = scene
  await cluster.stopEngine('elasticsearch')
  const done = load.done
  await until('writes go on without the index', () => load.done > done + 150)
  await cluster.startEngine('elasticsearch')
  await goesOn(scene, 'an Elasticsearch that was away')
}

const storeIsRestarted: Story = async (scene) => {
  const { cluster } = scene
  await cluster.restartEngine('cassandra')
  await cluster.settled()
  await goesOn(scene, 'a Cassandra that was restarted')
}

const storeIsAway: Story = async (scene) => {
  const { t, cluster, load } = scene
  await cluster.killEngine('cassandra')
  // Until the leases are over, what is known already may be said again.
  await tick(LEASE_MS)
  const from = load.now()
  await tick(AWAY_MS)
  const meanwhile = load.between(from, load.now())
  const acknowledged = meanwhile.filter(({ op, outcome }) => op === 'create' && outcome === 'ok')
  t.equal(acknowledged.length, 0, `of ${meanwhile.length} requests, no create is acknowledged`)
  await cluster.startEngine('cassandra')
  await cluster.settled()
  await goesOn(scene, 'a Cassandra that was killed and away')
}

// Those first that leave requests whose outcome nobody knows: their time is over before the end.
faults(t, {
  'Cassandra is restarted': storeIsRestarted,
  'Cassandra is killed, and away': storeIsAway,
  'Redis is away': redisIsAway,
  'Redis loses everything, and is restarted': redisForgets,
  'Elasticsearch is away': indexIsAway,
})
