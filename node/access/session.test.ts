// How many sessions are kept, and which of them go when there are too many: what has expired first,
// whatever life each was given.

import t from 'tap'
import type { Test } from 'tap'
import type { Clock } from '../../cluster/clock.ts'
import { LIMITS } from '../../config/limits.ts'
import { ActorSystemTwin } from '../testing/actor-system-twin.ts'
import { accessBehaviours } from './access.ts'
import { Sessions } from './session.ts'

const HOUR_MS = 3_600_000

/** One store, and processes on it one after the other, with the life that is set for each. */
function scene(t: Test, sessionsMax: number) {
  const system = new ActorSystemTwin(accessBehaviours())
  const now = { ms: 0 }
  const pushedOut: string[] = []
  let made = 0
  const clock: Clock = {
    nowMs: () => now.ms,
    monotonicMs: () => now.ms,
    after: () => () => {},
    defer: () => {},
  }
  const start = (accessTokenMs: number) => {
    const sessions = new Sessions({
      actorSystem: system,
      world: { clock, random: (bytes) => new DataView(bytes.buffer).setUint32(0, ++made) },
      accessTokenMs,
      sessionsMax,
      onError: (error) => t.fail(String(error)),
      onPushedOut: (identity) => pushedOut.push(identity),
    })
    sessions.start()
    t.teardown(() => sessions.stop())
    const issue = async (identity: string): Promise<string> => {
      const subject = { identity, clientId: identity, grant: 'x', scope: null }
      return (await sessions.issue({ ...subject, kind: 'client' }, 'r')).sessionId
    }
    return { sessions, issue }
  }
  const there = (id: string): boolean => system.system.get('session', id) !== null
  return { system: system.system, now, pushedOut, start, there }
}

t.test('at the bound whoever has the most sessions loses the oldest', async (t) => {
  const { now, pushedOut, start, there } = scene(t, 3)
  const { sessions, issue } = start(100)
  const [a, b1, b2] = [await issue('a'), await issue('b'), await issue('b')]
  const b3 = await issue('b')
  t.same([a, b1, b2, b3].map(there), [true, false, true, true])
  t.same(pushedOut, ['b'], 'and it is told')
  t.equal(sessions.size, 3)
  now.ms += 100
  const c = await issue('c')
  t.same([a, b2, b3, c].map(there), [false, false, false, true], 'expired ones go first')
  t.same(pushedOut, ['b'])
})

t.test("nobody's only session is ended for somebody else", async (t) => {
  const { pushedOut, start, there } = scene(t, 2)
  const { issue } = start(100)
  const [a, b] = [await issue('a'), await issue('b')]
  await t.rejects(issue('c'), { message: /too many sessions/ })
  t.same([a, b].map(there), [true, true])
  const again = await issue('b')
  t.same([a, b, again].map(there), [true, false, true], 'its own may go')
  t.same(pushedOut, ['b'])
})

t.test('sessions of unlike lives: what has expired goes, in whatever order', async (t) => {
  const { system, now, pushedOut, start, there } = scene(t, 40)
  const long = start(30 * 24 * HOUR_MS)
  const devices: string[] = []
  for (let i = 0; i < 10; i++) devices.push(await long.issue('devices'))
  long.sessions.stop()
  const short = start(HOUR_MS)
  for (let hour = 1; hour <= 8; hour++) {
    for (let i = 0; i < 20; i++) await short.issue(`app${i}`)
    t.equal(short.sessions.size, 10 + 20)
    now.ms += HOUR_MS
    if (hour % 2 === 0) t.equal(await short.sessions.sweep(), 20)
    // Else the next ones find no room, and make it.
    else for (let i = 0; i < 20; i++) await short.issue(`other${i}`)
    if (hour % 2 === 1) now.ms += HOUR_MS
    await short.sessions.sweep()
    t.ok(devices.every(there))
  }
  t.same(pushedOut, [], 'no valid one had to go')
  now.ms += 30 * 24 * HOUR_MS
  t.equal(await short.sessions.sweep(), 10)
  t.equal(system.size('session'), 0)
})

t.test('a sweep is bounded, and the next one goes on', async (t) => {
  const { now, start } = scene(t, 3_000)
  const { sessions, issue } = start(HOUR_MS)
  for (let i = 0; i < LIMITS.sessionSweepMax + 5; i++) await issue('a')
  t.equal(await sessions.sweep(), 0)
  now.ms += HOUR_MS
  t.equal(await sessions.sweep(), LIMITS.sessionSweepMax)
  t.equal(await sessions.sweep(), 5)
  t.equal(await sessions.sweep(), 0)
})
