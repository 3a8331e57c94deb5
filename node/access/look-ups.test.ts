// Strangers' sessions that wait to be looked up: whose turn it is, and for how long.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import { LookUps } from './look-ups.ts'

function scene() {
  const now = { ms: 0 }
  /** Sessions whose owner was asked, and how each is answered. */
  const asked: string[] = []
  const answers = new Map<string, () => void>()
  const lookUps = new LookUps({
    nowMs: () => now.ms,
    read(sessionId) {
      asked.push(sessionId)
      return new Promise((resolve) => answers.set(sessionId, () => resolve(null)))
    },
  })
  const outcomes = new Map<string, string>()
  const look = (sessionId: string, address: string): void => {
    const found = lookUps.forStranger(sessionId, address)
    if (found === null) outcomes.set(sessionId, 'too many')
    else {
      found.then(
        ({ askedMs }) => outcomes.set(sessionId, `at ${askedMs}`),
        () => outcomes.set(sessionId, 'late'),
      )
    }
  }
  const answer = async (sessionId: string): Promise<void> => {
    answers.get(sessionId)!()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { now, asked, lookUps, outcomes, look, answer }
}

t.test('networks take turns, and of one that is full nobody is asked', async (t) => {
  t.teardown(overrideLimits({ 'access.lookUpsMax': 2, 'access.lookUpsOfNetworkMax': 1 }))
  const { asked, look, answer, lookUps } = scene()
  for (const one of ['a1', 'a2', 'a3']) look(one, '192.0.2.1')
  for (const one of ['b1', 'b2']) look(one, '192.0.2.2')
  look('c1', '192.0.2.3')
  t.same(asked, ['a1', 'b1'])
  await answer('b1')
  t.same(asked.slice(2), ['b2'])
  await answer('a1')
  t.same(asked.slice(3), ['a2'], 'it has waited longest')
  await answer('a2')
  t.same(asked.slice(4), ['c1'], 'then it is behind the others')
  await answer('b2')
  t.same(asked.slice(5), ['a3'])
  await answer('c1')
  await answer('a3')
  t.equal(lookUps.size, 0)
})

t.test('what is asked late counts from then on; who waits too long is told so', async (t) => {
  t.teardown(overrideLimits({ 'access.lookUpsOfNetworkMax': 1 }))
  const { now, asked, outcomes, look, answer } = scene()
  for (const one of ['a', 'b', 'c']) look(one, '192.0.2.1')
  now.ms = LIMITS.access.lookUpWaitMs - 1
  await answer('a')
  now.ms += 1
  await answer('b')
  t.same(Object.fromEntries(outcomes), { a: 'at 0', b: 'at 999', c: 'late' })
  t.same(asked, ['a', 'b'])
  look('d', '192.0.2.1')
  t.same(asked, ['a', 'b', 'd'], 'there is room again')
})

t.test('while owners are away those who come refuse who waits too long', async (t) => {
  const own = { 'access.lookUpsOfNetworkMax': 1, 'access.lookUpsOfNetworkWaitingMax': 2 }
  t.teardown(overrideLimits(own))
  const { now, outcomes, look, answer } = scene()
  for (const one of ['a', 'b', 'c', 'd']) look(one, '192.0.2.1')
  t.same(Object.fromEntries(outcomes), { d: 'too many' })
  now.ms = LIMITS.access.lookUpWaitMs
  look('e', '192.0.2.1')
  await answer('a')
  await answer('e')
  const expected = { a: 'at 0', b: 'late', c: 'late', d: 'too many', e: 'at 1000' }
  t.same(Object.fromEntries(outcomes), expected)
})

t.test('one that ends while it waits finds nothing', async (t) => {
  t.teardown(overrideLimits({ 'access.lookUpsOfNetworkMax': 1 }))
  const { lookUps, look, answer } = scene()
  look('a', '192.0.2.1')
  const found = lookUps.forStranger('b', '192.0.2.1')
  lookUps.over('b')
  await answer('a')
  await answer('b')
  t.match(await found, { session: null })
})
