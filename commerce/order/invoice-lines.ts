// The lines of an invoice, made of what the order shows: a line and a shipping fee with their
// discounts, a return as a credit. They stand between the `invoice` command and the record that
// keeps them for good. Source: COMMERCE 3 (invoicing, return), 7 (invoiceLine).

import { fromUnits, includedTax, partOf, portionOf, toUnits } from '../../protocol/money.ts'
import type { Draft } from './draft.ts'
import type {
  CalculatedDiscount,
  Delivery,
  InvoiceLine,
  InvoiceLineDiscount,
  OrderLine,
  Return,
} from './state.ts'

interface Place {
  readonly invoiceId: string
  readonly number: number
}

export function lineOfLine(draft: Draft, line: OrderLine, place: Place): InvoiceLine {
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
    ...amounts(draft, line.total, line.tax, line.shares),
    originalInvoiceId: null,
    originalInvoiceLineId: null,
  }
}

export function lineOfShipping(draft: Draft, delivery: Delivery, place: Place): InvoiceLine {
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
    ...amounts(draft, delivery.total, delivery.tax, delivery.shares),
    originalInvoiceId: null,
    originalInvoiceLineId: null,
  }
}

/** A return gives back its part of the line's total and tax: negative amounts, no discounts. */
export function creditLine(draft: Draft, item: Return, place: Place): InvoiceLine {
  const line = draft.line(item.orderLineId)
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
    ...amounts(draft, negative(item.returnTotal), negative(creditTax(draft, line, item)), []),
    originalInvoiceId: line.invoiceId,
    originalInvoiceLineId: line.invoiceLineId,
  }
}

function head(
  draft: Draft,
  { invoiceId, number }: Place,
): Pick<InvoiceLine, 'invoiceLineId' | 'invoiceId' | 'invoiceLineNumber'> {
  return { invoiceLineId: draft.turn.newId(), invoiceId, invoiceLineNumber: number }
}

function amounts(
  draft: Draft,
  total: number,
  tax: number,
  shares: readonly CalculatedDiscount[],
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

/** By the line's factor on what is given back; its part of an absolute tax. */
function creditTax(draft: Draft, line: OrderLine, item: Return): number {
  const { state, digits } = draft
  if (line.salesTax === null) {
    if (line.taxFactor === null) return 0
    const total = toUnits(item.returnTotal, digits)
    const tax = state.taxIncluded ? includedTax : portionOf
    return fromUnits(tax(total, line.taxFactor), digits)
  }
  const { quantity } = line
  const of = { quantity, part: item.quantity, factor: item.refundFactor }
  return fromUnits(partOf(toUnits(line.tax, digits), of), digits)
}

/** Without the -0 that JSON does not tell from 0. */
function negative(value: number): number {
  return value === 0 ? 0 : -value
}
