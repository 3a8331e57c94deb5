// moveOrderLine: a line into another delivery of the order, both of them open; it keeps its id,
// number and discounts. Source: specification "Release-note resources (2026.1)", commerce/README.md
// "Commands".

import { command } from '../command.ts'
import { commandMembers, Id } from '../shapes.ts'

export const moveOrderLine = command(
  'moveOrderLine',
  commandMembers({ orderLineId: Id, deliveryId: Id }),
  (draft, given) => {
    const { orderLineId, deliveryId: from } = draft.undeliveredLine(given.orderLineId)
    const { deliveryId: to } = draft.openDelivery(given.deliveryId)
    if (from !== to) draft.commit({ t: 'orderLineMoved', orderLineId, from, to })
  },
)
