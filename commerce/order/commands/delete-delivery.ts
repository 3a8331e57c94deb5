// deleteDelivery: takes an open delivery without lines away; its shipping discounts go with it.
// Source: commerce/README.md "Commands".

import { command } from '../command.ts'
import { invalidState } from '../refuse.ts'
import { deliveryOnly } from './move-delivery.ts'

export const deleteDelivery = command('deleteDelivery', deliveryOnly, (draft, given) => {
  const delivery = draft.openDelivery(given.deliveryId)
  const { deliveryId, deliveryNumber } = delivery
  const lines = draft.state.lineCounts.get(deliveryId) ?? 0
  if (lines > 0) {
    invalidState(`delivery ${deliveryNumber} has ${lines} order lines: move or delete them first`)
  }
  draft.uninvoicedShipping(delivery)
  if (delivery.released) {
    invalidState(
      `shipping of delivery ${deliveryNumber} is released: retractShippingFromInvoicing first`,
    )
  }
  const discounts = draft.state.discountsOf.get(deliveryId)
  draft.commit({
    t: 'deliveryDeleted',
    deliveryId,
    deliveryNumber,
    ...(discounts !== undefined && { discounts }),
  })
})
