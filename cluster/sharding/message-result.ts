// What is answered to a message: by a decision, for a failure, or already by the edge. It stands
// between the turns and the edge's caller. Source: PROTOCOL 3.6 (owner).

import type { Decision } from '../../protocol/behaviour.ts'
import type { ErrorItem } from '../../protocol/errors.ts'
import type { Message, MessageResult } from '../../protocol/message.ts'
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
