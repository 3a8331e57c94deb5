// The node types that orders bring to the graph: fields, edges, and where they are kept. project.ts
// makes the docs; the planner, the index and the metadata endpoint go by these. Edges to payments,
// promotions, skus, channels and inventories come with those node types. Source: commerce/README.md
// "Graph", CONTRACT 1.4.

import type { EdgeDef, FieldDef, FieldType, NodeType } from '../../../protocol/graph/node-type.ts'
import { BUILT_IN_SEARCH } from './search.ts'
import {
  ADDRESS_MEMBERS,
  DELIVERY_STATES,
  INVOICE_ADDRESS_MEMBERS,
  ORDER_STATES,
} from '../state/state.ts'
import { JOURNAL_TYPES } from './journal.ts'

const field = (name: string, type: FieldType): FieldDef => ({ name, type })
const indexed = (name: string, type: FieldType): FieldDef => ({ name, type, indexed: true })
const enumField = (name: string, values: readonly string[], isIndexed = false): FieldDef => ({
  name,
  type: 'enum',
  values,
  ...(isIndexed && { indexed: true }),
})
const texts = (name: string, members: readonly string[]): FieldDef => ({
  name,
  type: 'object',
  members: members.map((member) => field(member, 'text')),
})
const fields = (type: FieldType, ...names: string[]): FieldDef[] =>
  names.map((name) => field(name, type))
const LAST_MODIFIED = field('lastModified', 'instant')
const EXTENTS = ['none', 'partial', 'complete']
const REFERENCES = ['staticDiscount', 'promotion']

/** Both ends in one order: matched by the same id on both sides, unless told otherwise. */
const edge = (
  cardinality: EdgeDef['cardinality'],
  name: string,
  node: string,
  by: string | readonly [from: string, to: string],
): EdgeDef => {
  const [from, to] = typeof by === 'string' ? [by, by] : by
  return { name, node, cardinality, from, to, sameActor: true }
}
const one = edge.bind(null, 'single')
const many = edge.bind(null, 'many')

const order: NodeType = {
  name: 'order',
  set: 'orders',
  idField: 'orderId',
  storage: { kind: 'row' },
  fields: [
    indexed('orderId', 'uuid'),
    indexed('orderNumber', 'text'),
    { ...indexed('channelKey', 'text'), options: 'channels' },
    indexed('customerNumber', 'text'),
    enumField('orderState', ORDER_STATES, true),
    indexed('createdAt', 'instant'),
    indexed('orderTotal', 'number'),
    indexed('externalReference', 'text'),
    texts('invoiceAddress', INVOICE_ADDRESS_MEMBERS),
    field('dynamic', 'dynamic'),
    { ...field('currencyCode', 'text'), options: 'currencies' },
    field('taxIncluded', 'boolean'),
    field('tags', '[text]'),
    ...fields('number', 'orderNetTotal', 'orderTaxTotal', 'orderGrossTotal', 'productTotal'),
    ...fields('number', 'shippingTotal', 'discountTotal', 'invoicedTotal'),
    ...fields('number', 'capturedTotal', 'authorizedTotal'),
    enumField('fulfilmentState', EXTENTS),
    enumField('invoiceState', EXTENTS),
    enumField('paymentState', [
      'none',
      'authorized',
      'partiallyPaid',
      'paid',
      'overpaid',
      'refunded',
    ]),
    field('locale', 'text'),
    LAST_MODIFIED,
  ],
  edges: [
    many('deliveries', 'delivery', 'orderId'),
    many('orderLines', 'orderLine', 'orderId'),
    many('invoices', 'invoice', 'orderId'),
    many('staticDiscounts', 'staticDiscount', 'orderId'),
    many('calculatedDiscounts', 'calculatedDiscount', 'orderId'),
    many('returns', 'return', 'orderId'),
    many('journalEntries', 'orderJournalEntry', 'orderId'),
    many('activityLogs', 'activityLog', 'orderId'),
  ],
}

const delivery: NodeType = {
  name: 'delivery',
  set: 'deliveries',
  idField: 'deliveryId',
  storage: { kind: 'row' },
  fields: [
    indexed('deliveryId', 'uuid'),
    indexed('orderId', 'uuid'),
    indexed('deliveryNumber', 'text'),
    enumField('deliveryState', DELIVERY_STATES, true),
    { ...indexed('inventoryKey', 'text'), options: 'inventories' },
    field('inventoryDate', 'date'),
    texts('deliveryAddress', ADDRESS_MEMBERS),
    field('dynamic', 'dynamic'),
    field('tags', '[text]'),
    ...fields('number', 'shippingTotal', 'shippingPrice', 'shippingTax', 'shippingTaxTotal'),
    field('shippingTaxFactor', 'number'),
    field('shippingProductNumber', 'text'),
    field('shippingDescription', 'text'),
    field('releasedToInvoice', 'boolean'),
    texts('tracking', ['carrier', 'trackingNumber', 'trackingUrl']),
    ...fields('instant', 'createdAt', 'finalizedAt'),
    LAST_MODIFIED,
  ],
  edges: [
    one('order', 'order', 'orderId'),
    many('orderLines', 'orderLine', 'deliveryId'),
    many('calculatedDiscounts', 'calculatedDiscount', 'deliveryId'),
    many('staticDiscounts', 'staticDiscount', 'deliveryId'),
    many('invoiceLines', 'invoiceLine', 'deliveryId'),
  ],
}

