// createOrderLine: a line in an open delivery. Its number is the caller's, which must be free, or
// the next free one. Source: specification "Actor", commerce/README.md "Commands".

import { type Static, Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { PRICE_DECIMALS, roundDecimals, roundFactor } from '../../../protocol/money.ts'
import { command } from '../command.ts'
import type { Draft } from '../draft.ts'
import type { NewLine, OrderLineCreated } from '../records.ts'
import { commandMembers, Factor, Id, JsonMembers, Key, Price } from '../shapes.ts'
import { Quantity, Skus, Text } from '../shapes.ts'
import { checkLineBase } from '../totals.ts'
import { checkQuantity, checkSkus } from './quantity.ts'

const schema = commandMembers({
  deliveryId: Id,
  productNumber: Key,
  quantity: Quantity,
  unitPrice: Price,
  taxFactor: Type.Optional(Factor),
  orderLineId: Type.Optional(Id),
  orderLineNumber: Type.Optional(
    Type.Unsafe<string | number>({
      type: ['string', 'integer'],
      minLength: 1,
      maxLength: LIMITS.keyCharsMax,
      format: 'key',
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
    }),
  ),
  description: Type.Optional(Text),
  image: Type.Optional(Text),
  skus: Type.Optional(Skus),
  dynamic: Type.Optional(JsonMembers),
})

export const createOrderLine = command('createOrderLine', schema, (draft, given) => {
  const { deliveryId } = draft.openDelivery(given.deliveryId)
  draft.roomForLine()
  checkQuantity(given.quantity)
  const unitPrice = roundDecimals(given.unitPrice, PRICE_DECIMALS)
  checkLineBase(given.quantity, unitPrice, draft.digits)
  const record: { -readonly [K in keyof OrderLineCreated]: OrderLineCreated[K] } = {
    t: 'orderLineCreated',
    orderLineId: draft.childId(given.orderLineId, 'orderLineId'),
    deliveryId,
    productNumber: given.productNumber,
    quantity: given.quantity,
    unitPrice,
  }
  if (given.orderLineNumber === undefined) record.n = takeNextLineNumber(draft)
  else record.orderLineNumber = takeLineNumber(draft, String(given.orderLineNumber))
  if (given.taxFactor !== undefined) record.taxFactor = roundFactor(given.taxFactor)
  addOptional(record, given)
  draft.commit(record)
})

function addOptional(
  record: { -readonly [K in keyof NewLine]: NewLine[K] },
  given: Static<typeof schema>,
): void {
  if (given.description !== undefined) record.description = given.description
  if (given.image !== undefined) record.image = given.image
  if (given.skus !== undefined) {
    checkSkus(given.skus)
    record.skus = given.skus
  }
  if (given.dynamic !== undefined) record.dynamic = given.dynamic
}

/** The next number that no line has. */
export function takeNextLineNumber(draft: Draft): number {
  const numbers = draft.lineNumbers()
  let n = draft.state.lastLineNumber + 1
  while (numbers.has(String(n))) n++
  numbers.add(String(n))
  return n
}

function takeLineNumber(draft: Draft, number: string): string {
  const numbers = draft.lineNumbers()
  if (numbers.has(number)) {
    throw new RequestError('DUPLICATE_ID', `orderLineNumber ${number} is already used`, {
      member: 'orderLineNumber',
    })
  }
  numbers.add(number)
  return number
}
