// An authorization request: what an application asks of a person, read and checked before anything
// is shown. Until client and redirect are known to belong together nothing is sent anywhere: the
// person is told on a page. From then on the application hears what is wrong. Source: RFC 6749
// 4.1.1, 4.1.2.1, RFC 7636 4.3, 4.4.1, RFC 9207, CONTRACT 1.11.

import type { ConfigurationView } from '../../../protocol/behaviour.ts'
import { LIMITS } from '../../../config/limits.ts'
import { formatAce, parseScope } from '../../../protocol/ace.ts'
import type { ScopeResult } from '../../../protocol/ace.ts'
import { isPublic, mayUseCodes } from '../client.ts'
import type { Client } from '../client.ts'
import { isRegistered } from './redirects.ts'

export interface AuthorizeRequest {
  readonly clientId: string
  /** Where the answer goes. */
  readonly redirectUri: string
  /** It was named; then the token request names it again (RFC 6749 4.1.3). */
  readonly redirectNamed: boolean
  /** ACEs as they are written (`formatAce`); null: all that there is to have. */
  readonly scope: string | null
  readonly state: string | null
  /** base64url SHA-256 of the verifier; null: a client with a secret that asked without. */
  readonly challenge: string | null
}

export type AuthorizeErrorCode =
  | 'invalid_request'
  | 'unauthorized_client'
  | 'access_denied'
  | 'unsupported_response_type'
  | 'invalid_scope'
  | 'server_error'
  | 'temporarily_unavailable'

/** Told to the application, by redirect. */
export interface Refused {
  readonly error: AuthorizeErrorCode
  readonly description: string
  readonly redirectUri: string
  readonly state: string | null
}

export type ReadRequest =
  | { readonly is: 'good'; readonly request: AuthorizeRequest; readonly client: Client }
  /** Told to the person: there is no place that an answer may go to. */
  | { readonly is: 'hopeless'; readonly reason: string }
  | { readonly is: 'refused'; readonly refused: Refused }

const CHALLENGE = /^[A-Za-z0-9_-]{43}$/

export function readAuthorizeRequest(
  parameters: URLSearchParams,
  system: ConfigurationView,
): ReadRequest {
  const hopeless = (reason: string): ReadRequest => ({ is: 'hopeless', reason })
  const given = new Given(parameters)
  if (given.isTwice('client_id')) return hopeless('client_id is given twice')
  if (given.isTwice('redirect_uri')) return hopeless('redirect_uri is given twice')
  const clientId = given.get('client_id')
  if (clientId === null) return hopeless('client_id is missing')
  const client = system.get<Client>('client', clientId)?.value ?? null
  if (client === null || client.suspendedAt !== null) {
    return hopeless('the application (client_id) is not known here')
  }
  const asked = given.get('redirect_uri')
  const { redirectUris } = client.properties
  // One that is left out is the only one (RFC 6749 3.1.2.3).
  const redirectUri = asked ?? (redirectUris.length === 1 ? redirectUris[0]! : null)
  if (redirectUri === null) return hopeless('redirect_uri is missing')
  if (!isRegistered(redirectUri, client)) {
    return hopeless('redirect_uri is none of those that the application has registered')
  }
  const place = { redirectUri, state: given.isTwice('state') ? null : given.get('state') }
  const wrong = faultOf(given, client)
  if (wrong !== null) return { is: 'refused', refused: { ...wrong, ...place } }
  const scopes = readScope(given.get('scope') ?? '')
  if (!scopes.ok) {
    const refused = { error: 'invalid_scope', description: scopes.reason, ...place } as const
    return { is: 'refused', refused }
  }
  const scope = scopes.aces.length === 0 ? null : scopes.aces.map(formatAce).join(' ')
  const challenge = given.get('code_challenge')
  const request = { clientId, redirectNamed: asked !== null, scope, challenge, ...place }
  return { is: 'good', request, client }
}

/** It travels with the form of each page, so it is shorter here than at the token endpoint. */
function readScope(text: string): ScopeResult {
  const { oauthScopeCharsMax } = LIMITS.access
  if (text.length <= oauthScopeCharsMax) return parseScope(text)
  return { ok: false, reason: `a scope has at most ${oauthScopeCharsMax} characters here` }
}

function faultOf(
  given: Given,
  client: Client,
): { readonly error: AuthorizeErrorCode; readonly description: string } | null {
  const wrong = (error: AuthorizeErrorCode, description: string) => ({ error, description })
  const twice = given.twice
  if (twice !== null) return wrong('invalid_request', `${twice} is given twice`)
  const state = given.get('state') ?? ''
  if (state.length > LIMITS.access.oauthStateCharsMax) {
    const most = `state has at most ${LIMITS.access.oauthStateCharsMax} characters`
    return wrong('invalid_request', most)
  }
  if (state.includes('\ufffd')) return wrong('invalid_request', 'state is not UTF-8')
  const type = given.get('response_type')
  if (type === null) return wrong('invalid_request', 'response_type is missing; use code')
  if (type !== 'code') return wrong('unsupported_response_type', 'response_type should be code')
  const mode = given.get('response_mode')
  if (mode !== null && mode !== 'query') {
    return wrong('invalid_request', 'response_mode should be query, or left out')
  }
  if (!mayUseCodes(client)) {
    return wrong('unauthorized_client', 'the client is not registered for authorization_code')
  }
  return pkceFaultOf(given, client)
}

/** A challenge is of S256; `plain` protects nothing once a request was seen (RFC 9700 2.1.1). */
function pkceFaultOf(
  given: Given,
  client: Client,
): { readonly error: AuthorizeErrorCode; readonly description: string } | null {
  const wrong = (description: string) => ({ error: 'invalid_request', description }) as const
  const challenge = given.get('code_challenge')
  const method = given.get('code_challenge_method')
  if (challenge === null) {
    if (method !== null) return wrong('code_challenge is missing')
    if (!isPublic(client)) return null
    return wrong('code_challenge is missing: a client without secret sends one (PKCE, S256)')
  }
  if (method !== 'S256') return wrong('code_challenge_method should be S256')
  if (CHALLENGE.test(challenge)) return null
  return wrong('code_challenge should be 43 characters: base64url of a SHA-256')
}

/** Parameters by name; empty ones count as absent (RFC 6749 3.1). */
class Given {
  readonly #parameters: URLSearchParams

  constructor(parameters: URLSearchParams) {
    this.#parameters = parameters
  }

  get(name: string): string | null {
    return this.#parameters.get(name) || null
  }

  isTwice(name: string): boolean {
    return this.#parameters.getAll(name).length > 1
  }

  /** The first that is given twice (RFC 6749 3.1), as far as it is one of ours. */
  get twice(): string | null {
    return KNOWN.find((name) => this.isTwice(name)) ?? null
  }
}

const KNOWN = [
  ...['response_type', 'response_mode', 'scope', 'state'],
  ...['code_challenge', 'code_challenge_method'],
]
