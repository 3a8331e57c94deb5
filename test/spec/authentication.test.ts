// The heading "Authentication" of the specification, over HTTP on a real node: tokens, scopes,
// revocation, what each lack of permission answers. Source: specification "Authentication",
// CONTRACT 1.11, 1.13, 1.14.

import t from 'tap'
import { done, refused } from '../harness/answers.ts'
import type { Asserting } from '../harness/answers.ts'
import { addPerson, choosePassword, register } from '../harness/identities.ts'
import { SECRET, startNode } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { apply, create, query, smallOrder } from '../harness/orders.ts'

const node = await startNode(t)
const CLIENT = { client_id: 'bootstrap', client_secret: SECRET }
const GRANT = { grant_type: 'client_credentials', ...CLIENT }

const ask = (members: Record<string, string>): Promise<Answer> => node.form('/oauth/token', members)

/** Checks a refusal in the form of RFC 6749 5.2. */
function oauthError(t: Asserting, answer: Answer, code: string, words: RegExp): void {
  const status = code === 'invalid_client' ? 401 : 400
  t.equal(answer.status, status, answer.text)
  const { error, error_description } = answer.json<Record<string, string>>()
  t.equal(error, code, answer.text)
  t.match(error_description, words)
  t.equal(answer.headers['cache-control'], 'no-store')
}

t.test('a token by client credentials', async (t) => {
  const answer = await ask(GRANT)
  t.equal(answer.status, 200)
  t.equal(answer.headers['cache-control'], 'no-store')
  const body = answer.json()
  t.match(body, { token_type: 'Bearer', expires_in: 3600, scope: String })
  t.notOk('refresh_token' in body, 'none for client credentials')
  const bytes = Buffer.from(String(body['access_token']), 'base64url')
  t.equal(bytes.length, 48, '16 bytes of session UUID and 32 of chance')
  const token = String(body['access_token'])
  done(t, await node.ask('/resources/actors/order/new', { token, body: [create()] }))
  const basic = Buffer.from(`bootstrap:${SECRET}`).toString('base64')
  const byBasic = await node.send('/oauth/token', {
    method: 'POST',
    raw: 'grant_type=client_credentials',
    headers: {
      Authorization: `Basic ${basic}`,
      'Content-Type': 'application/x-www-form-urlencoded',
    },
  })
  t.equal(byBasic.status, 200, byBasic.text)
})

t.test('token requests that are refused', async (t) => {
  const { grant_type: _, ...noGrant } = GRANT
  oauthError(t, await ask(noGrant), 'invalid_request', /grant_type is missing/)
  oauthError(
    t,
    await ask({ ...GRANT, grant_type: 'password' }),
    'unsupported_grant_type',
    /password/,
  )
  oauthError(
    t,
    await ask({ ...GRANT, client_secret: 'wrong' }),
    'invalid_client',
    /not known, or its secret/,
  )
  oauthError(
    t,
    await ask({ ...GRANT, client_id: 'nobody' }),
    'invalid_client',
    /not known, or its secret/,
  )
  oauthError(
    t,
    await ask({ grant_type: 'client_credentials' }),
    'invalid_client',
    /client_id and client_secret/,
  )
  for (const [scope, words] of [
    ['nonsense', /nonsense/],
    ['actors/order', /actors\/order/],
    ['graph/order:eat', /eat/],
    ['graph/order/018f2b3c-4d5e-7abc-8def-0123456789ab:field:x', /node id|field/],
    ['parrots:read', /parrots/],
    ['a'.repeat(2_000), /1024|characters/],
  ] as const) {
    oauthError(t, await ask({ ...GRANT, scope }), 'invalid_scope', words)
  }
  const wrong = await ask({ ...GRANT, client_secret: 'wrong' })
  t.match(wrong.headers['www-authenticate'], /^Basic/)
  const twice = await node.send('/oauth/token', {
    method: 'POST',
    raw: `${new URLSearchParams(GRANT).toString()}&client_id=bootstrap`,
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
  })
  oauthError(t, twice, 'invalid_request', /client_id is given twice/)
  const json = await node.send('/oauth/token', { body: GRANT })
  t.equal(json.status, 415)
  t.match(json.json(), { error: 'invalid_request', error_description: /x-www-form-urlencoded/ })
})

