// Revocations: sessions that were ended while tokens of theirs may still be at hand somewhere. An
// entry of the `system` shard, which every member follows, for as long as that can be; then its
// owner takes it away. So what members keep of sessions that have ended is bounded by the last
// minutes. Source: PROTOCOL 3.0 "Sessions".

import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import type { ActorSystem } from '../../../cluster/actor-system.ts'
import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { ErrorCode } from '../../../protocol/errors.ts'
import { compileShape } from '../../../protocol/json/validation.ts'
import { failureOf, putRequest, systemActor } from '../../system-actor.ts'

export const REVOCATION = 'revocation'

const RevocationSchema = Type.Object(
  {
    /** ISO 8601, for people; nothing goes by it. */
    at: Type.String(),
  },
  { additionalProperties: false },
)

/** Value of a revocation; the session's UUID is the actor's key. */
export type Revocation = Static<typeof RevocationSchema>

export const revocationBehaviour = systemActor<Revocation>(
  REVOCATION,
  compileShape(RevocationSchema),
  ({ turn, message }) =>
    message.type === 'put' || turn.by === 'system'
      ? null
      : 'a revocation goes when no token of its session can be at hand any more',
)

export class Revocations {
  readonly #actorSystem: ActorSystem
  readonly #clock: Clock
  /** Monotonic time at which this member heard of each; oldest first. */
  readonly #heardMs = new Map<string, number>()
  readonly #unfollow: () => void

  constructor(actorSystem: ActorSystem, clock: Clock) {
    this.#actorSystem = actorSystem
    this.#clock = clock
    const { system } = actorSystem
    for (const { key } of system.withPrefix(REVOCATION, '')) this.#hear(key)
    this.#unfollow = system.onChange(REVOCATION, (key, entry) => {
      if (entry === null) this.#heardMs.delete(key)
      else this.#hear(key)
    })
  }

  stop(): void {
    this.#unfollow()
  }

  /** Asked before a token counts, and again when what was asked about it has come back. */
  has(sessionId: string): boolean {
    return this.#actorSystem.system.get(REVOCATION, sessionId) !== null
  }

  /** Durable when it returns. Throws RequestError when that can't be said for certain. */
  async tell(sessionId: string, trace: string): Promise<void> {
    const value: Revocation = { at: new Date(this.#clock.nowMs()).toISOString() }
    const body = { value, ifAbsent: true }
    const request = putRequest(REVOCATION, sessionId, body, { by: 'system', trace })
    const error = failureOf(await this.#actorSystem.ask(request))
    // The session's own outbox was first.
    if (error === null || error.code === 'CONFLICT') return
    throw new RequestError(error.code as ErrorCode, error.message, error.details)
  }

  /** Those that are older than anything that is still at hand of their sessions. */
  *due(): Iterable<string> {
    const untilMs = this.#clock.monotonicMs() - LIMITS.access.revocationKeptMs
    for (const [key, heardMs] of this.#heardMs) if (heardMs <= untilMs) yield key
  }

  #hear(key: string): void {
    if (!this.#heardMs.has(key)) this.#heardMs.set(key, this.#clock.monotonicMs())
  }
}
