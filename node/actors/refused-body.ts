// A body that holds no messages, under an idempotency key: its refusal is kept like any other
// answer, so that the key belongs to that body. Source: CONTRACT 0 "Idempotency", PROTOCOL 3.6
// "Marks".

import type { ActorRequest } from '../../cluster/actor-system.ts'
import type { RequestError } from '../../protocol/errors.ts'
import type { Reply } from '../../protocol/message.ts'
import type { Identity } from '../access/identity.ts'
import { mayWriteNothing, needsUuid, NEW, requestErrorOf } from './actor-request.ts'
import type { Target } from './actor-request.ts'
import type { ActorType } from './actor-type.ts'
import type { ForbiddenKeys } from './forbidden-keys.ts'

export interface RefusedBody {
  readonly fault: RequestError
  readonly type: ActorType
  readonly target: Target
  readonly identity: Pick<Identity, 'id' | 'acl'>
  readonly idempotencyKey: string
  readonly bodyHash: string
  readonly budgetMs: number
  readonly trace: string
}

/**
 * What its caller is told: the fault, what was answered under that key before, or why it can't be
 * kept now. Throws RequestError 429 for a caller without permission who asks for too many.
 */
export async function keepRefusal(
  { fault, type, target, identity, ...sent }: RefusedBody,
  to: {
    readonly ask: (request: ActorRequest) => Promise<Reply>
    readonly forbidden: ForbiddenKeys
    /** Of the actor that was named by its number. */
    readonly uuidOf: () => Promise<string | null>
  },
): Promise<RequestError> {
  const { acl } = identity
  const isNumber = target.uuid === null && target.id !== NEW
  const writes = type.behaviour.messageTypes.filter((name) => !type.behaviour.isRead(name))
  const asks =
    isNumber &&
    needsUuid(
      type,
      writes.map((name) => ({ type: name })),
      acl,
    )
  const uuid = asks ? await to.uuidOf() : target.uuid
  const actor = { type: type.behaviour.type, id: target.id }
  const keyed = { ...actor, ...sent, identity: identity.id }
  to.forbidden.take(keyed, mayWriteNothing(type, acl, uuid) ? 1 : 0)
  const reply = await to.ask({
    ...actor,
    messages: [{ type: '', body: undefined }],
    refused: [{ type: '', success: false, errors: fault.errors }],
    by: identity.id,
    preview: false,
    ...sent,
  })
  if (reply.outcome !== 'answered') {
    // Nobody has that number: there is no actor with which it could be kept.
    return reply.error.code === 'NOT_FOUND' ? fault : requestErrorOf(reply.error)
  }
  const kept = reply.results[0]!
  return kept.success ? fault : requestErrorOf(kept.errors[0]!)
}
