// What the graph shows of an order: the content of each node in a state. Index rows, live queries
// and `query` messages are made of them. A doc holds the fields that node-types.ts declares,
// without those that are not set. Source: commerce/README.md "Graph".

import type { NodeDoc, NodeRef } from '../../../protocol/behaviour.ts'
import { derivedId } from '../../../protocol/checkpoint.ts'
import { addDecimals, fromUnits, PRICE_DECIMALS, priceUnits } from '../../../protocol/money.ts'
import { fulfilmentState, invoicedTotal, invoiceState } from '../state/derived-states.ts'
import type {
  Delivery,
  Invoice,
  InvoiceLine,
  OrderLine,
  OrderState,
  Return,
  StaticDiscount,
} from '../state/state.ts'

type Doc = Record<string, unknown>

/** What an invoice line counts: order lines name no unit of their own, so all count pieces. */
const UNIT_LABEL = 'pcs'

/** Row-stored nodes of a state. */
export function refs(state: OrderState): NodeRef[] {
  if (state.deleted) return []
  const found: NodeRef[] = [{ node: 'order', id: state.orderId }]
  for (const id of state.deliveries.keys()) found.push({ node: 'delivery', id })
  for (const id of state.lines.keys()) found.push({ node: 'orderLine', id })
  for (const id of state.discounts.keys()) found.push({ node: 'staticDiscount', id })
  for (const id of state.returns.keys()) found.push({ node: 'return', id })
  for (const id of state.invoices.keys()) found.push({ node: 'invoice', id })
  for (const id of state.invoiceLines.keys()) found.push({ node: 'invoiceLine', id })
  return found
}

/** Returns a node's content, or null when there is no such node (any more). */
export function project(state: OrderState, ref: NodeRef): NodeDoc | null {
  const doc = state.deleted ? null : docOf(state, ref)
  return doc === null ? null : { node: ref.node, id: ref.id, doc }
}

function docOf(state: OrderState, { node, id }: NodeRef): Doc | null {
  switch (node) {
    case 'order':
      return id === state.orderId ? orderDoc(state) : null
    case 'delivery':
      return shown(state.deliveries.get(id), (it) => deliveryDoc(state, it))
    case 'orderLine':
      return shown(state.lines.get(id), (it) => orderLineDoc(state, it))
    case 'staticDiscount':
      return shown(state.discounts.get(id), (it) => staticDiscountDoc(state, it))
    case 'return':
      return shown(state.returns.get(id), (it) => returnDoc(state, it))
    case 'invoice':
      return shown(state.invoices.get(id), (it) => invoiceDoc(state, it))
    case 'invoiceLine':
      return shown(state.invoiceLines.get(id), (it) => invoiceLineDoc(state, it))
    default:
      return null
  }
}

function shown<T>(child: T | undefined, doc: (child: T) => Doc): Doc | null {
  return child === undefined ? null : doc(child)
}

function orderDoc(state: OrderState): Doc {
  const doc: Doc = {
    orderId: state.orderId,
    orderNumber: state.orderNumber,
    orderState: state.state,
    currencyCode: state.currencyCode,
    taxIncluded: state.taxIncluded,
    createdAt: iso(state.createdMs),
    invoiceAddress: state.invoiceAddress,
    dynamic: state.dynamic,
    tags: state.tags,
    orderTotal: state.totals.orderTotal,
    orderNetTotal: state.totals.orderNetTotal,
    orderTaxTotal: state.totals.orderTaxTotal,
    orderGrossTotal: state.totals.orderGrossTotal,
    productTotal: state.totals.productTotal,
    shippingTotal: state.totals.shippingTotal,
    discountTotal: state.totals.discountTotal,
    invoicedTotal: invoicedTotal(state),
    capturedTotal: 0,
    authorizedTotal: 0,
    fulfilmentState: fulfilmentState(state),
    invoiceState: invoiceState(state),
    paymentState: 'none',
    lastModified: iso(state.modifiedMs),
  }
  set(doc, 'channelKey', state.channelKey)
  set(doc, 'customerNumber', state.customerNumber)
  set(doc, 'locale', state.locale)
  set(doc, 'externalReference', state.externalReference)
  if (state.discounts.size > 0) doc['calculatedDiscounts'] = calculatedDiscounts(state)
  return doc
}

