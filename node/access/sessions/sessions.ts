// Sessions as the stations use them: it makes tokens, has their sessions' actors decide, and sees
// to it that an end is known everywhere. Source: specification "Tokens and sessions", CONTRACT 1.8,
// 1.11, PROTOCOL 3.0 "Sessions".

import type { ActorSystem } from '../../../cluster/actor-system.ts'
import type { World } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError, assert } from '../../../protocol/errors.ts'
import { familyOf, hashOf, isTokenOf, makeRefreshToken, makeToken, readToken } from '../token.ts'
import type { ReadToken } from '../token.ts'
import type {
  Authorization,
  CodeUse,
  GrantRefusal,
  IssuedTokens,
  RefreshUse,
  SessionGrants,
  SessionOrigin,
  SessionRecord,
  Subject,
} from './grants.ts'
import type { PushedOut } from './pushed-out.ts'
import { askActor, readSession } from './read.ts'
import type { Asked } from './read.ts'
import type { Revocations } from './revocation.ts'
import { SESSION } from './session.ts'
import { endOf, openedSession } from './session-state.ts'
import type {
  AuthorizeBody,
  Eras,
  ExchangeBody,
  LiveSession,
  MadeAnswer,
  OpenBody,
  RefreshBody,
  SessionAnswer,
} from './session-state.ts'
import { SESSION_LIST, sessionListId } from './session-list.ts'
import type { AddBody, ListedSession, SessionListAnswer } from './session-list.ts'
import { erasOf, standingOf, stillStanding } from './standing.ts'
import { takeBack } from './take-back.ts'

/** What knows tokens at this member (`authenticate.ts`). */
export interface TokenBook {
  /** A token was just issued; `askedMs`: monotonic time before its session was asked. */
  remember(token: string, known: { sessionId: string; session: LiveSession; askedMs: number }): void
  /** A session was just ended. */
  forget(sessionId: string): void
}

export interface SessionsOptions {
  readonly actorSystem: ActorSystem
  readonly world: World
  readonly revocations: Pick<Revocations, 'tell'>
  readonly book: TokenBook
  /** Life of an access token, and of a refresh token, milliseconds. */
  readonly accessTokenMs: number
  readonly refreshTokenMs: number
  /** Valid sessions of an identity were ended to make room for another of it. */
  readonly pushedOut: Pick<PushedOut, 'add'>
  /** Somebody signs in. */
  readonly active: (subject: Subject) => void
}

/** A personal access token to be made. Its client is authenticated already. */
export interface PatWish extends Subject {
  readonly description: string
  readonly expiresAtMs: number
}

export class Sessions implements SessionGrants {
  readonly #options: SessionsOptions
  /** Questions about tokens that anybody may have made up. */
  #asking = 0

  constructor(options: SessionsOptions) {
    this.#options = options
  }

  open(
    { grant, ...subject }: Subject & { readonly grant: 'client_credentials' },
    origin: SessionOrigin,
  ): Promise<IssuedTokens> {
    const life = { lifeMs: this.#options.accessTokenMs }
    return this.#open(subject, { grant, description: null, life }, origin)
  }

  /**
   * A personal access token; it has no refresh token. Throws RequestError INVALID_STATE where the
   * identity has as many as it may.
   */
  openPat(
    { description, expiresAtMs: untilMs, ...subject }: PatWish,
    origin: SessionOrigin,
  ): Promise<IssuedTokens> {
    return this.#open(subject, { grant: 'pat', description, life: { untilMs } }, origin)
  }

  async #open(
    subject: Subject,
    { life, ...as }: { grant: string; description: string | null; life: Life },
    { trace }: SessionOrigin,
  ): Promise<IssuedTokens> {
    const { world } = this.#options
    const { sessionId, token, hash } = makeToken(world.random)
    const eras = this.#erasOf(subject)
    const untilMs = 'untilMs' in life ? life.untilMs : world.clock.nowMs() + life.lifeMs
    await this.#list(subject, { sessionId, isPat: as.grant === 'pat', untilMs }, trace)
    const body: OpenBody = { subject, eras, ...as, access: { hash, ...life } }
    const askedMs = world.clock.monotonicMs()
    const origin = { by: subject.identity, trace }
    const atMs = await this.#make(sessionId, { type: 'open', body }, origin).catch((error) =>
      takeBack(this.#options.actorSystem, { subject, sessionId, trace, error }),
    )
    const session = openedSession(body, atMs)
    return this.#issued({ session, askedMs }, { sessionId, token, refreshToken: null })
  }

