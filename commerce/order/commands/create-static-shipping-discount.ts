// createStaticShippingDiscount: a discount on one delivery's shipping fee.
// Source: commerce/README.md "Arithmetic", "Commands".

import { command } from '../command.ts'
import { commandMembers, Id } from '../shapes.ts'
import { createDiscount, discountProperties } from './create-discount.ts'

export const createStaticShippingDiscount = command(
  'createStaticShippingDiscount',
  commandMembers({ deliveryId: Id, ...discountProperties }),
  (draft, given) => {
    const delivery = draft.openDelivery(given.deliveryId)
    draft.uninvoicedShipping(delivery)
    createDiscount(draft, { scope: 'shipping', targetId: delivery.deliveryId }, given)
  },
)
