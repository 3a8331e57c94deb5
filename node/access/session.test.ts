// How many sessions are kept, and which of them go when there are too many: what has expired first,
// whatever life each was given.

import t from 'tap'
import type { Test } from 'tap'
import type { Clock } from '../../cluster/clock.ts'
import { LIMITS } from '../../config/limits.ts'
import { errorItem } from '../../protocol/errors.ts'
import { ActorSystemTwin } from '../testing/actor-system-twin.ts'
import { accessBehaviours } from './access.ts'
import { Sessions } from './session.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** What is unlike in two processes. */
interface Unlike {
  /** So far its clock is ahead. */
  readonly aheadMs?: number
  /** It has the `system` shard. */
  readonly owns?: () => boolean
  readonly onError?: (error: unknown) => void
}

const GRANT = 'client_credentials'

/** One store, and processes on it, with the life that is set for each. */
function scene(t: Test, sessionsMax: number) {
  const system = new ActorSystemTwin(accessBehaviours())
  const now = { ms: 0 }
  const pushedOut: string[] = []
  /** The sweeps that are due next. */
  const due: (() => void)[] = []
  let made = 0
  const clockOf = (aheadMs: number): Clock => ({
    nowMs: () => now.ms + aheadMs,
    monotonicMs: () => now.ms,
    after: (_ms, run) => (due.push(run), () => {}),
    defer: () => {},
  })
  const start = (accessTokenMs: number, unlike: Unlike = {}) => {
    const { aheadMs = 0, owns = () => true, onError } = unlike
    const random = (bytes: Uint8Array): void => new DataView(bytes.buffer).setUint32(0, ++made)
    const sessions = new Sessions({
      actorSystem: system,
      world: { clock: clockOf(aheadMs), random },
      accessTokenMs,
      sessionsMax,
      tidies: owns,
      onError: onError ?? ((error) => t.fail(String(error))),
      onPushedOut: (identity) => pushedOut.push(identity),
    })
    sessions.start()
    t.teardown(() => sessions.stop())
    const issue = async (identity: string, scope: string | null = null): Promise<string> => {
      if (system.system.get('client', identity) === null) {
        const properties = { name: '', redirectUris: [], grantTypes: [GRANT] }
        const of = { roles: [], secrets: [], isSystem: false, createdAt: '', suspendedAt: null }
        system.put('client', identity, { properties, ...of })
      }
      const subject = { identity, clientId: identity, grant: GRANT, scope }
      return (await sessions.issue({ ...subject, kind: 'client' }, 'r')).sessionId
    }
    return { sessions, issue }
  }
  const there = (id: string): boolean => system.system.get('session', id) !== null
  return { twin: system, system: system.system, now, due, pushedOut, start, there }
}

async function until(is: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1_000 && !is(); turn++) {
    await new Promise((resolve) => setImmediate(resolve))
  }
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
  t.same([a, b2, b3, c].map(there), [false, true, true, true], 'one that expired goes first')
  t.same(pushedOut, ['b'])
})

t.test('a session with a long scope counts as several', async (t) => {
  const { pushedOut, start, there } = scene(t, 10)
  const { sessions, issue } = start(100)
  const others = [await issue('a'), await issue('b'), await issue('b'), await issue('b')]
  const long = 'x'.repeat(2 * LIMITS.access.sessionScopeChars)
  const ids: string[] = []
  for (let i = 0; i < 4; i++) ids.push(await issue('greedy', long))
  t.same(others.map(there), [true, true, true, true])
  t.same(ids.map(there), [false, false, true, true], 'six of ten are two of its own')
  t.same(pushedOut, ['greedy', 'greedy'])
  t.equal(sessions.size, 6)
  await issue('c', long)
  t.same(ids.map(there), [false, false, false, true])
  t.same(others.map(there), [true, true, true, true])
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
    now.ms += HOUR_MS
    // The next ones find no room, and make it of what has expired.
    for (let i = 0; i < 20; i++) await short.issue(`other${i}`)
    now.ms += HOUR_MS + DAY_MS
    t.equal(await short.sessions.sweep(), 30)
    t.ok(devices.every(there))
  }
  t.same(pushedOut, [], 'no valid one had to go')
  now.ms += 31 * DAY_MS
  t.equal(await short.sessions.sweep(), 10)
  t.equal(system.size('session'), 0)
})

