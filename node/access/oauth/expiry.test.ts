// When codes and tokens end, by a clock that the test moves. Source: specification "Tokens and
// sessions", CONTRACT 1.11.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import type { OperationResponse } from '../../http/operation.ts'
import type { Principal } from '../principal.ts'
import { addClient, call, station, who } from '../testing/station.ts'

const ID = '0190c7a0-0000-7000-8000-000000000001'
const REDIRECT = 'https://shop.example/cb'
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const shop = { client_id: 'shop', client_secret: 'correct horse' }

const ada: Principal = {
  properties: { name: 'Ada', email: 'ada@shop.example' },
  roles: ['system:owner'],
  accessAttributes: {},
  password: null,
  sessionEpoch: 0,
  createdAt: '2026-01-01T00:00:00.000Z',
  suspendedAt: null,
}

type Station = Awaited<ReturnType<typeof station>>
interface Tokens {
  readonly access_token: string
  readonly refresh_token: string
  readonly expires_in: number
}

async function setting(t: Parameters<typeof station>[0]): Promise<Station> {
  const setup = await station(t)
  setup.system.put('principal', ID, ada)
  addClient(setup, 'shop', (client) => ({
    ...client,
    properties: { ...client.properties, grantTypes: ['authorization_code'] },
  }))
  return setup
}

async function codeOf({ access }: Station): Promise<string> {
  const of = { identity: ID, kind: 'principal', clientId: 'shop', scope: null } as const
  const asked = { ...of, redirectUri: REDIRECT, challenge: null }
  return (await access.sessions.authorize(asked, { trace: 'test' })).code
}

const byCode = (setup: Station, code: string): Promise<OperationResponse> =>
  call(setup, '/oauth/token', {
    ...shop,
    grant_type: 'authorization_code',
    code,
    redirect_uri: REDIRECT,
  })

const byRefresh = (setup: Station, { refresh_token }: Tokens): Promise<OperationResponse> =>
  call(setup, '/oauth/token', { ...shop, grant_type: 'refresh_token', refresh_token })

async function tokensOf(answer: Promise<OperationResponse>): Promise<Tokens> {
  const { status, body } = await answer
  if (status !== 200) throw new Error(JSON.stringify(body))
  return body as Tokens
}

t.test('RFC 6749 4.1.2: a code is good for a minute', async (t) => {
  const setup = await setting(t)
  const [early, late] = [await codeOf(setup), await codeOf(setup)]
  t.equal(LIMITS.access.codeMs, 60_000)
  setup.clock.nowMs += 59_999
  t.equal((await byCode(setup, early)).status, 200)
  setup.clock.nowMs += 1
  t.match(await byCode(setup, late), { status: 400, body: { error: 'invalid_grant' } })
})

t.test('an access token is good for an hour, its refresh token for thirty days', async (t) => {
  const setup = await setting(t)
  const first = await tokensOf(byCode(setup, await codeOf(setup)))
  t.equal(first.expires_in, 3_600)
  setup.clock.nowMs += HOUR_MS - 1
  t.match(await who(setup, first.access_token), { id: ID, kind: 'principal' })
  setup.clock.nowMs += 1
  t.equal(await who(setup, first.access_token), 'UNAUTHENTICATED')
  setup.clock.nowMs += 30 * DAY_MS - HOUR_MS - 1
  const second = await tokensOf(byRefresh(setup, first))
  t.match(await who(setup, second.access_token), { id: ID })
  setup.clock.nowMs += 30 * DAY_MS
  t.match(await byRefresh(setup, second), { status: 400, body: { error: 'invalid_grant' } })
})

t.test('who is suspended refreshes nothing, and a new password ends what was before', async (t) => {
  const suspendedAt = '2026-03-01T12:00:00.000Z'
  for (const change of [{ suspendedAt, sessionEpoch: 1 }, { sessionEpoch: 1 }]) {
    const setup = await setting(t)
    const [code, tokens] = [await codeOf(setup), await tokensOf(byCode(setup, await codeOf(setup)))]
    setup.system.put('principal', ID, { ...ada, ...change })
    t.equal(await who(setup, tokens.access_token), 'UNAUTHENTICATED')
    t.match(await byRefresh(setup, tokens), { status: 400, body: { error: 'invalid_grant' } })
    t.match(await byCode(setup, code), { status: 400, body: { error: 'invalid_grant' } })
  }
})
