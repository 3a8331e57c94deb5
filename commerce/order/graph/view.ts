// An order as rules see it: one nested value, with the members that the graph shows. It is made
// only where a rule listens. Source: commerce/README.md "Hooks".

import type { OrderState } from '../state/state.ts'
import { project } from './project.ts'

export function orderView({ state }: { readonly state: OrderState }): Record<string, unknown> {
  const all = (node: string, ids: Iterable<string>): Record<string, unknown>[] =>
    Array.from(ids, (id) => ({ ...project(state, { node, id })!.doc }))
  const lines = all('orderLine', state.lines.keys())
  const deliveries = all('delivery', state.deliveries.keys())
  const byDelivery = Map.groupBy(lines, (line) => line['deliveryId'])
  for (const delivery of deliveries) {
    delivery['orderLines'] = byDelivery.get(delivery['deliveryId']) ?? []
  }
  return {
    ...project(state, { node: 'order', id: state.orderId })!.doc,
    deliveries,
    orderLines: lines,
    staticDiscounts: all('staticDiscount', state.discounts.keys()),
    returns: all('return', state.returns.keys()),
    invoices: all('invoice', state.invoices.keys()),
    invoiceLines: all('invoiceLine', state.invoiceLines.keys()),
  }
}
