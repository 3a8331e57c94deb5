// Asks the actor of a session, and tells a refusal from what can't be told. Source: CONTRACT 1.11.

import type { ActorSystem } from '../../../cluster/actor-system.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { ErrorCode } from '../../../protocol/errors.ts'
import type { Message } from '../../../protocol/message.ts'
import { failureOf } from '../../system-actor.ts'
import { SESSION } from './session.ts'
import type { LiveSession, SessionAnswer } from './session-state.ts'

/** Whom a message is for, and its request id. */
export interface AskOrigin {
  readonly by: string
  readonly trace: string
  /** How long it may take, milliseconds; absent: as any request. */
  readonly budgetMs?: number
}

/** Where a message goes: an actor of this station. */
export interface SessionActor {
  readonly type: string
  readonly id: string
}

/** What the actor's turn told; `refused`: it wouldn't, and nothing was done. */
export type Asked<T> =
  | T
  | { readonly refused: 'NOT_FOUND' | 'INVALID_STATE'; readonly reason: string }

/** Throws RequestError when it can't be told (429, 503, 504). */
export async function askActor<T extends object>(
  actorSystem: Pick<ActorSystem, 'ask'>,
  to: SessionActor,
  message: Message,
  { by, trace, budgetMs = LIMITS.sharding.requestBudgetMs }: AskOrigin,
): Promise<Asked<T>> {
  const reply = await actorSystem.ask({
    ...to,
    messages: [message],
    ...{ idempotencyKey: null, bodyHash: '', preview: false },
    ...{ by, trace, budgetMs },
  })
  const error = failureOf(reply)
  if (error === null) {
    const [result] = reply.outcome === 'answered' ? reply.results : []
    return (result as { readonly data: T }).data
  }
  if (error.code === 'NOT_FOUND' || error.code === 'INVALID_STATE') {
    return { refused: error.code, reason: error.message }
  }
  throw new RequestError(error.code as ErrorCode, error.message, error.details)
}

/** A session before its end; null: there is none. Throws RequestError when it can't be told. */
export async function readSession(
  actorSystem: Pick<ActorSystem, 'ask'>,
  sessionId: string,
  origin: AskOrigin,
): Promise<LiveSession | null> {
  const to = { type: SESSION, id: sessionId }
  const message = { type: 'read', body: {} }
  const answer = await askActor<SessionAnswer>(actorSystem, to, message, origin)
  if (!('session' in answer) || answer.session.status === 'ended') return null
  return answer.session
}
