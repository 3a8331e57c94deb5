// The end of a session is told by the member that answers, before it answers: the outbox, which
// tells it as well, may take longer. Source: PROTOCOL 3.0 "Sessions", RFC 7009 2.1, RFC 9700
// 4.14.2.

import t from 'tap'
import type { Test } from 'tap'
import { addClient, call, station, who } from '../testing/station.ts'
import { REVOCATION } from './revocation.ts'
import type { IssuedTokens } from './grants.ts'

const ID = '0190c7a0-0000-7000-8000-000000000001'
const redirectUri = 'https://shop.example/cb'
const ORIGIN = { trace: 't' }

/** Somebody who has signed in, on a store whose outbox stands still. */
async function scene(t: Test) {
  const setup = await station(t)
  const { system, access } = setup
  addClient(setup, 'shop', (client) => client)
  system.put('principal', ID, {
    properties: { name: 'Ada', email: 'ada@shop.example' },
    ...{ roles: [], accessAttributes: {}, password: null, sessionEpoch: 0 },
    ...{ createdAt: '2026-01-01T00:00:00.000Z', suspendedAt: null },
  })
  const { sessions } = access
  const of = { identity: ID, kind: 'principal', clientId: 'shop', scope: null } as const
  const { code } = await sessions.authorize({ ...of, redirectUri, challenge: null }, ORIGIN)
  const use = { code, clientId: 'shop', redirectUri, verifier: null, withRefresh: true }
  const exchange = () => sessions.exchange(use, ORIGIN)
  const refresh = (token: string | null) =>
    sessions.refresh({ refreshToken: token!, clientId: 'shop', narrowed: null }, ORIGIN)
  const tokens = (await exchange()) as IssuedTokens
  const { sessionId } = tokens.session
  system.relays = false
  const isTold = (): boolean => system.system.get(REVOCATION, sessionId) !== null
  return { setup, sessions, exchange, refresh, tokens, isTold, sessionId }
}

t.test('of a code and of a refresh token that come a second time', async (t) => {
  const byCode = await scene(t)
  t.notOk(byCode.isTold())
  t.match(await byCode.exchange(), { refused: 'invalid_grant' })
  t.ok(byCode.isTold())
  const byRefresh = await scene(t)
  const renewed = await byRefresh.refresh(byRefresh.tokens.refreshToken)
  t.match(renewed, { accessToken: String })
  t.notOk(byRefresh.isTold())
  t.match(await byRefresh.refresh(byRefresh.tokens.refreshToken), { refused: 'invalid_grant' })
  t.ok(byRefresh.isTold())
})

t.test('of one that is ended', async (t) => {
  const { sessions, sessionId, isTold } = await scene(t)
  await sessions.end(sessionId, ORIGIN)
  t.ok(isTold())
})

t.test('RFC 7009 2.1: a refresh token that was rotated ends its session, too', async (t) => {
  const { setup, refresh, tokens, isTold } = await scene(t)
  const renewed = (await refresh(tokens.refreshToken)) as IssuedTokens
  t.match(await who(setup, renewed.accessToken), { id: ID })
  t.match(await call(setup, '/oauth/revoke', { token: tokens.refreshToken! }), { status: 200 })
  t.ok(isTold())
  t.equal(await who(setup, renewed.accessToken), 'UNAUTHENTICATED')
})