/** Shares of all discounts: embedded in the order, in the order of lines, then deliveries. */
function calculatedDiscounts(state: OrderState): Doc[] {
  const docs: Doc[] = []
  const add = (of: OrderLine | Delivery, target: Doc, targetId: string): void => {
    for (const { referenceId, value } of of.shares) {
      const { description, createdMs } = state.discounts.get(referenceId)!
      const doc: Doc = {
        calculatedDiscountId: derivedId(`calculated/${referenceId}/${targetId}`, createdMs),
        orderId: state.orderId,
        ...target,
        value,
        referenceId,
        referenceType: 'staticDiscount',
        lastModified: iso(state.modifiedMs),
      }
      set(doc, 'description', description)
      docs.push(doc)
    }
  }
  for (const line of state.lines.values()) {
    add(line, { orderLineId: line.orderLineId }, line.orderLineId)
  }
  for (const delivery of state.deliveries.values()) {
    add(delivery, { deliveryId: delivery.deliveryId }, delivery.deliveryId)
  }
  return docs
}

function deliveryDoc(state: OrderState, delivery: Delivery): Doc {
  const doc: Doc = {
    deliveryId: delivery.deliveryId,
    orderId: state.orderId,
    deliveryNumber: delivery.deliveryNumber,
    deliveryState: delivery.state,
    deliveryAddress: delivery.address,
    dynamic: delivery.dynamic,
    tags: delivery.tags,
    releasedToInvoice: delivery.released,
    shippingTotal: delivery.total,
    shippingTaxTotal: delivery.tax,
    createdAt: iso(delivery.createdMs),
    lastModified: iso(delivery.modifiedMs),
  }
  set(doc, 'inventoryKey', delivery.inventoryKey)
  set(doc, 'inventoryDate', delivery.inventoryDate)
  set(doc, 'shippingProductNumber', delivery.shippingProductNumber)
  set(doc, 'shippingDescription', delivery.shippingDescription)
  set(doc, 'shippingPrice', delivery.shippingPrice)
  set(doc, 'shippingTax', delivery.shippingTax)
  set(doc, 'shippingTaxFactor', delivery.shippingTaxFactor)
  const { carrier, trackingNumber, trackingUrl, finalizedMs } = delivery
  if (carrier !== null || trackingNumber !== null || trackingUrl !== null) {
    const tracking: Doc = {}
    set(tracking, 'carrier', carrier)
    set(tracking, 'trackingNumber', trackingNumber)
    set(tracking, 'trackingUrl', trackingUrl)
    doc['tracking'] = tracking
  }
  if (finalizedMs !== null) doc['finalizedAt'] = iso(finalizedMs)
  return doc
}

function orderLineDoc(state: OrderState, line: OrderLine): Doc {
  const doc: Doc = {
    orderLineId: line.orderLineId,
    orderId: state.orderId,
    deliveryId: line.deliveryId,
    orderLineNumber: line.orderLineNumber,
    productNumber: line.productNumber,
    quantity: line.quantity,
    unitPrice: line.unitPrice,
    orderLineTotal: line.total,
    taxTotal: line.tax,
    releasedToInvoice: line.released,
    returnedQuantity: line.returnedQuantity,
    reservedQuantity: 0,
    invoicedQuantity: line.invoiceId === null ? 0 : line.quantity,
    dynamic: line.dynamic,
    createdAt: iso(line.createdMs),
    lastModified: iso(line.modifiedMs),
  }
  set(doc, 'description', line.description)
  set(doc, 'image', line.image)
  set(doc, 'taxFactor', line.taxFactor)
  const skus = Object.keys(line.skus)
  if (skus.length > 0) doc['skus'] = skus.map((sku) => skuDoc(line, sku))
  return doc
}

function skuDoc(line: OrderLine, skuNumber: string): Doc {
  const unitQuantity = line.skus[skuNumber]!
  return {
    orderLineSkuId: derivedId(`sku/${line.orderLineId}/${skuNumber}`, line.createdMs),
    orderLineId: line.orderLineId,
    skuNumber,
    unitQuantity,
    totalQuantity: times(unitQuantity, line.quantity),
    reservedQuantity: 0,
    totalReturnedQuantity: times(unitQuantity, line.returnedQuantity),
    lastModified: iso(line.modifiedMs),
  }
}

