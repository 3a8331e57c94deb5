// Commands that give an order its number, and what `create` needs of them. Source:
// commerce/README.md "Numbers", "Commands".

import { Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import type { RuntimeCall } from '../../../protocol/behaviour.ts'
import { assert, RequestError } from '../../../protocol/errors.ts'
import { invalidState } from '../../actor/refuse.ts'
import { commandMembers } from '../../actor/shapes.ts'
import type { OrderDraft } from '../draft.ts'
import { OrderNumber } from '../messages/shapes.ts'
import { callingCommand } from './command.ts'

/** Type of the natural key `orderNumber`. */
export const ORDER_NUMBER_KEY = 'order'

/**
 * Another natural key for the order, unique over all orders; pending orders only. The number that
 * it had is given up. Source: commerce/README.md "Commands", ARCHITECTURE 4.
 */
export const setOrderNumber = callingCommand(
  'setOrderNumber',
  commandMembers({ value: OrderNumber }),
  function* (draft, { value }) {
    checkRenumbering(draft)
    if (value === draft.state.orderNumber) return
    yield* reserveNumber(value, 'value')
    renumber(draft, value)
  },
)

/**
 * The next number with a prefix of the caller's; pending orders only. As part of a `create` it
 * takes the place of the default number.
 */
export const generateOrderNumberByPrefix = callingCommand(
  'generateOrderNumberByPrefix',
  commandMembers({
    prefix: Type.String({ maxLength: LIMITS.commerce.tagCharsMax, format: 'key' }),
  }),
  function* (draft, { prefix }) {
    checkRenumbering(draft)
    const number = yield { call: 'number', keyType: ORDER_NUMBER_KEY, prefix }
    assert(typeof number === 'string', 'the answer to a number is its text')
    renumber(draft, number)
  },
)

/** Takes a chosen number, or refuses the command. */
export function* reserveNumber(key: string, member: string): Generator<RuntimeCall, void, unknown> {
  const reserved = yield { call: 'reserve', keyType: ORDER_NUMBER_KEY, key }
  if (reserved === true) return
  throw new RequestError('ALREADY_EXISTS', `order number ${key} is already used`, { member })
}

function checkRenumbering(draft: OrderDraft): void {
  const { state, orderNumber, invoices } = draft.state
  if (state !== 'pending') {
    invalidState(`order ${orderNumber} is ${state}: only a pending one can get another number`)
  }
  for (const { isCancelled, invoiceNumber } of invoices.values()) {
    if (isCancelled) continue
    invalidState(`invoice ${invoiceNumber} names order ${orderNumber}: cancel that first`)
  }
}

/** Gives the order a number that is reserved for it, in the place of its old one. */
function renumber(draft: OrderDraft, orderNumber: string): void {
  const before = draft.state.orderNumber
  draft.commit({ t: 'orderChanged', before: { orderNumber: before }, after: { orderNumber } })
}
