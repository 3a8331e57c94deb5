// Personal access tokens, secrets of clients, temporary passwords and codes of a real process whose
// clocks are moved ahead, while it runs and while it is away: each ends at its time, and what ends
// later is good until then. Source: CONTRACT 1.8, 1.11.

import t from 'tap'
import { addPerson, choosePassword, register } from '../harness/identities.ts'
import { leap } from '../harness/leap.ts'
import { AHEAD_VARIABLE, LEAP_VARIABLE } from '../harness/lowered-limits.ts'
import { NodeProcess } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { PlainBrowser } from '../harness/plain-browser.ts'

const HOUR_MS = 3_600_000
const LEAP_MS = 20 * HOUR_MS
const EMAIL = 'ada@shop.example'
const NEW_EMAIL = 'new@shop.example'
const PASSWORD = 'three odd lamps hum'
const REDIRECT = 'https://shop.example/cb'

t.setTimeout(240_000)

let node = new NodeProcess({ [LEAP_VARIABLE]: String(LEAP_MS) })
const { dir } = node
t.teardown(() => node.clear())
await node.start()
const shop = await register(node, {
  grant_types: ['authorization_code', 'client_credentials'],
  redirect_uris: [REDIRECT],
})

/** Ends it, and starts another on its store with clocks that are ahead by so much. */
async function restart(aheadHours: number): Promise<void> {
  await node.stop()
  node = new NodeProcess({ [AHEAD_VARIABLE]: String(aheadHours * HOUR_MS) }, dir)
  await node.start()
}

function address(): string {
  const parameters = { response_type: 'code', client_id: shop.id, redirect_uri: REDIRECT }
  const query = new URLSearchParams(parameters).toString()
  return `http://127.0.0.1:${node.port}/oauth/authorize?${query}`
}

async function newCode(): Promise<string> {
  const to = await new PlainBrowser().agree(address(), EMAIL, PASSWORD)
  return to.searchParams.get('code')!
}

function ask(form: Record<string, string>, secret = shop.secret!): Promise<Answer> {
  return node.form('/oauth/token', { client_id: shop.id, client_secret: secret, ...form })
}

const byCode = (code: string): Promise<Answer> =>
  ask({ grant_type: 'authorization_code', code, redirect_uri: REDIRECT })

const inHours = (hours: number): string => new Date(Date.now() + hours * HOUR_MS).toISOString()

interface Pat {
  readonly keyId: string
  readonly accessToken: string
}

async function makePat(token: string, expiresAt?: string): Promise<Pat> {
  const headers = { 'X-Client-Id': shop.id, 'X-Client-Secret': shop.secret! }
  const body = { description: 'export', ...(expiresAt !== undefined && { expiresAt }) }
  const answer = await node.ask('/me/pat', { token, headers, body })
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.json<Pat>()
}

const statusOf = async ({ accessToken }: Pat): Promise<number> =>
  (await node.ask('/resources/me', { token: accessToken })).status

const signsIn = async (secret: string): Promise<number> =>
  (await ask({ grant_type: 'client_credentials' }, secret)).status

/** What somebody sees who signs in with a temporary password. */
async function shown(temporary: string): Promise<string> {
  const browser = new PlainBrowser()
  await browser.open(address())
  return (await browser.send({ email: NEW_EMAIL, password: temporary })).text
}

const CHOOSE = /Choose a password/
const WRONG = /The e-mail address or the password is not right/

const id = '0190c7a0-0000-7000-8000-000000000001'
const first = await addPerson(node, { id, email: EMAIL, roles: ['system:owner'] })
await choosePassword(address(), { email: EMAIL, temporary: first, password: PASSWORD })
const tokens = (await byCode(await newCode())).json<{
  access_token: string
  refresh_token: string
}>()
const days = await makePat(tokens.access_token, inHours(30))
const year = await makePat(tokens.access_token)
const made = await node.ask(`/resources/iam/clients/${shop.id}/secrets`, {
  body: { expiresAt: inHours(30) },
})
const { clientSecret: secret } = made.json<{ clientSecret: string }>()
const newId = '0190c7a0-0000-7000-8000-000000000002'
const temporary = await addPerson(node, { id: newId, email: NEW_EMAIL, roles: [] })

t.test('while it runs', async (t) => {
  t.strictSame([await statusOf(days), await statusOf(year)], [200, 200])
  t.equal(await signsIn(secret), 200)
  t.match(await shown(temporary), CHOOSE)
  const code = await newCode()
  await leap(node, LEAP_MS)
  t.match((await byCode(code)).json(), { error: 'invalid_grant' }, 'a code')
  const { access_token: token } = tokens
  t.equal((await node.ask('/resources/me', { token })).status, 401, 'an access token of an hour')
  t.strictSame([await statusOf(days), await statusOf(year)], [200, 200], 'after 20 of 30 hours')
  t.equal(await signsIn(secret), 200)
  await leap(node, LEAP_MS)
  const over = await node.ask('/resources/me', { token: days.accessToken })
  t.strictSame([over.status, await statusOf(year)], [401, 200], 'after 40 hours')
  t.match(over.text, /has expired/)
  t.equal(over.headers['www-authenticate'], 'Bearer realm="kontor", error="invalid_token"')
  t.equal(await signsIn(secret), 401, 'also where this member has known it to be right')
  t.equal(await signsIn(shop.secret!), 200, 'another one of the client')
  t.match(await shown(temporary), CHOOSE, 'a temporary password of 72 hours')
  await leap(node, LEAP_MS, 2)
  t.match(await shown(temporary), WRONG, 'after 80')
})

t.test('and over restarts', async (t) => {
  await restart(0)
  t.strictSame([await statusOf(days), await signsIn(secret)], [200, 200], 'by the clocks alone')
  const code = await newCode()
  await restart(31)
  t.match((await byCode(code)).json(), { error: 'invalid_grant' }, 'a code')
  t.strictSame([await statusOf(days), await statusOf(year)], [401, 200], 'after 31 hours')
  t.strictSame([await signsIn(secret), await signsIn(shop.secret!)], [401, 200])
  t.match(await shown(temporary), CHOOSE)
  const path = `/me/pat/${days.keyId}/renew`
  const renewed = await node.ask(path, {
    token: year.accessToken,
    body: { expiresAt: inHours(1_000) },
  })
  t.equal(renewed.status, 404, 'nothing revives it')
  await restart(73)
  t.match(await shown(temporary), WRONG, 'after 73 hours')
  await restart(24 * 366)
  t.equal(await statusOf(year), 401, 'after a year')
  t.equal(await signsIn(shop.secret!), 200, 'one without an end')
})
