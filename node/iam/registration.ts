// Clients as they are registered: the members of RFC 7591, and which addresses they may be sent
// back to. Source: CONTRACT 1.8, RFC 7591 2 and 3.2.1, RFC 8252 7.

import { RequestError } from '../../protocol/errors.ts'
import { parseScope, formatAce } from '../../protocol/ace.ts'
import { authMethodOf } from '../access/client.ts'
import type { Client } from '../access/client.ts'
import type { RegistrationBody } from './bodies.ts'

/** Throws RequestError 400 where something is missing or can't be. */
export function propertiesOf(body: RegistrationBody): Client['properties'] {
  const name = body.name ?? body.client_name
  if (name === undefined) {
    throw new RequestError('MALFORMED_REQUEST', 'name is missing', { member: 'name' })
  }
  const { description, jwks, scope, token_endpoint_auth_method: method } = body
  const scopes = scope === undefined ? null : scopesOf(scope)
  const redirectUris = body.redirect_uris ?? []
  checkRedirects(redirectUris)
  return {
    name,
    ...(description !== undefined && { description }),
    redirectUris,
    grantTypes: body.grant_types ?? ['authorization_code'],
    ...(method !== undefined && { tokenEndpointAuthMethod: method }),
    ...(jwks !== undefined && { jwks }),
    ...(scopes !== null && { scopes }),
  }
}

function scopesOf(scope: string): string[] {
  const parsed = parseScope(scope)
  if (parsed.ok) return parsed.aces.map(formatAce)
  throw new RequestError('INVALID_PARAMETERS', `scope: ${parsed.reason}`, { member: 'scope' })
}

/**
 * Each is an absolute URI without a fragment: https or http, or of an app's own scheme, which has a
 * dot as in `com.example.app:/back` (RFC 8252 7.1), so that none runs scripts.
 */
export function checkRedirects(uris: readonly string[]): void {
  for (const [i, uri] of uris.entries()) {
    const why = wrongRedirect(uri)
    if (why === null) continue
    const member = `redirectUris.${i}`
    throw new RequestError('INVALID_PARAMETERS', `${member} ${why}`, { member })
  }
}

function wrongRedirect(uri: string): string | null {
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  if (/[\u0000-\u0020\u007f-\uffff\\]/.test(uri)) return 'holds characters that no URI has'
  const url = URL.parse(uri)
  if (url === null) return 'is no absolute URI'
  if (uri.includes('#')) return 'has a fragment'
  if (url.username !== '' || url.password !== '') return 'holds a user or a password'
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:'
  if (isWeb || /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:$/.test(url.protocol)) return null
  return 'needs https, http, or a scheme of its own with a dot: com.example.app:/back'
}

/** The answer of a registration; the only one that shows the secret. */
export function registered(
  clientId: string,
  client: Client,
  clientSecret: string | null,
): Record<string, unknown> {
  const { name, redirectUris, grantTypes, scopes, jwks } = client.properties
  return {
    clientId,
    client_id: clientId,
    client_id_issued_at: Math.floor(Date.parse(client.createdAt) / 1_000),
    ...(clientSecret !== null && { client_secret: clientSecret, client_secret_expires_at: 0 }),
    name,
    client_name: name,
    redirect_uris: redirectUris,
    grant_types: grantTypes,
    response_types: grantTypes.some(
      (grant) => grant === 'authorization_code' || grant === 'implicit',
    )
      ? ['code']
      : [],
    token_endpoint_auth_method: authMethodOf(client),
    ...(scopes !== undefined && { scope: scopes.join(' ') }),
    ...(jwks !== undefined && { jwks }),
    roles: client.roles,
  }
}
