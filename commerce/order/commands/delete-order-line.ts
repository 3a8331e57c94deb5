// deleteOrderLine: takes a line of an open delivery away; its discounts go with it.
// Source: commerce/README.md "Commands".

import { command } from '../command.ts'
import { commandMembers, Id } from '../shapes.ts'

export const deleteOrderLine = command(
  'deleteOrderLine',
  commandMembers({ orderLineId: Id }),
  (draft, given) => {
    const line = draft.openLine(given.orderLineId)
    const { orderLineId, orderLineNumber, productNumber, quantity, unitPrice } = line
    const discounts = draft.state.discountsOf.get(orderLineId)
    draft.lineNumbers().delete(orderLineNumber)
    draft.commit({
      t: 'orderLineDeleted',
      orderLineId,
      orderLineNumber,
      productNumber,
      quantity,
      unitPrice,
      ...(discounts !== undefined && { discounts }),
    })
  },
)