const orderLine: NodeType = {
  name: 'orderLine',
  set: 'orderLines',
  idField: 'orderLineId',
  storage: { kind: 'row' },
  fields: [
    indexed('orderLineId', 'uuid'),
    indexed('orderId', 'uuid'),
    indexed('deliveryId', 'uuid'),
    indexed('productNumber', 'text'),
    field('orderLineNumber', 'text'),
    indexed('quantity', 'number'),
    ...fields('number', 'unitPrice', 'orderLineTotal', 'taxFactor', 'taxTotal'),
    ...fields('number', 'returnedQuantity', 'reservedQuantity', 'invoicedQuantity'),
    ...fields('text', 'description', 'image'),
    field('releasedToInvoice', 'boolean'),
    field('dynamic', 'dynamic'),
    field('createdAt', 'instant'),
    LAST_MODIFIED,
  ],
  edges: [
    one('order', 'order', 'orderId'),
    one('delivery', 'delivery', 'deliveryId'),
    many('skus', 'orderLineSku', 'orderLineId'),
    many('calculatedDiscounts', 'calculatedDiscount', 'orderLineId'),
    many('staticDiscounts', 'staticDiscount', 'orderLineId'),
    many('returns', 'return', 'orderLineId'),
    many('invoiceLines', 'invoiceLine', 'orderLineId'),
  ],
}

const orderLineSku: NodeType = {
  name: 'orderLineSku',
  set: 'orderLineSkus',
  idField: 'orderLineSkuId',
  storage: { kind: 'embedded', node: 'orderLine', member: 'skus' },
  fields: [
    ...fields('uuid', 'orderLineSkuId', 'orderLineId'),
    field('skuNumber', 'text'),
    ...fields('number', 'unitQuantity', 'totalQuantity', 'reservedQuantity'),
    field('totalReturnedQuantity', 'number'),
    LAST_MODIFIED,
  ],
  edges: [one('orderLine', 'orderLine', 'orderLineId')],
}

const staticDiscount: NodeType = {
  name: 'staticDiscount',
  set: 'staticDiscounts',
  idField: 'discountId',
  storage: { kind: 'row' },
  fields: [
    indexed('discountId', 'uuid'),
    indexed('orderId', 'uuid'),
    indexed('orderLineId', 'uuid'),
    indexed('deliveryId', 'uuid'),
    enumField('scope', ['order', 'orderLine', 'shipping']),
    field('isPercentage', 'boolean'),
    ...fields('number', 'value', 'calculatedTotal'),
    field('description', 'text'),
    field('dynamic', 'dynamic'),
    field('createdAt', 'instant'),
    LAST_MODIFIED,
  ],
  edges: [
    one('order', 'order', 'orderId'),
    one('orderLine', 'orderLine', 'orderLineId'),
    one('delivery', 'delivery', 'deliveryId'),
    many('calculatedDiscounts', 'calculatedDiscount', ['discountId', 'referenceId']),
  ],
}

const calculatedDiscount: NodeType = {
  name: 'calculatedDiscount',
  set: 'calculatedDiscounts',
  idField: 'calculatedDiscountId',
  storage: { kind: 'embedded', node: 'order', member: 'calculatedDiscounts' },
  fields: [
    ...fields('uuid', 'calculatedDiscountId', 'orderId', 'orderLineId', 'deliveryId'),
    field('value', 'number'),
    field('description', 'text'),
    field('referenceId', 'uuid'),
    enumField('referenceType', REFERENCES),
    LAST_MODIFIED,
  ],
  edges: [
    one('order', 'order', 'orderId'),
    one('orderLine', 'orderLine', 'orderLineId'),
    one('delivery', 'delivery', 'deliveryId'),
    one('staticDiscount', 'staticDiscount', ['referenceId', 'discountId']),
  ],
}

const returnNode: NodeType = {
  name: 'return',
  set: 'returns',
  idField: 'returnId',
  storage: { kind: 'row' },
  fields: [
    indexed('returnId', 'uuid'),
    indexed('orderId', 'uuid'),
    indexed('orderLineId', 'uuid'),
    ...fields('number', 'quantity', 'refundFactor', 'returnTotal'),
    ...fields('boolean', 'releasedToInvoice', 'invoiced'),
    field('dynamic', 'dynamic'),
    field('createdAt', 'instant'),
    LAST_MODIFIED,
  ],
  edges: [
    one('order', 'order', 'orderId'),
    one('orderLine', 'orderLine', 'orderLineId'),
    many('invoiceLines', 'invoiceLine', 'returnId'),
  ],
}

