// How many tokens a client is given in a minute, and how many it may ask about, and that nobody
// else can use that up. Source: CONTRACT 0 "Rate limits", 1.11.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { RateLimit } from '../http/guard/rate-limit.ts'
import { IntrospectionRates } from './oauth/introspection-rates.ts'
import { OAuthError } from './oauth/request.ts'
import { addClient, asked, call, station } from './testing/station.ts'

t.test('a client has so many tokens in a minute, and is told', async (t) => {
  const setup = await station(t, { tokensOfClient: 2 })
  addClient(setup, 'other', (client) => client)
  const wrong = { ...asked(), client_secret: 'a wrong one' }
  for (let i = 0; i < 5; i++) t.equal((await call(setup, '/oauth/token', wrong)).status, 401)
  const first = await call(setup, '/oauth/token', asked())
  t.match(first, {
    status: 200,
    headers: { 'RateLimit-Policy': '"client";q=2;w=60', RateLimit: '"client";r=1;t=60' },
  })
  t.equal((await call(setup, '/oauth/token', asked())).status, 200)
  setup.clock.nowMs += 20_000
  const over = await call(setup, '/oauth/token', asked())
  t.match(over, {
    status: 429,
    headers: { 'Retry-After': '40', RateLimit: '"client";r=0;t=40', 'Cache-Control': 'no-store' },
    body: { error: 'temporarily_unavailable', error_description: /of this client/ },
  })
  const other = { ...asked(), client_id: 'other' }
  t.equal((await call(setup, '/oauth/token', other)).status, 200, 'others have their own')
  setup.clock.nowMs += LIMITS.http.rateWindowMs - 20_000
  t.equal((await call(setup, '/oauth/token', asked())).status, 200)
})

t.test('0 means any number', async (t) => {
  const setup = await station(t)
  const answer = await call(setup, '/oauth/token', asked())
  t.equal(answer.headers?.['RateLimit'], undefined)
})

t.test('RFC 7662 4: who shows a client is counted by it, all others by address', async (t) => {
  const setup = await station(t, { introspections: { client: 3, signInAddress: 2 } })
  addClient(setup, 'other', (client) => client)
  const { client_secret } = asked()
  const ask = (form: Record<string, string>, headers: Record<string, string> = {}) =>
    call(setup, '/oauth/introspect', { token: 'x', ...form }, headers)
  const wrong = { client_id: 'nobody', client_secret: 'wrong' }
  t.equal((await ask({})).status, 401, 'nothing is shown')
  t.equal((await ask(wrong)).status, 401)
  const over = await ask(wrong)
  t.match(over, { status: 429, headers: { 'Retry-After': '60' } })
  t.match(over.body, { error: 'temporarily_unavailable', error_description: /of this address/ })
  t.equal((await ask({})).status, 429)
  t.equal((await ask(wrong, { address: '198.51.100.7' })).status, 401, 'from elsewhere')

  for (const left of [2, 1, 0]) {
    const answer = await ask({ client_id: 'other', client_secret: client_secret! })
    t.equal(answer.status, 200, 'behind the same gateway')
    t.match(answer.headers, { RateLimit: `"client";r=${left};t=60` })
  }
  const own = await ask({ client_id: 'other', client_secret: client_secret! })
  t.match(own, { status: 429, body: { error_description: /of this client/ } })
  t.equal((await ask({ client_id: 'bootstrap', client_secret: client_secret! })).status, 200)
  setup.clock.nowMs += LIMITS.http.rateWindowMs
  t.equal((await ask({})).status, 401)
})

t.test(
  'what takes long to check is not looked at once its address was wrong too often',
  async (t) => {
    const strangers = new RateLimit('address', 2, () => 0)
    const rates = new IntrospectionRates({ clients: null, strangers })
    let checks = 0
    const admit = (address: string, isCostly: boolean): Promise<unknown> =>
      rates
        .admit(address, isCostly, () => {
          checks++
          return Promise.reject(new OAuthError('invalid_client', 'wrong'))
        })
        .catch(({ code }: OAuthError) => code)
    const [CLIENT, LATER] = ['invalid_client', 'temporarily_unavailable']
    for (const code of [CLIENT, CLIENT, LATER]) t.equal(await admit('192.0.2.1', true), code)
    t.equal(checks, 2)
    t.equal(await admit('192.0.2.1', false), LATER)
    t.equal(checks, 3, 'what a digest tells is')
    t.equal(await admit('192.0.2.2', true), CLIENT)
  },
)
