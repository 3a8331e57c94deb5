// What attackers try on the OAuth endpoints of a real node, attack by attack, with the section that
// names it. Source: RFC 9700, RFC 6749 10, CONTRACT 1.11.

import t from 'tap'
import { createHash } from 'node:crypto'
import { addPerson, choosePassword, register } from '../harness/identities.ts'
import { startNode } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { PlainBrowser } from '../harness/plain-browser.ts'
import type { Shown } from '../harness/plain-browser.ts'

const EMAIL = 'ada@shop.example'
const PASSWORD = 'three odd lamps hum'
const REDIRECT = 'https://shop.example/cb'
const LOOPBACK = 'http://127.0.0.1/cb'
const VERIFIER = 'a-verifier-of-enough-characters-for-the-rfc-7636'
const ORIGIN = 'http://127.0.0.1'

t.setTimeout(280_000)

// Its log says all that it can.
const node = await startNode(t, { KONTOR_LOG_LEVEL: 'trace' })
const base = `${ORIGIN}:${node.port}`
const grant_types = ['authorization_code', 'refresh_token']
const shop = await register(node, { grant_types, redirect_uris: [REDIRECT] })
const other = await register(node, { grant_types, redirect_uris: [REDIRECT] })
const app = await register(node, {
  grant_types,
  redirect_uris: [LOOPBACK],
  token_endpoint_auth_method: 'none',
})
const id = '0190c7a0-0000-7000-8000-000000000001'
const temporary = await addPerson(node, { id, email: EMAIL, roles: ['system:owner'] })
const eve = { id: '0190c7a0-0000-7000-8000-000000000002', email: 'eve@shop.example', roles: [] }
await addPerson(node, eve)
await choosePassword(addressOf({ client_id: shop.id, redirect_uri: REDIRECT }), {
  email: EMAIL,
  temporary,
  password: PASSWORD,
})

type Fields = Record<string, string>

function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}

function addressOf(parameters: Fields): string {
  const all = new URLSearchParams({ response_type: 'code', ...parameters })
  return `${base}/oauth/authorize?${all.toString()}`
}

async function codeFor(parameters: Fields): Promise<string> {
  const to = await new PlainBrowser().agree(addressOf(parameters), EMAIL, PASSWORD)
  const code = to.searchParams.get('code')
  if (code === null) throw new Error(`no code: ${to.href}`)
  return code
}

function post(path: string, form: Fields | string): Promise<Answer> {
  const raw = typeof form === 'string' ? form : new URLSearchParams(form).toString()
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
  return node.send(path, { method: 'POST', raw, headers })
}

const token = (form: Fields): Promise<Answer> => post('/oauth/token', form)
const secretOf = ({ id, secret }: typeof shop): Fields => ({
  client_id: id,
  ...(secret !== null && { client_secret: secret }),
})
const byCode = (code: string, more: Fields = {}): Fields => ({
  grant_type: 'authorization_code',
  code,
  redirect_uri: REDIRECT,
  ...secretOf(shop),
  ...more,
})
const byRefresh = (refresh_token: string, client = shop): Fields => ({
  grant_type: 'refresh_token',
  refresh_token,
  ...secretOf(client),
})

interface Tokens {
  readonly access_token: string
  readonly refresh_token: string
}

async function tokensOf(answer: Promise<Answer>): Promise<Tokens> {
  const { status, text } = await answer
  if (status !== 200) throw new Error(text)
  return JSON.parse(text) as Tokens
}

async function isGood({ access_token }: Tokens): Promise<boolean> {
  return (await node.ask('/resources/graph/meta', { token: access_token })).status === 200
}

const errorOf = async (answer: Promise<Answer>): Promise<string> =>
  `${(await answer).status} ${(await answer).json<{ error?: string }>().error ?? 'none'}`

const plain = { client_id: shop.id, redirect_uri: REDIRECT }
const pkce = { code_challenge: challengeOf(VERIFIER), code_challenge_method: 'S256' }

t.test('RFC 6749 4.1.2, RFC 9700 4.5: a replayed code ends what was made with it', async (t) => {
  const code = await codeFor(plain)
  const tokens = await tokensOf(token(byCode(code)))
  t.ok(await isGood(tokens))
  t.equal(await errorOf(token(byCode(code))), '400 invalid_grant')
  t.notOk(await isGood(tokens), 'the access token')
  t.equal(await errorOf(token(byRefresh(tokens.refresh_token))), '400 invalid_grant')
})