const invoice: NodeType = {
  name: 'invoice',
  set: 'invoices',
  idField: 'invoiceId',
  storage: { kind: 'row' },
  fields: [
    indexed('invoiceId', 'uuid'),
    indexed('orderId', 'uuid'),
    indexed('invoiceNumber', 'text'),
    field('isCancelled', 'boolean'),
    texts('invoiceAddress', INVOICE_ADDRESS_MEMBERS),
    texts('invoiceRecipient', INVOICE_ADDRESS_MEMBERS),
    ...fields('number', 'invoiceTotal', 'invoiceNetTotal', 'invoiceTaxTotal', 'capturedTotal'),
    field('createdAt', 'instant'),
    LAST_MODIFIED,
  ],
  edges: [one('order', 'order', 'orderId'), many('invoiceLines', 'invoiceLine', 'invoiceId')],
}

const invoiceLine: NodeType = {
  name: 'invoiceLine',
  set: 'invoiceLines',
  idField: 'invoiceLineId',
  storage: { kind: 'row' },
  fields: [
    indexed('invoiceLineId', 'uuid'),
    indexed('invoiceId', 'uuid'),
    indexed('orderId', 'uuid'),
    indexed('deliveryId', 'uuid'),
    indexed('orderLineId', 'uuid'),
    indexed('returnId', 'uuid'),
    indexed('originalInvoiceId', 'uuid'),
    indexed('originalInvoiceLineId', 'uuid'),
    field('referenceId', 'uuid'),
    enumField('referenceType', ['none', 'orderLine', 'return', 'delivery']),
    ...fields('number', 'invoiceLineNumber', 'invoiceLineTotal', 'amount', 'net', 'tax', 'total'),
    ...fields('number', 'taxFactor', 'quantity'),
    ...fields('text', 'productNumber', 'description'),
    {
      name: 'unit',
      type: 'object',
      members: [...fields('number', 'quantity', 'value'), field('label', 'text')],
    },
    LAST_MODIFIED,
  ],
  edges: [
    one('invoice', 'invoice', 'invoiceId'),
    one('delivery', 'delivery', 'deliveryId'),
    one('orderLine', 'orderLine', 'orderLineId'),
    one('return', 'return', 'returnId'),
    many('discounts', 'invoiceLineDiscount', 'invoiceLineId'),
    one('originalInvoice', 'invoice', ['originalInvoiceId', 'invoiceId']),
    one('originalInvoiceLine', 'invoiceLine', ['originalInvoiceLineId', 'invoiceLineId']),
    many('relatedInvoiceLines', 'invoiceLine', ['invoiceLineId', 'originalInvoiceLineId']),
    many('relatedInvoiceLineDiscounts', 'invoiceLineDiscount', [
      'invoiceLineId',
      'originalInvoiceLineId',
    ]),
  ],
}

const invoiceLineDiscount: NodeType = {
  name: 'invoiceLineDiscount',
  set: 'invoiceLineDiscounts',
  idField: 'invoiceLineDiscountId',
  storage: { kind: 'embedded', node: 'invoiceLine', member: 'discounts' },
  fields: [
    ...fields('uuid', 'invoiceLineDiscountId', 'invoiceLineId', 'originalInvoiceLineId'),
    field('amount', 'number'),
    field('description', 'text'),
    field('referenceId', 'uuid'),
    enumField('referenceType', REFERENCES),
    LAST_MODIFIED,
  ],
  edges: [one('invoiceLine', 'invoiceLine', 'invoiceLineId')],
}

const orderJournalEntry: NodeType = {
  name: 'orderJournalEntry',
  set: 'orderJournalEntries',
  idField: 'orderJournalEntryId',
  storage: { kind: 'history', parent: 'order', parentField: 'orderId' },
  fields: [
    ...fields('uuid', 'orderJournalEntryId', 'orderId', 'checkpointId'),
    field('timestamp', 'instant'),
    enumField('type', JOURNAL_TYPES),
    ...fields('value', 'references', 'before', 'after'),
    field('amount', 'number'),
    field('identityId', 'text'),
    LAST_MODIFIED,
  ],
  edges: [one('order', 'order', 'orderId')],
}

const activityLog: NodeType = {
  name: 'activityLog',
  set: 'activityLogs',
  idField: 'activityLogId',
  storage: { kind: 'history', parent: 'order', parentField: 'orderId' },
  fields: [
    ...fields('uuid', 'activityLogId', 'orderId'),
    ...fields('text', 'messageTemplate', 'message', 'createdBy'),
    field('dynamic', 'dynamic'),
    field('createdAt', 'instant'),
    LAST_MODIFIED,
  ],
  edges: [one('order', 'order', 'orderId')],
}

const found = (type: NodeType): NodeType => {
  const search = BUILT_IN_SEARCH[type.name]
  return search === undefined ? type : { ...type, search }
}

export const ORDER_NODE_TYPES: readonly NodeType[] = [
  order,
  delivery,
  orderLine,
  orderLineSku,
  staticDiscount,
  calculatedDiscount,
  returnNode,
  invoice,
  invoiceLine,
  invoiceLineDiscount,
  orderJournalEntry,
  activityLog,
].map(found)
