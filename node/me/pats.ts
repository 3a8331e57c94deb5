// Personal access tokens: long-lived tokens of people, made with a client of theirs. They are
// sessions like all others, without a refresh token, and never wider than the session that makes
// them. Source: specification "Personal access tokens", CONTRACT 1.8.

import type { SystemView } from '../../cluster/actor-system.ts'
import { formatAce, parseScope } from '../../protocol/ace.ts'
import { RequestError } from '../../protocol/errors.ts'
import { grantedAces, grantedScope } from '../../protocol/granted-aces.ts'
import type { Access } from '../access/access.ts'
import type { Client } from '../access/client.ts'
import type { Identity } from '../access/identity.ts'
import { aclOfSession, lacksAttribute } from '../access/permission.ts'
import type { SessionRecord } from '../access/sessions/grants.ts'
import { standingOf } from '../access/sessions/standing.ts'
import type { OperationRequest } from '../http/operation.ts'

export interface PatsOptions {
  readonly system: SystemView
  readonly access: Pick<Access, 'sessions' | 'clientSecrets'>
  /** Wall clock, milliseconds. */
  readonly nowMs: () => number
}

/** A personal access token as its owner sees it; the token itself only once. */
export interface ShownPat {
  readonly keyId: string
  readonly description: string
  readonly issuedAt: string
  /** To the hour; null: never. */
  readonly lastUsedAt: string | null
  readonly expiresAt: string
  readonly scope: readonly string[]
  readonly active: boolean
  readonly accessToken?: string
}

export interface PatBody {
  readonly description?: string
  readonly scope?: string
  readonly expiresAt?: string
}

const YEAR_MS = 365 * 24 * 3_600_000

export class Pats {
  readonly #options: PatsOptions

  constructor(options: PatsOptions) {
    this.#options = options
  }

  async make(request: OperationRequest, body: PatBody): Promise<ShownPat> {
    const { identity, requestId: trace } = request
    if (identity.kind !== 'principal') {
      const what = 'personal access tokens are of principals; clients ask /oauth/token for theirs'
      throw new RequestError('FORBIDDEN', what)
    }
    const { address } = request
    const scope = this.#scopeOf(identity, body.scope ?? '')
    const expiresAtMs = this.#endOf(body.expiresAt)
    const clientId = await this.#clientOf(request, address)
    const issued = await this.#options.access.sessions.openPat(
      {
        ...{ identity: identity.id, kind: 'principal', clientId, scope },
        ...{ description: body.description ?? '', expiresAtMs },
      },
      { trace },
    )
    return { ...this.show(issued.session), accessToken: issued.accessToken }
  }

  /** Another end for a token that is still good. Throws RequestError 404, 422. */
  async renew(keyId: string, expiresAt: string, request: OperationRequest): Promise<ShownPat> {
    const { identity, requestId: trace } = request
    const untilMs = this.#endOf(expiresAt)
    await this.own(keyId, identity, trace)
    const renewed = await this.#options.access.sessions.renewPat(keyId, untilMs, { trace })
    if ('refused' in renewed) throw new RequestError(renewed.refused, renewed.reason)
    return this.show(renewed)
  }

  /** The caller's own token of that id. Throws RequestError 404: of another's no more is told. */
  async own(keyId: string, { id, kind }: Identity, trace: string): Promise<SessionRecord> {
    const found = await this.#options.access.sessions.read(keyId, { trace })
    if (found?.identity === id && found.kind === kind && found.grant === 'pat') return found
    throw new RequestError('NOT_FOUND', `you have no personal access token "${keyId}"`)
  }

  show(session: SessionRecord): ShownPat {
    const { sessionId: keyId, description, createdAtMs, lastUsedAtMs, expiresAtMs } = session
    const isUsed = lastUsedAtMs > createdAtMs
    return {
      ...{ keyId, description: description ?? '' },
      issuedAt: new Date(createdAtMs).toISOString(),
      lastUsedAt: isUsed ? new Date(lastUsedAtMs).toISOString() : null,
      expiresAt: new Date(expiresAtMs).toISOString(),
      scope: this.#shownScope(session),
      active: expiresAtMs > this.#options.nowMs(),
    }
  }

  #shownScope(session: SessionRecord): readonly string[] {
    if (session.scope !== null) return session.scope.split(' ')
    const standing = standingOf(session, this.#options.system)
    if (standing === null) return []
    const acl = aclOfSession(null, standing, this.#options.system)
    return grantedAces(acl).map(formatAce)
  }

  /** null: all that the principal has, as it will be; only where the session has no less. */
  #scopeOf({ acl, session }: Identity, asked: string): string | null {
    const scopes = parseScope(asked)
    if (!scopes.ok) throw invalid('scope', `is no list of ACEs: ${scopes.reason}`)
    if (scopes.aces.length === 0) {
      const client = this.#options.system.get<Client>('client', session.clientId)?.value
      const isCut = session.scope !== null || client?.properties.scopes !== undefined
      if (!isCut) return null
      return grantedScope(acl)
    }
    for (const ace of scopes.aces) {
      if (lacksAttribute(acl, ace)) {
        throw invalid('scope', `has "${formatAce(ace)}", but you have no such attribute`)
      }
      if (acl.coversAce(ace)) continue
      const what = `your session does not have "${formatAce(ace)}", so its tokens can not either`
      throw new RequestError('FORBIDDEN', what)
    }
    return scopes.aces.map(formatAce).join(' ')
  }

  /** A year ahead at most, by the calendar. */
  #endOf(expiresAt: string | undefined): number {
    const nowMs = this.#options.nowMs()
    if (expiresAt === undefined) return nowMs + YEAR_MS
    const endMs = Date.parse(expiresAt)
    if (!(endMs > nowMs)) throw invalid('expiresAt', 'must be a time that is still to come')
    const last = new Date(nowMs)
    last.setUTCFullYear(last.getUTCFullYear() + 1)
    if (endMs <= last.getTime()) return endMs
    throw invalid('expiresAt', `must be at most a year ahead: ${last.toISOString()}`)
  }

  async #clientOf(request: OperationRequest, address: string): Promise<string> {
    const clientId = request.header('x-client-id')
    const secret = request.header('x-client-secret')
    if (clientId === '' || secret === '') {
      const what = 'send the client that the token is for in X-Client-Id and X-Client-Secret'
      throw new RequestError('INVALID_PARAMETERS', what)
    }
    const { system, access } = this.#options
    const client = system.get<Client>('client', clientId)?.value ?? null
    const answer = await access.clientSecrets.check({ clientId, secret, address })
    if (typeof answer === 'object') {
      const seconds = Math.max(1, Math.ceil(answer.retryAfterMs / 1_000))
      const what = `the client's secret was not looked at; try again in ${seconds} s`
      throw new RequestError(answer.refused === 'busy' ? 'TOO_BUSY' : 'RATE_LIMITED', what)
    }
    if (answer === 'right' && client !== null && client.suspendedAt === null) return clientId
    throw new RequestError('FORBIDDEN', 'the client is not known, or its secret is another')
  }
}

function invalid(member: string, what: string): RequestError {
  return new RequestError('INVALID_PARAMETERS', `${member} ${what}`, { member })
}
