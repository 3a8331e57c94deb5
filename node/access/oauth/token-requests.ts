// The token endpoint: a client shows who it is and what it was given, and gets tokens. Source: RFC
// 6749 4.1.3, 4.4, 5, 6, RFC 7636 4.5, RFC 9700 2.1.1, CONTRACT 1.11.

import type { SystemView } from '../../../cluster/actor-system.ts'
import { Acl, formatAce, parseScope } from '../../../protocol/ace.ts'
import type { Ace } from '../../../protocol/ace.ts'
import { grantedScope } from '../../../protocol/granted-aces.ts'
import type { RateLimit } from '../../http/guard/rate-limit.ts'
import type { OperationResponse } from '../../http/operation.ts'
import type { AttributesOf } from '../authenticate.ts'
import { aclOfClient, isPublic, mayUseCodes } from '../client.ts'
import { cutTo, lacksAttribute } from '../permission.ts'
import type { GrantRefusal, IssuedTokens, Narrowed, SessionGrants } from '../sessions/grants.ts'
import type { CheckedClient } from './client-check.ts'
import type { People } from './people.ts'
import { OAuthError } from './request.ts'
import type { Form } from './request.ts'

export interface TokenRequestsOptions {
  readonly system: SystemView
  readonly sessions: SessionGrants
  readonly people: Pick<People, 'aclOf'>
  readonly attributesOf: AttributesOf
  /** Requests of one client in a minute; null: any number. */
  readonly rate: RateLimit | null
}

/** A request whose client is known. */
interface Asked extends CheckedClient {
  readonly form: Form
  readonly trace: string
}

export const TOKEN_HEADERS = { 'Cache-Control': 'no-store', Pragma: 'no-cache' } as const

/** 43 to 128 unreserved characters (RFC 7636 4.1). */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/
const GRANTS = ['authorization_code', 'client_credentials', 'refresh_token']

/** Before anything else of the request is looked at. */
export function readGrant(form: Form): string {
  const grant = form.get('grant_type')
  if (grant !== undefined) return grant
  throw new OAuthError('invalid_request', `grant_type is missing; use one of ${GRANTS.join(', ')}`)
}

export class TokenRequests {
  readonly #options: TokenRequestsOptions

  constructor(options: TokenRequestsOptions) {
    this.#options = options
  }

  /** Throws an OAuthError, or RequestError where it can't be told. */
  async answer(grant: string, asked: Asked): Promise<OperationResponse> {
    // One that shows nothing but its name could be used up by anybody: addresses count for it.
    const rate = asked.isShown ? this.#count(asked.clientId) : undefined
    const issued = await this.#issue(grant, asked)
    const scope = this.#told(issued, asked)
    return {
      status: 200,
      headers: { ...TOKEN_HEADERS, ...rate },
      body: {
        access_token: issued.accessToken,
        token_type: 'Bearer',
        expires_in: issued.expiresIn,
        ...(issued.refreshToken !== null && { refresh_token: issued.refreshToken }),
        scope,
      },
    }
  }

