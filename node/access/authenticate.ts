// Authentication of a request: from the Authorization header to an Identity, out of the system
// maps, at once as long as these may be believed. node/http calls it for every operation that wants
// a token. Tokens that were good are kept in a bounded cache, which forgets them when their
// session, or anything that decides what they may do, changes; a member that can't know of such
// changes asks neither. Source: CONTRACT 1.11, PROTOCOL 3.0.

import { timingSafeEqual } from 'node:crypto'
import type { SystemEntry, SystemView } from '../../cluster/actor-system.ts'
import { LIMITS } from '../../config/limits.ts'
import type { Acl } from '../../protocol/ace.ts'
import type { Attributes } from '../../protocol/attributes.ts'
import { RequestError } from '../../protocol/errors.ts'
import type { Client } from './client.ts'
import type { Identity } from './identity.ts'
import { aclOfSession } from './permission.ts'
import type { Session } from './session.ts'
import { isTokenOf, readToken, sessionPart, sessionPartOf } from './token.ts'

export interface AuthenticatorOptions {
  readonly system: SystemView
  /** Wall clock, milliseconds. */
  readonly nowMs: () => number
  readonly ready: Ready
  /** What an identity is said to be; it may not change without a change of the identity. */
  readonly attributesOf: AttributesOf
}

/** Access attributes of an identity, by its id. */
export type AttributesOf = (identity: string) => Attributes

/**
 * Whether this member may go by the system maps now; a promise while it looks into their log.
 * False: it can't know whether a session still stands, which is 503, never 401.
 */
export type Ready = () => boolean | Promise<boolean>

interface Known {
  readonly token: Buffer
  readonly identity: Identity
  /** From then on the maps decide. */
  readonly untilMs: number
}

const BEARER = /^bearer +(\S+) *$/i

export class Authenticator {
  readonly #options: AuthenticatorOptions
  /** By the session's name in its token, oldest first. */
  readonly #known = new Map<string, Known>()
  /** By identity and scope: sessions that may do the same share one set and its memory. */
  readonly #acls = new Map<string, Acl>()
  #aclChars = 0
  readonly #unfollow: readonly (() => void)[]
  readonly #scratch = Buffer.alloc(64)

  constructor(options: AuthenticatorOptions) {
    this.#options = options
    const forgetAll = (): void => {
      this.#known.clear()
      this.#forgetAcls()
    }
    this.#unfollow = [
      options.system.onChange('session', (key) => this.#known.delete(sessionPartOf(key))),
      options.system.onChange('client', forgetAll),
      options.system.onChange('role', forgetAll),
    ]
  }

  stop(): void {
    for (const unfollow of this.#unfollow) unfollow()
  }

  /** Number of tokens at hand. */
  get size(): number {
    return this.#known.size
  }

  /** Who sent this header; a RequestError (401, or 503 while that can't be told) is returned. */
  authenticate(authorization: string): Identity | RequestError | Promise<Identity | RequestError> {
    const token = tokenOf(authorization)
    if (token === null) {
      return authorization === ''
        ? refusal('send an access token: Authorization: Bearer <ACCESS_TOKEN>')
        : refusal('the Authorization header holds no bearer token: Bearer <ACCESS_TOKEN>')
    }
    const ready = this.#options.ready()
    if (ready === true) return this.#identify(token)
    if (ready === false) return unknowable()
    return ready.then((isReady) => (isReady ? this.#identify(token) : unknowable()))
  }

  #identify(token: string): Identity | RequestError {
    const part = sessionPart(token)
    const known = this.#known.get(part)
    if (known !== undefined && this.#same(token, known.token)) {
      if (known.untilMs > this.#options.nowMs()) return known.identity
      this.#known.delete(part)
    }
    return this.#lookUp(token)
  }

  /**
   * Takes in a token just issued: it is good at once, before the maps show its session. For as long
   * as they may be behind, and no longer: what they never showed they can't take back.
   */
  remember(token: string, sessionId: string, session: Session): void {
    const { system, nowMs } = this.#options
    if (system.get('session', sessionId) !== null) return
    const identity = this.#identityOf(sessionId, session)
    const untilMs = Math.min(nowMs() + LIMITS.cluster.systemStaleMs, Date.parse(session.expiresAt))
    if (identity !== null) this.#keep(token, identity, untilMs)
  }

  /** Forgets a session that was just ended, before the maps show it. */
  forget(sessionId: string): void {
    this.#known.delete(sessionPartOf(sessionId))
  }

  #same(token: string, kept: Buffer): boolean {
    if (token.length !== kept.length) return false
    this.#scratch.write(token, 'latin1')
    return timingSafeEqual(this.#scratch, kept)
  }

  #lookUp(token: string): Identity | RequestError {
    const { system, nowMs } = this.#options
    const read = readToken(token)
    const entry: SystemEntry<Session> | null =
      read === null ? null : system.get<Session>('session', read.sessionId)
    if (read === null || entry === null || !isTokenOf(read, entry.value.accessTokenHash)) {
      return refusal('the access token is not known: it was revoked, or is none of ours')
    }
    const expiresAtMs = Date.parse(entry.value.expiresAt)
    if (expiresAtMs <= nowMs()) {
      return refusal('the access token has expired; ask /oauth/token for a new one')
    }
    const identity = this.#identityOf(read.sessionId, entry.value)
    if (identity === null) {
      return refusal(`the ${entry.value.kind} of this access token is gone or suspended`)
    }
    this.#keep(token, identity, expiresAtMs)
    return identity
  }

  #keep(token: string, identity: Identity, untilMs: number): void {
    if (this.#known.size >= LIMITS.access.tokenCacheMax) {
      for (const oldest of this.#known.keys()) {
        this.#known.delete(oldest)
        break
      }
    }
    this.#known.set(sessionPart(token), {
      token: Buffer.from(token, 'latin1'),
      identity,
      untilMs,
    })
  }

  /** null: the identity is gone or suspended, and its tokens with it. */
  #identityOf(sessionId: string, session: Session): Identity | null {
    if (session.kind !== 'client') return null
    const client = this.#options.system.get<Client>('client', session.identity)
    if (client === null || client.value.suspendedAt !== null) return null
    const acl = this.#aclOf(session, client.value)
    return { id: session.identity, kind: session.kind, sessionId, acl }
  }

  #aclOf(session: Session, client: Client): Acl {
    const key = `${session.identity}\n${session.scope ?? ''}`
    const known = this.#acls.get(key)
    if (known !== undefined) return known
    const attributes = this.#options.attributesOf(session.identity)
    const acl = aclOfSession(session, client, this.#options.system, attributes)
    const { tokenCacheMax, aclScopesCharsMax } = LIMITS.access
    const isFull = this.#acls.size >= tokenCacheMax || this.#aclChars >= aclScopesCharsMax
    if (isFull) this.#forgetAcls()
    this.#acls.set(key, acl)
    this.#aclChars += key.length
    return acl
  }

  #forgetAcls(): void {
    this.#acls.clear()
    this.#aclChars = 0
  }
}

/**
 * The token of `Bearer <token>`; the usual spelling is taken apart without a regular expression.
 */
function tokenOf(authorization: string): string | null {
  if (authorization.length === 71 && authorization.startsWith('Bearer ')) {
    return authorization.slice(7)
  }
  return BEARER.exec(authorization)?.[1] ?? null
}

/** Of a member that does not know what was changed of late. */
export function unknowable(): RequestError {
  return new RequestError('UNAVAILABLE', 'tokens cannot be checked at the moment; try again')
}

function refusal(message: string): RequestError {
  return new RequestError('UNAUTHENTICATED', message)
}
