// Who sent a header, while this member can know it and while it can't.

import t from 'tap'
import type { Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { ActorSystemTwin } from '../testing/actor-system-twin.ts'
import { accessBehaviours } from './access.ts'
import { Authenticator } from './authenticate.ts'
import type { Session } from './session.ts'
import { makeToken } from './token.ts'

/** A client `web` with a token whose session is not in the maps. */
function scene(t: Test) {
  const system = new ActorSystemTwin(accessBehaviours())
  const properties = { name: 'x', redirectUris: [], grantTypes: [] }
  const dates = { createdAt: '', suspendedAt: null }
  system.put('client', 'web', { properties, roles: [], secrets: [], isSystem: false, ...dates })
  const now = { ms: 0, ready: true as boolean | Promise<boolean> }
  const authenticator = new Authenticator({
    attributesOf: () => ({}),
    system: system.system,
    nowMs: () => now.ms,
    ready: () => now.ready,
  })
  t.teardown(() => authenticator.stop())
  const { token, sessionId, hash } = makeToken((bytes) => void bytes.fill(7))
  const session: Session = {
    identity: 'web',
    kind: 'client',
    clientId: 'web',
    grant: 'client_credentials',
    scope: null,
    accessTokenHash: hash,
    issuedAt: new Date(0).toISOString(),
    expiresAt: new Date(3_600_000).toISOString(),
  }
  const who = (sent = token) => authenticator.authenticate(`Bearer ${sent}`)
  return { system, now, authenticator, token, sessionId, session, who }
}

t.test(
  'while it is not known what was revoked it is 503, for tokens seen before too',
  async (t) => {
    const { system, now, authenticator, sessionId, session, who } = scene(t)
    system.put('session', sessionId, session)
    t.match(who(), { id: 'web' })
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
    const properties = { name: 'x', redirectUris: [], grantTypes: [] }
    const dates = { createdAt: '', suspendedAt: '2026-03-01T12:00:00.000Z' }
    system.put('client', 'web', { properties, roles: [], secrets: [], isSystem: false, ...dates })
    reading.resolve(true)
    t.match(await waiting, { status: 401 })
  },
)

t.test('a token just issued is good until the maps should show its session', (t) => {
  const { now, authenticator, token, sessionId, session, who } = scene(t)
  authenticator.remember(token, sessionId, session)
  t.match(who(), { id: 'web' })
  now.ms = LIMITS.cluster.systemStaleMs
  t.match(who(), { status: 401 })
  t.end()
})

t.test("a principal's token is not the client's with its id", (t) => {
  const { system, authenticator, token, sessionId, session, who } = scene(t)
  const other: Session = { ...session, kind: 'principal' }
  authenticator.remember(token, sessionId, other)
  t.match(who(), { status: 401 })
  system.put('session', sessionId, other)
  t.match(who(), { status: 401 })
  t.end()
})

t.test('a token has one spelling: its other ones are refused, whatever is at hand', (t) => {
  const { system, session, authenticator } = scene(t)
  const { token, sessionId, hash } = makeToken((bytes) => void bytes.fill(0xff))
  const respelled = token.replaceAll('-', '+').replaceAll('_', '/')
  t.not(respelled, token)
  system.put('session', sessionId, { ...session, accessTokenHash: hash })
  const who = (sent: string) => authenticator.authenticate(`Bearer ${sent}`)
  t.match(who(respelled), { status: 401 })
  t.match(who(token), { id: 'web' })
  t.match(who(respelled), { status: 401 })
  system.put('session', sessionId, session)
  t.match(who(token), { status: 401 })
  t.match(who(respelled), { status: 401 }, 'and it does not outlive its session')
  t.end()
})

t.test('permissions of scopes are at hand, as far as there is room', (t) => {
  const { system, session, authenticator } = scene(t)
  let made = 0
  const aclOf = (scope: string): unknown => {
    const random = (bytes: Uint8Array): void => new DataView(bytes.buffer).setUint32(0, ++made)
    const { token, sessionId, hash } = makeToken(random)
    system.put('session', sessionId, { ...session, scope, accessTokenHash: hash })
    const who = authenticator.authenticate(`Bearer ${token}`)
    return 'acl' in who ? who.acl : who
  }
  const long = `graph/${'x'.repeat(1_000)}:query `.repeat(60)
  const first = aclOf('graph:query')
  t.ok('covers' in (first as object))
  t.equal(aclOf('graph:query'), first)
  const asked = (chars: number): void => {
    for (let n = 0; n < chars; n += long.length) aclOf(`a${made}:x ${long}`)
  }
  asked(LIMITS.access.aclScopesCharsMax / 2)
  t.equal(aclOf('graph:query'), first)
  asked(LIMITS.access.aclScopesCharsMax / 2 + long.length)
  t.not(aclOf('graph:query'), first, 'long ones have gone, and all with them')
  t.end()
})