  /** Headers of the answer. Throws an OAuthError where it is one too many. */
  #count(clientId: string): Readonly<Record<string, string>> | undefined {
    const taken = this.#options.rate?.take(clientId)
    if (taken?.isOver !== true) return taken?.headers
    const why = `too many requests of this client in a minute; try again in ${taken.seconds} s`
    throw new OAuthError('temporarily_unavailable', why, {
      status: 429,
      headers: { ...taken.headers, 'Retry-After': String(taken.seconds) },
    })
  }

  #issue(grant: string, asked: Asked): Promise<IssuedTokens> {
    if (!GRANTS.includes(grant)) {
      const what = `grant_type "${grant}" is not known here; use one of ${GRANTS.join(', ')}`
      throw new OAuthError('unsupported_grant_type', what)
    }
    if (!mayUse(grant, asked)) {
      const what = `client "${asked.clientId}" is not registered for the grant ${grant}`
      throw new OAuthError('unauthorized_client', what)
    }
    if (grant === 'authorization_code') return this.#byCode(asked)
    return grant === 'refresh_token' ? this.#byRefreshToken(asked) : this.#byItself(asked)
  }

  async #byCode({ form, clientId, client, trace }: Asked): Promise<IssuedTokens> {
    const code = needed(form, 'code')
    const verifier = form.get('code_verifier') ?? null
    if (verifier !== null && !VERIFIER.test(verifier)) {
      const what = 'code_verifier should be 43 to 128 of A-Z a-z 0-9 - . _ ~'
      throw new OAuthError('invalid_request', what)
    }
    const use = {
      code,
      clientId,
      // What a request leaves out its token request leaves out as well.
      redirectUri: form.get('redirect_uri') ?? '',
      verifier,
      withRefresh: mayRefresh(client),
    }
    return issuedOr(await this.#options.sessions.exchange(use, { trace }))
  }

  async #byRefreshToken({ form, clientId, trace }: Asked): Promise<IssuedTokens> {
    const refreshToken = needed(form, 'refresh_token')
    const scope = form.get('scope')
    const narrowed = scope === undefined ? null : narrowTo(scope)
    const use = { refreshToken, clientId, narrowed }
    return issuedOr(await this.#options.sessions.refresh(use, { trace }))
  }

  #byItself({ form, clientId, client, trace, isShown }: Asked): Promise<IssuedTokens> {
    if (!isShown) {
      const what = 'client_credentials needs credentials: a secret, or an assertion'
      throw new OAuthError('invalid_client', what)
    }
    const { system, attributesOf, sessions } = this.#options
    const acl = aclOfClient(client, system, attributesOf(clientId))
    const scope = scopeWithin(acl, form.get('scope') ?? '')
    const grant = 'client_credentials' as const
    return sessions.open({ identity: clientId, kind: 'client', clientId, scope, grant }, { trace })
  }

  /**
   * What the token may do at this moment: its scope where all of that is the identity's to have,
   * else what is left of it; all that the identity has, written out, where it has no scope. A
   * session has what was agreed to, which may be more than the person has (RFC 6749 5.1).
   */
  #told({ session, scope }: IssuedTokens, { clientId, client }: Asked): string {
    const { system, attributesOf, people } = this.#options
    // Of a client's own scope this was looked at when it was asked for.
    if (session.kind === 'client' && scope !== null) return scope
    const acl =
      session.kind === 'principal'
        ? people.aclOf(session.identity, client)
        : aclOfClient(client, system, attributesOf(clientId))
    if (acl === null) return ''
    if (scope === null) return grantedScope(acl)
    const scopes = parseScope(scope)
    const isAll = scopes.ok && scopes.aces.every((ace) => mayHave(acl, ace))
    return isAll ? scope : grantedScope(cutTo(acl, scope))
  }
}

/** A client may use what it is registered for; a code brings its refresh token along. */
function mayUse(grant: string, { client }: CheckedClient): boolean {
  if (grant === 'authorization_code') return mayUseCodes(client)
  if (grant === 'refresh_token') return mayRefresh(client)
  return (client.properties.grantTypes as readonly string[]).includes(grant)
}

/**
 * Clients that keep a secret get a refresh token with each code (specification "Grants"), those
 * without where they are registered for it.
 */
function mayRefresh(client: CheckedClient['client']): boolean {
  if (client.properties.grantTypes.includes('refresh_token')) return true
  return mayUseCodes(client) && !isPublic(client)
}

function mayHave(acl: Acl, ace: Ace): boolean {
  return acl.coversAce(ace) && !lacksAttribute(acl, ace)
}

function needed(form: Form, name: string): string {
  const value = form.get(name)
  if (value !== undefined) return value
  throw new OAuthError('invalid_request', `${name} is missing`)
}

function issuedOr(answer: IssuedTokens | GrantRefusal): IssuedTokens {
  if ('refused' in answer) throw new OAuthError(answer.refused, answer.reason)
  return answer
}

/** Scopes are ACEs; none asked = all that the client has, as it will be (CONTRACT 1.14). */
function scopeWithin(acl: Acl, asked: string): string | null {
  const scopes = parseScope(asked)
  if (!scopes.ok) throw new OAuthError('invalid_scope', scopes.reason)
  if (scopes.aces.length === 0) return null
  for (const ace of scopes.aces) {
    if (lacksAttribute(acl, ace)) {
      const what = `"${formatAce(ace)}" would grant nothing: the client has no such attribute`
      throw new OAuthError('invalid_scope', what)
    }
    if (!acl.coversAce(ace)) {
      const what = `the client does not have "${formatAce(ace)}"; ask for less, or for no scope`
      throw new OAuthError('invalid_scope', what)
    }
  }
  return scopes.aces.map(formatAce).join(' ')
}

/** Less than what was agreed to, never more (RFC 6749 6). */
function narrowTo(asked: string): (granted: string | null) => Narrowed {
  const scopes = parseScope(asked)
  if (!scopes.ok) throw new OAuthError('invalid_scope', scopes.reason)
  const scope = scopes.aces.map(formatAce).join(' ')
  return (granted) => {
    if (scopes.aces.length === 0) return { ok: true, scope: granted }
    if (granted === null) return { ok: true, scope }
    const known = parseScope(granted)
    const acl = new Acl(known.ok ? known.aces : [])
    const wider = scopes.aces.find((ace) => !acl.coversAce(ace))
    if (wider === undefined) return { ok: true, scope }
    return { ok: false, reason: `"${formatAce(wider)}" is not in the scope that was agreed to` }
  }
}
