// Authentication of a request: from the Authorization header to an Identity. Tokens that were good
// are kept in a bounded cache with what their session's owner told; that counts for a lease, and
// the owner is asked anew in the middle of it, so that nobody waits. Whether the session was
// revoked, whether its identity and client still stand, and what they may, is asked of the system
// maps at every request; a member that can't go by those answers 503, for every token. node/http
// calls it for every operation that wants a token. Source: CONTRACT 1.11, PROTOCOL 3.0.

import { timingSafeEqual } from 'node:crypto'
import type { SystemView } from '../../cluster/actor-system.ts'
import { LIMITS } from '../../config/limits.ts'
import type { Attributes } from '../../protocol/attributes.ts'
import { RequestError } from '../../protocol/errors.ts'
import { CompiledAcls } from './compiled-acls.ts'
import type { Identity } from './identity.ts'
import { LookUps } from './look-ups.ts'
import type { LookUp } from './look-ups.ts'
import { REVOCATION } from './sessions/revocation.ts'
import type { Revocations } from './sessions/revocation.ts'
import type { LiveSession } from './sessions/session-state.ts'
import { standingOf, stillStanding } from './sessions/standing.ts'
import type { Standing } from './sessions/standing.ts'
import { isTokenOf, readToken, sessionPart, sessionPartOf } from './token.ts'
import type { ReadToken } from './token.ts'

export interface AuthenticatorOptions {
  readonly system: SystemView
  readonly revocations: Pick<Revocations, 'has'>
  /** Wall clock, and one that never goes back, milliseconds. */
  readonly nowMs: () => number
  readonly monotonicMs: () => number
  readonly ready: Ready
  /** What a client is said to be; it may not change without a change of the client. */
  readonly attributesOf: AttributesOf
  /** A session as its owner has it; null: none. Throws RequestError when it can't be told. */
  readonly read: (sessionId: string) => Promise<LiveSession | null>
  /** The session is used, and that was not written down for a while. */
  readonly used: (sessionId: string) => void
  /** A token of the session was looked at: now and then while it is used, not at each request. */
  readonly active: (session: LiveSession) => void
}

/** Access attributes of an identity, by its id. */
export type AttributesOf = (identity: string) => Attributes

/**
 * Whether this member may go by the system maps now; a promise while it looks into their log.
 * False: it can't know whether a session still stands, which is 503, never 401.
 */
export type Ready = () => boolean | Promise<boolean>

type Answer = Identity | RequestError

interface Known {
  readonly token: Buffer
  readonly sessionId: string
  readonly session: LiveSession
  /** ACEs of this token. */
  readonly scope: string | null
  /** From then on the token is over, by the wall clock. */
  readonly untilMs: number
  /** From then on its owner must be asked again, by the monotonic clock. */
  readonly leaseMs: number
}

/** What was worked out, and of which values: each change of an identity is another value. */
interface Made {
  readonly identity: Identity
  readonly of: Standing
}

const NOWHERE = (): string => ''

const BEARER = /^bearer +(\S+) *$/i

export class Authenticator {
  readonly #options: AuthenticatorOptions
  readonly #lookUps: LookUps
  /** By the session's name in its token, oldest first. */
  readonly #known = new Map<string, Known>()
  #scopeChars = 0
  readonly #acls: CompiledAcls
  /** Of tokens at hand; after a change of a role all are made anew. */
  #identities = new Map<Known, Made>()
  readonly #unfollow: readonly (() => void)[]
  readonly #scratch = Buffer.alloc(64)

  constructor(options: AuthenticatorOptions) {
    this.#options = options
    const { read, monotonicMs, system } = options
    this.#lookUps = new LookUps({ read, nowMs: monotonicMs })
    // What nobody asks for again must not hold on to what it was.
    this.#acls = new CompiledAcls(system, () => void (this.#identities = new Map()))
    this.#unfollow = [
      system.onChange(REVOCATION, (key) => this.forget(key)),
      system.onChange('role', () => this.#acls.drop()),
    ]
  }

