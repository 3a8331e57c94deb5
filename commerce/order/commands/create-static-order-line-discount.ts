// createStaticOrderLineDiscount: a discount on one line. Source: commerce/README.md "Arithmetic",
// "Commands".

import { command } from '../command.ts'
import { commandMembers, Id } from '../shapes.ts'
import { createDiscount, discountProperties } from './create-discount.ts'

export const createStaticOrderLineDiscount = command(
  'createStaticOrderLineDiscount',
  commandMembers({ orderLineId: Id, ...discountProperties }),
  (draft, given) => {
    const { orderLineId } = draft.openLine(given.orderLineId)
    createDiscount(draft, { scope: 'orderLine', targetId: orderLineId }, given)
  },
)
