// What a member has at hand of tokens: whose permissions they are, until when it goes by what it
// was told, and what a stranger can do to it. Source: PROTOCOL 3.0 "Sessions".

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { RequestError, errorItem } from '../../protocol/errors.ts'
import type { Principal } from './principal.ts'
import { addClient, station, token as newToken, who } from './testing/station.ts'

const REDIRECT = 'https://shop.example/cb'
const IDS = {
  ada: '0190c7a0-0000-7000-8000-000000000001',
  eve: '0190c7a0-0000-7000-8000-000000000002',
}

const personOf = (name: string, roles: string[]): Principal => ({
  properties: { name, email: `${name}@shop.example` },
  ...{ roles, accessAttributes: {}, password: null, sessionEpoch: 0 },
  ...{ createdAt: '2026-01-01T00:00:00.000Z', suspendedAt: null },
})

t.test('two people with one client and one scope: each has their own permissions', async (t) => {
  const setup = await station(t)
  addClient(setup, 'shop', (client) => client)
  setup.system.put('principal', IDS.ada, personOf('ada', ['system:owner']))
  setup.system.put('principal', IDS.eve, personOf('eve', []))
  const signIn = async (identity: string): Promise<string> => {
    const { sessions } = setup.access
    const of = { identity, kind: 'principal', clientId: 'shop', scope: null } as const
    const asked = { ...of, redirectUri: REDIRECT, challenge: null }
    const { code } = await sessions.authorize(asked, { trace: 't' })
    const use = { code, clientId: 'shop', redirectUri: REDIRECT, verifier: null }
    const tokens = await sessions.exchange({ ...use, withRefresh: false }, { trace: 't' })
    if ('refused' in tokens) throw new Error(tokens.reason)
    return tokens.accessToken
  }
  const mayRead = async (token: string): Promise<boolean> => {
    const known = await who(setup, token)
    if (typeof known === 'string') throw new Error(known)
    return known.acl.covers('cluster', 'read')
  }
  for (const [first, second] of [
    ['ada', 'eve'],
    ['eve', 'ada'],
  ] as const) {
    // Whatever was at hand of permissions is made anew.
    setup.system.put('role', 'shop:clerk', { description: '', entries: [] })
    const tokens = { [first]: await signIn(IDS[first]), [second]: await signIn(IDS[second]) }
    t.equal(await mayRead(tokens['ada']!), true, `${first} was first`)
    t.equal(await mayRead(tokens['eve']!), false, `${first} was first`)
  }
})

t.test('a lease counts from the question, however long its answer took', async (t) => {
  const issuing = await station(t)
  const token = await newToken(issuing)
  const { access, clock, system } = await station(t, { system: issuing.system })
  const status = async (): Promise<number> => {
    const known = await access.authenticate(`Bearer ${token}`)
    return known instanceof RequestError ? known.status : 200
  }
  const answer = Promise.withResolvers<null>()
  system.before = () => answer.promise
  const waiting = status()
  clock.nowMs += LIMITS.access.tokenLeaseMs - 1
  answer.resolve(null)
  t.equal(await waiting, 200)
  system.before = () => ({ outcome: 'refused', error: errorItem('UNAVAILABLE', 'it is away') })
  t.equal(await status(), 200)
  clock.nowMs += 1
  t.equal(await status(), 503, 'what was true a minute ago may be so no more')
})

t.test('who knows the name of a session takes nothing from whose it is', async (t) => {
  const issuing = await station(t)
  const token = await newToken(issuing)
  const { access, system } = await station(t, { system: issuing.system })
  const authenticate = (sent: string) => access.authenticate(`Bearer ${sent}`)
  t.match(await authenticate(token), { id: 'bootstrap' })
  const bytes = Buffer.from(token, 'base64url')
  bytes[47]! ^= 1
  const questions = system.asked.length
  t.match(await authenticate(bytes.toString('base64url')), { status: 401 })
  t.ok(system.asked.length > questions, 'it may have been the newest')
  const again = system.asked.length
  t.match(authenticate(token), { id: 'bootstrap' }, 'at hand as before')
  t.equal(system.asked.length, again)
})
