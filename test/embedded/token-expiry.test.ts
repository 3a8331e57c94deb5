// Codes, tokens and sign-in pages of a real process whose clocks are moved ahead: each ends at its
// time. Source: specification "Tokens and sessions", CONTRACT 1.11.

import t from 'tap'
import { addPerson, choosePassword, register } from '../harness/identities.ts'
import { leap } from '../harness/leap.ts'
import { LEAP_VARIABLE } from '../harness/lowered-limits.ts'
import { NodeProcess } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { PlainBrowser } from '../harness/plain-browser.ts'

const LEAP_MS = 61_000
const EMAIL = 'ada@shop.example'
const PASSWORD = 'three odd lamps hum'
const REDIRECT = 'https://shop.example/cb'

t.setTimeout(120_000)

const node = new NodeProcess({
  [LEAP_VARIABLE]: String(LEAP_MS),
  KONTOR_ACCESS_TOKEN_MS: '300000',
  KONTOR_REFRESH_TOKEN_MS: '600000',
})
t.teardown(() => node.clear())
await node.start()
const shop = await register(node, {
  grant_types: ['authorization_code'],
  redirect_uris: [REDIRECT],
})
const parameters = { response_type: 'code', client_id: shop.id, redirect_uri: REDIRECT }
const address = `http://127.0.0.1:${node.port}/oauth/authorize?${new URLSearchParams(parameters).toString()}`
const id = '0190c7a0-0000-7000-8000-000000000001'
const temporary = await addPerson(node, { id, email: EMAIL, roles: ['system:owner'] })
await choosePassword(address, { email: EMAIL, temporary, password: PASSWORD })

interface Tokens {
  readonly access_token: string
  readonly refresh_token: string
}

function token(form: Record<string, string>): Promise<Answer> {
  const body = { client_id: shop.id, client_secret: shop.secret!, ...form }
  return node.form('/oauth/token', body)
}

async function newCode(): Promise<string> {
  const to = await new PlainBrowser().agree(address, EMAIL, PASSWORD)
  return to.searchParams.get('code')!
}

const byCode = (code: string): Promise<Answer> =>
  token({ grant_type: 'authorization_code', code, redirect_uri: REDIRECT })
const byRefresh = ({ refresh_token }: Tokens): Promise<Answer> =>
  token({ grant_type: 'refresh_token', refresh_token })

const isGood = async ({ access_token }: Tokens): Promise<boolean> =>
  (await node.ask('/resources/graph/meta', { token: access_token })).status === 200

t.test('each ends at its time', async (t) => {
  const tokens = (await byCode(await newCode())).json<Tokens & { expires_in: number }>()
  t.equal(tokens.expires_in, 300)
  const page = new PlainBrowser()
  await page.open(address)
  const code = await newCode()
  await leap(node, LEAP_MS)
  t.match((await byCode(code)).json(), { error: 'invalid_grant' }, 'a code after 61 s')
  t.ok(await isGood(tokens), 'an access token of 5 minutes after 61 s')
  await leap(node, LEAP_MS, 4)
  t.notOk(await isGood(tokens), 'and after 5 minutes')
  const renewed = await byRefresh(tokens)
  t.equal(renewed.status, 200, 'its refresh token of 10 minutes')
  t.ok(await isGood(renewed.json<Tokens>()))
  await leap(node, LEAP_MS, 5)
  const shown = await page.send({ email: EMAIL, password: PASSWORD })
  t.match(shown.text, /This page is too old/, 'a page after 10 minutes')
  await leap(node, LEAP_MS, 5)
  t.match((await byRefresh(renewed.json<Tokens>())).json(), { error: 'invalid_grant' })
})
