// Which row-stored nodes a record adds, changes or removes. The projector writes exactly these rows
// from the newest state. The order's own node shows states and sums of its parts, so that what can
// move them names it too. Source: PROTOCOL 3.13.1.

import type { NodeRef } from '../../../protocol/behaviour.ts'
import { assert } from '../../../protocol/errors.ts'
import type {
  DynamicChanged,
  InvoiceCreated,
  OrderRecord,
  TotalsChanged,
} from '../records/records.ts'
import type { BillableKind } from '../state/state.ts'

const NODE_OF_BILLABLE: Readonly<Record<BillableKind, string>> = {
  orderLine: 'orderLine',
  delivery: 'delivery',
  return: 'return',
}
const NODE_OF_OWNER = {
  order: 'order',
  delivery: 'delivery',
  orderLine: 'orderLine',
  discount: 'staticDiscount',
  return: 'return',
} as const satisfies Record<DynamicChanged['owner'], string>

export function touched(record: OrderRecord, orderId: string): NodeRef[] {
  const order: NodeRef = { node: 'order', id: orderId }
  switch (record.t) {
    case 'orderCreated':
    case 'orderChanged':
      return [order]
    case 'orderStateChanged':
      return [order, ...(record.deliveries ?? []).map(([id]) => ({ node: 'delivery', id }))]
    case 'deliveryCreated':
    case 'deliveryStateChanged':
      return [{ node: 'delivery', id: record.deliveryId }, order]
    case 'deliveryChanged':
      return record.after.shippingPrice === undefined
        ? [{ node: 'delivery', id: record.deliveryId }]
        : [{ node: 'delivery', id: record.deliveryId }, order]
    case 'deliveryDeleted':
      return [
        { node: 'delivery', id: record.deliveryId },
        ...discountRefs(record.discounts ?? []),
        order,
      ]
    case 'orderLineCreated':
      return [{ node: 'orderLine', id: record.orderLineId }, order]
    case 'orderLineChanged':
    case 'orderLineMoved':
      return [{ node: 'orderLine', id: record.orderLineId }]
    case 'orderLineSplit':
      return [
        { node: 'orderLine', id: record.orderLineId },
        { node: 'orderLine', id: record.line.orderLineId },
        order,
      ]
    case 'orderLineDeleted':
      return [
        { node: 'orderLine', id: record.orderLineId },
        ...discountRefs(record.discounts ?? []),
        order,
      ]
    case 'tagAdded':
    case 'tagRemoved':
    case 'addressChanged':
      return [record.deliveryId === null ? order : { node: 'delivery', id: record.deliveryId }]
    case 'dynamicChanged':
      return [{ node: NODE_OF_OWNER[record.owner], id: record.id ?? orderId }]
    case 'activityLogged':
      return []
    case 'totalsChanged':
      return totalsRefs(record, order)
    case 'rewound':
    case 'orderDeleted':
      return record.nodes.map(([node, id]) => ({ node, id }))
    default:
      return touchedByBilling(record, order)
  }
}

function touchedByBilling(record: OrderRecord, order: NodeRef): NodeRef[] {
  switch (record.t) {
    case 'discountCreated':
    case 'discountDeleted':
      return [...discountRefs([record.discountId]), order]
    case 'discountChanged':
      // The order's calculated discounts show its description.
      return [...discountRefs([record.discountId]), order]
    case 'returnCreated':
    case 'returnDeleted':
      return [
        { node: 'return', id: record.returnId },
        { node: 'orderLine', id: record.orderLineId },
      ]
    case 'returnChanged':
      return [{ node: 'return', id: record.returnId }]
    case 'releasedToInvoicing':
    case 'retractedFromInvoicing':
      return [{ node: NODE_OF_BILLABLE[record.kind], id: record.id }]
    case 'invoiceCreated':
      return invoiceRefs(record, order)
    case 'invoiceCancelled':
      return [
        { node: 'invoice', id: record.invoiceId },
        ...record.lines.map((id) => ({ node: 'invoiceLine', id })),
        ...record.frees.map(([kind, id]) => ({ node: NODE_OF_BILLABLE[kind], id })),
        order,
      ]
    default:
      assert(false, `no such record: ${record.t}`)
  }
}

function discountRefs(ids: readonly string[]): NodeRef[] {
  return ids.map((id) => ({ node: 'staticDiscount', id }))
}

function invoiceRefs(record: InvoiceCreated, order: NodeRef): NodeRef[] {
  const refs: NodeRef[] = [{ node: 'invoice', id: record.invoiceId }]
  for (const line of record.lines) {
    refs.push({ node: 'invoiceLine', id: line.invoiceLineId })
    refs.push({ node: NODE_OF_BILLABLE[line.referenceType], id: line.referenceId })
  }
  refs.push(order)
  return refs
}

function totalsRefs(record: TotalsChanged, order: NodeRef): NodeRef[] {
  // Shares stand in the order's node: it changes with them even if no sum of it does.
  const refs = [order]
  for (const [id] of record.lines ?? []) refs.push({ node: 'orderLine', id })
  for (const [id] of record.deliveries ?? []) refs.push({ node: 'delivery', id })
  for (const [id] of record.discounts ?? []) refs.push({ node: 'staticDiscount', id })
  for (const [id] of record.returns ?? []) refs.push({ node: 'return', id })
  return refs
}
