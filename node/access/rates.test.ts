// How many tokens a client is given in a minute, and that nobody else can use that up. Source:
// CONTRACT 1.11.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
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
