// The pages of signing in, request by request, as a browser without scripts would have them.

import t from 'tap'
import type { SystemView } from '../../../cluster/actor-system.ts'
import { Acl, parseScope } from '../../../protocol/ace.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { OperationRequest, OperationResponse } from '../../http/operation.ts'
import type { Client } from '../client.ts'
import type { Authorization } from '../sessions/grants.ts'
import { Authorize } from './authorize.ts'
import { FormSeal } from './form-seal.ts'
import type { NewPassword, SignedInAnswer } from './people.ts'

const BASE = 'https://orders.example'
const NASTY = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>&amp;`

function setting() {
  const clock = { nowMs: 1_000_000 }
  let seed = 7
  const random = (bytes: Uint8Array): void => {
    for (let i = 0; i < bytes.length; i++) bytes[i] = (seed = (seed * 69069 + 1) >>> 0) >>> 24
  }
  const client: Client = {
    properties: {
      name: 'Corner Shop',
      redirectUris: ['https://shop.example/cb'],
      grantTypes: ['authorization_code'],
    },
    roles: [],
    secrets: [],
    isSystem: false,
    createdAt: '',
    suspendedAt: null,
  }
  const clients = new Map([['shop', client]])
  const person = { id: 'p1', email: 'ada@shop.example', epoch: 4 }
  const answers: SignedInAnswer[] = []
  const changes: NewPassword[] = []
  const agreed: Authorization[] = []
  const there = { acl: aclOf('actors/order:* graph:query') as Acl | null, person, away: false }
  const seal = new FormSeal({ secret: 's', random, nowMs: () => clock.nowMs, baseUrl: BASE })
  const authorize = new Authorize({
    system: {
      get: (_: string, key: string) =>
        clients.has(key) ? { key, version: 1, value: clients.get(key) } : null,
    } as unknown as SystemView,
    ready: () => true,
    people: {
      find: (id) => (id === person.id && there.acl !== null ? there.person : null),
      aclOf: () => there.acl,
      check: ({ email, password }) => {
        const isRight = email === person.email && password === 'right'
        const right = { is: 'right', person, isTemporary: false } as const
        return Promise.resolve(answers.shift() ?? (isRight ? right : { is: 'wrong' }))
      },
      changePassword: (change) => {
        changes.push(change)
        if (change.next === 'weak') return Promise.resolve({ is: 'weak', reason: 'it is weak' })
        there.person = { ...person, epoch: 5 }
        return Promise.resolve({ is: 'right', person: there.person, isTemporary: false })
      },
    },
    sessions: {
      authorize: (one) => {
        if (there.away) return Promise.reject(new RequestError('UNAVAILABLE', 'away'))
        agreed.push(one)
        return Promise.resolve({ code: 'the-code' })
      },
    },
    seal,
    external: null,
    baseUrl: BASE,
  })
  return { authorize, clock, clients, client, person, answers, changes, agreed, there, seal }
}

function aclOf(scope: string): Acl {
  const scopes = parseScope(scope)
  return new Acl(scopes.ok ? scopes.aces : [])
}

type Setting = ReturnType<typeof setting>
type Fields = Record<string, string>

const asked = (more: Fields = {}): Fields => ({
  response_type: 'code',
  client_id: 'shop',
  redirect_uri: 'https://shop.example/cb',
  state: 'st',
  ...more,
})

/** A browser: it keeps its cookie, and sends the fields of the form that it was shown last. */
class Browser {
  readonly #authorize: Authorize
  cookie = ''
  form = ''
  text = ''
  answer: OperationResponse = { status: 0 }
  headers: Fields = {}

  constructor({ authorize }: Setting) {
    this.#authorize = authorize
  }

  open(parameters: Fields): Promise<OperationResponse> {
    const query = new URLSearchParams(parameters)
    return this.#take(this.#authorize.open(this.#request({ query })))
  }

  send(fields: Fields): Promise<OperationResponse> {
    const body = new URLSearchParams({ form: this.form, ...fields })
    return this.#take(this.#authorize.send(this.#request({ body })))
  }

  signIn(password = 'right'): Promise<OperationResponse> {
    return this.send({ email: 'ada@shop.example', password })
  }

  get location(): URL {
    return new URL(this.answer.headers?.['Location'] ?? 'none:')
  }

  #request(parts: object): OperationRequest {
    const headers: Fields = { cookie: this.cookie, ...this.headers }
    return {
      bodyBytes: new Uint8Array(0),
      header: (name: string) => headers[name] ?? '',
      requestId: 'r1',
      address: '192.0.2.1',
      ...parts,
    } as unknown as OperationRequest
  }

  async #take(answer: Promise<OperationResponse>): Promise<OperationResponse> {
    this.answer = await answer
    this.text = String(this.answer.raw ?? '').replaceAll(/\s+/g, ' ')
    this.form = /name="form" value="([^"]*)"/.exec(this.text)?.[1] ?? ''
    this.cookie = this.answer.headers?.['Set-Cookie']?.split(';')[0] ?? this.cookie
    return this.answer
  }
}

t.test('sign in, agree, and the application gets a code', async (t) => {
  const setup = setting()
  const browser = new Browser(setup)
  const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
  const pkce = { code_challenge: challenge, code_challenge_method: 'S256' }
  await browser.open(asked({ scope: 'actors/order:create', state: 'a b&c=é', ...pkce }))
  t.equal(browser.answer.status, 200)
  t.match(browser.text, /autocomplete="username"[^]*autocomplete="current-password"/)
  t.match(browser.answer.headers, {
    'Cache-Control': 'no-store',
    'X-Frame-Options': 'DENY',
    'Content-Security-Policy':
      /default-src 'none'.*form-action 'self' https:; frame-ancestors 'none'/,
  })
  t.notMatch(browser.answer.headers!['Content-Security-Policy'], /script-src|unsafe/)
  t.notMatch(browser.text, /<script/)
  await browser.signIn()
  t.match(browser.text, 'signed in as <strong>ada@shop.example</strong>')
  t.match(browser.text, /Create orders <code>actors\/order:create<\/code>/)
  t.match(browser.text, 'You go on to shop.example.')
  t.same(setup.agreed, [], 'nothing is given before it is agreed to')
  await browser.send({ decision: 'allow' })
  t.equal(browser.answer.status, 303, 'RFC 9700 4.12: no form goes along')
  t.same(Object.fromEntries(browser.location.searchParams), {
    code: 'the-code',
    state: 'a b&c=é',
    iss: BASE,
  })
  const redirectUri = 'https://shop.example/cb'
  const agreed = { identity: 'p1', kind: 'principal', clientId: 'shop', redirectUri, challenge }
  t.match(setup.agreed, [{ ...agreed, scope: 'actors/order:create' }])
})

t.test('RFC 9207 2: whoever refuses sends an error with the issuer, and no code', async (t) => {
  const setup = setting()
  const browser = new Browser(setup)
  await browser.open(asked())
  await browser.signIn()
  await browser.send({ decision: 'deny' })
  t.match(Object.fromEntries(browser.location.searchParams), {
    error: 'access_denied',
    state: 'st',
    iss: BASE,
  })
  await browser.open(asked({ response_type: 'token' }))
  t.match(Object.fromEntries(browser.location.searchParams), {
    error: 'unsupported_response_type',
    state: 'st',
    iss: BASE,
  })
  t.same(setup.agreed, [])
})

t.test('a wrong password is told as an unknown account is', async (t) => {
  const setup = setting()
  const browser = new Browser(setup)
  const texts: string[] = []
  for (const email of ['ada@shop.example', 'none@shop.example']) {
    await browser.open(asked())
    await browser.send({ email, password: 'wrong' })
    t.equal(browser.answer.status, 400)
    t.match(browser.text, /id="error" role="alert">The e-mail address or the password is not right/)
    t.match(browser.text, /id="password"[^>]*aria-invalid="true" aria-describedby="error"/)
    t.match(browser.text, `value="${email}"`)
    t.notMatch(browser.text, 'value="wrong"')
    texts.push(browser.text.replaceAll(email, '').replaceAll(/name="form" value="[^"]*"/g, ''))
  }
  t.equal(texts[0], texts[1], 'to the byte')
  setup.answers.push({ is: 'not-checked', retryAfterMs: 2_500, isBusy: false })
  await browser.signIn()
  t.equal(browser.answer.status, 429)
  t.equal(browser.answer.headers?.['Retry-After'], '3')
  t.match(browser.text, /nothing was checked. Try again in 3 s/)
  await browser.signIn()
  t.match(browser.text, 'signed in as', 'the same form goes on')
  await browser.open(asked())
  await browser.send({ email: '', password: '' })
  t.match(browser.text, /id="email"[^>]*aria-invalid="true"/)
})

t.test('a temporary password opens the page on which it is changed, and no other', async (t) => {
  const setup = setting()
  const { person } = setup
  const browser = new Browser(setup)
  await browser.open(asked())
  setup.answers.push({ is: 'right', person, isTemporary: true })
  await browser.signIn()
  t.match(browser.text, /Choose a password/)
  t.match(browser.text, /autocomplete="username" value="ada@shop.example" readonly/)
  t.match(browser.text, /autocomplete="current-password"[^]*autocomplete="new-password"/)
  await browser.send({ decision: 'allow' })
  t.match(browser.text, /Choose a password/, 'it can not be agreed past')
  t.same(setup.agreed, [])
  const change = (next: string, again = next): Promise<OperationResponse> =>
    browser.send({ password: 'temporary', new_password: next, again })
  await change('one', 'other')
  t.match(browser.text, /The new passwords are not the same/)
  await change('weak')
  t.equal(browser.answer.status, 422)
  t.match(browser.text, /It is weak\./)
  t.match(browser.text, /id="new-password"[^>]*aria-invalid="true" aria-describedby="rule error"/)
  const before = browser.form
  await change('a good new one')
  t.match(browser.text, 'signed in as')
  await browser.send({ decision: 'allow' })
  t.equal(setup.agreed.length, 1)
  t.match(setup.changes.at(-1), { id: 'p1', current: 'temporary', next: 'a good new one' })
  browser.form = before
  await change('a good new one')
  t.match(browser.text, /This page is too old/, 'the former page is of a former time')
})

t.test('RFC 6749 10.12: forms of another browser, of another site, or of no browser', async (t) => {
  const setup = setting()
  const [own, other] = [new Browser(setup), new Browser(setup)]
  await own.open(asked())
  await own.signIn()
  await other.open(asked())
  const { form } = own
  other.form = form
  await other.send({ decision: 'allow' })
  t.equal(other.answer.status, 400, 'a form that somebody else was shown')
  other.cookie = ''
  other.form = form
  await other.send({ decision: 'allow' })
  t.equal(other.answer.status, 400, 'without a cookie')
  for (const site of ['cross-site', 'same-site']) {
    own.form = form
    own.headers = { 'sec-fetch-site': site }
    await own.send({ decision: 'allow' })
    t.equal(own.answer.status, 400, site)
  }
  own.headers = { 'sec-fetch-site': 'same-origin' }
  own.form = form
  setup.clock.nowMs += 3_600_000
  await own.send({ decision: 'allow' })
  t.equal(own.answer.status, 400, 'too old')
  t.same(setup.agreed, [])
})

t.test('two tabs of a browser do not disturb each other', async (t) => {
  const setup = setting()
  const browser = new Browser(setup)
  await browser.open(asked({ state: 'first' }))
  const first = browser.form
  await browser.open(asked({ state: 'second' }))
  browser.form = first
  await browser.signIn()
  await browser.send({ decision: 'allow' })
  t.equal(browser.location.searchParams.get('state'), 'first')
})

t.test('what has changed since a page was shown counts', async (t) => {
  const consented = async (change: (setup: Setting) => void): Promise<Browser> => {
    const setup = setting()
    const browser = new Browser(setup)
    await browser.open(asked({ scope: 'graph:query' }))
    await browser.signIn()
    change(setup)
    await browser.send({ decision: 'allow' })
    t.same(setup.agreed, [])
    return browser
  }
  const signedOut = await consented((s) => (s.there.person = { ...s.person, epoch: 5 }))
  t.equal(signedOut.answer.status, 400, 'a new password, or suspended meanwhile')
  t.equal((await consented((s) => (s.there.acl = null))).answer.status, 400, 'deleted')
  t.equal((await consented((s) => s.clients.clear())).answer.status, 400, 'no application')
  const narrower = await consented((s) => (s.there.acl = aclOf('me:read')))
  t.equal(narrower.location.searchParams.get('error'), 'invalid_scope', 'fewer roles')
  const away = await consented((s) => (s.there.away = true))
  t.equal(away.answer.status, 503)
})

t.test('an application that has changed since it was agreed to is shown again', async (t) => {
  const s = setting()
  const browser = new Browser(s)
  const { properties } = s.client
  const become = (more: Partial<Client['properties']>): void =>
    void s.clients.set('shop', { ...s.client, properties: { ...properties, ...more } })
  become({ scopes: ['graph:query'] })
  await browser.open(asked())
  await browser.signIn()
  become({ scopes: ['graph:query', 'actors/order:*'] })
  await browser.send({ decision: 'allow' })
  t.equal(browser.answer.status, 409)
  t.match(browser.text, /actors\/order:\*.*has changed since/)
  t.same(s.agreed, [])
  become({ scopes: ['graph:query', 'actors/order:*'] })
  await browser.send({ decision: 'allow' })
  t.equal(browser.location.searchParams.get('code'), 'the-code', 'what was seen is agreed to')
  await browser.open(asked())
  become({ redirectUris: [] })
  t.equal((await browser.signIn()).status, 400, 'it goes nowhere any more')
})

t.test('RFC 6749 4.1.2.1: a scope by an attribute that the person lacks', async (t) => {
  const browser = new Browser(setting())
  await browser.open(asked({ scope: 'region@graph/order:query' }))
  await browser.signIn()
  t.equal(browser.location.searchParams.get('error'), 'invalid_scope')
})

t.test(
  'RFC 6749 3.3: a scope that the person does not have is told to the application',
  async (t) => {
    const setup = setting()
    const browser = new Browser(setup)
    await browser.open(asked({ scope: 'graph:query registry:write' }))
    t.equal(browser.answer.status, 200, 'nobody is told before they have signed in')
    await browser.signIn()
    t.equal(browser.location.searchParams.get('error'), 'invalid_scope')
  },
)

t.test('somebody else signs in', async (t) => {
  const setup = setting()
  const browser = new Browser(setup)
  await browser.open(asked())
  await browser.signIn()
  await browser.send({ decision: 'another' })
  t.match(browser.text, /<h1>Sign in<\/h1>/)
  await browser.send({ decision: 'allow' })
  t.match(browser.text, /<h1>Sign in<\/h1>/, 'nobody is signed in')
})

t.test('nothing that was sent becomes markup', async (t) => {
  const setup = setting()
  setup.clients.set('shop', {
    ...setup.client,
    properties: { ...setup.client.properties, name: NASTY },
  })
  setup.clients.set(NASTY, setup.client)
  const browser = new Browser(setup)
  const texts: string[] = []
  const keep = (): void => void texts.push(browser.text)
  const names = ['response_type', 'client_id', 'redirect_uri', 'scope', 'state', 'code_challenge']
  for (const name of [...names, 'code_challenge_method', 'response_mode', NASTY]) {
    await browser.open(asked({ [name]: NASTY }))
    keep()
    t.notMatch(browser.answer.headers?.['Location'] ?? '', /[<>"\s]/)
  }
  setup.there.person = { ...setup.person, email: NASTY }
  await browser.open(asked({ state: NASTY }))
  await browser.send({ email: NASTY, password: NASTY })
  keep()
  setup.answers.push({ is: 'right', person: setup.there.person, isTemporary: true })
  await browser.signIn()
  keep()
  await browser.open(asked({ state: NASTY }))
  await browser.signIn()
  keep()
  await browser.send({ decision: 'allow' })
  t.equal(browser.location.searchParams.get('state'), NASTY)
  for (const text of texts) t.notMatch(text, /<script|<img|onerror=alert\(1\)>/)
  t.ok(texts.some((text) => text.includes('&lt;script&gt;')))
})
