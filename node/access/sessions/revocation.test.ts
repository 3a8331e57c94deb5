// Sessions that were ended, as a member knows of them: from when on, for how long, and who may take
// that back. Source: PROTOCOL 3.0 "Sessions".

import t from 'tap'
import type { Test } from 'tap'
import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError, errorItem } from '../../../protocol/errors.ts'
import { ActorSystemTwin } from '../../testing/actor-system-twin.ts'
import { deleteRequest, failureOf } from '../../system-actor.ts'
import { accessBehaviours } from '../access.ts'
import { REVOCATION, Revocations } from './revocation.ts'

function scene(t: Test, before: readonly string[] = []) {
  const system = new ActorSystemTwin(accessBehaviours())
  for (const key of before) system.put(REVOCATION, key, { at: '' })
  const now = { ms: 0 }
  const clock: Clock = {
    nowMs: () => Date.parse('2026-03-01T12:00:00Z'),
    monotonicMs: () => now.ms,
    after: () => () => undefined,
    defer: (run) => run(),
  }
  const revocations = new Revocations(system, clock)
  t.teardown(() => revocations.stop())
  const takeBack = async (key: string, by: string): Promise<string | null> =>
    failureOf(await system.ask(deleteRequest(REVOCATION, key, {}, { by, trace: 't' })))?.code ??
    null
  return { system, now, revocations, takeBack, due: () => [...revocations.due()] }
}

t.test('what was told is known, once it is told, until it is taken back', async (t) => {
  const { system, revocations, takeBack } = scene(t)
  t.notOk(revocations.has('s'))
  await revocations.tell('s', 't')
  t.ok(revocations.has('s'))
  t.notOk(revocations.has('other'))
  t.strictSame(system.system.get(REVOCATION, 's')?.value, { at: '2026-03-01T12:00:00.000Z' })
  t.equal(await takeBack('s', 'somebody'), 'FORBIDDEN')
  t.ok(revocations.has('s'), 'by no caller')
  t.equal(await takeBack('s', 'system'), null)
  t.notOk(revocations.has('s'))
})

t.test('the session’s own outbox may be first; what can’t be told is no success', async (t) => {
  const { system, revocations } = scene(t, ['s'])
  await revocations.tell('s', 't')
  t.equal(system.system.get(REVOCATION, 's')?.version, 1, 'and is not written again')
  system.before = () => ({ outcome: 'refused', error: errorItem('UNAVAILABLE', 'it is away') })
  await t.rejects(revocations.tell('r', 't'), new RequestError('UNAVAILABLE', 'it is away'))
})

t.test('each is due a while after this member heard of it first', async (t) => {
  const { system, now, takeBack, due } = scene(t, ['there'])
  const { revocationKeptMs } = LIMITS.access
  now.ms = 1_000
  system.put(REVOCATION, 'new', { at: '' })
  now.ms = 2_000
  system.put(REVOCATION, 'there', { at: '' })
  t.same(due(), [])
  now.ms = revocationKeptMs - 1
  t.same(due(), [])
  now.ms = revocationKeptMs
  t.same(due(), ['there'], 'what was there at its start counts from then')
  now.ms += 1_000
  t.same(due(), ['there', 'new'])
  await takeBack('there', 'system')
  t.same(due(), ['new'])
})
