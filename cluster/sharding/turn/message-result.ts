// What is answered to a message: by a decision, for a failure, or already by the edge. Source:
// PROTOCOL 3.6 (owner).

import type { Decision } from '../../../protocol/behaviour.ts'
import type { ErrorItem } from '../../../protocol/errors.ts'
import type { Message, MessageResult, WireReply } from '../../../protocol/message.ts'
import type { Activation } from './activation.ts'
import type { Work } from './work.ts'

/** What the edge answers to the message at which the work stands; null: it is to be run. */
export function refusalAt({ envelope, i }: Work): MessageResult | null {
  return envelope.refused?.[i] ?? null
}

/** The answer to a message that has failed. */
export function failure(message: Message, errors: readonly ErrorItem[]): MessageResult {
  return { type: message.type, success: false, errors }
}

/** The answer that a decision is. */
export function resultFrom(message: Message, decision: Decision<unknown>): MessageResult {
  if (!decision.ok) return failure(message, decision.errors)
  return decision.data === undefined
    ? { type: message.type, success: true }
    : { type: message.type, success: true, data: decision.data }
}

/** The answer to a request whose messages all have their results. */
export function replyOf(shard: number, activation: Activation, work: Work): WireReply {
  const state = work.preview ? work.preview.state : activation.state
  const made = state !== null
  let { keys } = work
  if (keys.length === 0 && made) {
    keys = work.preview ? activation.behaviour.keys(state) : activation.keys
  }
  return {
    outcome: 'answered',
    actorId: made ? activation.id : null,
    keys,
    results: work.results,
    position: work.position > 0 ? { shard, offset: work.position } : null,
  }
}
