// Access from the first start to the last token: the bootstrap secret, client credentials, scopes,
// roles, sessions, their bounds and ends. On a twin of the actor system, with a clock of ours.

import t from 'tap'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LIMITS } from '../../config/limits.ts'
import { RequestError, errorItem } from '../../protocol/errors.ts'
import type { OperationResponse } from '../http/operation.ts'
import { ActorSystemTwin } from '../testing/actor-system-twin.ts'
import { accessBehaviours } from './access.ts'
import type { Client } from './client.ts'
import type { Identity } from './identity.ts'
import { Secrets } from './secret.ts'
import {
  SECRET,
  station,
  type Body,
  call,
  credentials,
  asked,
  token,
  who,
  addClient,
} from './testing/station.ts'

t.test('a first start with a secret from the settings', async (t) => {
  const setup = await station(t)
  t.same(setup.printed, [])
  const client = setup.system.system.get<Client>('client', 'bootstrap')!.value
  t.same(client.roles, ['system:owner'])
  t.same(client.properties.grantTypes, ['client_credentials'])
  t.notMatch(JSON.stringify(client), new RegExp(SECRET))
  t.throws(() => statSync(join(setup.dir, 'data', 'bootstrap.json')), { code: 'ENOENT' })
  const answer = await call(setup, '/oauth/token', asked())
  t.equal(answer.status, 200)
  t.match(answer.headers, { 'Cache-Control': 'no-store' })
  t.match(answer.body, { token_type: 'Bearer', expires_in: 3600, scope: '*:*' })
})

t.test('a first start without one: random, written once, printed once', async (t) => {
  const setup = await station(t, { secret: null, isTerminal: true })
  const path = join(setup.dir, 'data', 'bootstrap.json')
  const content = JSON.parse(readFileSync(path, 'utf8')) as Record<string, string>
  t.equal(statSync(path).mode & 0o777, 0o600)
  t.equal(content['clientId'], 'bootstrap')
  t.equal(Buffer.from(content['clientSecret']!, 'base64url').length, 32)
  t.equal(setup.printed.length, 1)
  t.match(setup.printed[0], content['clientSecret']!)
  const own = { client_secret: content['clientSecret']! }
  t.type(await who(setup, await token(setup, undefined, own)), 'object')

  const again = await station(t, { system: setup.system, dir: setup.dir, secret: null })
  t.same(again.printed, [], 'a second start says nothing and changes nothing')
  t.equal(setup.system.system.get('client', 'bootstrap')!.version, 1)
  t.type(await who(again, await token(again, undefined, own)), 'object')
})

t.test('where no terminal is, the file is told and the secret is not', async (t) => {
  const setup = await station(t, { secret: null })
  const path = join(setup.dir, 'data', 'bootstrap.json')
  const { clientSecret } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, string>
  t.equal(setup.printed.length, 1)
  t.match(setup.printed[0], path)
  t.notMatch(setup.printed[0], clientSecret!)
})

t.test('a first start that broke off after the file goes on with its secret', async (t) => {
  const setup = await station(t, { secret: null })
  const path = join(setup.dir, 'data', 'bootstrap.json')
  const before = readFileSync(path, 'utf8')
  const fresh = new ActorSystemTwin(accessBehaviours())
  await station(t, { system: fresh, dir: setup.dir, secret: null })
  t.equal(readFileSync(path, 'utf8'), before)
  writeFileSync(path, '{"clientSe')
  const torn = new ActorSystemTwin(accessBehaviours())
  const mended = await station(t, { system: torn, dir: setup.dir, secret: null })
  const content = JSON.parse(readFileSync(path, 'utf8')) as Record<string, string>
  const own = { client_secret: content['clientSecret']! }
  t.type(await who(mended, await token(mended, undefined, own)), 'object')
})

