// What a provider answers, where it is another than it should be, slow, huge or away: each with the
// section that names it.

import t from 'tap'
import { generateKeyPairSync } from 'node:crypto'
import { SignJWT } from 'jose'
import { LIMITS } from '../../../config/limits.ts'
import { PUBLIC_JWK } from '../../../test/harness/fake-provider.ts'
import type { FakeProvider } from '../../../test/harness/fake-provider.ts'
import { AWAY, externalScene, LOGIN, toldWhen, WRONG } from '../testing/external-scene.ts'

const CLAIM_FAULTS: Readonly<Record<string, object>> = {
  'another issuer (2)': { iss: 'https://evil.example' },
  'the issuer with a slash (2)': { iss: 'https://id.example/' },
  'no issuer (2)': { iss: undefined },
  'another audience (3)': { aud: 'another' },
  'audiences without this one (3)': { aud: ['another', 'third'] },
  'no audience (3)': { aud: undefined },
  'more audiences and no azp (4)': { aud: ['kontor', 'another'] },
  'made for another by azp (5)': { aud: ['kontor', 'another'], azp: 'another' },
  'made for another by azp, of one audience (5)': { azp: 'another' },
  'no end (9)': { exp: undefined },
  'an end that is text (9)': { exp: '9999999999' },
  'no beginning (10)': { iat: undefined },
  'another nonce (11)': { nonce: 'another' },
  'no nonce (11)': { nonce: undefined },
  'no subject': { sub: undefined },
  'a subject that is a number': { sub: 7 },
  'an empty subject': { sub: '' },
  'a subject of 10 KB': { sub: 'x'.repeat(10_000) },
  'a subject of 256 characters': { sub: 'x'.repeat(256) },
  'a subject that is not ASCII': { sub: 'ü1' },
}

for (const [what, claims] of Object.entries(CLAIM_FAULTS)) {
  t.test(`OpenID Connect Core 3.1.3.7: an ID token with ${what}`, async (t) => {
    t.match(await toldWhen(t, (provider) => (provider.claims = { ...claims })), WRONG)
  })
}

t.test('OpenID Connect Core 3.1.3.7: what an ID token may well have', async (t) => {
  for (const claims of [
    { aud: ['kontor'] },
    { aud: ['kontor', 'another'], azp: 'kontor' },
    { sub: 'x'.repeat(255) },
  ]) {
    t.equal(await toldWhen(t, (provider) => (provider.claims = claims)), 'in')
  }
})

t.test('OpenID Connect Core 3.1.3.7 (9): its end is by the clock of this node', async (t) => {
  const { provider, browser, clock } = await externalScene(t)
  const one = browser()
  const back = provider.visit(await one.leave())
  // It was made a while ago, and kept: 300 s, and what clocks may differ by.
  const madeMs = clock.nowMs
  provider.nowMs = () => madeMs
  clock.nowMs += 302_000 + LIMITS.access.clockToleranceMs
  await one.return(back)
  t.match(one.told, WRONG)
  const two = browser()
  const late = provider.visit(await two.leave())
  const nowMs = clock.nowMs
  provider.nowMs = () => nowMs
  clock.nowMs += 298_000 + LIMITS.access.clockToleranceMs
  await two.return(late)
  t.equal(two.told, 'in')
})

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

