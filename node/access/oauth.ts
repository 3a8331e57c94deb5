// The OAuth 2.0 endpoints: tokens by client credentials, revocation, discovery. Bodies and codes
// are those of RFC 6749, 7009 and 8414, not the platform's. Source: specification "OAuth", CONTRACT
// 1.11.

import { Type } from '@sinclair/typebox'
import type { SystemView } from '../../cluster/actor-system.ts'
import { formatAce, parseScope } from '../../protocol/ace.ts'
import type { Acl } from '../../protocol/ace.ts'
import { RequestError, isRetryable } from '../../protocol/errors.ts'
import type { Operation, OperationRequest, OperationResponse } from '../http/operation.ts'
import { unknowable } from './authenticate.ts'
import type { AttributesOf, Ready } from './authenticate.ts'
import { aclOfClient } from './client.ts'
import type { Client } from './client.ts'
import { OAuthError, readClientCredentials, readForm } from './oauth-request.ts'
import type { Form } from './oauth-request.ts'
import type { SessionGrants } from './sessions/grants.ts'
import type { SignInAnswer, SignIns } from './sign-ins.ts'

export interface OAuthOptions {
  readonly system: SystemView
  readonly sessions: SessionGrants
  readonly signIns: SignIns
  readonly ready: Ready
  readonly attributesOf: AttributesOf
  /** Wall clock, milliseconds. */
  readonly nowMs: () => number
  /** Public address, without a slash at its end. */
  readonly baseUrl: string
}

const NO_STORE = { 'Cache-Control': 'no-store', Pragma: 'no-cache' }

const TokenResponse = Type.Object({
  access_token: Type.String(),
  token_type: Type.Literal('Bearer'),
  expires_in: Type.Integer(),
  scope: Type.String(),
})

const FORM = { type: 'form', required: true } as const

export function oauthOperations(options: OAuthOptions): Operation[] {
  return [
    {
      method: 'POST',
      path: '/oauth/token',
      summary: 'Issue an access token (RFC 6749): grant_type=client_credentials',
      access: 'none',
      body: FORM,
      errors: 'oauth',
      response: TokenResponse,
      handle: (request) => answered(whenReady(options, request, issueToken)),
    },
    {
      method: 'POST',
      path: '/oauth/revoke',
      summary: 'Revoke the session of a token (RFC 7009)',
      access: 'none',
      body: FORM,
      errors: 'oauth',
      handle: (request) => answered(whenReady(options, request, revokeToken)),
    },
    {
      method: 'GET',
      path: '/.well-known/oauth-authorization-server',
      summary: 'Metadata of the authorization server (RFC 8414)',
      access: 'none',
      handle: () => ({ status: 200, body: metadata(options.baseUrl) }),
    },
  ]
}

/** What an endpoint has of its request; the address is read before anything is awaited. */
interface Asked {
  readonly request: OperationRequest
  readonly address: string
}

/** A client or a token that this member has not heard of yet must not be called unknown. */
async function whenReady(
  options: OAuthOptions,
  request: OperationRequest,
  run: (options: OAuthOptions, asked: Asked) => Promise<OperationResponse>,
): Promise<OperationResponse> {
  const { address } = request
  if (await options.ready()) return run(options, { request, address })
  throw unknowable()
}

/** Failures leave in the form of RFC 6749 5.2, whatever they were. */
async function answered(answer: Promise<OperationResponse>): Promise<OperationResponse> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof OAuthError) return error.response(NO_STORE)
    if (!(error instanceof RequestError)) throw error
    // The store is away, or busy, or may have the session or not: asking again does no harm.
    const status = isRetryable(error.errors[0]!.code) ? error.status : 503
    return new OAuthError('temporarily_unavailable', error.message, {
      status,
      headers: { 'Retry-After': '1' },
    }).response(NO_STORE)
  }
}

async function issueToken(options: OAuthOptions, asked: Asked): Promise<OperationResponse> {
  const { request } = asked
  const form = readForm(request)
  const grant = form.get('grant_type')
  if (grant === undefined) {
    throw new OAuthError('invalid_request', 'grant_type is missing; client_credentials is known')
  }
  const { clientId, client } = await authenticateClient(options, asked, form)
  if (grant !== 'client_credentials') {
    throw new OAuthError(
      'unsupported_grant_type',
      `grant_type "${grant}" is not known here; use client_credentials`,
    )
  }
  if (!client.properties.grantTypes.includes(grant)) {
    throw new OAuthError(
      'unauthorized_client',
      `client "${clientId}" is not registered for the grant ${grant}`,
    )
  }
  const acl = aclOfClient(client, options.system, options.attributesOf(clientId))
  const scope = grantedScope(acl, form.get('scope') ?? '')
  const issued = await options.sessions.open(
    { identity: clientId, kind: 'client', clientId, grant, scope: scope.kept },
    { trace: request.requestId },
  )
  return {
    status: 200,
    headers: NO_STORE,
    body: {
      access_token: issued.accessToken,
      token_type: 'Bearer',
      expires_in: issued.expiresIn,
      scope: scope.shown,
    },
  }
}