t.test('RFC 6749 10.5: of two who bring a code at once one gets tokens at most', async (t) => {
  const code = await codeFor(plain)
  const answers = await Promise.all(Array.from({ length: 8 }, () => token(byCode(code))))
  t.ok(answers.filter(({ status }) => status === 200).length <= 1)
})

t.test('RFC 6749 4.1.3, RFC 9700 4.5: a code in the hands of another client', async (t) => {
  const code = await codeFor(plain)
  t.equal(await errorOf(token(byCode(code, secretOf(other)))), '400 invalid_grant')
  const second = await codeFor(plain)
  const byApp = { ...byCode(second, { client_id: app.id }), client_secret: '' }
  t.equal(await errorOf(token(byApp)), '400 invalid_grant')
})

t.test('RFC 6749 4.1.3: a code with another redirect, or with none', async (t) => {
  const elsewhere = { redirect_uri: 'https://evil.example/cb' }
  t.equal(await errorOf(token(byCode(await codeFor(plain), elsewhere))), '400 invalid_grant')
  const { redirect_uri: _, ...without } = byCode(await codeFor(plain))
  t.equal(await errorOf(token(without)), '400 invalid_grant')
})

t.test('RFC 9700 4.14.2: a stolen refresh token ends the session of both', async (t) => {
  const first = await tokensOf(token(byCode(await codeFor(plain))))
  const second = await tokensOf(token(byRefresh(first.refresh_token)))
  t.ok(await isGood(second))
  t.equal(await errorOf(token(byRefresh(first.refresh_token))), '400 invalid_grant', 'the thief')
  t.notOk(await isGood(second), 'and whoever had it before')
  t.equal(await errorOf(token(byRefresh(second.refresh_token))), '400 invalid_grant')
})

t.test('RFC 6749 10.4: a refresh token in the hands of another client', async (t) => {
  const tokens = await tokensOf(token(byCode(await codeFor(plain))))
  t.equal(await errorOf(token(byRefresh(tokens.refresh_token, other))), '400 invalid_grant')
  const asAccess = await node.ask('/resources/graph/meta', { token: tokens.refresh_token })
  t.equal(asAccess.status, 401, 'it is no access token')
  t.equal(await errorOf(token(byRefresh(tokens.access_token))), '400 invalid_grant')
})

t.test('RFC 6749 6: a refreshed scope is never wider', async (t) => {
  const tokens = await tokensOf(token(byCode(await codeFor({ ...plain, scope: 'graph:query' }))))
  const wider = { ...byRefresh(tokens.refresh_token), scope: 'graph:query registry:write' }
  t.equal(await errorOf(token(wider)), '400 invalid_scope')
  const narrower = { ...byRefresh(tokens.refresh_token), scope: 'graph/order:query' }
  const answer = await token(narrower)
  t.match(answer.json(), { scope: 'graph/order:query' })
})

t.test('RFC 6749 10.15, RFC 9700 4.1: no redirect leads where nobody registered', async (t) => {
  for (const redirect_uri of [
    'https://evil.example/cb',
    `${REDIRECT}/../evil`,
    `${REDIRECT}?x=1`,
    `${REDIRECT}#x`,
    'https://shop.example@evil.example/cb',
    'https://shop.example%2eevil.example/cb',
    'javascript:alert(1)',
    '//evil.example/cb',
    `${REDIRECT}\r\nLocation: https://evil.example`,
  ]) {
    for (const more of [{}, { response_type: 'token' }, { scope: 'nonsense' }]) {
      const shown = await new PlainBrowser().open(addressOf({ ...plain, redirect_uri, ...more }))
      t.equal(shown.status, 400, redirect_uri)
      t.equal(shown.location, null, redirect_uri)
    }
  }
  const unknown = await new PlainBrowser().open(addressOf({ ...plain, client_id: 'nobody' }))
  t.match(unknown, { status: 400, location: null })
})