t.test('OpenID Connect Core 3.1.3.7 (6, 7): signatures that are none', async (t) => {
  const key = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey
  const signs: Readonly<Record<string, FakeProvider['sign']>> = {
    'alg none': (claims) => `${encoded({ alg: 'none' })}.${encoded(claims)}.`,
    'alg None': (claims) => `${encoded({ alg: 'None', kid: 'k1' })}.${encoded(claims)}.AA`,
    'HS256 with the public key': (claims) =>
      new SignJWT({ ...claims })
        .setProtectedHeader({ alg: 'HS256', kid: 'k1' })
        .sign(Buffer.from(JSON.stringify(PUBLIC_JWK))),
    'HS256 with the client secret': (claims) =>
      new SignJWT({ ...claims })
        .setProtectedHeader({ alg: 'HS256' })
        .sign(Buffer.from('a secret: of+the provider/')),
    'another key under its name': (claims) =>
      new SignJWT({ ...claims }).setProtectedHeader({ alg: 'RS256', kid: 'k1' }).sign(key),
    'a key that it brings along': (claims) =>
      new SignJWT({ ...claims })
        .setProtectedHeader({ alg: 'RS256', jwk: { ...PUBLIC_JWK, kid: 'k2' } })
        .sign(key),
    'an extension that must be understood': (claims) =>
      new SignJWT({ ...claims })
        .setProtectedHeader({ alg: 'RS256', kid: 'k1', crit: ['b64'], b64: true })
        .sign(key),
    'no token at all': () => 'nonsense',
    'an empty one': () => '',
    'two parts': () => 'a.b',
    'five parts': () => 'a.b.c.d.e',
  }
  for (const [what, sign] of Object.entries(signs)) {
    // It says itself that it would sign so: that makes nothing of it.
    const told = await toldWhen(t, (provider) => {
      provider.metadata = { id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'] }
      provider.sign = sign
    })
    t.match(told, WRONG, what)
  }
  const changed = await toldWhen(t, (provider) => {
    provider.sign = async (claims) => {
      const [head, , signature] = (await provider.signed(claims)).split('.')
      return `${head}.${encoded({ ...claims, sub: 'somebody else' })}.${signature}`
    }
  })
  t.match(changed, WRONG, 'other claims under the signature')
})

t.test('a client without secret, one that sends it in the form, and a wrong one', async (t) => {
  const open = await externalScene(t, { clientSecret: null })
  t.equal(await open.browser().signIn(open.provider), 'in')
  const { provider, browser } = await externalScene(t)
  provider.metadata = { token_endpoint_auth_methods_supported: ['client_secret_post'] }
  provider.twists.token = (usual, init) => {
    t.equal(new Headers(init.headers).get('authorization'), null)
    return usual()
  }
  t.equal(await browser().signIn(provider), 'in')
  const wrong = await externalScene(t, { clientSecret: 'another' })
  t.match(await wrong.browser().signIn(wrong.provider), AWAY)
  t.strictSame(wrong.faults, [
    'away: server responded with an error in the response body (invalid_client)',
  ])
})

t.test('Discovery 4.3: what the provider tells of itself', async (t) => {
  const faulty: Record<string, unknown>[] = [
    { issuer: 'https://evil.example' },
    { issuer: 'https://id.example/' },
    { issuer: undefined },
    { authorization_endpoint: undefined },
    { authorization_endpoint: 'http://id.example/authorize' },
    { authorization_endpoint: 'javascript:alert(1)' },
    { token_endpoint: 'http://127.0.0.1:6379/' },
    { token_endpoint: 'http://169.254.169.254/latest/meta-data' },
    { jwks_uri: 'file:///etc/passwd' },
    { jwks_uri: 'http://id.example/keys' },
    { jwks_uri: 7 },
  ]
  for (const metadata of faulty) {
    const { provider, browser } = await externalScene(t)
    provider.metadata = metadata
    t.match(await browser().signIn(provider), AWAY, JSON.stringify(metadata))
    t.equal(provider.asked.token + provider.asked.keys, 0)
  }
  const { provider, browser, clock } = await externalScene(t)
  for (let i = 0; i < 3; i++) await browser().signIn(provider)
  t.strictSame(provider.asked, { discovery: 1, token: 3, keys: 1, userinfo: 0 }, 'kept')
  clock.nowMs += LIMITS.access.externalMetadataMs
  await browser().signIn(provider)
  t.equal(provider.asked.discovery, 2, 'for a while')
})

t.test('an issuer with a slash at its end is another than one without', async (t) => {
  const { provider, browser, get } = await externalScene(t, { issuer: 'https://id.example/' })
  t.equal(await browser().signIn(provider), 'in')
  t.strictSame(get().logins, [{ ...LOGIN, issuer: 'https://id.example/' }])
})

t.test(
  'a provider that is away, slow, huge, or leads elsewhere: the password still does',
  async (t) => {
    const large = 'x'.repeat(10 * 1024 * 1024)
    const answers: Readonly<Record<string, () => Response | Promise<Response>>> = {
      'refuses connections': () => Promise.reject(new TypeError('fetch failed')),
      '500': () => new Response('', { status: 500 }),
      '204': () => new Response(null, { status: 204 }),
      'no JSON': () => new Response('<html>'),
      'an array': () => Response.json([]),
      '10 MB': () => new Response(large, { headers: { 'Content-Type': 'application/json' } }),
      '10 MB of JSON': () => Response.json({ issuer: large }),
      'a redirect': () =>
        new Response(null, { status: 302, headers: { Location: 'http://127.0.0.1:6379/' } }),
    }
    for (const endpoint of ['discovery', 'token', 'keys', 'userinfo'] as const) {
      for (const [what, answer] of Object.entries(answers)) {
        const { provider, browser, all } = await externalScene(t)
        if (endpoint === 'userinfo') provider.claims = { email: undefined }
        const before = all()
        provider.twists[endpoint] = answer
        const one = browser()
        const told = await one.signIn(provider)
        t.match(told, /^(503 Example Id can|400 What Example Id answered)/, `${endpoint}: ${what}`)
        t.equal(provider.asked[endpoint], 1, 'and was asked once')
        t.match(one.text, /autocomplete="current-password"/)
        t.equal(all(), before)
        delete provider.twists[endpoint]
        provider.claims = {}
        t.equal(await browser().signIn(provider), 'in', 'and once it is back')
      }
    }
  },
)

t.test(
  'a provider that never answers: there is a deadline, and a bound for those who wait',
  async (t) => {
    const { provider, browser, clock } = await externalScene(t)
    const waiting: (() => void)[] = []
    provider.twists.discovery = (usual) =>
      new Promise((resolve) => waiting.push(() => resolve(usual())))
    const half = LIMITS.access.externalExchangesMax / 2
    const slow = Array.from({ length: half }, () => browser().signIn(provider))
    while (waiting.length === 0) await new Promise((resolve) => void setImmediate(resolve))
    const late = browser().signIn(provider)
    const other = browser('198.51.100.7').signIn(provider)
    await new Promise((resolve) => void setImmediate(resolve))
    t.equal(provider.asked.discovery, 1, 'one asks for all')
    for (const { at, run } of [...clock.timers]) {
      if (at === clock.nowMs + LIMITS.access.externalWaitMs) run()
    }
    t.match(await late, /^429 Too many people sign in with Example Id at once/)
    for (const { at, run } of [...clock.timers]) {
      if (at === clock.nowMs + LIMITS.access.externalRequestMs) run()
    }
    for (const told of await Promise.all([...slow, other])) t.match(told, AWAY)
    delete provider.twists.discovery
    t.equal(await browser().signIn(provider), 'in', 'their places are free again')
  },
)

t.test('an answer that is right in all but its size is none', async (t) => {
  const pad = 'x'.repeat(LIMITS.access.externalAnswerBytesMax)
  for (const endpoint of ['discovery', 'token', 'keys', 'userinfo'] as const) {
    const { provider, browser, get } = await externalScene(t)
    if (endpoint === 'userinfo') provider.claims = { email: undefined }
    provider.twists[endpoint] = async (usual) =>
      Response.json({ ...((await (await usual()).json()) as object), pad })
    t.match(await browser().signIn(provider), AWAY, endpoint)
    t.equal(get().logins, undefined)
  }
})

t.test('keys: a new one is asked for, but not with each token', async (t) => {
  const { provider, browser } = await externalScene(t)
  provider.sign = (claims) => provider.signed(claims, { kid: 'k9' })
  for (let i = 0; i < 5; i++) t.match(await browser().signIn(provider), WRONG)
  t.equal(provider.asked.keys, 1)
})