t.test('what is no token is 401, with what would be right', async (t) => {
  const path = '/resources/graph/meta'
  const bare = await node.send(path)
  refused(t, bare, 'UNAUTHENTICATED', /Authorization: Bearer <ACCESS_TOKEN>/)
  const none = 'Bearer realm="kontor"'
  t.equal(bare.headers['www-authenticate'], none, 'RFC 6750: no error where none was sent')
  const good = await node.token()
  for (const header of [
    'Bearer x',
    `Bearer ${good}x`,
    `Bearer ${good.slice(0, -1)}${good.endsWith('A') ? 'B' : 'A'}`,
    `Bearer ${Buffer.alloc(48).toString('base64url')}`,
    'Bearer',
    `Basic ${good}`,
    good,
  ]) {
    const answer = await node.send(path, { headers: { Authorization: header } })
    refused(t, answer, 'UNAUTHENTICATED', /token/)
    t.equal(answer.headers['www-authenticate'], `${none}, error="invalid_token"`, header)
  }
  const lower = await node.send(path, { headers: { Authorization: `bearer  ${good}` } })
  t.equal(lower.status, 200, 'the scheme in any case')
})

t.test('scopes narrower than the owner’s', async (t) => {
  const { orderId, orderNumber } = await smallOrder(node)
  const other = await smallOrder(node)
  const tag = apply({ type: 'addTag', key: 'a' })
  const as = async (scope: string, id: string, ...messages: unknown[]): Promise<Answer> =>
    node.ask(`/resources/actors/order/${id}`, { token: await node.token(scope), body: messages })
  const lack = /needs the ACE actors\/order:applyCommands/
  refused(t, await as('graph:*', orderId, tag), 'UNAUTHORIZED_MESSAGE', lack)
  refused(t, await as('actors/order:query', orderId, tag), 'UNAUTHORIZED_MESSAGE', lack)
  refused(t, await as('actors/payment:*', orderId, tag), 'UNAUTHORIZED_MESSAGE', lack)
  for (const scope of ['actors/order:applyCommands', 'actors/order:*', 'actors:*', '*', '*:*']) {
    done(t, await as(scope, orderId, tag))
  }
  const one = `actors/order/${orderId}:applyCommands`
  done(t, await as(one, orderId, tag))
  done(t, await as(one, orderId.toUpperCase(), tag))
  done(t, await as(one, orderNumber, tag))
  refused(t, await as(one, other.orderId, tag), 'UNAUTHORIZED_MESSAGE', lack)
  refused(t, await as(one, other.orderNumber, tag), 'UNAUTHORIZED_MESSAGE', lack)
  refused(t, await as(one, 'NOBODY', tag), 'UNAUTHORIZED_MESSAGE', lack)
  // What a query message shows takes what it takes in the graph.
  const seeing = 'actors/order:query graph/order:query graph/order:field:tags'
  const mixed = await as(seeing, orderId, tag, query('tags'))
  t.equal(mixed.status, 200)
  t.match(mixed.json(), {
    results: [{ success: false, errors: [{ code: 'UNAUTHORIZED_MESSAGE' }] }, { success: true }],
  })
  const blind = await as('actors/order:query', orderId, query('tags'))
  refused(t, blind, 'FORBIDDEN_NODE', /graph\/order:query/)
  refused(
    t,
    await as('actors/order:query', 'new', create()),
    'UNAUTHORIZED_MESSAGE',
    /order:create/,
  )
  const { tags } = done(t, await node.order(other.orderId, [query('tags')])).data as {
    tags: string[]
  }
  t.strictSame(tags, [], 'nothing was done to the other')
  const scoped = await ask({ ...GRANT, scope: 'graph:*  registry:read' })
  t.equal(scoped.json<{ scope: string }>().scope, 'graph:* registry:read')
})

