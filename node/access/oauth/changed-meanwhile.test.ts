// What was changed between two steps of signing in, and who may ask what of a token: with real
// people, clients and sessions behind the endpoints. Source: CONTRACT 1.8, 1.11, RFC 6749 2.3,
// RFC 7662 2.1.

import t from 'tap'
import type { Test } from 'tap'
import type { OperationRequest, OperationResponse } from '../../http/operation.ts'
import type { Client } from '../client.ts'
import type { Principal } from '../principal.ts'
import type { Identity } from '../identity.ts'
import { addClient, call, credentials, station, token, who } from '../testing/station.ts'

const ID = '0190c7a0-0000-7000-8000-000000000001'
const EMAIL = 'ada@shop.example'
const PASSWORD = 'three odd lamps hum'
const REDIRECT = 'https://shop.example/cb'
const LATER = '2026-03-01T12:00:00.000Z'

type Tokens = Record<string, string>

/** A person, an application, and a browser that is on the page for signing in. */
async function scene(t: Test) {
  const is = { ready: true }
  const setup = await station(t, { ready: () => is.ready })
  const { access, system } = setup
  const hash = await access.passwords.hash(PASSWORD)
  const person: Principal = {
    properties: { name: 'Ada', email: EMAIL },
    ...{ roles: ['system:owner'], accessAttributes: {}, sessionEpoch: 0 },
    ...{ createdAt: '2026-01-01T00:00:00.000Z', suspendedAt: null },
    password: { hash, changedAt: LATER, expiresAt: null },
  }
  const become = (change: Partial<Principal>): void =>
    system.put('principal', ID, { ...person, ...change })
  become({})
  const grantTypes = ['authorization_code'] as const
  const properties = { name: 'Shop', redirectUris: [REDIRECT], grantTypes: [...grantTypes] }
  const application = (change: Partial<Client>): void =>
    addClient(setup, 'shop', (client) => ({ ...client, properties, ...change }))
  application({})
  let cookie = ''
  let shown: OperationResponse = { status: 0 }
  const ask = async (method: string, parts: object): Promise<OperationResponse> => {
    const operation = access.operations.find((one) => {
      return one.path === '/oauth/authorize' && one.method === method
    })!
    const header = (name: string): string => (name === 'cookie' ? cookie : '')
    const of = { bodyBytes: Buffer.alloc(0), header, requestId: 'r', address: '192.0.2.1' }
    shown = await operation.handle({ ...of, ...parts } as unknown as OperationRequest)
    cookie = shown.headers?.['Set-Cookie']?.split(';')[0] ?? cookie
    return shown
  }
  const open = (): Promise<OperationResponse> => {
    const asked = { response_type: 'code', client_id: 'shop', redirect_uri: REDIRECT }
    return ask('GET', { query: new URLSearchParams(asked) })
  }
  const send = (fields: Record<string, string>): Promise<OperationResponse> => {
    const form = /name="form"\s+value="([^"]+)"/.exec(String(shown.raw))?.[1] ?? ''
    return ask('POST', { body: new URLSearchParams({ form, ...fields }) })
  }
  const signIn = (): Promise<OperationResponse> => send({ email: EMAIL, password: PASSWORD })
  const grant = async (form: Tokens): Promise<Tokens> => {
    const { client_secret } = credentials
    const answer = await call(setup, '/oauth/token', { ...form, client_id: 'shop', client_secret })
    return answer.body as Tokens
  }
  /** Agrees to what is shown, and is answered with tokens. */
  const agree = async (): Promise<Tokens> => {
    const code = new URL((await send(ALLOW)).headers!['Location']!).searchParams.get('code')!
    return grant({ grant_type: 'authorization_code', code, redirect_uri: REDIRECT })
  }
  const refresh = ({ refresh_token }: Tokens, scope = ''): Promise<Tokens> =>
    grant({ grant_type: 'refresh_token', refresh_token: refresh_token!, scope })
  await open()
  return { setup, is, become, application, open, send, signIn, agree, refresh }
}

const ALLOW = { decision: 'allow' }
const WRONG = /The e-mail address or the password is not right/

t.test('nothing changed: a code', async (t) => {
  const { signIn, send } = await scene(t)
  t.match((await signIn()).raw, /value="allow"/)
  const { status, headers } = await send(ALLOW)
  t.equal(status, 303)
  t.match(headers?.['Location'], /code=[\w-]{64}/)
})

t.test('a member that can’t know what was changed shows no page and takes no form', async (t) => {
  const { is, open, signIn } = await scene(t)
  is.ready = false
  t.match(await open(), { status: 503, raw: /<h1>Not now/ })
  is.ready = true
  await open()
  is.ready = false
  t.match(await signIn(), { status: 503, raw: /<h1>Not now/ })
})

t.test('the application is suspended or gone', async (t) => {
  for (const step of ['sign-in', 'consent']) {
    const { application, signIn, send } = await scene(t)
    if (step === 'consent') await signIn()
    application({ suspendedAt: LATER })
    const answer = await (step === 'consent' ? send(ALLOW) : signIn())
    t.match(answer, { status: 400, raw: /is not known here any more/ }, step)
  }
})

t.test('the person is suspended, by that alone', async (t) => {
  const first = await scene(t)
  first.become({ suspendedAt: LATER })
  t.match(await first.signIn(), { status: 400, raw: WRONG })
  const second = await scene(t)
  await second.signIn()
  second.become({ suspendedAt: LATER })
  t.match(await second.send(ALLOW), { status: 400, raw: /<h1>This link does not work/ })
})

