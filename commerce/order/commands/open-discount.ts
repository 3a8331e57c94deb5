// Which discounts may still be changed: none of their shares may be on an invoice, and a line's or
// a delivery's own only while that is open. Source: commerce/README.md "Machines".

import type { Draft } from '../draft.ts'
import { invalidState } from '../refuse.ts'
import type { StaticDiscount } from '../state.ts'

export function openDiscount(draft: Draft, id: string): StaticDiscount {
  const discount = draft.discount(id)
  if (discount.scope === 'orderLine') {
    draft.openLine(discount.targetId!)
  } else if (discount.scope === 'shipping') {
    draft.uninvoicedShipping(draft.openDelivery(discount.targetId!))
  } else {
    const invoiceId = draft.invoiced().discounts.get(discount.discountId)
    if (invoiceId !== undefined) {
      invalidState(
        `discount ${discount.discountId} is part of invoice ` +
          `${draft.state.invoices.get(invoiceId)!.invoiceNumber}: cancel that first`,
      )
    }
  }
  return discount
}