t.test('only who has the system shard sweeps, and not before a day is over', async (t) => {
  const { now, start, there } = scene(t, 100)
  const owns = { first: true }
  const first = start(HOUR_MS, { owns: () => owns.first })
  const ahead = start(HOUR_MS, { aheadMs: 3 * DAY_MS, owns: () => !owns.first })
  const id = await first.issue('a')
  t.equal(await ahead.sessions.sweep(), 0, 'whose clock is ahead deletes no valid one')
  now.ms += HOUR_MS + DAY_MS - 1
  t.equal(await first.sessions.sweep(), 0)
  t.ok(there(id), 'a clock that is ahead by less than a day does no harm at the owner either')
  now.ms += 1
  t.equal(await ahead.sessions.sweep(), 0)
  t.ok(there(id))
  owns.first = false
  t.equal(await first.sessions.sweep(), 0)
  t.equal(await ahead.sessions.sweep(), 1, 'the next owner goes on')
  t.notOk(there(id))
})

t.test('a sweep keeps pace: however many may go, one ends them all', async (t) => {
  const { twin, now, start } = scene(t, 10_000)
  const { sessions, issue } = start(HOUR_MS)
  for (let i = 0; i < 3_000; i++) await issue('a')
  let underWay = 0
  let most = 0
  twin.before = async () => {
    most = Math.max(most, ++underWay)
    await new Promise((resolve) => setImmediate(resolve))
    underWay--
    return null
  }
  t.equal(await sessions.sweep(), 0)
  now.ms += HOUR_MS + DAY_MS
  t.equal(await sessions.sweep(), 3_000)
  t.equal(most, LIMITS.access.sessionSweepInFlightMax, 'a bounded number at a time')
  t.equal(sessions.size, 0)
})

t.test('what could not be ended is ended by the next sweep', async (t) => {
  const errors: unknown[] = []
  const { twin, now, due, start } = scene(t, 100)
  const { sessions, issue } = start(HOUR_MS, { onError: (error) => errors.push(error) })
  for (let i = 0; i < 40; i++) await issue('a')
  now.ms += HOUR_MS + DAY_MS
  const busy = { outcome: 'refused' as const, error: errorItem('TOO_BUSY', 'busy') }
  let asked = 0
  twin.before = () => (++asked > 5 ? busy : null)
  due.shift()!()
  await until(() => due.length > 0)
  t.equal(sessions.size, 35)
  twin.before = () => null
  due.shift()!()
  await until(() => sessions.size === 0)
  t.same(errors, [])
})

t.test('an end that was refused by the turn itself is none', async (t) => {
  const { twin, now, start, there } = scene(t, 1)
  const { sessions, issue } = start(HOUR_MS)
  const id = await issue('a')
  const errors = [errorItem('UNAVAILABLE', 'the configuration could not be read in time')]
  const AWAY = { errors: [{ code: 'UNAVAILABLE' }] }
  const results = [{ type: 'delete', success: false as const, errors }]
  const answer = { outcome: 'answered' as const, actorId: null, keys: [], position: null, results }
  twin.before = ({ messages }) => (messages[0]!.type === 'delete' ? answer : null)
  await t.rejects(sessions.end(id, { by: 'a', trace: 'r' }), AWAY)
  await t.rejects(issue('a'), AWAY, 'no room was made')
  now.ms += HOUR_MS + DAY_MS
  await t.rejects(sessions.sweep(), AWAY)
  t.ok(there(id))
  twin.before = () => null
  t.equal(await sessions.sweep(), 1, 'it is not forgotten')
  await sessions.end(id, { by: 'a', trace: 'r' })
})

t.test('at the bound the one that ended first goes, one for one', async (t) => {
  const { pushedOut, start, there } = scene(t, 4)
  const long = start(2 * HOUR_MS)
  const short = start(HOUR_MS)
  const ids = [await long.issue('a'), await short.issue('b'), await long.issue('c')]
  ids.push(await short.issue('d'))
  const ahead = start(HOUR_MS, { aheadMs: DAY_MS, owns: () => false })
  await ahead.issue('e')
  t.same(ids.map(there), [true, false, true, true])
  t.same(pushedOut, [], 'it had ended by the clock of the member that needs the room')
})
