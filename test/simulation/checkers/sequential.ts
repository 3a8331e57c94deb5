// What one ledger does when its messages come one after the other, nobody else is there and nothing
// fails: the specification that histories are held against.

import type { ActorRecord } from '../../../protocol/behaviour.ts'
import type { MessageResult } from '../../../protocol/message.ts'
import type { OperationMessage } from '../clients/operation-history.ts'
import { foldLedger, marksOf, refusalText, sizeData } from '../clients/ledger.ts'
import type { Ledger } from '../clients/ledger.ts'

/** What an edge says of a message that its caller may not send. */
export const FORBIDDEN = 'UNAUTHORIZED_MESSAGE'

/** The one answer that a state allows; null when it rests on more than the state (a number). */
export function answerOf(
  state: Ledger | null,
  message: OperationMessage,
  actorId: string,
): MessageResult | null {
  const { type, body } = message
  const no = (code: string, text: string): MessageResult => ({
    type,
    success: false,
    errors: [{ code, message: text }],
  })
  if (type === 'open') {
    if (state !== null) return no('ALREADY_EXISTS', 'is open')
    return null
  }
  if (state === null || state.deleted) return no('NOT_FOUND', 'is not open')
  const { length } = state.tokens
  if (body.atLeast !== undefined && length < body.atLeast) {
    return no('INVALID_STATE', refusalText(`has ${length} tokens, not ${body.atLeast}`, body))
  }
  if (body.below !== undefined && length >= body.below) {
    return no('INVALID_STATE', refusalText(`has ${length} tokens already`, body))
  }
  switch (type) {
    case 'append':
    case 'send':
      return { type, success: true, data: sizeData(length + marksOf(body).length, body) }
    case 'strike':
      if (state.struck.length === state.tokens.length) {
        return no('INVALID_STATE', 'has nothing to strike')
      }
      return { type, success: true, data: length }
    case 'renumber': {
      const [first] = body.through ?? [body.number]
      return first === state.number ? no('INVALID_STATE', 'has that number') : null
    }
    case 'explode':
      return no('INTERNAL_ERROR', 'this turn throws')
    case 'delete':
      return { type, success: true, data: length }
    case 'read':
      return { type, success: true, data: { number: state.number, tokens: state.tokens } }
    default:
      throw new Error(`${type} is no message of a ledger that is open: ${actorId}`)
  }
}

/** The state behind a message that was not rejected. `number`: what an opening was given. */
export function nextState(state: Ledger | null, message: OperationMessage, id: string): Ledger {
  return recordsOf(state, message, id).reduce<Ledger | null>(foldLedger, state)!
}

function recordsOf(
  state: Ledger | null,
  { type, body }: OperationMessage,
  id: string,
): ActorRecord[] {
  const appended = marksOf(body).map((token) => ({ t: 'appended', token }))
  switch (type) {
    case 'open':
      return [{ t: 'opened', id, number: body.number ?? '' }, ...appended]
    case 'append':
    case 'send':
      return appended
    case 'strike':
      return [
        { t: 'struck', token: state!.tokens.find((one) => !state!.struck.includes(one)) ?? '' },
      ]
    case 'renumber':
      return [{ t: 'renumbered', number: body.number! }]
    case 'delete':
      return [{ t: 'deleted' }]
    default:
      return []
  }
}
