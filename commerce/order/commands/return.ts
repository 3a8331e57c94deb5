// Commands on returns. Source: commerce/README.md "Machines", "Commands".

import { Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { addDecimals, roundFactor } from '../../../protocol/money.ts'
import { difference } from '../../actor/difference.ts'
import { invalid, invalidState } from '../../actor/refuse.ts'
import { commandMembers, Id, JsonMembers, Part, Quantity } from '../../actor/shapes.ts'
import type { OrderDraft } from '../draft.ts'
import type { Return } from '../state/state.ts'
import { command } from './command.ts'
import { checkQuantity } from './line.ts'

const createReturnMembers = commandMembers({
  orderLineId: Id,
  quantity: Quantity,
  refundFactor: Part,
  returnId: Type.Optional(Id),
  dynamic: Type.Optional(JsonMembers),
})

/**
 * Goods of a completed delivery that come back. It is released to invoicing from the start: an
 * `invoice` right after it credits it.
 */
export const createReturn = command('createReturn', createReturnMembers, (draft, given) => {
  const line = draft.line(given.orderLineId)
  const delivery = draft.delivery(line.deliveryId)
  if (delivery.state !== 'completed') {
    invalidState(
      `delivery ${delivery.deliveryNumber} is ${delivery.state}: lines of a completed one can be ` +
        'returned',
    )
  }
  draft.room(draft.state.returns.size, LIMITS.order.returnsMax, 'returns')
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

/** How much of its worth a return gives back; not once it is invoiced. */
export const setReturnRefundFactor = command(
  'setReturnRefundFactor',
  commandMembers({ returnId: Id, refundFactor: Part }),
  (draft, given) => {
    const { returnId, refundFactor } = openReturn(draft, given.returnId)
    const changed = difference({ refundFactor }, { refundFactor: roundFactor(given.refundFactor) })
    if (changed !== null) draft.commit({ t: 'returnChanged', returnId, ...changed })
  },
)

/** Takes a return away that is not invoiced. */
export const deleteReturn = command(
  'deleteReturn',
  commandMembers({ returnId: Id }),
  (draft, given) => {
    const { returnId, orderLineId, quantity } = openReturn(draft, given.returnId)
    draft.commit({ t: 'returnDeleted', returnId, orderLineId, quantity })
  },
)

/** A return that may still be changed: it is not invoiced. */
function openReturn(draft: OrderDraft, id: string): Return {
  const item = draft.return(id)
  if (item.invoiceId !== null) {
    const { invoiceNumber } = draft.state.invoices.get(item.invoiceId)!
    invalidState(`return ${item.returnId} is invoiced: cancel invoice ${invoiceNumber} first`)
  }
  return item
}