t.test('a session without a scope has what the page listed, for good', async (t) => {
  const redirect_uri = 'https://shop.example/cb'
  const scope = 'actors/order:* registry/shop:read'
  const grant_types = ['authorization_code']
  const client = await register(node, { grant_types, redirect_uris: [redirect_uri], scope })
  const email = 'ada.scopes@shop.example'
  const id = '0190c7a0-0000-7000-8000-00000000005c'
  const temporary = await addPerson(node, { id, email, roles: ['system:portal:full'] })
  const asked = new URLSearchParams({ response_type: 'code', client_id: client.id, redirect_uri })
  const url = `http://127.0.0.1:${node.port}/oauth/authorize?${asked.toString()}`
  const browser = await choosePassword(url, { email, temporary, password: 'three odd lamps hum' })
  t.match(browser.shown!.text, /<code>actors\/order:\*<\/code>.*<code>registry\/shop:read<\/code>/s)
  const code = (await browser.send({ decision: 'allow' })).location!.searchParams.get('code')!
  const by = { client_id: client.id, client_secret: client.secret! }
  const given = await ask({ grant_type: 'authorization_code', code, redirect_uri, ...by })
  const first = given.json<Record<'access_token' | 'refresh_token' | 'scope', string>>()
  t.equal(first.scope, scope)

  const path = `/resources/iam/clients/${client.id}`
  const { properties } = (await node.ask(path)).json<{ properties: object }>()
  const wider = { ...properties, scopes: [...scope.split(' '), 'iam/roles:read'] }
  const headers = { 'If-Match': '*' }
  const changed = await node.ask(path, { method: 'PUT', headers, body: { properties: wider } })
  t.equal(changed.status, 200, changed.text)
  const roles = (token: string): Promise<Answer> => node.ask('/resources/iam/roles', { token })
  refused(t, await roles(first.access_token), 'FORBIDDEN', /iam\/roles:read/)
  const { refresh_token } = first
  const again = await ask({ grant_type: 'refresh_token', refresh_token, ...by })
  const second = again.json<Record<'access_token' | 'refresh_token' | 'scope', string>>()
  t.equal(second.scope, scope)
  refused(t, await roles(second.access_token), 'FORBIDDEN', /iam\/roles:read/)
  const more = { grant_type: 'refresh_token', refresh_token: second.refresh_token, ...by }
  oauthError(t, await ask({ ...more, scope: 'iam/roles:read' }), 'invalid_scope', /agreed to/)
})

t.test('revocation', async (t) => {
  const token = await node.token()
  const meta = (): Promise<Answer> => node.ask('/resources/graph/meta', { token })
  t.equal((await meta()).status, 200)
  const revoke = (members: Record<string, string>): Promise<Answer> =>
    node.form('/oauth/revoke', members)
  oauthError(t, await revoke({ hint: 'x' }), 'invalid_request', /token is missing/)
  t.equal((await revoke({ token: 'of nobody' })).status, 200, 'unknown tokens too')
  oauthError(t, await revoke({ token, ...CLIENT, client_secret: 'x' }), 'invalid_client', /secret/)
  t.equal((await meta()).status, 200, 'still good')
  const revoked = await revoke({ token, token_type_hint: 'access_token', ...CLIENT })
  t.equal(revoked.status, 200, revoked.text)
  refused(t, await meta(), 'UNAUTHENTICATED', /revoked/)
  t.equal((await revoke({ token })).status, 200, 'and again')
})

t.test('the server’s own description', async (t) => {
  const answer = await node.send('/.well-known/oauth-authorization-server')
  const { port } = node
  t.match(answer.json(), {
    issuer: `http://127.0.0.1:${port}`,
    token_endpoint: `http://127.0.0.1:${port}/oauth/token`,
    grant_types_supported: ['authorization_code', 'client_credentials', 'refresh_token'],
  })
})

t.test('tokens and revocations survive a restart', async (t) => {
  const [kept, ended] = [await node.token('graph:*'), await node.token()]
  await node.form('/oauth/revoke', { token: ended })
  await node.kill()
  await node.start()
  const meta = (token: string): Promise<Answer> => node.ask('/resources/graph/meta', { token })
  t.equal((await meta(kept)).status, 200)
  refused(t, await meta(ended), 'UNAUTHENTICATED', /not known/)
  const order = await node.ask('/resources/actors/order/new', { token: kept, body: [create()] })
  refused(t, order, 'UNAUTHORIZED_MESSAGE', /order:create/)
})

t.test('a token that has expired', async (t) => {
  const short = await startNode(t, { KONTOR_ACCESS_TOKEN_MS: '1000' })
  const token = await short.token()
  const { expires_in } = (await short.form('/oauth/token', GRANT)).json<{ expires_in: number }>()
  t.equal(expires_in, 1)
  let answer: Answer
  do answer = await short.ask('/resources/graph/meta', { token })
  while (answer.status === 200)
  refused(t, answer, 'UNAUTHENTICATED', /expired|not known/)
})