/** Scopes are ACEs; none asked = all that the client has, as it will be (CONTRACT 1.14). */
function grantedScope(acl: Acl, asked: string): { kept: string | null; shown: string } {
  const scopes = parseScope(asked)
  if (!scopes.ok) throw new OAuthError('invalid_scope', scopes.reason)
  if (scopes.aces.length === 0) {
    return { kept: null, shown: acl.aces.map(formatAce).join(' ') }
  }
  for (const ace of scopes.aces) {
    if (ace.attribute !== null && !Object.hasOwn(acl.attributes, ace.attribute)) {
      const what = `"${formatAce(ace)}" would grant nothing: the client has no such attribute`
      throw new OAuthError('invalid_scope', what)
    }
    if (!acl.coversAce(ace)) {
      const what = `the client does not have "${formatAce(ace)}"; ask for less, or for no scope`
      throw new OAuthError('invalid_scope', what)
    }
  }
  const text = scopes.aces.map(formatAce).join(' ')
  return { kept: text, shown: text }
}

async function authenticateClient(
  { system, signIns, nowMs }: OAuthOptions,
  { request, address }: Asked,
  form: Form,
): Promise<{ clientId: string; client: Client }> {
  const credentials = readClientCredentials(request.header('authorization'), form)
  if (credentials === null) {
    throw new OAuthError(
      'invalid_client',
      'send client_id and client_secret in the form, or by HTTP Basic',
    )
  }
  const { clientId, clientSecret } = credentials
  const client = system.get<Client>('client', clientId)?.value ?? null
  const now = nowMs()
  const hashes = (client?.secrets ?? [])
    .filter((one) => one.expiresAt === null || Date.parse(one.expiresAt) > now)
    .map((one) => one.hash)
  const answer = await signIns.check({ clientId, secret: clientSecret, hashes, address })
  if (typeof answer === 'object') throw notChecked(answer)
  if (answer === 'wrong' || client === null || client.suspendedAt !== null) {
    throw new OAuthError('invalid_client', 'the client is not known, or its secret is another')
  }
  return { clientId, client }
}

/** Nothing was checked; the same is said whether there is such a client or not. */
function notChecked({ refused, retryAfterMs }: Exclude<SignInAnswer, string>): OAuthError {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1_000))
  const why =
    refused === 'busy'
      ? 'too many sign-ins at once'
      : 'too many wrong sign-ins from your address of late'
  return new OAuthError(
    'temporarily_unavailable',
    `${why}; the secret was not looked at: try again in ${seconds} s`,
    { status: 429, headers: { 'Retry-After': String(seconds) } },
  )
}

async function revokeToken(options: OAuthOptions, asked: Asked): Promise<OperationResponse> {
  const { request } = asked
  const form = readForm(request)
  const token = form.get('token')
  if (token === undefined) throw new OAuthError('invalid_request', 'token is missing')
  // Who holds a token may end it; credentials, when they are sent, must be right all the same.
  const sent = readClientCredentials(request.header('authorization'), form) !== null
  const caller = sent ? await authenticateClient(options, asked, form) : null
  const found = await options.sessions.find(token)
  if (found === null) return { status: 200, headers: NO_STORE }
  if (caller !== null && caller.clientId !== found.clientId) {
    throw new OAuthError('unauthorized_client', 'the token was issued to another client')
  }
  await options.sessions.end(found.sessionId, { trace: request.requestId })
  return { status: 200, headers: NO_STORE }
}

function metadata(baseUrl: string): Record<string, unknown> {
  const methods = ['client_secret_basic', 'client_secret_post']
  return {
    issuer: baseUrl,
    token_endpoint: `${baseUrl}/oauth/token`,
    token_endpoint_auth_methods_supported: methods,
    revocation_endpoint: `${baseUrl}/oauth/revoke`,
    revocation_endpoint_auth_methods_supported: ['none', ...methods],
    grant_types_supported: ['client_credentials'],
    response_types_supported: [],
    service_documentation: `${baseUrl}/openapi.json`,
  }
}
