// Sessions: what stands behind a token, kept as configuration actors so that every member knows
// them and restarts don't end them. It issues and revokes them, and removes what has expired.
// Source: specification "Tokens and sessions", CONTRACT 1.11.

import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import type { ActorSystem, SystemEntry } from '../../cluster/actor-system.ts'
import type { World } from '../../cluster/clock.ts'
import { LIMITS } from '../../config/limits.ts'
import { RequestError, isRetryable } from '../../protocol/errors.ts'
import type { ErrorCode } from '../../protocol/errors.ts'
import { compileShape } from '../../protocol/json/validation.ts'
import { PriorityQueue } from '../queues/priority-queue.ts'
import type { Queued } from '../queues/priority-queue.ts'
import type { Client } from './client.ts'
import { deleteRequest, failureOf, putRequest, systemActor } from '../system-actor.ts'
import type { Change, PutBody } from '../system-actor.ts'
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

export const sessionBehaviour = systemActor<Session>(
  'session',
  compileShape(SessionSchema),
  permitSession,
)

/**
 * A sign-in makes the session of a client that is there, in its name, by a grant that it has; it
 * is ended by whom it belongs to, or by the runtime when it has expired or there are too many.
 */
function permitSession({ view, turn, message, before }: Change<Session>): string | null {
  if (message.type === 'delete') {
    const isOurs = before === null || [before.identity, 'system'].includes(turn.by)
    return isOurs ? null : 'a session is ended by its own identity'
  }
  const { identity, kind, clientId, grant } = (message.body as PutBody<Session>).value
  if (before !== null) return 'a session does not change'
  const client = view.get<Client>('client', identity)?.value
  const isThere = kind === 'client' && client !== undefined && client.suspendedAt === null
  if (!isThere || clientId !== identity || turn.by !== identity) {
    return 'the client is gone or suspended, or another one'
  }
  return (client.properties.grantTypes as readonly string[]).includes(grant)
    ? null
    : `the client is not registered for the grant ${grant}`
}

/** Whom a session is for, and how it came to be. */
export type SessionSubject = Pick<Session, 'identity' | 'kind' | 'clientId' | 'grant' | 'scope'>

export interface SessionsOptions {
  readonly actorSystem: ActorSystem
  readonly world: World
  /** Life of an access token, milliseconds. */
  readonly accessTokenMs: number
  /** This member has the `system` shard: it alone deletes what has expired (PROTOCOL 3.0). */
  readonly tidies: () => boolean
  readonly onError: (error: unknown) => void
  /** A valid session of this identity was ended to make room for another. */
  readonly onPushedOut: (identity: string) => void
  /** LIMITS.access.sessionsMax, unless a test wants fewer. */
  readonly sessionsMax?: number
}

interface Known {
  readonly identity: string
  readonly weight: number
  queued: Queued<string>
}

/** The sessions of one identity. */
interface Own {
  /** In the order of their issue. */
  readonly keys: Set<string>
  weight: number
}

/** A session counts as one, and as more where its scope is long: every member has it at hand. */
function weightOf({ scope }: Pick<Session, 'scope'>): number {
  return 1 + Math.floor((scope?.length ?? 0) / LIMITS.access.sessionScopeChars)
}

