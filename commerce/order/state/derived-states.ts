// States and sums of an order that follow from its parts: nothing keeps them. They are shown, and
// automatic completion goes by them. Source: commerce/README.md "Machines", "Graph".

import { addDecimals } from '../../../protocol/money.ts'
import { isCancelled, type OrderState } from './state.ts'

export type Extent = 'none' | 'partial' | 'complete'

/** How much of what is to be delivered is completed; cancelled deliveries don't count. */
export function fulfilmentState(state: OrderState): Extent {
  let open = 0
  let completed = 0
  for (const delivery of state.deliveries.values()) {
    if (delivery.state === 'completed') completed++
    else if (!isCancelled(delivery)) open++
  }
  return extent(completed, open)
}

/** How much of what costs something is invoiced; cancelled deliveries don't count. */
export function invoiceState(state: OrderState): Extent {
  const { open, invoiced } = billed(state)
  return extent(invoiced, open)
}

/** True when nothing is left to invoice or to credit, be it that nothing ever was. */
export function isInvoiced(state: OrderState): boolean {
  for (const { invoiceId } of state.returns.values()) if (invoiceId === null) return false
  return billed(state).open === 0
}

function billed(state: OrderState): { readonly open: number; readonly invoiced: number } {
  let open = 0
  let invoiced = 0
  for (const line of state.lines.values()) {
    if (line.invoiceId !== null) invoiced++
    else if (!isCancelled(state.deliveries.get(line.deliveryId)!)) open++
  }
  for (const delivery of state.deliveries.values()) {
    if (delivery.invoiceId !== null) invoiced++
    else if (!isCancelled(delivery) && (delivery.shippingPrice ?? 0) > 0) open++
  }
  return { open, invoiced }
}

/** What is to be paid by all invoices that are not cancelled. */
export function invoicedTotal(state: OrderState): number {
  let sum = 0
  for (const invoice of state.invoices.values()) {
    if (!invoice.isCancelled) sum = addDecimals(sum, invoice.invoiceTotal)
  }
  return sum
}

function extent(done: number, open: number): Extent {
  if (done === 0) return 'none'
  return open === 0 ? 'complete' : 'partial'
}
