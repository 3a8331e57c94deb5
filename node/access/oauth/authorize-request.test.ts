// Authorization requests: which are good, who is told of the others, and of what.

import t from 'tap'
import fc from 'fast-check'
import type { ConfigurationView } from '../../../protocol/behaviour.ts'
import type { Client } from '../client.ts'
import { readAuthorizeRequest } from './authorize-request.ts'
import type { ReadRequest } from './authorize-request.ts'

const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'

function client(
  properties: Partial<Client['properties']>,
  suspendedAt: string | null = null,
): Client {
  return {
    properties: {
      name: 'Shop',
      redirectUris: ['https://shop.example/cb'],
      grantTypes: ['authorization_code'],
      ...properties,
    },
    roles: [],
    secrets: [],
    isSystem: false,
    createdAt: '',
    suspendedAt,
  }
}

const clients: Record<string, Client> = {
  shop: client({}),
  app: client({ tokenEndpointAuthMethod: 'none' }),
  old: client({ grantTypes: ['implicit'] }),
  many: client({ redirectUris: ['https://a.example/cb', 'https://b.example/cb'] }),
  robot: client({ grantTypes: ['client_credentials'] }),
  asleep: client({}, '2026-01-01T00:00:00.000Z'),
}
const view = {
  get: (type: string, key: string) =>
    type === 'client' && Object.hasOwn(clients, key) ? { key, value: clients[key]! } : null,
} as unknown as ConfigurationView

type Parameters = Record<string, string> | [string, string][]
const read = (parameters: Parameters): ReadRequest =>
  readAuthorizeRequest(new URLSearchParams(parameters), view)
const good = { response_type: 'code', client_id: 'shop', redirect_uri: 'https://shop.example/cb' }
const pkce = { code_challenge: CHALLENGE, code_challenge_method: 'S256' }

/** `error` of what goes back to the application, or why nothing does. */
function outcome(parameters: Parameters): string {
  const answer = read(parameters)
  if (answer.is === 'good') return 'good'
  return answer.is === 'hopeless' ? 'page' : answer.refused.error
}

t.test('RFC 6749 4.1.2.1: without a client and its redirect nothing is sent anywhere', (t) => {
  const cases: Parameters[] = [
    {},
    { ...good, client_id: 'nobody' },
    { ...good, client_id: 'asleep' },
    { ...good, client_id: '' },
    { ...good, client_id: '__proto__' },
    { ...good, redirect_uri: 'https://evil.example/cb' },
    { ...good, client_id: 'many', redirect_uri: '' },
    [...Object.entries(good), ['client_id', 'shop']],
    [...Object.entries(good), ['redirect_uri', 'https://shop.example/cb']],
    // Whatever else is wrong with it.
    { ...good, redirect_uri: 'https://evil.example/cb', response_type: 'token' },
  ]
  for (const parameters of cases) t.equal(outcome(parameters), 'page', JSON.stringify(parameters))
  t.end()
})

t.test('what else is wrong is told to the application, with its state', (t) => {
  const cases: [Parameters, string][] = [
    [{ ...good, response_type: '' }, 'invalid_request'],
    [{ ...good, response_type: 'token' }, 'unsupported_response_type'],
    [{ ...good, response_type: 'code token' }, 'unsupported_response_type'],
    [{ ...good, response_mode: 'fragment' }, 'invalid_request'],
    [{ ...good, client_id: 'robot' }, 'unauthorized_client'],
    [{ ...good, scope: 'nonsense' }, 'invalid_scope'],
    [{ ...good, scope: `graph:query ${'x'.repeat(20_000)}` }, 'invalid_scope'],
    [{ ...good, state: 'x'.repeat(5_000) }, 'invalid_request'],
    [[...Object.entries(good), ['scope', 'me:read'], ['scope', 'me:read']], 'invalid_request'],
    [[...Object.entries(good), ['response_type', 'code']], 'invalid_request'],
  ]
  for (const [parameters, error] of cases) {
    t.equal(outcome(parameters), error, JSON.stringify(parameters).slice(0, 200))
  }
  const answer = read({ ...good, response_type: 'token', state: ' s&=é ' })
  t.match(answer, { refused: { state: ' s&=é ', redirectUri: 'https://shop.example/cb' } })
  const twice = read([...Object.entries(good), ['state', 'a'], ['state', 'b']])
  t.match(twice, { refused: { error: 'invalid_request', state: null } })
  t.end()
})

t.test(
  'RFC 7636 4.4.1, RFC 9700 2.1.1: a challenge is of S256, and apps without secret need one',
  (t) => {
    for (const client_id of ['app', 'old']) {
      t.equal(outcome({ ...good, client_id }), 'invalid_request', `${client_id} without`)
      t.equal(outcome({ ...good, client_id, ...pkce }), 'good', `${client_id} with`)
    }
    t.equal(outcome(good), 'good', 'a client with a secret may do without')
    const wrong: Record<string, string>[] = [
      { code_challenge: CHALLENGE },
      { code_challenge: CHALLENGE, code_challenge_method: 'plain' },
      { code_challenge: CHALLENGE, code_challenge_method: 's256' },
      { code_challenge_method: 'S256' },
      { code_challenge: CHALLENGE.slice(1), code_challenge_method: 'S256' },
      { code_challenge: `${CHALLENGE}=`, code_challenge_method: 'S256' },
      { code_challenge: `${CHALLENGE.slice(1)}+`, code_challenge_method: 'S256' },
    ]
    for (const parameters of wrong) {
      t.equal(outcome({ ...good, ...parameters }), 'invalid_request', JSON.stringify(parameters))
    }
    t.end()
  },
)

t.test('what is left out, and what nobody knows', (t) => {
  const named = { redirectUri: 'https://shop.example/cb', redirectNamed: true }
  t.match(read({ ...good, unknown: 'x', prompt: 'none' }), { request: { ...named, scope: null } })
  const { redirect_uri: _, ...without } = good
  t.match(read(without), { request: { ...named, redirectNamed: false } })
  t.match(read({ ...good, scope: 'me:read  me:read graph:query' }), {
    request: { scope: 'me:read graph:query' },
  })
  t.end()
})

t.test('odd input gets an answer, and a redirect goes to a registered place or nowhere', (t) => {
  const names = ['response_type', 'client_id', 'redirect_uri', 'scope', 'state', 'code_challenge']
  const value = fc.oneof(
    fc.constantFrom(...Object.values(good), 'app', 'S256', CHALLENGE, '', 'plain', 'me:read'),
    fc.string({ unit: 'binary', maxLength: 30 }),
  )
  const pair = fc.tuple(fc.constantFrom(...names, 'code_challenge_method'), value)
  fc.assert(
    fc.property(fc.array(pair, { maxLength: 9 }), (pairs) => {
      const answer = read(pairs)
      if (answer.is === 'hopeless') return answer.reason.length > 0
      const { redirectUri } = answer.is === 'good' ? answer.request : answer.refused
      return redirectUri === 'https://shop.example/cb'
    }),
    { numRuns: 2_000 },
  )
  t.end()
})
