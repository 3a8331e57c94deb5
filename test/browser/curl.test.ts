// Signing in with curl alone: pages and forms as anybody can send them, with a jar for the cookie.
// Source: CONTRACT 1.11 "Pages", RFC 6749 4.1, 10.12.

import t from 'tap'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { addPerson, register } from '../harness/identities.ts'
import { startNode } from '../harness/node-process.ts'

const EMAIL = 'ada@shop.example'
const PASSWORD = 'three odd lamps hum'
const REDIRECT = 'https://shop.example/cb'

const node = await startNode(t)
const base = `http://127.0.0.1:${node.port}`
const shop = await register(node, {
  grant_types: ['authorization_code'],
  redirect_uris: [REDIRECT],
})
const id = '0190c7a0-0000-7000-8000-000000000001'
const temporary = await addPerson(node, { id, email: EMAIL, roles: ['system:owner'] })
const jar = join(t.testdir({}), 'jar')

interface Shown {
  readonly status: number
  readonly text: string
  /** Where the answer leads; empty: nowhere. */
  readonly location: string
}

async function curl(...args: string[]): Promise<Shown> {
  const more = ['--silent', '--write-out', '\n%{http_code} %header{location}']
  const { stdout } = await promisify(execFile)('curl', [...more, ...args])
  const at = stdout.lastIndexOf('\n')
  const [status, location = ''] = stdout.slice(at + 1).split(' ')
  return { status: Number(status), text: stdout.slice(0, at), location }
}

const open = (): Promise<Shown> => {
  const asked = { response_type: 'code', client_id: shop.id, redirect_uri: REDIRECT, state: 'a b' }
  const query = new URLSearchParams(asked).toString()
  return curl('--cookie-jar', jar, `${base}/oauth/authorize?${query}`)
}

/** Sends the form of a page with these fields. */
function send(page: Shown, fields: Record<string, string>, ...more: string[]): Promise<Shown> {
  const form = /name="form"\s+value="([^"]+)"/.exec(page.text)![1]!
  const data = Object.entries({ form, ...fields }).flatMap(([name, value]) => [
    ...['--data-urlencode', `${name}=${value}`],
  ])
  const cookies = more.includes('--no-cookies') ? [] : ['--cookie', jar]
  const others = more.filter((one) => one !== '--no-cookies')
  return curl(...cookies, ...others, ...data, `${base}/oauth/authorize`)
}

t.test('from the first password to a token', async (t) => {
  const signIn = await open()
  t.equal(signIn.status, 200)
  const choose = await send(signIn, { email: EMAIL, password: temporary })
  const chosen = { password: temporary, new_password: PASSWORD, again: PASSWORD }
  const consent = await send(choose, chosen)
  t.match(consent.text, /value="allow"/)
  const { status, location } = await send(consent, { decision: 'allow' })
  t.equal(status, 303)
  const to = new URL(location)
  t.equal(to.searchParams.get('state'), 'a b')
  t.equal(to.searchParams.get('iss'), base)
  const code = to.searchParams.get('code')!
  const tokens = await curl(
    ...['--user', `${shop.id}:${shop.secret}`, '--data', 'grant_type=authorization_code'],
    ...['--data-urlencode', `code=${code}`, '--data-urlencode', `redirect_uri=${REDIRECT}`],
    `${base}/oauth/token`,
  )
  t.equal(tokens.status, 200, tokens.text)
  const { access_token: token } = JSON.parse(tokens.text) as { access_token: string }
  const me = await curl('--header', `Authorization: Bearer ${token}`, `${base}/resources/me`)
  t.match(JSON.parse(me.text), { id })
})

t.test(
  'RFC 6749 10.12: a form without its cookie, or sent by another site, does nothing',
  async (t) => {
    const consent = await send(await open(), { email: EMAIL, password: PASSWORD })
    const allow = { decision: 'allow' }
    for (const more of [
      ['--no-cookies'],
      ['--no-cookies', '--cookie', `kontor-sign-in=${'A'.repeat(43)}`],
      ['--header', 'Sec-Fetch-Site: cross-site'],
      ['--header', 'Sec-Fetch-Site: same-site'],
    ]) {
      const { status, location, text } = await send(consent, allow, ...more)
      t.strictSame([status, location], [400, ''], more.join(' '))
      t.match(text, /opened in another browser/)
    }
    t.equal((await send(consent, allow)).status, 303, 'but for whom it was made')
  },
)
