// A public address with a path: what is before it at that host may be another program, so neither
// forms nor the metadata lie there. Source: RFC 8414 3.1, CONTRACT 1.11 "Pages".

import t from 'tap'
import type { SystemView } from '../../../cluster/actor-system.ts'
import type { Operation, OperationRequest } from '../../http/operation.ts'
import { Authorize } from './authorize.ts'
import type { AuthorizeOptions } from './authorize.ts'
import { FormSeal } from './form-seal.ts'
import { oauthOperations } from './routes.ts'
import type { OAuthParts } from './routes.ts'

const ASKED = { response_type: 'code', client_id: 'shop', redirect_uri: 'https://shop.example/cb' }

function operationsAt(baseUrl: string): readonly Operation[] {
  const properties = { name: 'Shop', redirectUris: [ASKED.redirect_uri] }
  const client = {
    properties: { ...properties, grantTypes: ['authorization_code'] },
    suspendedAt: null,
  }
  const random = (bytes: Uint8Array): void => void bytes.fill(7)
  const seal = new FormSeal({ secret: 's', random, nowMs: () => 0, baseUrl })
  const authorize = new Authorize({
    ...{ baseUrl, seal, external: null, ready: () => true },
    system: { get: () => ({ key: 'shop', version: 1, value: client }) } as unknown as SystemView,
  } as unknown as AuthorizeOptions)
  return oauthOperations({ authorize, baseUrl } as unknown as OAuthParts)
}

const WELL_KNOWN = '/.well-known/oauth-authorization-server'

for (const [baseUrl, action, places] of [
  ['https://orders.example', '/oauth/authorize', [WELL_KNOWN]],
  ['https://orders.example:8443', '/oauth/authorize', [WELL_KNOWN]],
  ['https://x.example/shop/orders', '/shop/orders/oauth/authorize', ['', '/shop/orders']],
  ['https://x.example/a{b}"c', '/a%7Bb%7D%22c/oauth/authorize', ['']],
] as const) {
  t.test(`forms and metadata at ${baseUrl}`, async (t) => {
    const operations = operationsAt(baseUrl)
    const open = operations.find(({ path, method }) => path.endsWith('rize') && method === 'GET')!
    const query = new URLSearchParams(ASKED)
    const { raw } = await open.handle({ query, header: () => '' } as unknown as OperationRequest)
    t.equal(/<form [^>]*action="([^"]*)"/.exec(String(raw))?.[1], action)
    const told = operations.filter(({ path }) => path.startsWith(WELL_KNOWN))
    t.same(
      told.map(({ path }) => path),
      places.map((place) => (place.startsWith('/.') ? place : `${WELL_KNOWN}${place}`)),
    )
    for (const one of told) {
      const { body } = await one.handle({} as OperationRequest)
      t.match(body, { issuer: baseUrl, token_endpoint: `${baseUrl}/oauth/token` })
    }
  })
}
