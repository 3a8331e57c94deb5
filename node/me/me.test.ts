// What callers see and change of themselves: on a twin of the actor system, with a clock of ours.

import t from 'tap'
import type { Test } from 'tap'
import { createHash } from 'node:crypto'
import { RequestError } from '../../protocol/errors.ts'
import type { IssuedTokens } from '../access/sessions/grants.ts'
import { SECRET, addClient, call as ask, station, token } from '../access/testing/station.ts'
import type { OperationRequest } from '../http/operation.ts'
import { meOperations } from './routes.ts'

const DAY_MS = 24 * 3_600_000
const VERIFIER = 'v'.repeat(43)
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')

interface Call {
  readonly token?: string
  readonly body?: unknown
  readonly id?: string
  readonly query?: string
  readonly headers?: Record<string, string>
}

interface Answer {
  readonly status: number
  readonly code?: string
  readonly message?: string
  readonly body: Record<string, unknown>
}

/** The principals `ada` and `bob`, and clients `app` and `cut`, which has few scopes. */
async function scene(t: Test) {
  const setup = await station(t)
  const { access, system, clock } = setup
  const entries = ['registry', 'graph', 'me'].map((resource) => ({ resource, permission: '*' }))
  system.put('role', 'shop:all', { description: '', acl: { entries } })
  for (const id of ['ada', 'bob']) {
    const properties = { name: id, email: `${id}@example.com` }
    const dates = { createdAt: '', suspendedAt: null }
    const of = { roles: ['shop:all'], accessAttributes: {}, password: null, sessionEpoch: 0 }
    system.put('principal', id, { properties, ...of, ...dates })
  }
  addClient(setup, 'app', (client) => client)
  addClient(setup, 'cut', (client) => ({
    ...client,
    properties: { ...client.properties, scopes: ['registry:read', 'me:write'] },
  }))
  const operations = meOperations({ system: system.system, access, nowMs: () => clock.nowMs })
  const call = async (what: string, of: Call): Promise<Answer> => {
    const [method, path] = what.split(' ')
    const operation = operations.find((one) => one.method === method && one.path === path)!
    const identity = await access.authenticate(`Bearer ${of.token}`)
    if (identity instanceof RequestError) return { status: identity.status, body: {} }
    const request = {
      ...{ identity, isKnown: true, body: of.body, params: { id: of.id ?? '' } },
      query: new URLSearchParams(of.query ?? ''),
      header: (name: string) => of.headers?.[name] ?? '',
      ...{ requestId: 'r', address: '192.0.2.1' },
    } as unknown as OperationRequest
    try {
      const { status, body } = await operation.handle(request)
      return { status, body: (body ?? {}) as Answer['body'] }
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
      const { code, message } = error.errors[0]!
      return { status: error.status, code, message, body: {} }
    }
  }
  const signIn = async (who: string, more: object = {}): Promise<IssuedTokens> => {
    const redirectUri = 'https://app.example/back'
    const subject = { identity: who, kind: 'principal', clientId: 'app', scope: null } as const
    const asked = { ...subject, redirectUri, challenge: CHALLENGE, ...more }
    const { clientId } = asked
    const { code } = await access.sessions.authorize(asked, { trace: 't' })
    const use = { code, clientId, redirectUri, verifier: VERIFIER, withRefresh: true }
    const tokens = await access.sessions.exchange(use, { trace: 't' })
    if ('refused' in tokens) throw new Error(tokens.reason)
    return tokens
  }
  const headers = { 'x-client-id': 'app', 'x-client-secret': SECRET }
  const makePat = (held: string, body: object = {}, more: Record<string, string> = {}) =>
    call('POST /me/pat', { token: held, body, headers: { ...headers, ...more } })
  return { ...setup, call, signIn, makePat }
}

t.test('who calls, and what this token covers', async (t) => {
  const { call, signIn, ...setup } = await scene(t)
  const { accessToken, session } = await signIn('ada', { scope: 'me:read registry/a:read' })
  const answer = await call('GET /resources/me', { token: accessToken })
  t.match(answer.body, {
    ...{ id: 'ada', type: 'principal', properties: { email: 'ada@example.com' } },
    ...{ roles: ['shop:all'], clientId: 'app', sessionId: session.sessionId },
    acl: {
      entries: [
        { resource: 'me', permission: 'read' },
        { resource: 'registry/a', permission: 'read' },
      ],
    },
  })
  t.notMatch(JSON.stringify(answer.body), /hash|password/)
  const client = await call('GET /resources/me', { token: await token(setup) })
  t.match(client.body, { id: 'bootstrap', type: 'client', acl: { entries: [{ resource: '*' }] } })
  t.notMatch(JSON.stringify(client.body), /secret|hash/i)
  const none = await signIn('ada', { scope: 'registry:read' })
  for (const one of ['GET /resources/me', 'GET /resources/me/sessions', 'GET /me/pat']) {
    t.equal((await call(one, { token: none.accessToken })).code, 'FORBIDDEN')
  }
})