t.test('RFC 8252 7.3: an application on a computer has any port of its loopback', async (t) => {
  const redirect_uri = 'http://127.0.0.1:49321/cb'
  const code = await codeFor({ client_id: app.id, redirect_uri, ...pkce })
  const more = { client_id: app.id, client_secret: '', redirect_uri, code_verifier: VERIFIER }
  t.ok(await isGood(await tokensOf(token(byCode(code, more)))))
})

t.test('RFC 9207 2.4, RFC 9700 4.4: a mix-up is seen by the issuer in each answer', async (t) => {
  const to = await new PlainBrowser().agree(addressOf(plain), EMAIL, PASSWORD)
  const { issuer, ...metadata } = (
    await node.send('/.well-known/oauth-authorization-server')
  ).json()
  t.equal(metadata['authorization_response_iss_parameter_supported'], true)
  t.equal(to.searchParams.get('iss'), issuer)
  const wrong = await new PlainBrowser().open(addressOf({ ...plain, response_type: 'token' }))
  t.equal(wrong.location?.searchParams.get('iss'), issuer)
})

t.test('RFC 9700 2.1.1, 4.8: no way down from a challenge of S256', async (t) => {
  for (const code_challenge_method of ['plain', '', 'S512']) {
    const asked = { ...plain, code_challenge: VERIFIER, code_challenge_method }
    const shown = await new PlainBrowser().open(addressOf(asked))
    t.equal(shown.location?.searchParams.get('error'), 'invalid_request', code_challenge_method)
  }
  const code = await codeFor({ ...plain, ...pkce })
  t.equal(await errorOf(token(byCode(code))), '400 invalid_grant', 'without its verifier')
  const wrong = byCode(await codeFor({ ...plain, ...pkce }), { code_verifier: `${VERIFIER}x` })
  t.equal(await errorOf(token(wrong)), '400 invalid_grant', 'another verifier')
  const asChallenge = { code_verifier: challengeOf(VERIFIER) }
  const itself = byCode(await codeFor({ ...plain, ...pkce }), asChallenge)
  t.equal(await errorOf(token(itself)), '400 invalid_grant', 'the challenge as its own verifier')
  const without = byCode(await codeFor(plain), { code_verifier: VERIFIER })
  t.equal(await errorOf(token(without)), '400 invalid_grant', 'the challenge was taken out')
})

t.test('RFC 7636 4.4.1: an application without secret needs a challenge', async (t) => {
  const asked = addressOf({ client_id: app.id, redirect_uri: LOOPBACK })
  const shown = await new PlainBrowser().open(asked)
  t.equal(shown.location?.searchParams.get('error'), 'invalid_request')
})

t.test('RFC 7636 4.1: a verifier has 43 to 128 characters of a few', async (t) => {
  for (const verifier of ['x'.repeat(42), 'x'.repeat(129), `${'x'.repeat(42)} `, 'é'.repeat(50)]) {
    const asked = { ...plain, ...pkce, code_challenge: challengeOf(verifier) }
    const answer = token(byCode(await codeFor(asked), { code_verifier: verifier }))
    t.equal(await errorOf(answer), '400 invalid_request', verifier)
  }
})

t.test('RFC 7009 2.1: nobody revokes the token of another client', async (t) => {
  const tokens = await tokensOf(token(byCode(await codeFor(plain))))
  const ended = (form: Fields): Promise<Answer> => post('/oauth/revoke', form)
  const foreign = { token: tokens.refresh_token, ...secretOf(other) }
  t.equal(await errorOf(ended(foreign)), '400 unauthorized_client')
  t.ok(await isGood(tokens))
  t.equal((await ended({ token: 'nonsense', ...secretOf(other) })).status, 200, 'RFC 7009 2.2')
  const own = { token: tokens.refresh_token, token_type_hint: 'access_token', ...secretOf(shop) }
  t.equal((await ended(own)).status, 200, 'RFC 7009 2.1: a wrong hint is no hindrance')
  t.notOk(await isGood(tokens), 'the access token goes with it')
})

