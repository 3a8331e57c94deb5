// What leaves the maps by time: revocations that are old enough, sessions of earlier versions; by
// one member alone, and again where the store was away.

import t from 'tap'
import type { Test } from 'tap'
import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import { errorItem } from '../../../protocol/errors.ts'
import { ActorSystemTwin } from '../../testing/actor-system-twin.ts'
import { accessBehaviours } from '../access.ts'
import { Revocations } from './revocation.ts'
import { OLD_SESSION, Tidying } from './tidying.ts'

function scene(t: Test) {
  const system = new ActorSystemTwin(accessBehaviours())
  const now = { ms: 0, tidies: true }
  const due: (() => void)[] = []
  const errors: unknown[] = []
  const clock: Clock = {
    nowMs: () => 0,
    monotonicMs: () => now.ms,
    after: (_ms, run) => (due.push(run), () => undefined),
    defer: (run) => run(),
  }
  const revocations = new Revocations(system, clock)
  const tidying = new Tidying({
    ...{ actorSystem: system, clock, revocations },
    tidies: () => now.tidies,
    onError: (error) => errors.push(error),
  })
  t.teardown(() => {
    tidying.stop()
    revocations.stop()
  })
  const left = () => [system.system.size(OLD_SESSION), system.system.size('revocation')]
  return { system, now, due, errors, tidying, left }
}

t.test('sessions of earlier versions go, whatever is in them; revocations wait', async (t) => {
  const { system, now, tidying, left } = scene(t)
  for (let i = 0; i < 100; i++) system.put(OLD_SESSION, `s${i}`, { identity: 'x', expiresAt: '?' })
  for (let i = 0; i < 10; i++) system.put('revocation', `r${i}`, { at: '' })
  now.tidies = false
  t.equal(await tidying.sweep(), 0, 'who has the shard alone does it')
  now.tidies = true
  t.equal(await tidying.sweep(), 100)
  t.same(left(), [0, 10])
  now.ms = LIMITS.access.revocationKeptMs - 1
  t.equal(await tidying.sweep(), 0)
  now.ms++
  t.equal(await tidying.sweep(), 10)
  t.same(left(), [0, 0])
})

t.test('while the store is away nothing is said, and the next sweep goes on', async (t) => {
  const { system, due, errors, tidying, left } = scene(t)
  system.put(OLD_SESSION, 's', {})
  system.before = () => ({ outcome: 'refused', error: errorItem('UNAVAILABLE', 'away') })
  tidying.start()
  const tick = async (): Promise<void> => {
    due.shift()!()
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
  }
  await tick()
  t.same(left(), [1, 0])
  system.before = () => null
  await tick()
  t.same(left(), [0, 0])
  t.same(errors, [])
  system.put(OLD_SESSION, 's', {})
  system.before = () => ({ outcome: 'refused', error: errorItem('INTERNAL_ERROR', 'broken') })
  await tick()
  t.equal(errors.length, 1, 'what is no matter of time is told')
})

t.test('a lease, and the question that gave it, are over before a revocation goes', (t) => {
  const { tokenLeaseMs, revocationKeptMs } = LIMITS.access
  t.ok(revocationKeptMs > tokenLeaseMs + 2 * LIMITS.sharding.requestBudgetMs)
  t.end()
})
