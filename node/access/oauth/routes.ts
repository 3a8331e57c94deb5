// The OAuth 2.0 endpoints. Bodies and codes are those of the RFCs, not the platform's. Source:
// specification "OAuth", CONTRACT 1.11, RFC 6749, 7009, 7662, 8414.

import { Type } from '@sinclair/typebox'
import { RequestError, isRetryable } from '../../../protocol/errors.ts'
import type { Operation, OperationRequest, OperationResponse } from '../../http/operation.ts'
import { unknowable } from '../authenticate.ts'
import type { Ready } from '../authenticate.ts'
import type { SessionGrants } from '../sessions/grants.ts'
import type { Authorize } from './authorize.ts'
import type { CheckedClient, ClientCheck } from './client-check.ts'
import type { Introspection } from './introspection.ts'
import type { IntrospectionRates } from './introspection-rates.ts'
import { CALLBACK_PATH } from './external-sign-in.ts'
import { metadata, metadataPaths } from './metadata.ts'
import { refusedPage } from './pages/pages.ts'
import { OAuthError, readForm, readShownClient } from './request.ts'
import type { Form } from './request.ts'
import { TOKEN_HEADERS, readGrant } from './token-requests.ts'
import type { TokenRequests } from './token-requests.ts'

export interface OAuthParts {
  readonly ready: Ready
  readonly sessions: SessionGrants
  readonly clients: ClientCheck
  readonly tokens: TokenRequests
  readonly authorize: Authorize
  readonly introspection: Introspection
  readonly introspectionRates: IntrospectionRates
  /** Public address, without a slash at its end. */
  readonly baseUrl: string
}

const TokenResponse = Type.Object({
  access_token: Type.String(),
  token_type: Type.Literal('Bearer'),
  expires_in: Type.Integer(),
  refresh_token: Type.Optional(Type.String()),
  scope: Type.String(),
})

const FORM = { type: 'form', required: true } as const
const SIGN_IN = { method: 'POST', access: 'none', body: FORM, rate: 'sign-in' } as const
const OF_CLIENTS = { ...SIGN_IN, errors: 'oauth' } as const

const AUTHORIZE_PARAMETERS = [
  ['response_type', 'code'],
  ['client_id', 'Who asks'],
  ['redirect_uri', 'Where the answer goes: one that the client has registered'],
  ['scope', 'ACEs, separated by spaces; none: all that there is to have'],
  ['state', 'Comes back as it is'],
  ['code_challenge', 'base64url SHA-256 of the verifier (RFC 7636)'],
  ['code_challenge_method', 'S256'],
] as const

const CALLBACK_PARAMETERS = [
  ['state', 'As it was sent along'],
  ['code', 'Of the provider'],
  ['iss', 'Which provider answers (RFC 9207)'],
  ['error', 'Instead of a code: nobody was signed in there'],
] as const

export function oauthOperations(parts: OAuthParts): Operation[] {
  return [
    {
      method: 'GET',
      path: '/oauth/authorize',
      summary: 'Let a person sign in and agree (RFC 6749 4.1): pages, then a redirect with a code',
      access: 'none',
      parameters: AUTHORIZE_PARAMETERS.map(([name, description]) => ({
        name,
        description,
        in: 'query',
      })),
      handle: (request) => parts.authorize.open(request),
    },
    {
      ...SIGN_IN,
      errors: earlyRefusal,
      path: '/oauth/authorize',
      summary: 'The forms of those pages',
      handle: (request) => parts.authorize.send(request),
    },
    {
      method: 'GET',
      path: CALLBACK_PATH,
      summary: 'Where the external provider leads people back to (KONTOR_OIDC_ISSUER)',
      access: 'none',
      rate: 'sign-in',
      errors: earlyRefusal,
      parameters: CALLBACK_PARAMETERS.map(([name, description]) => ({
        name,
        description,
        in: 'query',
      })),
      handle: (request) => parts.authorize.return(request),
    },
    {
      ...OF_CLIENTS,
      path: '/oauth/token',
      summary: 'Issue tokens (RFC 6749): authorization_code, client_credentials, refresh_token',
      response: TokenResponse,
      handle: (request) => answered(whenReady(parts, request, issue)),
    },
    {
      ...OF_CLIENTS,
      path: '/oauth/revoke',
      summary: 'Revoke the session of a token (RFC 7009)',
      handle: (request) => answered(whenReady(parts, request, revoke)),
    },
    {
      ...OF_CLIENTS,
      rate: 'own',
      path: '/oauth/introspect',
      summary: 'What a token of its own is good for, for a client (RFC 7662)',
      handle: (request) => answered(whenReady(parts, request, introspect)),
    },
    ...metadataPaths(parts.baseUrl).map((path): Operation => ({
      method: 'GET',
      path,
      summary: 'Metadata of the authorization server (RFC 8414)',
      access: 'none',
      handle: () => ({ status: 200, body: metadata(parts.baseUrl) }),
    })),
  ]
}

