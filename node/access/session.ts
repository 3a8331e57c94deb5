// Sessions: what stands behind a token, kept as configuration actors so that every member knows
// them and restarts don't end them. It stands between the token endpoint and the system shard:
// issues, revokes, and removes what has expired. Source: specification "Tokens and sessions",
// CONTRACT 1.11.

import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import type { ActorSystem, SystemEntry } from '../../cluster/actor-system.ts'
import type { World } from '../../cluster/clock.ts'
import { LIMITS } from '../../config/limits.ts'
import { RequestError, isRetryable } from '../../protocol/errors.ts'
import type { ErrorCode } from '../../protocol/errors.ts'
import { compileShape } from '../../protocol/validation.ts'
import { deleteRequest, putRequest, systemActor } from '../system-actor.ts'
import { isTokenOf, makeToken, readToken } from './token.ts'

const SessionSchema = Type.Object(
  {
    identity: Type.String(),
    kind: Type.Union([Type.Literal('client'), Type.Literal('principal')]),
    /** Client that the token was issued to. */
    clientId: Type.String(),
    grant: Type.String(),
    /** ACEs as asked for; null: all that the identity has, whatever that comes to be. */
    scope: Type.Union([Type.String(), Type.Null()]),
    accessTokenHash: Type.String(),
    issuedAt: Type.String(),
    /** ISO 8601; from then on the access token is refused. */
    expiresAt: Type.String(),
  },
  { additionalProperties: false },
)

/** Value of a session; its UUID is the actor's key. */
export type Session = Static<typeof SessionSchema>

export const sessionBehaviour = systemActor<Session>('session', compileShape(SessionSchema))

/** Whom a session is for, and how it came to be. */
export type SessionSubject = Pick<Session, 'identity' | 'kind' | 'clientId' | 'grant' | 'scope'>

export interface SessionsOptions {
  readonly actorSystem: ActorSystem
  readonly world: World
  /** Life of an access token, milliseconds. */
  readonly accessTokenMs: number
  readonly onError: (error: unknown) => void
  /** LIMITS.sessionsMax, unless a test wants fewer. */
  readonly sessionsMax?: number
}

interface Known {
  readonly identity: string
  readonly expiresAtMs: number
}

export class Sessions {
  readonly #options: SessionsOptions
  /** By the time of their end, nearly: all live equally long, so that is their order of issue. */
  readonly #known = new Map<string, Known>()
  readonly #byIdentity = new Map<string, Set<string>>()
  #stopped = false
  #cancelSweep: (() => void) | null = null
  #unfollow: (() => void) | null = null

  constructor(options: SessionsOptions) {
    this.#options = options
  }