t.test(
  'RFC 6749 2.3, 3.2, 5.2: credentials twice, parameters twice, grants not registered',
  async (t) => {
    const twice = `${new URLSearchParams(byCode('x')).toString()}&code=y`
    t.equal(await errorOf(post('/oauth/token', twice)), '400 invalid_request')
    const basic = Buffer.from(`${shop.id}:${shop.secret}`).toString('base64')
    const answer = node.send('/oauth/token', {
      method: 'POST',
      raw: new URLSearchParams(byCode('x')).toString(),
      headers: {
        'Content-Type': 'application/x-www-form-urlencoded',
        Authorization: `Basic ${basic}`,
      },
    })
    t.equal(await errorOf(answer), '400 invalid_request')
    const grant = { grant_type: 'client_credentials', ...secretOf(shop) }
    t.equal(await errorOf(token(grant)), '400 unauthorized_client')
    t.equal(
      await errorOf(token({ ...grant, grant_type: 'password' })),
      '400 unsupported_grant_type',
    )
    const wrong = { ...byCode('x'), client_secret: 'wrong' }
    t.equal(await errorOf(token(wrong)), '401 invalid_client')
    t.match((await token(wrong)).headers, {
      'www-authenticate': /^Basic /,
      'cache-control': 'no-store',
    })
    const named = { ...byCode('x'), client_secret: '' }
    t.equal(await errorOf(token(named)), '401 invalid_client', 'its name alone')
  },
)

t.test(
  'RFC 6749 3.1, RFC 9700 4.16: odd and oversized input gets an answer, never a fault',
  async (t) => {
    const long = 'x'.repeat(60_000)
    const forms: string[] = [
      '',
      '&&&===',
      'grant_type',
      `grant_type=${long}`,
      `grant_type=authorization_code&code=${long}&client_id=${shop.id}`,
      'grant_type=authorization_code&code=%00%ff&client_id=%00',
      `grant_type=refresh_token&refresh_token=${'A'.repeat(64)}&client_id=${app.id}`,
      `client_assertion=${long}&client_assertion_type=x&grant_type=client_credentials`,
      'grant_type=client_credentials&client_id=__proto__&client_secret=constructor',
      new URLSearchParams({ ...byCode('😀'.repeat(500)) }).toString(),
    ]
    for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/introspect', '/oauth/authorize']) {
      for (const form of forms) {
        const { status } = await post(path, form)
        t.ok(status >= 200 && status < 500, `${path} ${form.slice(0, 60)}: ${status}`)
      }
    }
    const most = await new PlainBrowser().open(addressOf({ ...plain, state: 'x'.repeat(4_096) }))
    t.equal(most.status, 200)
    const more = await new PlainBrowser().open(addressOf({ ...plain, state: 'x'.repeat(4_097) }))
    t.equal(more.location?.searchParams.get('error'), 'invalid_request')
    t.equal((await post('/oauth/authorize', 'x'.repeat(70_000))).status, 413)
    t.equal((await node.send('/health/ready')).status, 200)
    t.notMatch(node.output, /a fault of this node/)
  },
)

t.test('RFC 6819 5.1.4.2: who guesses passwords waits, others do not', async (t) => {
  const guess = async (email: string): Promise<Shown> => {
    const browser = new PlainBrowser()
    await browser.open(addressOf(plain))
    return browser.send({ email, password: 'a guess' })
  }
  const told: string[] = []
  for (const email of ['eve@shop.example', 'nobody@shop.example']) {
    for (let i = 0; i < 10; i++) t.equal((await guess(email)).status, 400, `${email} ${i}`)
    const { status, headers, text } = await guess(email)
    t.equal(status, 429, email)
    t.match(headers.get('retry-after'), /^[12]$/)
    t.match(text, /There were too many wrong sign-ins; nothing was checked. Try again in [12] s/)
    told.push(/<p class="error"[^]*?<\/p>/.exec(text)![0].replace(/\d s/, 's'))
  }
  t.equal(told[0], told[1], 'an account that is there, and one that is not')
  t.match(await codeFor(plain), /^[\w-]{64}$/)
})

t.test('nothing secret is in the log', async (t) => {
  const code = await codeFor({ ...plain, ...pkce })
  const tokens = await tokensOf(token(byCode(code, { code_verifier: VERIFIER })))
  await token(byCode(code, { code_verifier: VERIFIER }))
  const secrets = [PASSWORD, temporary, code, tokens.access_token, tokens.refresh_token]
  for (const secret of [...secrets, shop.secret!, VERIFIER]) {
    t.notOk(node.output.includes(secret), 'of what was sent or answered')
  }
})
