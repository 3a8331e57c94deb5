// Sign-in by an external OpenID Connect provider, over HTTP on both sides of it. Source: CONTRACT
// 1.11 "External sign-in", 1.8.

import t from 'tap'
import { CLIENT_ID, CLIENT_SECRET, FakeProvider } from '../harness/fake-provider.ts'
import { register } from '../harness/identities.ts'
import { startNode } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { PlainBrowser } from '../harness/plain-browser.ts'

t.setTimeout(280_000)

const PEOPLE = '/resources/iam/principals'
const ADA = '0190c7a0-0000-7000-8000-000000000001'
const REDIRECT = 'https://shop.example/cb'

const provider = await new FakeProvider().listen(t)
const node = await startNode(t, {
  KONTOR_BASE_URL: 'http://127.0.0.1:8080',
  KONTOR_OIDC_ISSUER: provider.issuer,
  KONTOR_OIDC_CLIENT_ID: CLIENT_ID,
  KONTOR_OIDC_CLIENT_SECRET: CLIENT_SECRET,
  KONTOR_OIDC_FIND_BY: 'email',
  KONTOR_OIDC_FIRST_SIGN_IN: 'make',
  KONTOR_OIDC_DOMAINS: 'shop.example',
  KONTOR_OIDC_ROLES: 'system:portal:full',
})
const grant_types = ['authorization_code']
const shop = await register(node, { grant_types, redirect_uris: [REDIRECT] })
const login = { issuer: provider.issuer, subject: 'u1' }

/** Where the node is, whatever it calls itself. */
const here = (url: string): string =>
  url.replace('http://127.0.0.1:8080', `http://127.0.0.1:${node.port}`)

/** What is shown after the way there and back. */
async function signIn(browser = new PlainBrowser()): Promise<PlainBrowser> {
  const asked = { response_type: 'code', client_id: shop.id, redirect_uri: REDIRECT }
  const parameters = new URLSearchParams(asked).toString()
  await browser.open(here(`http://127.0.0.1:8080/oauth/authorize?${parameters}`))
  const { location } = await browser.send({ external: 'yes' })
  if (location === null) return browser
  // Its own page leads back.
  const page = await (await fetch(location)).text()
  const back = /href="([^"]*)"/.exec(page)![1]!.replaceAll('&amp;', '&')
  await browser.open(here(back))
  return browser
}

async function tokenOf(browser: PlainBrowser): Promise<string> {
  const { location } = await browser.send({ decision: 'allow' })
  const code = location!.searchParams.get('code')!
  const client = { client_id: shop.id, client_secret: shop.secret! }
  const grant = { grant_type: 'authorization_code', code, redirect_uri: REDIRECT }
  const answer = await node.form('/oauth/token', { ...grant, ...client })
  t.equal(answer.status, 200, answer.text)
  return answer.json<{ access_token: string }>().access_token
}

const statusWith = async (token: string): Promise<number> =>
  (await node.ask('/resources/me', { token })).status

const put = (body: object): Promise<Answer> =>
  node.ask(`${PEOPLE}/${ADA}`, { method: 'PUT', body, headers: { 'If-Match': '*' } })

const properties = { name: 'Ada', email: 'ada@shop.example' }
await put({ properties, roles: ['system:portal:full'] })

t.test('found by the verified address, with a session like any other', async (t) => {
  const token = await tokenOf(await signIn())
  const me = await node.ask('/resources/me', { token })
  t.match(me.json(), { id: ADA })
  const shown = await node.ask(`${PEOPLE}/${ADA}`)
  t.match(shown.json(), { logins: [login], passwordLogin: false })
  t.match((await node.ask(`${PEOPLE}/ada@shop.example`)).json(), { id: ADA })
  const byLogin = encodeURIComponent(JSON.stringify([login.issuer, login.subject]))
  t.equal((await node.ask(`${PEOPLE}/${byLogin}`)).status, 404, 'a login is no name')
  t.equal((await put({ properties })).status, 200)
  t.match((await node.ask(`${PEOPLE}/${ADA}`)).json(), { logins: [login] }, 'it stays')
  t.equal(await statusWith(token), 200)
})

t.test('a login that is taken away ends what was signed in with it', async (t) => {
  const token = await tokenOf(await signIn())
  t.equal((await put({ properties, logins: [] })).status, 200)
  t.equal(await statusWith(token), 401)
  const taken = await put({ properties, logins: [{ issuer: 'x' }] })
  t.match(taken, { status: 400 }, 'a login has a subject')
  t.equal((await put({ properties, logins: [login] })).status, 200)
  const body = { properties: { name: 'Bo', email: 'bo@shop.example' }, logins: [login] }
  const other = await node.ask(PEOPLE, { method: 'POST', body })
  t.match(other.json(), { errors: [{ code: 'ALREADY_EXISTS' }] })
})

t.test('suspension ends it, and lets nobody in', async (t) => {
  const token = await tokenOf(await signIn())
  const suspend = (method: string): Promise<Answer> =>
    node.ask(`${PEOPLE}/${ADA}/suspend`, { method })
  await suspend('PUT')
  t.equal(await statusWith(token), 401)
  t.match((await signIn()).shown, { status: 403, text: /Your account at .* is not let in here/ })
  await suspend('DELETE')
  t.equal((await signIn()).shown?.status, 200)
})

t.test('who is not there is made, by themselves as the changes tell', async (t) => {
  provider.user = { sub: 'u9', email: 'cy@shop.example', email_verified: true, name: 'Cy' }
  const token = await tokenOf(await signIn())
  const { id } = (await node.ask('/resources/me', { token })).json<{ id: string }>()
  t.match((await node.ask(`${PEOPLE}/cy@shop.example`)).json(), {
    ...{ id, properties: { name: 'Cy' }, roles: ['system:portal:full'] },
    logins: [{ issuer: provider.issuer, subject: 'u9' }],
  })
  await node.ask(`${PEOPLE}/${id}`, { method: 'DELETE' })
  t.equal(await statusWith(token), 401)
  const again = await node.ask('/resources/me', { token: await tokenOf(await signIn()) })
  t.not(again.json<{ id: string }>().id, id, 'who was deleted is made anew')
  provider.user = { ...provider.user, sub: 'u10', email: 'eve@evil.example' }
  t.match((await signIn()).shown, { status: 403 }, 'of the domains that are settled alone')
})

t.test('a provider that is away: the page says so, and the password is asked for', async (t) => {
  provider.twists.token = () => new Response('', { status: 500 })
  const browser = await signIn()
  t.match(browser.shown, { status: 503, text: /can&#39;t be asked at the moment[^]*id="password"/ })
  t.match(Object.fromEntries(browser.shown!.headers), { 'retry-after': '5' })
})
