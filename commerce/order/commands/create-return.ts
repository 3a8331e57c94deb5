// createReturn: goods of a completed delivery that come back. It is released to invoicing from the
// start: an `invoice` right after it credits it. Source: commerce/README.md "Machines", "Commands".

import { Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { addDecimals, roundFactor } from '../../../protocol/money.ts'
import { command } from '../command.ts'
import { invalid, invalidState } from '../refuse.ts'
import { commandMembers, Id, JsonMembers, Part, Quantity } from '../shapes.ts'
import { checkQuantity } from './quantity.ts'

const schema = commandMembers({
  orderLineId: Id,
  quantity: Quantity,
  refundFactor: Part,
  returnId: Type.Optional(Id),
  dynamic: Type.Optional(JsonMembers),
})

export const createReturn = command('createReturn', schema, (draft, given) => {
  const line = draft.line(given.orderLineId)
  const delivery = draft.delivery(line.deliveryId)
  if (delivery.state !== 'completed') {
    invalidState(
      `delivery ${delivery.deliveryNumber} is ${delivery.state}: lines of a completed one can be ` +
        'returned',
    )
  }
  draft.room(draft.state.returns.size, LIMITS.orderReturnsMax, 'returns')
  checkQuantity(given.quantity)
  const left = addDecimals(line.quantity, -line.returnedQuantity)
  if (given.quantity > left) {
    invalid(`quantity ${given.quantity} is more than the ${left} that can be returned`, 'quantity')
  }
  draft.commit({
    t: 'returnCreated',
    returnId: draft.childId(given.returnId, 'returnId'),
    orderLineId: line.orderLineId,
    quantity: given.quantity,
    refundFactor: roundFactor(given.refundFactor),
    ...(given.dynamic !== undefined && { dynamic: given.dynamic }),
  })
})