/** People sent a form: what is refused before anybody looks at it is told on a page as well. */
function earlyRefusal(refused: RequestError): OperationResponse {
  return refusedPage(refused.message, refused.status)
}

/** What an endpoint has of its request; the address is read before anything is awaited. */
interface Asked {
  readonly request: OperationRequest
  readonly address: string
  readonly form: Form
}

/** A client or a token that this member has not heard of yet must not be called unknown. */
async function whenReady(
  parts: OAuthParts,
  request: OperationRequest,
  run: (parts: OAuthParts, asked: Asked) => Promise<OperationResponse>,
): Promise<OperationResponse> {
  const { address } = request
  if (!(await parts.ready())) throw unknowable()
  return run(parts, { request, address, form: readForm(request) })
}

/** Failures leave in the form of RFC 6749 5.2, whatever they were. */
async function answered(answer: Promise<OperationResponse>): Promise<OperationResponse> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof OAuthError) return error.response(TOKEN_HEADERS)
    if (!(error instanceof RequestError)) throw error
    // The store is away, or busy, or may have the session or not: asking again does no harm.
    const status = isRetryable(error.errors[0]!.code) ? error.status : 503
    return new OAuthError('temporarily_unavailable', error.message, {
      status,
      headers: { 'Retry-After': '1' },
    }).response(TOKEN_HEADERS)
  }
}

/** Null: it showed nothing of itself. */
async function clientOf(
  { clients }: OAuthParts,
  { request, form, address }: Asked,
): Promise<CheckedClient | null> {
  const shown = readShownClient(request.header('authorization'), form)
  return shown === null ? null : clients.check(shown, address)
}

async function issue(parts: OAuthParts, asked: Asked): Promise<OperationResponse> {
  const grant = readGrant(asked.form)
  const client = await clientOf(parts, asked)
  if (client === null) throw nobody()
  const { form, request } = asked
  return parts.tokens.answer(grant, { ...client, form, trace: request.requestId })
}

function nobody(): OAuthError {
  const what = 'send client_id and client_secret in the form, or by HTTP Basic, or an assertion'
  return new OAuthError('invalid_client', what)
}

async function revoke(parts: OAuthParts, asked: Asked): Promise<OperationResponse> {
  const token = asked.form.get('token')
  if (token === undefined) throw new OAuthError('invalid_request', 'token is missing')
  // Who holds a token may end it; what is shown of a client must be right all the same.
  const client = await clientOf(parts, asked)
  const found = await parts.sessions.find(token)
  if (found === null) return { status: 200, headers: TOKEN_HEADERS }
  if (client !== null && client.clientId !== found.clientId) {
    throw new OAuthError('unauthorized_client', 'the token was issued to another client')
  }
  await parts.sessions.end(found.sessionId, { trace: asked.request.requestId })
  return { status: 200, headers: TOKEN_HEADERS }
}

async function introspect(parts: OAuthParts, asked: Asked): Promise<OperationResponse> {
  const { form, address } = asked
  const { clientId, headers } = await parts.introspectionRates.admit(
    address,
    form.has('client_assertion'),
    async () => {
      const client = await clientOf(parts, asked)
      if (client === null || !client.isShown) throw nobody()
      return client
    },
  )
  const token = form.get('token')
  if (token === undefined) throw new OAuthError('invalid_request', 'token is missing')
  const body = await parts.introspection.of(token, clientId, address)
  return { status: 200, headers: { ...TOKEN_HEADERS, ...headers }, body }
}
