// What is told of sessions, and to whom none is given: those that wait for their code, have ended
// or stand no more are no sessions, whatever a list has of them. Source: CONTRACT 1.8, 1.11, RFC
// 9700 4.14.2.

import t from 'tap'
import type { Test } from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import type { Principal } from '../principal.ts'
import { addClient, station } from '../testing/station.ts'
import type { IssuedTokens } from './grants.ts'

const ID = '0190c7a0-0000-7000-8000-000000000001'
const redirectUri = 'https://shop.example/cb'
const ORIGIN = { trace: 't' }
const PERSON: Principal = {
  properties: { name: 'Ada', email: 'ada@shop.example' },
  ...{ roles: [], accessAttributes: {}, password: null, sessionEpoch: 0 },
  ...{ createdAt: '2026-01-01T00:00:00.000Z', suspendedAt: null },
}

async function scene(t: Test) {
  const setup = await station(t)
  const { system, access, clock } = setup
  addClient(setup, 'shop', (client) => client)
  system.put('principal', ID, PERSON)
  const { sessions } = access
  const of = { identity: ID, kind: 'principal', clientId: 'shop', scope: 'me:read' } as const
  const authorize = async (): Promise<string> =>
    (await sessions.authorize({ ...of, redirectUri, challenge: null }, ORIGIN)).code
  const exchange = (code: string) => {
    const use = { code, clientId: 'shop', redirectUri, verifier: null, withRefresh: true }
    return sessions.exchange(use, ORIGIN)
  }
  const signIn = async (): Promise<IssuedTokens> =>
    (await exchange(await authorize())) as IssuedTokens
  /** Ids in its list, and of those that are told. */
  const told = async () => {
    const ids = await sessions.listOf(of, false, ORIGIN)
    const read = await sessions.readAll(ids, ORIGIN)
    return { listed: ids.length, ids: read.map(({ sessionId }) => sessionId) }
  }
  return { setup, system, clock, sessions, of, authorize, exchange, signIn, told }
}

t.test('a session is told when it has tokens, until they are over', async (t) => {
  const { clock, authorize, signIn, told } = await scene(t)
  await authorize()
  t.same(await told(), { listed: 1, ids: [] }, 'it waits for its code')
  const { session } = await signIn()
  t.same(await told(), { listed: 2, ids: [session.sessionId] })
  clock.nowMs += LIMITS.access.codeMs
  t.same(await told(), { listed: 1, ids: [session.sessionId] }, 'what has ended is not asked')
})

t.test('those of before a new password are told no more', async (t) => {
  const { system, signIn, told } = await scene(t)
  await signIn()
  system.put('principal', ID, { ...PERSON, sessionEpoch: 1 })
  t.same(await told(), { listed: 1, ids: [] })
  const { session } = await signIn()
  t.same(await told(), { listed: 2, ids: [session.sessionId] })
})

t.test('who is gone or suspended gets none', async (t) => {
  const { setup, system, sessions, authorize } = await scene(t)
  system.put('principal', ID, { ...PERSON, suspendedAt: '2026-03-01T12:00:00.000Z' })
  await t.rejects(authorize(), { message: /gone or suspended/ })
  addClient(setup, 'shop', (client) => ({ ...client, suspendedAt: '2026-03-01T12:00:00.000Z' }))
  const own = { identity: 'shop', kind: 'client', clientId: 'shop', scope: null } as const
  const open = sessions.open({ ...own, grant: 'client_credentials' }, ORIGIN)
  await t.rejects(open, { message: /gone or suspended/ })
})

t.test(
  'RFC 9700 4.14.2: an old refresh token ends its session, whatever it asks for',
  async (t) => {
    const { sessions, signIn, told } = await scene(t)
    const tokens = await signIn()
    const asked = { refreshToken: tokens.refreshToken!, clientId: 'shop' }
    const wider = () => ({ ok: false, reason: 'it is wider' }) as const
    const fresh = await sessions.refresh({ ...asked, narrowed: wider }, ORIGIN)
    t.match(fresh, { refused: 'invalid_scope' }, 'the newest is refused that, and no more')
    t.match(await sessions.refresh({ ...asked, narrowed: null }, ORIGIN), { accessToken: String })
    const old = await sessions.refresh({ ...asked, narrowed: wider }, ORIGIN)
    t.match(old, { refused: 'invalid_grant' })
    t.same((await told()).ids, [])
  },
)

t.test('what strangers ask at once has a bound', async (t) => {
  const { exchange, authorize } = await scene(t)
  const codes = [await authorize(), await authorize(), await authorize()]
  t.teardown(overrideLimits({ 'access.lookUpsMax': 2 }))
  const answers = await Promise.allSettled(codes.map(exchange))
  t.same(
    answers.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected'],
  )
  t.match(await exchange(codes[2]!), { accessToken: String }, 'and nothing was done')
})
