// Orders to start tests from: one delivery (id 1) with two lines (ids 11 and 12), as far along as a
// test needs them.

import { type DriverOptions, id, OrderDriver } from './order-driver.ts'

/** Pending. */
export function openOrder(options: DriverOptions = {}): OrderDriver {
  const order = new OrderDriver(options)
  const answer = order.create([
    { type: 'createDelivery', deliveryId: id(1), shippingPrice: 10, shippingTaxFactor: 0.25 },
    lineCommand(11, 2, 50),
    lineCommand(12, 4, 25),
  ])
  if (!answer.ok) throw new Error(JSON.stringify(answer.errors))
  return order
}

export function confirmedOrder(options: DriverOptions = {}): OrderDriver {
  const order = openOrder(options)
  order.do({ type: 'setOrderState', orderState: 'confirmed' })
  return order
}

/** Confirmed, and its delivery completed. */
export function deliveredOrder(options: DriverOptions = {}): OrderDriver {
  const order = confirmedOrder(options)
  order.do({ type: 'completeDelivery', deliveryId: id(1) })
  return order
}

/** Its first line stands on an invoice. */
export function invoicedOrder(): OrderDriver {
  const order = confirmedOrder()
  order.do({ type: 'releaseOrderLineToInvoicing', orderLineId: id(11) }, { type: 'invoice' })
  return order
}

export function lineCommand(
  n: number,
  quantity: number,
  unitPrice: number,
): Readonly<Record<string, unknown>> {
  return {
    type: 'createOrderLine',
    deliveryId: id(1),
    orderLineId: id(n),
    productNumber: `P${n}`,
    quantity,
    unitPrice,
    taxFactor: 0.25,
  }
}