t.test('a client with wider scopes than its person has: what both have is told', async (t) => {
  const { call, signIn, makePat, ...setup } = await scene(t)
  const scopes = ['graph/order:*', 'registry:*', 'me:*', 'cluster:*']
  addClient(setup, 'portal', (client) => ({
    ...client,
    properties: { ...client.properties, scopes },
  }))
  const { system } = setup
  const entries = [
    { resource: 'graph', permission: 'query' },
    { resource: 'registry/a', permission: 'read' },
  ]
  system.put('role', 'shop:all', { description: '', acl: { entries } })
  const { accessToken } = await signIn('ada', { clientId: 'portal' })
  const me = await call('GET /resources/me', { token: accessToken })
  t.same((me.body['acl'] as { entries: unknown }).entries, [
    { resource: 'graph/order', permission: 'query' },
    { resource: 'registry/a', permission: 'read' },
    { resource: 'me', permission: '*' },
  ])
  const pat = await makePat(accessToken)
  t.same(pat.body['scope'], ['graph/order:query', 'registry/a:read', 'me:*'], 'as wide as it')
  const credentials = { client_id: 'portal', client_secret: SECRET }
  const told = await ask(setup, '/oauth/introspect', { token: accessToken, ...credentials })
  t.match(told.body, { active: true, scope: 'graph/order:query registry/a:read me:*' })
})

t.test('one sees its own sessions, ends them, and knows of no others', async (t) => {
  const { call, signIn } = await scene(t)
  const all = [await signIn('ada'), await signIn('ada'), await signIn('ada')]
  const other = await signIn('bob')
  const held = all[2]!.accessToken
  const idsOf = ({ body }: Answer): string[] =>
    (body['sessions'] as { sessionId: string }[]).map(({ sessionId }) => sessionId)
  const list = (query = '') => call('GET /resources/me/sessions', { token: held, query })
  const newest = all.map(({ session }) => session.sessionId).toReversed()
  t.same(idsOf(await list()), newest)
  const first = await list('limit=2')
  t.same(idsOf(first), newest.slice(0, 2))
  t.match(first.body, { totalCount: 3, firstCursor: newest[0], lastCursor: newest[1] })
  t.same(idsOf(await list(`after=${newest[1]}`)), newest.slice(2))
  t.same(idsOf(await list(`before=${newest[2]}&limit=1`)), [newest[1]])
  t.same(idsOf(await list(`after=${newest[2]}`)), [])
  for (const query of ['limit=0', 'limit=101', 'limit=x', 'after=x', 'before=x']) {
    t.equal((await list(query)).code, 'INVALID_PARAMETERS', query)
  }
  const end = (id: string, by = held) =>
    call('DELETE /resources/me/sessions/{id}', { token: by, id })
  for (const id of [other.session.sessionId, 'x', newest[0]!.replace(/^./, '0')]) {
    t.equal((await end(id)).code, 'NOT_FOUND')
  }
  t.equal((await end(newest[2]!)).status, 204)
  t.equal((await end(newest[2]!)).code, 'NOT_FOUND')
  t.equal((await call('GET /resources/me', { token: all[0]!.accessToken })).status, 401)
  t.equal((await call('GET /resources/me', { token: other.accessToken })).status, 200)
  t.same(idsOf(await list()), newest.slice(0, 2))
  t.equal((await end(newest[0]!)).status, 204, 'its own, too')
  t.equal((await list()).status, 401)
})

t.test(
  'a personal access token: made, shown once, listed, renewed, deleted with itself',
  async (t) => {
    const { call, signIn, makePat, clock } = await scene(t)
    const { accessToken: mine } = await signIn('ada')
    const expiresAt = new Date(clock.nowMs + 30 * DAY_MS).toISOString()
    const wish = { description: 'export', scope: 'registry:read me:read', expiresAt }
    const made = await makePat(mine, wish)
    t.match(made, { status: 200, body: { ...wish, scope: ['registry:read', 'me:read'] } })
    const { accessToken: pat, keyId, ...rest } = made.body as { accessToken: string; keyId: string }
    t.match(rest, { active: true, issuedAt: new Date(clock.nowMs).toISOString() })
    const list = async (held = pat) => (await call('GET /me/pat', { token: held })).body
    t.same((await list())['pats'], [{ keyId, ...rest }], 'without the token')
    t.same((await call('GET /resources/me/sessions', { token: pat })).body['totalCount'], 1)
    t.match((await call('GET /resources/me', { token: pat })).body, { id: 'ada', sessionId: keyId })
    const renew = (id: string, ms: number, held = mine) =>
      call('POST /me/pat/{id}/renew', {
        ...{ token: held, id },
        body: { expiresAt: new Date(clock.nowMs + ms).toISOString() },
      })
    t.equal((await renew(keyId, 60 * DAY_MS, pat)).code, 'FORBIDDEN', 'its scope has no me:write')
    t.equal((await renew(keyId, 367 * DAY_MS)).code, 'INVALID_PARAMETERS')
    t.equal((await renew(keyId, 0)).code, 'INVALID_PARAMETERS')
    t.match(await renew(keyId, 60 * DAY_MS), { status: 200, body: { keyId, active: true } })
    clock.nowMs += 59 * DAY_MS
    t.equal((await list())['totalCount'], 1, 'the same token goes on')
    const { accessToken: other } = await signIn('bob')
    t.equal((await renew(keyId, DAY_MS, other)).code, 'NOT_FOUND')
    const remove = (id: string, held: string) => call('DELETE /me/pat/{id}', { token: held, id })
    t.equal((await remove(keyId, other)).code, 'NOT_FOUND')
    t.equal((await remove(keyId, pat)).status, 204, 'with itself, without me:write')
    t.equal((await call('GET /me/pat', { token: pat })).status, 401)
    const { accessToken: again } = await signIn('ada')
    t.equal((await list(again))['totalCount'], 0)
    const next = (await makePat(again)).body as { keyId: string; accessToken: string }
    t.equal((await remove(next.keyId, again)).status, 204)
    const last = (await makePat(again)).body as { keyId: string; accessToken: string }
    clock.nowMs += 365 * DAY_MS
    const { accessToken: later } = await signIn('ada')
    t.equal((await call('GET /me/pat', { token: last.accessToken })).status, 401)
    t.equal((await renew(last.keyId, DAY_MS, later)).code, 'NOT_FOUND', 'over is over')
  },
)

