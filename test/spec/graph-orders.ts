// Five orders for the graph's tests: G1 to G5; the odd ones are confirmed and have two lines,
// totals fall, dynamic fields, tags, customers and addresses differ. The node begins empty.

import type { Answer, NodeProcess } from '../harness/node-process.ts'
import { apply, smallOrder } from '../harness/orders.ts'
import type { Command, SmallOrder } from '../harness/orders.ts'

/** Makes them; `last` is the answer to the last write. */
export async function graphOrders(
  node: NodeProcess,
): Promise<{ readonly orders: readonly SmallOrder[]; readonly last: Answer }> {
  const orders: SmallOrder[] = []
  let last: Answer | null = null
  for (let i = 1; i <= 5; i++) {
    const order = await smallOrder(
      node,
      { orderNumber: `G${i}`, createdAt: `2025-01-0${i}T10:00:00.000Z` },
      () => ({ type: 'setDynamicFields', fields: { n: i, 'odd key': `v${i}`, deep: { x: i } } }),
      () => ({ type: 'addTag', key: i % 2 === 1 ? 'odd' : 'even' }),
      ({ orderLineId }) => ({ type: 'setOrderLineQuantity', orderLineId, quantity: 6 - i }),
      ({ orderLineId }) => ({ type: 'setOrderLineSkus', orderLineId, skus: { S: 1 } }),
    )
    last = await node.order(order.orderId, [apply(...changes(order, i))])
    if (last.status !== 200) throw new Error(last.text)
    orders.push(order)
  }
  return { orders, last: last! }
}

function changes({ deliveryId }: SmallOrder, i: number): Command[] {
  const commands: Command[] = [{ type: 'setCustomerNumber', value: i < 3 ? `C${i}` : null }]
  if (i < 5) commands.push({ type: 'setInvoiceAddress', name: `Name ${i % 2}` })
  if (i % 2 === 0) return commands
  return [
    ...commands,
    {
      type: 'createOrderLine',
      deliveryId,
      productNumber: `EXTRA-${i}`,
      quantity: 1,
      unitPrice: i,
    },
    { type: 'setOrderState', orderState: 'confirmed' },
  ]
}
