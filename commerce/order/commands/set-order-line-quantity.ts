// setOrderLineQuantity: another quantity, above 0 and not below what was returned.
// Source: commerce/README.md "Commands".

import { command } from '../command.ts'
import { invalid } from '../refuse.ts'
import { commandMembers, Id, Quantity } from '../shapes.ts'
import { checkLineBase } from '../totals.ts'
import { changeLine } from './change-line.ts'
import { checkQuantity } from './quantity.ts'

export const setOrderLineQuantity = command(
  'setOrderLineQuantity',
  commandMembers({ orderLineId: Id, quantity: Quantity }),
  (draft, { orderLineId, quantity }) => {
    const line = draft.openLine(orderLineId)
    checkQuantity(quantity)
    if (quantity < line.returnedQuantity) {
      invalid(`quantity must be at least the ${line.returnedQuantity} returned`, 'quantity')
    }
    checkLineBase(quantity, line.unitPrice, draft.digits)
    changeLine(draft, line, { quantity })
  },
)