function times(a: number, b: number): number {
  return fromUnits(priceUnits(a, b, PRICE_DECIMALS), PRICE_DECIMALS)
}

function staticDiscountDoc(state: OrderState, discount: StaticDiscount): Doc {
  const doc: Doc = {
    discountId: discount.discountId,
    orderId: state.orderId,
    scope: discount.scope,
    isPercentage: discount.isPercentage,
    value: discount.value,
    calculatedTotal: discount.calculatedTotal,
    dynamic: discount.dynamic,
    createdAt: iso(discount.createdMs),
    lastModified: iso(discount.modifiedMs),
  }
  set(doc, 'description', discount.description)
  if (discount.scope === 'orderLine') doc['orderLineId'] = discount.targetId
  if (discount.scope === 'shipping') doc['deliveryId'] = discount.targetId
  return doc
}

function returnDoc(state: OrderState, item: Return): Doc {
  return {
    returnId: item.returnId,
    orderId: state.orderId,
    orderLineId: item.orderLineId,
    quantity: item.quantity,
    refundFactor: item.refundFactor,
    returnTotal: item.returnTotal,
    releasedToInvoice: item.released,
    invoiced: item.invoiceId !== null,
    dynamic: item.dynamic,
    createdAt: iso(item.createdMs),
    lastModified: iso(item.modifiedMs),
  }
}

function invoiceDoc(state: OrderState, invoice: Invoice): Doc {
  return {
    invoiceId: invoice.invoiceId,
    orderId: state.orderId,
    invoiceNumber: invoice.invoiceNumber,
    isCancelled: invoice.isCancelled,
    invoiceAddress: invoice.invoiceAddress,
    invoiceRecipient: invoice.invoiceAddress,
    invoiceTotal: invoice.invoiceTotal,
    invoiceNetTotal: invoice.invoiceNetTotal,
    invoiceTaxTotal: invoice.invoiceTaxTotal,
    capturedTotal: 0,
    createdAt: iso(invoice.createdMs),
    lastModified: iso(invoice.modifiedMs),
  }
}

function invoiceLineDoc(state: OrderState, line: InvoiceLine): Doc {
  const lastModified = iso(state.invoices.get(line.invoiceId)!.modifiedMs)
  const doc: Doc = {
    invoiceLineId: line.invoiceLineId,
    invoiceId: line.invoiceId,
    orderId: state.orderId,
    deliveryId: line.deliveryId,
    invoiceLineNumber: line.invoiceLineNumber,
    referenceId: line.referenceId,
    referenceType: line.referenceType,
    quantity: line.quantity,
    unit: { quantity: line.quantity, value: line.unitPrice, label: UNIT_LABEL },
    amount: line.amount,
    invoiceLineTotal: line.invoiceLineTotal,
    net: line.net,
    tax: line.tax,
    total: addDecimals(line.net, line.tax),
    lastModified,
  }
  set(doc, 'orderLineId', line.orderLineId)
  if (line.referenceType === 'return') doc['returnId'] = line.referenceId
  set(doc, 'productNumber', line.productNumber)
  set(doc, 'description', line.description)
  set(doc, 'taxFactor', line.taxFactor)
  set(doc, 'originalInvoiceId', line.originalInvoiceId)
  set(doc, 'originalInvoiceLineId', line.originalInvoiceLineId)
  if (line.discounts.length > 0) {
    doc['discounts'] = line.discounts.map((discount) => {
      const item: Doc = {
        invoiceLineDiscountId: discount.invoiceLineDiscountId,
        invoiceLineId: line.invoiceLineId,
        amount: discount.amount,
        referenceId: discount.referenceId,
        referenceType: 'staticDiscount',
        lastModified,
      }
      set(item, 'description', discount.description)
      set(item, 'originalInvoiceLineId', line.originalInvoiceLineId)
      return item
    })
  }
  return doc
}

function set(doc: Doc, field: string, value: unknown): void {
  if (value !== null) doc[field] = value
}

/** The nodes of one message share their time: the text of the last one is kept. */
let lastMs = Number.NaN
let lastText = ''
export function iso(ms: number): string {
  if (ms !== lastMs) {
    lastText = new Date(ms).toISOString()
    lastMs = ms
  }
  return lastText
}