  async authorize(
    { redirectUri, challenge, ...subject }: Authorization,
    { trace }: SessionOrigin,
  ): Promise<{ readonly code: string }> {
    const { world } = this.#options
    const { sessionId, token: code, hash } = makeToken(world.random)
    const eras = this.#erasOf(subject)
    const untilMs = world.clock.nowMs() + LIMITS.access.codeMs
    await this.#list(subject, { sessionId, isPat: false, untilMs }, trace)
    const body: AuthorizeBody = { subject, eras, code: { hash, redirectUri, challenge } }
    const origin = { by: subject.identity, trace }
    await this.#make(sessionId, { type: 'authorize', body }, origin)
    this.#options.active(subject)
    return { code }
  }

  exchange(use: CodeUse, origin: SessionOrigin): Promise<IssuedTokens | GrantRefusal> {
    return this.#within(() => this.#exchange(use, origin))
  }

  async #exchange(use: CodeUse, { trace }: SessionOrigin): Promise<IssuedTokens | GrantRefusal> {
    const read = readToken(use.code)
    if (read === null) return invalidGrant('the code is not known')
    const { world, accessTokenMs, refreshTokenMs } = this.#options
    const { sessionId } = read
    const access = makeToken(world.random, sessionId)
    const next = use.withRefresh ? makeRefreshToken(world.random, sessionId, null) : null
    const { clientId, redirectUri, verifier } = use
    const body: ExchangeBody = {
      hash: hashOf(read),
      ...{ clientId, redirectUri, verifier, atMs: world.clock.nowMs() },
      access: { hash: access.hash, lifeMs: accessTokenMs },
      refresh: next && { hash: next.hash, family: next.family, lifeMs: refreshTokenMs },
    }
    const tokens = { sessionId, token: access.token, refreshToken: next?.token ?? null }
    return this.#rotate({ type: 'exchange', body }, tokens, { by: clientId, trace })
  }

  refresh(use: RefreshUse, origin: SessionOrigin): Promise<IssuedTokens | GrantRefusal> {
    return this.#within(() => this.#refresh(use, origin))
  }

  async #refresh(use: RefreshUse, { trace }: SessionOrigin): Promise<IssuedTokens | GrantRefusal> {
    const read = readToken(use.refreshToken)
    if (read === null) return invalidGrant('the refresh token is not known')
    const origin = { by: use.clientId, trace }
    const narrowed = use.narrowed === null ? null : await this.#narrow(use.narrowed, read, origin)
    if (narrowed?.ok === false) return { refused: 'invalid_scope', reason: narrowed.reason }
    const { world, accessTokenMs, refreshTokenMs } = this.#options
    const { sessionId } = read
    const access = makeToken(world.random, sessionId)
    const next = makeRefreshToken(world.random, sessionId, read)
    const body: RefreshBody = {
      ...{ hash: hashOf(read), family: familyOf(read), clientId: use.clientId },
      ...(narrowed && { scope: narrowed.scope }),
      atMs: world.clock.nowMs(),
      access: { hash: access.hash, lifeMs: accessTokenMs },
      refresh: { hash: next.hash, lifeMs: refreshTokenMs },
    }
    const tokens = { sessionId, token: access.token, refreshToken: next.token }
    return this.#rotate({ type: 'refresh', body }, tokens, origin)
  }

  /** Only where the token is the newest: what was used before is for the turn to find. */
  async #narrow(
    narrowed: NonNullable<RefreshUse['narrowed']>,
    read: ReadToken,
    origin: { readonly by: string; readonly trace: string },
  ): Promise<ReturnType<typeof narrowed> | null> {
    const session = await readSession(this.#options.actorSystem, read.sessionId, origin)
    if (session === null || session.refresh === null) return null
    return isTokenOf(read, session.refresh.hash) ? narrowed(session.scope) : null
  }

  async #rotate(
    message: { readonly type: string; readonly body: object },
    tokens: Tokens,
    origin: { readonly by: string; readonly trace: string },
  ): Promise<IssuedTokens | GrantRefusal> {
    const { actorSystem, world } = this.#options
    const askedMs = world.clock.monotonicMs()
    const to = { type: SESSION, id: tokens.sessionId }
    const answer = await askActor<SessionAnswer>(actorSystem, to, message, origin)
    if ('refused' in answer) {
      const isThere = answer.refused === 'INVALID_STATE'
      return invalidGrant(isThere ? answer.reason : 'its session has ended, or is none of ours')
    }
    if ('ended' in answer) {
      await this.#tell(tokens.sessionId, origin.trace)
      return invalidGrant(answer.ended)
    }
    const { session } = answer
    assert(session.status === 'open', 'tokens were issued to it')
    if (stillStanding(session, actorSystem.system) === null) {
      return invalidGrant('who signed in, or the client, was changed since: sign in again')
    }
    return this.#issued({ session, askedMs }, tokens)
  }

  async find(token: string): Promise<SessionRecord | null> {
    const read = readToken(token)
    if (read === null) return null
    const origin = { by: 'system', trace: 'session-find' }
    const { actorSystem } = this.#options
    const session = await this.#within(() => readSession(actorSystem, read.sessionId, origin))
    if (session === null) return null
    const { access, former, refresh } = session
    const isOfIt =
      [access, former].some((kept) => kept !== null && isTokenOf(read, kept.hash)) ||
      (refresh !== null && familyOf(read) === refresh.family)
    return isOfIt ? recordOf(read.sessionId, session) : null
  }

  async end(sessionId: string, { trace }: SessionOrigin): Promise<void> {
    const { actorSystem } = this.#options
    const to = { type: SESSION, id: sessionId }
    const answer = await askActor<SessionAnswer>(
      actorSystem,
      to,
      { type: 'end', body: {} },
      { by: 'system', trace },
    )
    // Somebody else ended it first, and its outbox tells it.
    if ('refused' in answer) this.#options.book.forget(sessionId)
    else await this.#tell(sessionId, trace)
  }

  /** Ids of the sessions of one identity that have not expired, the newest first. */
  async listOf(
    owner: Pick<Subject, 'kind' | 'identity'>,
    isPat: boolean,
    { trace }: SessionOrigin,
  ): Promise<readonly string[]> {
    const { actorSystem, world } = this.#options
    const to = { type: SESSION_LIST, id: sessionListId(owner) }
    const message = { type: 'read', body: {} }
    const origin = { by: owner.identity, trace }
    const answer = await askActor<SessionListAnswer>(actorSystem, to, message, origin)
    if ('refused' in answer) return []
    const nowMs = world.clock.nowMs()
    const standing = answer.sessions.filter((one) => one.isPat === isPat && one.untilMs > nowMs)
    return standing.map(({ sessionId }) => sessionId).toReversed()
  }

  /** Those of them that still stand, in their order. */
  async readAll(sessionIds: readonly string[], origin: SessionOrigin): Promise<SessionRecord[]> {
    const left = [...sessionIds.entries()].toReversed()
    const found: (SessionRecord | null)[] = sessionIds.map(() => null)
    const readSome = async (): Promise<void> => {
      for (let next = left.pop(); next !== undefined; next = left.pop()) {
        const [at, sessionId] = next
        found[at] = await this.read(sessionId, origin)
      }
    }
    await Promise.all(Array.from({ length: LIMITS.access.sessionReadsMax }, readSome))
    return found.filter((one) => one !== null)
  }

  /** One session; null: there is none, it has no tokens, or it is over. */
  async read(sessionId: string, { trace }: SessionOrigin): Promise<SessionRecord | null> {
    const { actorSystem, world } = this.#options
    const session = await readSession(actorSystem, sessionId, { by: 'system', trace })
    if (session?.status !== 'open' || endOf(session) <= world.clock.nowMs()) return null
    if (stillStanding(session, actorSystem.system) === null) return null
    return recordOf(sessionId, session)
  }

  /** Another end of a personal access token; a refusal says why not. */
  async renewPat(
    sessionId: string,
    untilMs: number,
    { trace }: SessionOrigin,
  ): Promise<Asked<SessionRecord>> {
    const { actorSystem } = this.#options
    const to = { type: SESSION, id: sessionId }
    const message = { type: 'renew', body: { untilMs } }
    const answer = await askActor<SessionAnswer>(actorSystem, to, message, { by: 'system', trace })
    if ('refused' in answer) return answer
    assert('session' in answer && answer.session.status === 'open', 'it was renewed')
    // What this member knows of its end is another now.
    this.#options.book.forget(sessionId)
    return recordOf(sessionId, answer.session)
  }

  /** So many at once: who has no session costs the cluster no more than that. */
  async #within<T>(run: () => Promise<T>): Promise<T> {
    if (this.#asking >= LIMITS.access.lookUpsMax) {
      throw new RequestError('TOO_BUSY', 'too many tokens are being looked up; try again')
    }
    this.#asking++
    try {
      return await run()
    } finally {
      this.#asking--
    }
  }

  async #list(subject: Subject, listed: ListedSession, trace: string): Promise<void> {
    const { actorSystem, pushedOut, book, world } = this.#options
    const to = { type: SESSION_LIST, id: sessionListId(subject) }
    const body: AddBody = { ...listed, atMs: world.clock.nowMs() }
    const message = { type: 'add', body }
    const origin = { by: subject.identity, trace }
    const answer = await askActor<SessionListAnswer>(actorSystem, to, message, origin)
    if ('refused' in answer) throw new RequestError('INVALID_STATE', answer.reason)
    for (const sessionId of answer.pushedOut) book.forget(sessionId)
    const ended = answer.pushedOut.length
    if (ended > 0) pushedOut.add(subject.identity, ended)
  }

  /** Makes the session's actor; returns when that was by its owner's clock. */
  async #make(
    sessionId: string,
    message: { readonly type: 'open' | 'authorize'; readonly body: object },
    origin: { readonly by: string; readonly trace: string },
  ): Promise<number> {
    const to = { type: SESSION, id: sessionId }
    const answer = await askActor<MadeAnswer>(this.#options.actorSystem, to, message, origin)
    assert('atMs' in answer, 'nobody has the id of a new session')
    return answer.atMs
  }

  #issued(
    { session, askedMs }: { readonly session: LiveSession; readonly askedMs: number },
    { sessionId, token, refreshToken }: Tokens,
  ): IssuedTokens {
    this.#options.book.remember(token, { sessionId, session, askedMs })
    const leftMs = session.access!.untilMs - this.#options.world.clock.nowMs()
    return {
      session: recordOf(sessionId, session),
      accessToken: token,
      // To the second: what the owner's clock is behind or ahead is no part of a life.
      expiresIn: Math.max(0, Math.round(leftMs / 1_000)),
      refreshToken,
      scope: session.access!.scope,
    }
  }

  /** Told to all members before it is said to have ended. */
  async #tell(sessionId: string, trace: string): Promise<void> {
    const { revocations, book } = this.#options
    book.forget(sessionId)
    await revocations.tell(sessionId, trace)
    book.forget(sessionId)
  }

  #erasOf(subject: Subject): Eras {
    const standing = standingOf(subject, this.#options.actorSystem.system)
    if (standing !== null) return erasOf(standing)
    throw new RequestError('FORBIDDEN', 'the identity or its client is gone or suspended')
  }
}

type Life = { readonly lifeMs: number } | { readonly untilMs: number }

interface Tokens {
  readonly sessionId: string
  readonly token: string
  readonly refreshToken: string | null
}

function invalidGrant(reason: string): GrantRefusal {
  return { refused: 'invalid_grant', reason }
}

function recordOf(sessionId: string, session: LiveSession): SessionRecord {
  const { identity, kind, clientId, scope, grant, createdAtMs, usedAtMs, description } = session
  return {
    ...{ sessionId, identity, kind, clientId, scope, grant, createdAtMs, description },
    ...{ lastUsedAtMs: usedAtMs, expiresAtMs: endOf(session) },
  }
}