  stop(): void {
    for (const unfollow of this.#unfollow) unfollow()
  }

  /** Number of tokens at hand. */
  get size(): number {
    return this.#known.size
  }

  /**
   * Who sent this header; a RequestError (401, or 503 while that can't be told) is returned. The
   * address is asked for where a stranger's token has to be looked up.
   */
  authenticate(authorization: string, addressOf: () => string = NOWHERE): Answer | Promise<Answer> {
    const token = tokenOf(authorization)
    if (token === null) {
      return authorization === ''
        ? refusal('send an access token: Authorization: Bearer <ACCESS_TOKEN>')
        : refusal('the Authorization header holds no bearer token: Bearer <ACCESS_TOKEN>')
    }
    const ready = this.#options.ready()
    if (ready === true) return this.#identify(token, addressOf)
    if (ready === false) return unknowable()
    return ready.then((isReady) => (isReady ? this.#identify(token, addressOf) : unknowable()))
  }

  #identify(token: string, addressOf: () => string): Answer | Promise<Answer> {
    const known = this.#known.get(sessionPart(token))
    if (known === undefined || !this.#same(token, known.token))
      return this.#lookUp(token, addressOf)
    if (known.untilMs <= this.#options.nowMs()) {
      this.#drop(known)
      return expired()
    }
    const leftMs = known.leaseMs - this.#options.monotonicMs()
    if (leftMs <= 0) return this.#found(token, this.#lookUps.again(known.sessionId))
    if (leftMs < LIMITS.access.tokenLeaseMs / 2) this.#askAhead(token, known)
    return this.#identityOf(known)
  }

  /** Takes in a token just issued. `askedMs`: monotonic time before its session was asked. */
  remember(
    token: string,
    { sessionId, session, askedMs }: { sessionId: string; session: LiveSession; askedMs: number },
  ): void {
    const read = readToken(token)
    if (read !== null) this.#take(token, read, { session, askedMs }, sessionId)
  }

  /** Forgets a session that was ended: no longer does anything count that was asked before. */
  forget(sessionId: string): void {
    this.#lookUps.over(sessionId)
    const known = this.#known.get(sessionPartOf(sessionId))
    if (known !== undefined) this.#drop(known)
  }

  #same(token: string, kept: Buffer): boolean {
    if (token.length !== kept.length) return false
    this.#scratch.write(token, 'latin1')
    return timingSafeEqual(this.#scratch, kept)
  }

  #lookUp(token: string, addressOf: () => string): Answer | Promise<Answer> {
    const read = readToken(token)
    if (read === null || this.#options.revocations.has(read.sessionId)) return unknown()
    const found = this.#lookUps.forStranger(read.sessionId, addressOf())
    if (found !== null) return this.#found(token, found)
    return new RequestError('UNAVAILABLE', 'too many tokens are being looked up; try again')
  }

  /** What was asked has come back; meanwhile all may have changed that it depends on. */
  async #found(token: string, asked: Promise<LookUp>): Promise<Answer> {
    let found: LookUp
    try {
      found = await asked
    } catch (error) {
      if (error instanceof RequestError) return unknowable()
      throw error
    }
    if (!(await this.#options.ready())) return unknowable()
    const read = readToken(token)!
    const who = this.#take(token, read, found, read.sessionId)
    if (!(who instanceof RequestError)) this.#writeUse(read.sessionId, found.session!)
    return who
  }

  #take(token: string, read: ReadToken, found: LookUp, sessionId: string): Answer {
    const { session, askedMs } = found
    const before = this.#known.get(sessionPart(token))
    const kept = session === null ? null : keptOf(read, session)
    if (session === null || kept === null || this.#options.revocations.has(sessionId)) {
      // Another token of the session may be the one that is good.
      if (before !== undefined && this.#same(token, before.token)) this.#drop(before)
      return unknown()
    }
    if (kept.untilMs <= this.#options.nowMs()) {
      if (before !== undefined && this.#same(token, before.token)) this.#drop(before)
      return expired()
    }
    if (before !== undefined) this.#drop(before)
    const leaseMs = askedMs + LIMITS.access.tokenLeaseMs
    const bytes = Buffer.from(token, 'latin1')
    const known: Known = { ...kept, leaseMs, sessionId, session, token: bytes }
    const who = this.#identityOf(known)
    if (!(who instanceof RequestError)) this.#keep(known)
    if (!(who instanceof RequestError)) this.#options.active(session)
    return who
  }

  /** In the middle of the lease: who uses the token all the time never waits for its owner. */
  #askAhead(token: string, known: Known): void {
    // Once; if it can't be told the end of the lease is the end.
    if (this.#lookUps.isUnderWay(known.sessionId)) return
    const found = this.#found(token, this.#lookUps.again(known.sessionId))
    // Who asks when the lease is over is told what is wrong.
    found.catch(() => undefined)
  }

  #writeUse(sessionId: string, { grant, createdAtMs, usedAtMs }: LiveSession): void {
    const { nowMs, used } = this.#options
    // Of a personal access token people see whether it was used at all.
    const isFirst = grant === 'pat' && usedAtMs === createdAtMs
    if (isFirst || usedAtMs + LIMITS.access.sessionUsedEveryMs <= nowMs()) used(sessionId)
  }

  #keep(known: Known): void {
    const { tokenCacheMax, aclScopesCharsMax } = LIMITS.access
    this.#scopeChars += charsOf(known)
    this.#known.set(sessionPartOf(known.sessionId), known)
    for (const oldest of this.#known.values()) {
      if (this.#known.size <= tokenCacheMax && this.#scopeChars <= aclScopesCharsMax) break
      this.#drop(oldest)
    }
  }

  #drop(known: Known): void {
    const part = sessionPartOf(known.sessionId)
    if (this.#known.get(part) !== known) return
    this.#known.delete(part)
    this.#identities.delete(known)
    this.#scopeChars -= charsOf(known)
  }

  #identityOf(known: Known): Answer {
    const { session, sessionId, scope, untilMs } = known
    const { system, attributesOf } = this.#options
    const now = standingOf(session, system)
    const made = this.#identities.get(known)
    if (made !== undefined && now !== null) {
      const { client, principal } = made.of
      if (client === now.client && principal === now.principal) return made.identity
    }
    const { kind, identity: id, clientId, eras } = session
    const of = stillStanding(session, system)
    if (of === null) {
      this.#drop(known)
      return refusal(`the ${kind} of this access token, or its client, is gone or suspended`)
    }
    const acl = this.#acls.of(scope, of, attributesOf(id))
    const identity: Identity = {
      ...{ id, kind, sessionId, grant: session.grant, expiresAtMs: untilMs, acl },
      session: { id: sessionId, kind, clientId, scope, eras },
    }
    this.#identities.set(known, { identity, of })
    return identity
  }
}

function charsOf({ scope, session }: Known): number {
  return (scope?.length ?? 0) + (session.scope?.length ?? 0)
}

/** What the session keeps of this access token; null: it is none of it. */
function keptOf(
  read: ReadToken,
  { access, former }: LiveSession,
): { readonly untilMs: number; readonly scope: string | null } | null {
  const kept = [access, former].find((one) => one !== null && isTokenOf(read, one.hash))
  return kept ? { untilMs: kept.untilMs, scope: kept.scope } : null
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

function unknown(): RequestError {
  return refusal('the access token is not known: it was revoked, or is none of ours')
}

function expired(): RequestError {
  return refusal('the access token has expired; ask /oauth/token for a new one')
}

function refusal(message: string): RequestError {
  return new RequestError('UNAUTHENTICATED', message)
}
