// Who sent a header: what is at hand, what is asked of the session's owner, and what is true by the
// time that it answers.

import t from 'tap'
import type { Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import { ActorSystemTwin } from '../testing/actor-system-twin.ts'
import { accessBehaviours } from './access.ts'
import { Authenticator } from './authenticate.ts'
import type { LiveSession } from './sessions/session-state.ts'
import { openSession } from './testing/sessions.ts'
import { makeToken } from './token.ts'

const LIFE_MS = 3_600_000
const CLIENT = {
  properties: { name: 'x', redirectUris: [], grantTypes: [] },
  ...{ roles: [], secrets: [], isSystem: false, createdAt: '', suspendedAt: null },
}

/** A client `web` with a token whose session its owner has, and tells when it is let. */
function scene(t: Test) {
  const system = new ActorSystemTwin(accessBehaviours())
  system.put('client', 'web', CLIENT)
  const now = { ms: 0, monotonicMs: 0, ready: true as boolean | Promise<boolean> }
  /** What owners have, and the questions that they were asked. */
  const sessions = new Map<string, LiveSession>()
  const asked: string[] = []
  const used: string[] = []
  const active: string[] = []
  const owner = { waits: Promise.resolve(), fails: null as RequestError | null }
  const authenticator = new Authenticator({
    attributesOf: () => ({}),
    system: system.system,
    revocations: { has: (id) => system.system.get('revocation', id) !== null },
    nowMs: () => now.ms,
    monotonicMs: () => now.monotonicMs,
    ready: () => now.ready,
    read: async (id) => {
      asked.push(id)
      const found = sessions.get(id) ?? null
      await owner.waits
      if (owner.fails !== null) throw owner.fails
      return found
    },
    used: (id) => used.push(id),
    active: ({ identity }) => active.push(identity),
  })
  t.teardown(() => authenticator.stop())
  let made = 6
  const newToken = (more: Partial<LiveSession> = {}) => {
    made++
    const { token, sessionId, hash } = makeToken((bytes) => {
      bytes.fill(made)
      new DataView(bytes.buffer).setUint32(0, made)
    })
    const scope = more.scope ?? null
    const of = { hash, untilMs: LIFE_MS, scope }
    const session = { ...openSession(system.system, 'web', of), ...more }
    return { token, sessionId, session }
  }
  const mine = newToken()
  const who = (sent = mine.token, address = '') =>
    authenticator.authenticate(`Bearer ${sent}`, () => address)
  const pass = (ms: number): void => {
    now.ms += ms
    now.monotonicMs += ms
  }
  return {
    system,
    now,
    sessions,
    asked,
    used,
    active,
    owner,
    authenticator,
    newToken,
    ...mine,
    who,
    pass,
  }
}

const status = (answer: unknown): number => (answer instanceof RequestError ? answer.status : 200)
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

t.test('while it is not known what was revoked: 503, for tokens seen before too', async (t) => {
  const { system, now, authenticator, sessions, sessionId, session, who } = scene(t)
  sessions.set(sessionId, session)
  t.match(await who(), { id: 'web' })
  now.ready = false
  t.match(who(), { status: 503 })
  t.match(who('A'.repeat(64)), { status: 503 }, 'never 401')
  t.match(authenticator.authenticate(''), { status: 401 }, 'a token that was not sent is none')
  now.ready = Promise.resolve(false)
  t.match(await who(), { status: 503 })
  now.ready = Promise.resolve(true)
  t.match(await who(), { id: 'web' })
  t.match(await who('A'.repeat(64)), { status: 401 })
  // What is read while it waits counts.
  const reading = Promise.withResolvers<boolean>()
  now.ready = reading.promise
  const waiting = who()
  system.put('client', 'web', { ...CLIENT, suspendedAt: '2026-03-01T12:00:00.000Z' })
  reading.resolve(true)
  t.match(await waiting, { status: 401 })
})

t.test('at hand: no question, no promise; its owner is asked ahead of the lease', async (t) => {
  const { sessions, asked, sessionId, session, who, pass } = scene(t)
  sessions.set(sessionId, session)
  t.ok(who() instanceof Promise)
  await settled()
  t.match(who(), { id: 'web' })
  t.equal(asked.length, 1)
  for (let i = 0; i < 10; i++) {
    pass(LIMITS.access.tokenLeaseMs / 2 + 1)
    t.match(who(), { id: 'web' }, 'it does not wait')
    t.match(who(), { id: 'web' })
    await settled()
    t.equal(asked.length, i + 2, 'once')
  }
  sessions.delete(sessionId)
  pass(LIMITS.access.tokenLeaseMs / 2 + 1)
  t.match(who(), { id: 'web' })
  await settled()
  t.equal(status(await who()), 401, 'what nobody announced ends with the lease')
})

t.test('a lease that is over: the owner decides, and where it is away nobody', async (t) => {
  const { sessions, owner, sessionId, session, who, pass, authenticator } = scene(t)
  sessions.set(sessionId, session)
  authenticator.remember(session.access!.hash, { sessionId, session, askedMs: 0 })
  await who()
  owner.fails = new RequestError('UNAVAILABLE', 'away')
  pass(LIMITS.access.tokenLeaseMs - 1)
  t.equal(status(who()), 200)
  await settled()
  pass(1)
  t.equal(status(await who()), 503, 'not 401, for it may be good')
  owner.fails = null
  t.equal(status(await who()), 200)
  t.equal(status(who()), 200)
})

t.test('a token just issued is good without a question', (t) => {
  const { asked, authenticator, token, sessionId, session, who } = scene(t)
  authenticator.remember(token, { sessionId, session, askedMs: 0 })
  t.match(who(), { id: 'web', sessionId, grant: 'client_credentials', expiresAtMs: LIFE_MS })
  t.same(asked, [])
  t.end()
})

t.test('it expires to the millisecond by the wall clock', async (t) => {
  const { now, authenticator, token, sessionId, session, sessions, who } = scene(t)
  sessions.set(sessionId, session)
  authenticator.remember(token, { sessionId, session, askedMs: 0 })
  now.ms = LIFE_MS - 1
  t.equal(status(who()), 200)
  now.ms = LIFE_MS
  t.match(who(), { status: 401, message: /expired/ })
  t.match(await who(), { status: 401, message: /expired/ })
})

t.test('a revocation that arrives while the owner is asked', async (t) => {
  for (const order of ['arrives first', 'arrives later', 'was here and gone'] as const) {
    const { system, sessions, owner, sessionId, session, who, authenticator } = scene(t)
    sessions.set(sessionId, session)
    const answers = Promise.withResolvers<void>()
    owner.waits = answers.promise
    const waiting = who()
    // The owner has answered as of before; the end comes by another way.
    if (order !== 'arrives later') system.put('revocation', sessionId, { at: '' })
    if (order === 'was here and gone') {
      const asked = { type: 'revocation', id: sessionId, messages: [{ type: 'delete', body: {} }] }
      const of = { idempotencyKey: null, bodyHash: '', by: 'system', preview: false, trace: '' }
      await system.ask({ ...asked, ...of, budgetMs: 1 })
      t.equal(system.system.get('revocation', sessionId), null)
    }
    answers.resolve()
    const first = await waiting
    if (order === 'arrives later') system.put('revocation', sessionId, { at: '' })
    else t.equal(status(first), 401, order)
    t.equal(authenticator.size, 0, `${order}: and it is not kept`)
  }
})

t.test('what was revoked is not taken in, and nobody is asked', (t) => {
  const { system, asked, authenticator, token, sessionId, session, who } = scene(t)
  system.put('revocation', sessionId, { at: '' })
  authenticator.remember(token, { sessionId, session, askedMs: 0 })
  t.equal(authenticator.size, 0)
  t.equal(status(who()), 401)
  t.same(asked, [])
  t.end()
})

t.test('what the maps say when the owner has answered counts', async (t) => {
  const { system, now, sessions, owner, sessionId, session, who, authenticator } = scene(t)
  sessions.set(sessionId, session)
  const answers = Promise.withResolvers<void>()
  owner.waits = answers.promise
  const waiting = who()
  system.put('client', 'web', { ...CLIENT, sessionEpoch: 1 })
  answers.resolve()
  t.equal(status(await waiting), 401, 'the epoch was raised meanwhile')
  system.put('client', 'web', CLIENT)
  const again = who()
  now.ready = false
  t.equal(status(await again), 503, 'the member is cut off meanwhile')
  now.ready = true
  t.equal(status(await who()), 200)
  system.put('client', 'web', { ...CLIENT, createdAt: 'another life' })
  t.equal(status(who()), 401, 'one that was deleted and made anew is another')
  t.equal(authenticator.size, 0)
})

t.test(
  'strangers: so many look-ups, so many of a network, and none for what is no token',
  async (t) => {
    t.teardown(overrideLimits({ 'access.lookUpsMax': 6, 'access.lookUpsOfNetworkMax': 4 }))
    const waiting = { 'access.lookUpsWaitingMax': 4, 'access.lookUpsOfNetworkWaitingMax': 3 }
    t.teardown(overrideLimits(waiting))
    const { sessions, asked, owner, newToken, sessionId, session, token, who, pass } = scene(t)
    sessions.set(sessionId, session)
    t.equal(status(await who(token)), 200)
    const answers = Promise.withResolvers<void>()
    owner.waits = answers.promise
    const before = asked.length
    for (const text of ['x', 'A'.repeat(63), '!'.repeat(64), `${'A'.repeat(63)}+`]) {
      t.equal(status(who(text)), 401)
    }
    t.equal(asked.length, before)
    const flood = Array.from({ length: 10 }, (_, i) => who(newToken().token, `2001:db8::${i}`))
    t.equal(asked.length - before, 4, 'of one /64')
    const refused = (all: readonly unknown[]): number =>
      all.filter((one) => status(one) === 503).length
    t.equal(refused(flood), 3, 'three more wait; 503: nobody has looked')
    const more = Array.from({ length: 4 }, (_, i) => who(newToken().token, `192.0.2.${i}`))
    t.equal(refused(more), 1, 'of all')
    t.equal(asked.length - before, 6)
    t.equal(status(who(token)), 200, 'who was here before is not kept waiting')
    pass(LIMITS.access.tokenLeaseMs)
    const mine = who(token)
    answers.resolve()
    t.equal(status(await mine), 200, 'nor when its lease is over')
    for (const one of await Promise.all([...flood, ...more])) t.ok([401, 503].includes(status(one)))
    t.equal(status(await who(newToken().token, '2001:db8::1')), 401, 'there is room again')
  },
)

t.test('who somebody is is worked out anew when they or their client change', async (t) => {
  const { system, sessions, sessionId, session, who } = scene(t)
  sessions.set(sessionId, session)
  const first = await who()
  system.put('client', 'other', CLIENT)
  t.equal(who(), first, 'the change of another costs nothing')
  system.put('client', 'web', { ...CLIENT, roles: ['system:owner'] })
  const own = who()
  t.notOk('acl' in first && first.acl.everything)
  t.ok('acl' in own && own.acl.everything)
  system.put('role', 'shop:other', { description: '', acl: { entries: [] } })
  t.not(who(), own, 'a role may be of anybody')
})

t.test('one session is asked for once at a time', async (t) => {
  const { sessions, asked, sessionId, session, who } = scene(t)
  sessions.set(sessionId, session)
  const all = await Promise.all(Array.from({ length: 20 }, async () => who()))
  t.ok(all.every((one) => status(one) === 200))
  t.equal(asked.length, 1)
})

t.test('the token before is good for a moment, in its own scope', async (t) => {
  const { sessions, newToken, who, now } = scene(t)
  const first = newToken()
  const next = newToken()
  const session: LiveSession = {
    ...first.session,
    access: { ...next.session.access!, scope: 'graph:query' },
    former: { ...first.session.access!, scope: 'registry:read', untilMs: 1_000 },
  }
  // Both are tokens of one session.
  const read = Buffer.from(next.token, 'base64url')
  Buffer.from(first.token, 'base64url').copy(read, 0, 0, 16)
  sessions.set(first.sessionId, session)
  const acl = await who(first.token)
  t.ok('acl' in acl && acl.acl.aces[0]?.path[0] === 'registry')
  now.ms = 1_000
  t.equal(status(await who(first.token)), 401)
})

t.test('a token has one spelling: its other ones are refused, whatever is at hand', async (t) => {
  const { system, sessions, authenticator } = scene(t)
  const { token, sessionId, hash } = makeToken((bytes) => void bytes.fill(0xff))
  const respelled = token.replaceAll('-', '+').replaceAll('_', '/')
  t.not(respelled, token)
  sessions.set(sessionId, openSession(system.system, 'web', { hash, untilMs: LIFE_MS }))
  const who = (sent: string) => authenticator.authenticate(`Bearer ${sent}`)
  t.match(who(respelled), { status: 401 })
  t.match(await who(token), { id: 'web' })
  t.match(who(respelled), { status: 401 })
  system.put('revocation', sessionId, { at: '' })
  t.match(who(token), { status: 401 })
  t.match(who(respelled), { status: 401 }, 'and it does not outlive its session')
})

t.test('what is at hand is bounded: by number, and by characters of scopes', async (t) => {
  t.teardown(overrideLimits({ 'access.tokenCacheMax': 10, 'access.aclScopesCharsMax': 10_000 }))
  const { sessions, newToken, who, authenticator } = scene(t)
  const hold = async (scope: string | null): Promise<void> => {
    const one = newToken({ scope })
    sessions.set(one.sessionId, one.session)
    t.equal(status(await who(one.token)), 200)
  }
  for (let i = 0; i < 25; i++) await hold(null)
  t.equal(authenticator.size, 10)
  for (let i = 0; i < 4; i++) await hold(`graph/${'x'.repeat(900)}:query registry:read`)
  t.equal(authenticator.size, 10)
  for (let i = 0; i < 10; i++) await hold(`graph/${'x'.repeat(1_000)}:query registry:read`)
  t.ok(authenticator.size < 10, 'long ones take the room of several')
})

t.test('permissions of scopes are at hand, as far as there is room', async (t) => {
  const { sessions, newToken, who } = scene(t)
  const aclOf = async (scope: string): Promise<unknown> => {
    const one = newToken({ scope })
    sessions.set(one.sessionId, one.session)
    const answer = await who(one.token)
    return 'acl' in answer ? answer.acl : answer
  }
  const long = `graph/${'x'.repeat(1_000)}:query `.repeat(60)
  const first = await aclOf('graph:query')
  t.ok('covers' in (first as object))
  t.equal(await aclOf('graph:query'), first)
  let asked = 0
  const ask = async (chars: number): Promise<void> => {
    for (let n = 0; n < chars; n += long.length) await aclOf(`a${asked++}:x ${long}`)
  }
  await ask(LIMITS.access.aclScopesCharsMax / 2)
  t.equal(await aclOf('graph:query'), first)
  await ask(LIMITS.access.aclScopesCharsMax / 2 + long.length)
  t.not(await aclOf('graph:query'), first, 'long ones have gone, and all with them')
})

t.test('that a session is used is written down now and then', async (t) => {
  const { sessions, used, sessionId, session, who, pass } = scene(t)
  sessions.set(sessionId, { ...session, access: { ...session.access!, untilMs: 1e12 } })
  await who()
  t.same(used, [])
  pass(LIMITS.access.sessionUsedEveryMs)
  await who()
  t.same(used, [sessionId])
})

t.test('who is active is told when its token is looked at, not at each request', async (t) => {
  const { sessions, active, authenticator, newToken, sessionId, session, who, pass } = scene(t)
  sessions.set(sessionId, session)
  await who()
  for (let i = 0; i < 100; i++) who()
  t.same(active, ['web'])
  const { tokenLeaseMs } = LIMITS.access
  for (let i = 0; i < 10; i++) {
    pass(tokenLeaseMs / 2 + 1)
    for (let request = 0; request < 100; request++) who()
    await settled()
  }
  t.equal(active.length, 11, 'once in half a lease')
  await who('A'.repeat(64))
  sessions.clear()
  pass(tokenLeaseMs)
  t.match(await who(), { status: 401 })
  t.equal(active.length, 11, 'a token that is none is no use')
  const { token, ...known } = newToken()
  authenticator.remember(token, { ...known, askedMs: 0 })
  t.equal(active.length, 12, 'a sign-in is one')
})

t.test('a personal access token: whether it was used at all is written at once', async (t) => {
  const { sessions, used, authenticator, newToken, who } = scene(t)
  const { token, sessionId, session } = newToken({ grant: 'pat', createdAtMs: 0, usedAtMs: 0 })
  authenticator.remember(token, { sessionId, session, askedMs: 0 })
  t.same(used, [], 'to make it is no use')
  authenticator.forget(sessionId)
  sessions.set(sessionId, session)
  t.match(await who(token), { id: 'web' })
  t.same(used, [sessionId])
  authenticator.forget(sessionId)
  sessions.set(sessionId, { ...session, usedAtMs: 5 })
  await who(token)
  t.same(used, [sessionId], 'and then to the hour')
})