t.test('the password becomes another while it is checked', async (t) => {
  const { signIn, become } = await scene(t)
  const checking = signIn()
  // So that the check is under way; what it waits for no promise brings.
  for (let i = 0; i < 100; i++) await Promise.resolve()
  become({ sessionEpoch: 1 })
  t.match(await checking, { status: 400, raw: WRONG })
})

t.test('RFC 7662 2.1: who may be told of a token', async (t) => {
  const { setup, application } = await scene(t)
  const shown = { token: await token(setup) }
  const introspect = (by: Record<string, string>) =>
    call(setup, '/oauth/introspect', { ...shown, ...by })
  t.match(await introspect(credentials), { status: 200, body: { active: true } })
  const other = { client_id: 'shop', client_secret: credentials.client_secret }
  const foreign = await introspect(other)
  t.strictSame([foreign.status, foreign.body], [200, { active: false }], 'not of another')
  const redirectUris = [REDIRECT]
  const method = { tokenEndpointAuthMethod: 'none' } as const
  const grantTypes = ['authorization_code'] as ['authorization_code']
  application({ properties: { name: 'Shop', redirectUris, grantTypes, ...method }, secrets: [] })
  const byName = await introspect({ client_id: 'shop' })
  t.match(byName, { status: 401, body: { error: 'invalid_client' } }, 'nor who shows its name')
})

t.test('RFC 6749 2.3: a client that signs shows no secret, though it may have one', async (t) => {
  const { setup, application } = await scene(t)
  const grant = { grant_type: 'client_credentials', client_id: 'shop' }
  const ask = () =>
    call(setup, '/oauth/token', { ...grant, client_secret: credentials.client_secret })
  const redirectUris: string[] = []
  const grantTypes = ['client_credentials'] as ['client_credentials']
  const properties = { name: 'Shop', redirectUris, grantTypes }
  application({ properties })
  t.match(await ask(), { status: 200 })
  application({ properties: { ...properties, tokenEndpointAuthMethod: 'private_key_jwt' } })
  t.match(await ask(), { status: 401, body: { error: 'invalid_client' } })
})

const NARROW = ['actors/order:*', 'iam/clients:write', 'me:read']
const APPLICATION = { name: 'Shop', redirectUris: [REDIRECT] }
const BY_CODE = ['authorization_code'] as ['authorization_code']

/** What a token covers of these. */
async function covered(
  { setup }: Awaited<ReturnType<typeof scene>>,
  { access_token }: Tokens,
  ...aces: [resource: string, permission: string][]
): Promise<boolean[]> {
  const { acl } = (await who(setup, access_token!)) as Identity
  return aces.map(([resource, permission]) => acl.covers(resource, permission))
}

t.test('RFC 6749 3.3: without a scope a session has what the page listed, for good', async (t) => {
  const s = await scene(t)
  const register = (scopes: string[]): void =>
    s.application({ properties: { ...APPLICATION, grantTypes: BY_CODE, scopes } })
  const role = (...entries: { resource: string; permission: string }[]): void =>
    s.setup.system.put('role', 'shop:staff', { description: '', acl: { entries } })
  const orders = { resource: 'actors/order', permission: 'create' }
  role(orders)
  s.become({ roles: ['shop:staff'] })
  register(NARROW)
  const page = String((await s.signIn()).raw)
  for (const ace of NARROW) t.ok(page.includes(`<code>${ace}</code>`), ace)
  const given = await s.agree()
  t.equal(given['scope'], 'actors/order:create me:read', 'RFC 6749 5.1: what the person has of it')

  // The application is registered for more, and the person may do more.
  register([...NARROW, 'registry:read'])
  role(
    orders,
    { resource: 'registry', permission: '*' },
    { resource: 'iam/clients', permission: '*' },
  )
  const asked = [
    ['registry', 'read'],
    ['graph/order', 'query'],
    ['iam/clients', 'write'],
  ] as [string, string][]
  t.same(await covered(s, given, ...asked), [false, false, true], 'as far as the page said')
  const later = await s.refresh(given)
  t.match(later['scope'], /^(?!.*registry).*iam\/clients:write/, 'nor by refreshing')
  t.same(await covered(s, later, ...asked), [false, false, true])
  const wider = await s.refresh(later, 'registry:read')
  t.match(wider, { error: 'invalid_scope', error_description: /agreed to/ })
  const narrower = await s.refresh(later, 'me:read')
  t.equal(narrower['scope'], 'me:read')
  // It is registered for less: that bites at once.
  register(['me:read'])
  const least = await s.refresh(narrower)
  t.equal(least['scope'], 'me:read')
  t.same(await covered(s, least, ['actors/order', 'create'], ['me', 'read']), [false, true])
})

t.test('an application without scopes: the page says that it is all, now and later', async (t) => {
  const s = await scene(t)
  s.become({ roles: [] })
  t.match((await s.signIn()).raw, /Everything that you may do yourself, now and later/)
  const given = await s.agree()
  t.equal(given['scope'], 'me:*')
  s.become({ roles: ['system:owner'] })
  t.same(await covered(s, given, ['registry', 'read']), [true])
})

t.test('one that is registered for more than a page can say names a scope', async (t) => {
  const s = await scene(t)
  const scopes = Array.from({ length: 30 }, (_, i) => `registry/${i}${'x'.repeat(600)}:read`)
  s.application({ properties: { ...APPLICATION, grantTypes: BY_CODE, scopes } })
  t.match((await s.signIn()).headers?.['Location'], /error=invalid_scope.*name%20a%20scope/)
})
