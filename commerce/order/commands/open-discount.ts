// Which discounts may still be changed: none of their shares may be on an invoice, and a line's or
// a delivery's own only while that is open. Source: COMMERCE 3 (invoicing of a line).

import type { Draft } from '../draft.ts'
import { invalidState } from '../refuse.ts'
import type { StaticDiscount } from '../state.ts'

export function openDiscount(draft: Draft, id: string): StaticDiscount {
  const discount = draft.discount(id)
  const { state } = draft
  if (discount.scope === 'orderLine') {
    draft.openLine(discount.targetId!)
  } else if (discount.scope === 'shipping') {
    draft.uninvoicedShipping(draft.openDelivery(discount.targetId!))
  } else if (state.invoices.size > 0) {
    for (const things of [state.lines, state.deliveries]) {
      for (const { invoiceId, shares } of things.values()) {
        if (invoiceId === null) continue
        if (!shares.some((share) => share.referenceId === discount.discountId)) continue
        invalidState(
          `discount ${discount.discountId} is part of invoice ` +
            `${state.invoices.get(invoiceId)!.invoiceNumber}: cancel that first`,
        )
      }
    }
  }
  return discount
}