t.test('a later start with another secret replaces the bootstrap secret', async (t) => {
  const setup = await station(t)
  const old = await token(setup)
  const again = await station(t, { system: setup.system, secret: 'another' })
  t.equal(again.printed.length, 1)
  t.notMatch(again.printed[0], /another"|: another/)
  t.equal((await call(again, '/oauth/token', asked())).status, 401)
  t.type(await who(again, await token(again, undefined, { client_secret: 'another' })), 'object')
  t.type(await who(again, old), 'object', 'tokens that are out stay good over a restart')
  const third = await station(t, { system: setup.system, secret: 'another' })
  t.same(third.printed, [])
  t.equal(setup.system.system.get('client', 'bootstrap')!.version, 2)
})

t.test('credentials: in the form, by Basic, wrong, missing, twice', async (t) => {
  const setup = await station(t)
  const basic = (text: string): Body => ({
    authorization: `Basic ${Buffer.from(text).toString('base64')}`,
  })
  const grant = { grant_type: 'client_credentials' }
  const status = async (form: Body, headers: Body = {}): Promise<number> =>
    (await call(setup, '/oauth/token', form, headers)).status
  t.equal(await status({ ...grant, ...credentials }), 200)
  t.equal(await status(grant, basic('bootstrap:correct%20horse')), 200)
  t.equal(await status(grant, basic('bootstrap:correct+horse')), 200)
  t.equal(await status(grant, basic(`bootstrap:${SECRET}`)), 200)
  t.equal(await status({ ...grant, client_id: 'bootstrap' }, basic(`bootstrap:${SECRET}`)), 200)

  const wrong = await call(setup, '/oauth/token', { ...asked(), client_secret: 'wrong' })
  t.equal(wrong.status, 401)
  t.match(wrong.body, { error: 'invalid_client' })
  t.match(wrong.headers, { 'WWW-Authenticate': /^Basic /, 'Cache-Control': 'no-store' })
  t.equal(await status({ ...asked(), client_id: 'nobody' }), 401)
  t.equal(await status(grant), 401)
  t.equal(await status(grant, basic('bootstrap')), 401)
  t.equal(
    await status({ ...asked(), client_secret: 'x'.repeat(LIMITS.access.secretCharsMax + 1) }),
    401,
  )
  for (const [form, headers] of [
    [asked(), basic(`bootstrap:${SECRET}`)],
    [{ ...grant, client_id: 'other' }, basic(`bootstrap:${SECRET}`)],
    [{ ...grant, client_secret: SECRET }, {}],
    [credentials, {}],
  ] as const) {
    const answer = await call(setup, '/oauth/token', form, headers)
    t.equal(answer.status, 400)
    t.match(answer.body, { error: 'invalid_request' })
  }
  for (const authorization of [
    'Basic',
    'basic a b',
    'Basic eDp5, Basic eDp5',
    'Basic ä',
    'Basic ==',
  ]) {
    const answer = await call(setup, '/oauth/revoke', { token: 'x' }, { authorization })
    t.match(answer, { status: 401, body: { error: 'invalid_client' } }, authorization)
  }
  t.equal((await call(setup, '/oauth/revoke', { token: 'x' })).status, 200)
  const twice = new URLSearchParams({ ...asked() })
  twice.append('scope', 'a')
  twice.append('scope', 'b')
  t.match((await call(setup, '/oauth/token', twice)).body, { error: 'invalid_request' })
})

t.test('grants and suspension', async (t) => {
  const setup = await station(t)
  const form = { ...asked(), grant_type: 'password' }
  t.match((await call(setup, '/oauth/token', form)).body, { error: 'unsupported_grant_type' })
  const properties = { name: 'x', redirectUris: [], grantTypes: [] }
  addClient(setup, 'web', (client) => ({ ...client, properties }))
  const web = { ...asked(), client_id: 'web' }
  t.match((await call(setup, '/oauth/token', web)).body, { error: 'unauthorized_client' })
  addClient(setup, 'shut', (client) => ({ ...client, suspendedAt: '2026-01-01T00:00:00.000Z' }))
  const shut = { ...asked(), client_id: 'shut' }
  t.match((await call(setup, '/oauth/token', shut)).body, { error: 'invalid_client' })
})

t.test('a secret ends at its own time', async (t) => {
  const setup = await station(t)
  addClient(setup, 'web', (client) => ({
    ...client,
    secrets: client.secrets.map((one) => ({ ...one, expiresAt: '2026-03-01T12:00:01.000Z' })),
  }))
  const web = { ...asked(), client_id: 'web' }
  t.equal((await call(setup, '/oauth/token', web)).status, 200)
  setup.clock.nowMs += 1_000
  t.equal((await call(setup, '/oauth/token', web)).status, 401)
})

t.test('scopes: cut to what is asked, refused when wider or unreadable', async (t) => {
  const setup = await station(t)
  const narrow = (await who(setup, await token(setup, 'registry:read graph:*'))) as Identity
  t.ok(narrow.acl.covers('registry/x', 'read'))
  t.notOk(narrow.acl.covers('registry/x', 'write'))
  t.notOk(narrow.acl.everything)
  t.ok(((await who(setup, await token(setup, '*:*'))) as Identity).acl.everything)
  t.ok(((await who(setup, await token(setup, '*'))) as Identity).acl.everything)
  t.ok(((await who(setup, await token(setup, ''))) as Identity).acl.everything)
  const bad = await call(setup, '/oauth/token', asked('nonsense'))
  t.equal(bad.status, 400)
  t.match(bad.body, { error: 'invalid_scope' })
  t.notMatch((bad.body as Body)['error_description'], /["\\]/)

  const entries = [{ resource: 'actors/order', permission: '*' }]
  setup.system.put('role', 'shop:sales', { description: '', acl: { entries } })
  addClient(setup, 'shop', (client) => ({ ...client, roles: ['shop:sales', 'gone:role'] }))
  const shop = { client_id: 'shop' }
  const wider = await call(setup, '/oauth/token', { ...asked('*:*'), ...shop })
  t.match(wider.body, { error: 'invalid_scope' })
  const all = await call(setup, '/oauth/token', { ...asked(), ...shop })
  t.match(all.body, { scope: 'actors/order:*' })
  const some = (await who(setup, await token(setup, 'actors/order:create', shop))) as Identity
  t.ok(some.acl.covers('actors/order', 'create'))
  t.notOk(some.acl.covers('actors/order', 'delete'))

  const properties = {
    name: 'x',
    redirectUris: [],
    grantTypes: ['client_credentials' as const],
    scopes: ['registry:read'],
  }
  addClient(setup, 'cut', (client) => ({ ...client, properties, roles: ['system:owner'] }))
  const cut = { client_id: 'cut' }
  t.equal((await call(setup, '/oauth/token', { ...asked('*'), ...cut })).status, 400)
  t.notOk(((await who(setup, await token(setup, undefined, cut))) as Identity).acl.everything)
})

t.test('what a role grants changes for tokens that are out', async (t) => {
  const setup = await station(t)
  const role = (permission: string): void =>
    setup.system.put('role', 'shop:sales', {
      description: '',
      acl: { entries: [{ resource: 'registry', permission }] },
    })
  role('read')
  addClient(setup, 'shop', (client) => ({ ...client, roles: ['shop:sales'] }))
  const held = await token(setup, 'registry:read', { client_id: 'shop' })
  t.ok(((await who(setup, held)) as Identity).acl.covers('registry', 'read'))
  role('write')
  t.notOk(((await who(setup, held)) as Identity).acl.covers('registry', 'read'))
  addClient(setup, 'shop', (client) => ({ ...client, suspendedAt: '2026-03-01T12:00:00.000Z' }))
  t.equal(await who(setup, held), 'UNAUTHENTICATED')
})

t.test('tokens: form, hash, life, restart', async (t) => {
  const setup = await station(t)
  const held = await token(setup)
  const bytes = Buffer.from(held, 'base64url')
  t.equal(bytes.length, 48)
  const { sessionId } = (await who(setup, held)) as Identity
  t.equal(sessionId.replaceAll('-', ''), bytes.subarray(0, 16).toString('hex'))
  t.equal(sessionId[14], '4')
  const read = { type: 'auth-session', id: sessionId, messages: [{ type: 'read', body: {} }] }
  const kept = await setup.system.ask({ ...setup.system.asked[0]!, ...read })
  t.match(kept, { results: [{ success: true, data: { session: { status: 'open' } } }] })
  t.notMatch(JSON.stringify(kept), held)
  t.equal(await who(setup, held), await who(setup, held), 'the second time out of the cache')

  const restarted = await station(t, { system: setup.system })
  t.match(await who(restarted, held), { id: 'bootstrap', kind: 'client', sessionId })
  for (const late of [setup, restarted]) {
    late.clock.nowMs += 60 * 60_000 - 1
    t.type(await who(late, held), 'object')
    late.clock.nowMs += 1
    t.equal(await who(late, held), 'UNAUTHENTICATED', 'expired to the millisecond')
    t.equal(await who(late, held), 'UNAUTHENTICATED')
  }
})

t.test('what is no token of ours is 401, whatever it is', async (t) => {
  const setup = await station(t)
  const held = await token(setup)
  const last = held.endsWith('A') ? 'B' : 'A'
  for (const header of [
    '',
    'Bearer',
    'Bearer ',
    `Basic ${held}`,
    `Bearer ${held}x`,
    `Bearer ${held.slice(0, -1)}${last}`,
    `Bearer ${'A'.repeat(64)}`,
    `Bearer ${'!'.repeat(64)}`,
    `Bearer ${held} ${held}`,
  ]) {
    const answer = await setup.access.authenticate(header)
    t.ok(answer instanceof RequestError && answer.status === 401, header.slice(0, 20))
  }
  t.notOk((await setup.access.authenticate(`bearer  ${held}`)) instanceof RequestError)
})

t.test('revocation', async (t) => {
  const setup = await station(t)
  const revoke = (form: Body): Promise<OperationResponse> => call(setup, '/oauth/revoke', form)
  const held = await token(setup)
  const other = await token(setup)
  t.type(await who(setup, held), 'object')
  t.equal((await revoke({ token: held, token_type_hint: 'access_token' })).status, 200)
  t.equal(await who(setup, held), 'UNAUTHENTICATED')
  t.type(await who(setup, other), 'object')
  t.equal((await revoke({ token: held })).status, 200)
  t.equal((await revoke({ token: 'unknown' })).status, 200)
  t.match((await revoke({})).body, { error: 'invalid_request' })
  t.equal((await revoke({ token: other, ...credentials, client_secret: 'no' })).status, 401)
  t.type(await who(setup, other), 'object')
  addClient(setup, 'web', (client) => client)
  t.equal((await revoke({ token: other, ...credentials, client_id: 'web' })).status, 400)
  t.type(await who(setup, other), 'object')
  t.equal((await revoke({ token: other, ...credentials })).status, 200)
  t.equal(await who(setup, other), 'UNAUTHENTICATED')
  const sessionOnly = Buffer.alloc(48)
  const third = await token(setup)
  Buffer.from(third, 'base64url').copy(sessionOnly, 0, 0, 16)
  await revoke({ token: sessionOnly.toString('base64url') })
  t.type(await who(setup, third), 'object', 'the session id alone ends nothing')
})

t.test('revocations leave the maps once nobody can go by what they end', async (t) => {
  const setup = await station(t)
  const revoked = () => setup.system.system.size('revocation')
  for (let i = 0; i < 20; i++) await call(setup, '/oauth/revoke', { token: await token(setup) })
  t.equal(revoked(), 20)
  const tick = async (ms: number): Promise<void> => {
    setup.clock.nowMs += ms
    for (const timer of setup.clock.timers.splice(0)) timer.run()
    for (let i = 0; i < 100; i++) await new Promise((done) => setImmediate(done))
  }
  await tick(LIMITS.access.revocationKeptMs - 1)
  t.equal(revoked(), 20)
  await tick(1)
  t.equal(revoked(), 0)
  t.equal(setup.clock.timers.length, 1, 'and it goes on')
})

t.test('an engine that is away is temporarily_unavailable', async (t) => {
  const setup = await station(t)
  for (const [outcome, code] of [
    ['refused', 'UNAVAILABLE'],
    ['refused', 'STORAGE_FULL'],
    ['unknown', 'OUTCOME_UNKNOWN'],
  ] as const) {
    setup.system.before = () => ({ outcome, error: errorItem(code, 'away') })
    const answer = await call(setup, '/oauth/token', asked())
    t.ok(answer.status === 503 || answer.status === 507)
    t.match(answer.body, { error: 'temporarily_unavailable' })
    t.match(answer.headers, { 'Retry-After': '1' })
  }
})

t.test('wrong secrets are slowed, by client and address, and right ones are not', async (t) => {
  const setup = await station(t)
  const hash = new Secrets((bytes) => void bytes.fill(1)).hashMade('right')
  addClient(setup, 'shop', (client) => ({ ...client, secrets: [{ ...client.secrets[0]!, hash }] }))
  const right = { ...asked(), client_id: 'shop', client_secret: 'right' }
  const guess = (i: number, form: Body = {}, headers: Body = {}) =>
    call(setup, '/oauth/token', { ...right, client_secret: `guess ${i}`, ...form }, headers)
  const first = Array.from({ length: LIMITS.access.signInWrongMax }, (_, i) => guess(i))
  t.strictSame(new Set((await Promise.all(first)).map(({ status }) => status)), new Set([401]))
  const slowed = await guess(99)
  t.equal(slowed.status, 429)
  t.match(slowed.headers, { 'Retry-After': '1', 'Cache-Control': 'no-store' })
  t.match(slowed.body, { error: 'temporarily_unavailable', error_description: /not looked at/ })
  t.equal((await guess(99, { client_id: 'nobody' })).status, 401, 'another client')
  t.equal((await guess(99, {}, { address: '192.0.2.2' })).status, 401, 'another address')
  t.equal((await call(setup, '/oauth/token', right)).status, 429, 'a right one that is not known')
  t.equal((await call(setup, '/oauth/token', right, { address: '192.0.2.2' })).status, 200)
  t.equal((await call(setup, '/oauth/token', right)).status, 200, 'from then on it is')
  t.equal((await call(setup, '/oauth/token', asked())).status, 200, 'another client')
  const revoke = { token: 'x', client_id: 'shop', client_secret: 'guess' }
  t.equal((await call(setup, '/oauth/revoke', revoke)).status, 429, 'no way round it')
  setup.clock.nowMs += LIMITS.access.signInWaitMs
  t.equal((await guess(100)).status, 401)
})

t.test('discovery', async (t) => {
  const setup = await station(t)
  const answer = await call(setup, '/.well-known/oauth-authorization-server')
  t.match(answer.body, {
    issuer: 'http://127.0.0.1:8080',
    token_endpoint: 'http://127.0.0.1:8080/oauth/token',
    authorization_endpoint: 'http://127.0.0.1:8080/oauth/authorize',
    grant_types_supported: ['authorization_code', 'client_credentials', 'refresh_token'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
  })
})

t.test('an attribute entry is refused to who has no such attribute', async (t) => {
  const setup = await station(t)
  for (const scope of ['customerNumber@graph/order:query', 'graph:query region@graph:query']) {
    const answer = await call(setup, '/oauth/token', asked(scope))
    t.equal(answer.status, 400)
    t.match(answer.body, { error: 'invalid_scope', error_description: /no such attribute/ })
  }
})