  /** Takes in what is there, follows what comes, and sweeps from time to time. */
  start(): void {
    const { system } = this.#options.actorSystem
    const there = [...system.withPrefix<Session>('session', '')]
    there.sort((a, b) => Date.parse(a.value.expiresAt) - Date.parse(b.value.expiresAt))
    for (const entry of there) this.#learn(entry.key, entry)
    this.#unfollow = system.onChange('session', (key, entry) =>
      this.#learn(key, entry as SystemEntry<Session> | null),
    )
    this.#sweepLater()
  }

  stop(): void {
    this.#stopped = true
    this.#cancelSweep?.()
    this.#unfollow?.()
  }

  get size(): number {
    return this.#known.size
  }

  #learn(key: string, entry: SystemEntry<Session> | null): void {
    const before = this.#known.get(key)
    if (before) {
      this.#known.delete(key)
      const own = this.#byIdentity.get(before.identity)!
      own.delete(key)
      if (own.size === 0) this.#byIdentity.delete(before.identity)
    }
    if (entry === null) return
    const { identity, expiresAt } = entry.value
    this.#known.set(key, { identity, expiresAtMs: Date.parse(expiresAt) })
    const own = this.#byIdentity.get(identity) ?? new Set()
    this.#byIdentity.set(identity, own.add(key))
  }

  /**
   * Issues a token; the session is durable when this returns. Throws RequestError when the actor
   * system refuses (503, 429) or the outcome is unknown (504).
   */
  async issue(
    subject: SessionSubject,
    trace: string,
  ): Promise<{ token: string; sessionId: string; session: Session }> {
    const { sessionsMax = LIMITS.sessionsMax } = this.#options
    if (this.#known.size >= sessionsMax) await this.#makeRoom(trace)
    const { world, accessTokenMs, actorSystem } = this.#options
    const now = world.clock.nowMs()
    const { token, sessionId, hash } = makeToken(world.random)
    const session: Session = {
      ...subject,
      accessTokenHash: hash,
      issuedAt: new Date(now).toISOString(),
      expiresAt: new Date(now + accessTokenMs).toISOString(),
    }
    const origin = { by: subject.identity, trace }
    const body = { value: session, ifAbsent: true }
    const reply = await actorSystem.ask(putRequest('session', sessionId, body, origin))
    const error =
      reply.outcome !== 'answered'
        ? reply.error
        : reply.results[0]!.success
          ? null
          : reply.results[0]!.errors[0]!
    if (error) throw new RequestError(error.code as ErrorCode, error.message, error.details)
    return { token, sessionId, session }
  }

  /** The session that a token belongs to, expired or not; null when there is none. */
  find(token: string): { readonly sessionId: string; readonly session: Session } | null {
    const read = readToken(token)
    if (read === null) return null
    const entry = this.#options.actorSystem.system.get<Session>('session', read.sessionId)
    if (entry === null || !isTokenOf(read, entry.value.accessTokenHash)) return null
    return { sessionId: read.sessionId, session: entry.value }
  }

  /** Ends a session. Throws RequestError when that can't be said for certain. */
  async end(sessionId: string, origin: { by: string; trace: string }): Promise<void> {
    const request = deleteRequest('session', sessionId, {}, origin)
    const reply = await this.#options.actorSystem.ask(request)
    if (reply.outcome === 'answered') return
    // Somebody else ended it first.
    if (reply.error.code === 'NOT_FOUND') return
    throw new RequestError(reply.error.code as ErrorCode, reply.error.message, reply.error.details)
  }

  /**
   * At the bound the identity with the most sessions loses its oldest one: a client that asks for
   * a token with every request ends its own, nobody else's.
   */
  async #makeRoom(trace: string): Promise<void> {
    if ((await this.sweep()) > 0) return
    let most: ReadonlySet<string> | null = null
    for (const own of this.#byIdentity.values()) {
      if (most === null || own.size > most.size) most = own
    }
    const [oldest] = most ?? []
    if (oldest !== undefined) await this.end(oldest, { by: 'system', trace })
  }

  /** Removes expired sessions, a bounded number at a time; returns how many. */
  async sweep(): Promise<number> {
    const now = this.#options.world.clock.nowMs()
    const expired: string[] = []
    for (const [key, { expiresAtMs }] of this.#known) {
      if (expiresAtMs > now || expired.length >= LIMITS.sessionSweepMax) break
      expired.push(key)
    }
    let next = 0
    const remove = async (): Promise<void> => {
      while (next < expired.length) {
        await this.end(expired[next++]!, { by: 'system', trace: 'session-sweep' })
      }
    }
    const lanes = Math.min(LIMITS.sessionSweepInFlightMax, expired.length)
    await Promise.all(Array.from({ length: lanes }, remove))
    return expired.length
  }

  #sweepLater(): void {
    if (this.#stopped) return
    this.#cancelSweep = this.#options.world.clock.after(LIMITS.sessionSweepMs, () => {
      this.sweep()
        .catch((error: unknown) => {
          const busy = error instanceof RequestError && isRetryable(error.errors[0]!.code)
          if (!busy) this.#options.onError(error)
        })
        .finally(() => this.#sweepLater())
    })
  }
}
