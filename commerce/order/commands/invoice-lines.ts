// The lines of an invoice, made of what the order shows: a line and a shipping fee with their
// discounts, a return as a credit. The record keeps them for good. Source: commerce/README.md
// "Machines", "Arithmetic", "Graph".

import { fromUnits, toUnits } from '../../../protocol/money.ts'
import type { OrderDraft } from '../draft.ts'
import type {
  CalculatedDiscount,
  Delivery,
  InvoiceLine,
  InvoiceLineDiscount,
  OrderLine,
  Return,
} from '../state/state.ts'
import { returnedParts, worthOf } from '../totals/returned-parts.ts'

interface Place {
  readonly invoiceId: string
  readonly number: number
}

/** Where a credited line was debited. */
export type OriginalLine = Pick<InvoiceLine, 'invoiceId' | 'invoiceLineId'>

export function lineOfLine(draft: OrderDraft, line: OrderLine, place: Place): InvoiceLine {
  return {
    ...head(draft, place),
    referenceType: 'orderLine',
    referenceId: line.orderLineId,
    orderLineId: line.orderLineId,
    deliveryId: line.deliveryId,
    productNumber: line.productNumber,
    description: line.description,
    quantity: line.quantity,
    unitPrice: line.unitPrice,
    taxFactor: line.taxFactor,
    ...amounts(draft, line.total, line),
    originalInvoiceId: null,
    originalInvoiceLineId: null,
  }
}

export function lineOfShipping(draft: OrderDraft, delivery: Delivery, place: Place): InvoiceLine {
  return {
    ...head(draft, place),
    referenceType: 'delivery',
    referenceId: delivery.deliveryId,
    orderLineId: null,
    deliveryId: delivery.deliveryId,
    productNumber: delivery.shippingProductNumber,
    description: delivery.shippingDescription,
    quantity: 1,
    unitPrice: delivery.shippingPrice ?? 0,
    taxFactor: delivery.shippingTaxFactor,
    ...amounts(draft, delivery.total, delivery),
    originalInvoiceId: null,
    originalInvoiceLineId: null,
  }
}

/**
 * A return gives back its part of the line's total, tax and discounts, all negative. `original`:
 * the line that debited it, and the invoice which that is on.
 */
export function creditLine(
  draft: OrderDraft,
  item: Return,
  { place, original }: { readonly place: Place; readonly original: OriginalLine },
): InvoiceLine {
  const { digits } = draft
  const line = draft.line(item.orderLineId)
  const parts = returnedParts(draft.state, line.orderLineId).get(item.returnId)!
  const given = (amount: number): number => {
    const worth = worthOf(toUnits(amount, digits), line, { parts, factor: item.refundFactor })
    return worth === 0 ? 0 : fromUnits(-worth, digits)
  }
  const shares = line.shares
    .map(({ referenceId, value }) => ({ referenceId, value: given(value) }))
    .filter(({ value }) => value !== 0)
  return {
    ...head(draft, place),
    referenceType: 'return',
    referenceId: item.returnId,
    orderLineId: line.orderLineId,
    deliveryId: line.deliveryId,
    productNumber: line.productNumber,
    description: line.description,
    quantity: item.quantity,
    unitPrice: line.unitPrice,
    taxFactor: line.taxFactor,
    ...amounts(draft, given(line.total), { tax: given(line.tax), shares }),
    originalInvoiceId: original.invoiceId,
    originalInvoiceLineId: original.invoiceLineId,
    parts,
  }
}

function head(
  draft: OrderDraft,
  { invoiceId, number }: Place,
): Pick<InvoiceLine, 'invoiceLineId' | 'invoiceId' | 'invoiceLineNumber'> {
  return { invoiceLineId: draft.turn.newId(), invoiceId, invoiceLineNumber: number }
}

function amounts(
  draft: OrderDraft,
  total: number,
  { tax, shares }: { readonly tax: number; readonly shares: readonly CalculatedDiscount[] },
): Pick<InvoiceLine, 'amount' | 'invoiceLineTotal' | 'net' | 'tax' | 'discounts'> {
  const { state, digits } = draft
  let amount = toUnits(total, digits)
  const discounts = shares.map(({ referenceId, value }): InvoiceLineDiscount => {
    amount += toUnits(value, digits)
    return {
      invoiceLineDiscountId: draft.turn.newId(),
      amount: value,
      description: state.discounts.get(referenceId)!.description,
      referenceId,
    }
  })
  const net = toUnits(total, digits) - (state.taxIncluded ? toUnits(tax, digits) : 0)
  return {
    amount: fromUnits(amount, digits),
    invoiceLineTotal: total,
    net: fromUnits(net, digits),
    tax,
    discounts,
  }
}