export class Sessions {
  readonly #options: SessionsOptions
  readonly #known = new Map<string, Known>()
  readonly #byIdentity = new Map<string, Own>()
  #weight = 0
  /** All but those that are being ended; the one that expires first, or did, is first. */
  readonly #byEnd = new PriorityQueue<string>()
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
    there.sort((a, b) => Date.parse(a.value.issuedAt) - Date.parse(b.value.issuedAt))
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
      this.#byEnd.remove(before.queued)
      const own = this.#byIdentity.get(before.identity)!
      own.keys.delete(key)
      own.weight -= before.weight
      this.#weight -= before.weight
      if (own.keys.size === 0) this.#byIdentity.delete(before.identity)
    }
    if (entry === null) return
    const { identity, expiresAt } = entry.value
    const weight = weightOf(entry.value)
    // Each has its own end: the life that is set may have been another when it was issued.
    const queued = this.#byEnd.add(Date.parse(expiresAt), key)
    this.#known.set(key, { identity, weight, queued })
    const own = this.#byIdentity.get(identity) ?? { keys: new Set(), weight: 0 }
    own.keys.add(key)
    own.weight += weight
    this.#weight += weight
    this.#byIdentity.set(identity, own)
  }

  /**
   * Issues a token; the session is durable when this returns. Throws RequestError when the actor
   * system refuses (503, 429), the outcome is unknown (504), or there are too many sessions (429).
   */
  async issue(
    subject: SessionSubject,
    trace: string,
  ): Promise<{ token: string; sessionId: string; session: Session }> {
    const { sessionsMax = LIMITS.access.sessionsMax } = this.#options
    const weight = weightOf(subject)
    for (let ended = 0; ended < weight && this.#weight + weight > sessionsMax; ended++) {
      await this.#makeRoom(subject.identity, trace)
    }
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
    const error = failureOf(reply)
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
    const error = failureOf(reply)
    // Somebody else ended it first.
    if (error === null || error.code === 'NOT_FOUND') return
    throw new RequestError(error.code as ErrorCode, error.message, error.details)
  }

  /**
   * At the bound the session goes that ended first. Where none has, the identity whose valid ones
   * weigh most loses its oldest, itself where its own weigh as much: a client that asks for a token
   * with every request ends its own, nobody else's. Nobody's only session is ended for somebody
   * else.
   */
  async #makeRoom(identity: string, trace: string): Promise<void> {
    if (await this.#endFirst(this.#options.world.clock.nowMs())) return
    let most = identity
    const ownOf = (one: string): Own | undefined => this.#byIdentity.get(one)
    for (const [one, { weight }] of this.#byIdentity) {
      if (weight > (ownOf(most)?.weight ?? 0)) most = one
    }
    if (most !== identity && ownOf(most)?.keys.size === 1) {
      throw new RequestError('TOO_BUSY', 'there are too many sessions; end some, or try later')
    }
    const [oldest] = ownOf(most)?.keys ?? []
    if (oldest === undefined) return
    await this.end(oldest, { by: 'system', trace })
    this.#options.onPushedOut(most)
  }

  /**
   * Removes all that expired longer ago than LIMITS.access.sessionKeptMs, a bounded number at a
   * time; returns how many. Only one member does: clocks differ, and what is deleted is gone
   * everywhere.
   */
  async sweep(): Promise<number> {
    const { world, tidies } = this.#options
    const untilMs = world.clock.nowMs() - LIMITS.access.sessionKeptMs
    let ended = 0
    const remove = async (): Promise<void> => {
      while (!this.#stopped && tidies() && (await this.#endFirst(untilMs))) ended++
    }
    await Promise.all(Array.from({ length: LIMITS.access.sessionSweepInFlightMax }, remove))
    return ended
  }

  /** Ends the session that expires first, if that is not after `untilMs`; false: there is none. */
  async #endFirst(untilMs: number): Promise<boolean> {
    const { first } = this.#byEnd
    if (first === undefined || first.rank > untilMs) return false
    // Nobody else ends the same one meanwhile.
    this.#byEnd.remove(first)
    try {
      await this.end(first.element, { by: 'system', trace: 'session-sweep' })
    } catch (error) {
      const known = this.#known.get(first.element)
      if (known?.queued === first) known.queued = this.#byEnd.add(first.rank, first.element)
      throw error
    }
    return true
  }

  #sweepLater(): void {
    if (this.#stopped) return
    this.#cancelSweep = this.#options.world.clock.after(LIMITS.access.sessionSweepMs, () => {
      this.sweep()
        .catch((error: unknown) => {
          const busy = error instanceof RequestError && isRetryable(error.errors[0]!.code)
          if (!busy) this.#options.onError(error)
        })
        .finally(() => this.#sweepLater())
    })
  }
}