t.test('a personal access token is never wider than the session that makes it', async (t) => {
  const { call, signIn, makePat } = await scene(t)
  const narrow = await signIn('ada', { scope: 'registry/a:read me:*' })
  t.equal((await makePat(narrow.accessToken, { scope: 'registry:read' })).code, 'FORBIDDEN')
  t.equal((await makePat(narrow.accessToken, { scope: 'nonsense' })).code, 'INVALID_PARAMETERS')
  const byRegion = { scope: 'region@graph/order:query' }
  const all = (await signIn('ada')).accessToken
  t.equal((await makePat(all, byRegion)).code, 'INVALID_PARAMETERS', 'she has no region')
  const same = await makePat(narrow.accessToken)
  t.same(same.body['scope'], ['registry/a:read', 'me:*'])
  const scope = (await makePat(all)).body['scope'] as string[]
  t.same(new Set(scope), new Set(['registry:*', 'graph:*', 'me:*']))
  t.equal(scope.length, 3, 'of all that it has: all of it')
  // The session's client has few scopes, the one that the token is for has all.
  const cut = await signIn('ada', { clientId: 'cut' })
  t.equal((await makePat(cut.accessToken, { scope: 'graph:query' })).code, 'FORBIDDEN')
  t.same((await makePat(cut.accessToken)).body['scope'], ['registry:read', 'me:write'])
  const forCut = await makePat((await signIn('ada')).accessToken, {}, { 'x-client-id': 'cut' })
  const held = forCut.body['accessToken'] as string
  t.equal((await call('GET /resources/me', { token: held })).code, 'FORBIDDEN', 'no me:read there')
})

t.test('who may not make one', async (t) => {
  const { signIn, makePat, ...setup } = await scene(t)
  t.equal((await makePat(await token(setup))).code, 'FORBIDDEN', 'a client')
  const { accessToken } = await signIn('ada')
  const readOnly = await signIn('ada', { scope: 'me:read' })
  t.equal((await makePat(readOnly.accessToken)).code, 'FORBIDDEN')
  t.equal((await makePat(accessToken, {}, { 'x-client-secret': 'wrong' })).code, 'FORBIDDEN')
  t.equal((await makePat(accessToken, {}, { 'x-client-id': 'nobody' })).code, 'FORBIDDEN')
  t.equal((await makePat(accessToken, {}, { 'x-client-secret': '' })).code, 'INVALID_PARAMETERS')
  const late = { expiresAt: '2099-01-01T00:00:00Z' }
  t.equal((await makePat(accessToken, late)).code, 'INVALID_PARAMETERS')
  t.equal((await makePat(accessToken)).status, 200)
})

t.test('they die with their principal and with the client that they were made with', async (t) => {
  const { call, signIn, makePat, system } = await scene(t)
  const pat = (await makePat((await signIn('ada')).accessToken)).body['accessToken'] as string
  const other = (await makePat((await signIn('bob')).accessToken)).body['accessToken'] as string
  const status = async (held: string) => (await call('GET /me/pat', { token: held })).status
  t.same([await status(pat), await status(other)], [200, 200])
  const ada = system.system.get<object>('principal', 'ada')!.value
  system.put('principal', 'ada', { ...ada, sessionEpoch: 1 })
  t.same([await status(pat), await status(other)], [401, 200])
  const app = system.system.get<object>('client', 'app')!.value
  system.put('client', 'app', { ...app, suspendedAt: '2026-01-01T00:00:00Z', sessionEpoch: 1 })
  t.equal(await status(other), 401)
  system.put('client', 'app', { ...app, sessionEpoch: 1 })
  t.equal(await status(other), 401, 'and nothing revives')
})
