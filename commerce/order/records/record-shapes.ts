// The records of an order by position: which members each kind has, in the order in which they are
// stored. Positions and numbers are stored for good: a member is added at the end of its kind, a
// kind with the next number; nothing is moved or taken away. A kind that must change otherwise is
// declared again under a new number, and the old line stays, for old records. Source: PROTOCOL 3.0,
// commerce/README.md "Journal".

import { recordShapes, shapeOf } from '../../../protocol/entry/record-shape.ts'
import {
  type Address,
  INVOICE_ADDRESS_MEMBERS,
  type InvoiceLine,
  type InvoiceLineDiscount,
  type OrderTotals,
} from '../state/state.ts'
import type {
  AddressPatch,
  DeliveryPatch,
  DiscountPatch,
  NewLine,
  OrderLinePatch,
  OrderPatch,
  OrderRecord,
  ReturnPatch,
} from './records.ts'

const LINE = [
  'orderLineId',
  'deliveryId',
  'n',
  'orderLineNumber',
  'productNumber',
  'quantity',
  'unitPrice',
  'taxFactor',
  'salesTax',
  'description',
  'image',
  'skus',
  'dynamic',
  'family',
] as const

const ORDER_PATCH = shapeOf<OrderPatch>([
  'orderNumber',
  'channelKey',
  'customerNumber',
  'locale',
  'externalReference',
])
const DELIVERY_PATCH = shapeOf<DeliveryPatch>([
  'inventoryKey',
  'inventoryDate',
  'shippingProductNumber',
  'shippingDescription',
  'shippingPrice',
  'shippingTax',
  'shippingTaxFactor',
  'carrier',
  'trackingNumber',
  'trackingUrl',
])
const LINE_PATCH = shapeOf<OrderLinePatch>([
  'quantity',
  'unitPrice',
  'taxFactor',
  'salesTax',
  'productNumber',
  'description',
  'image',
  'skus',
])
const DISCOUNT_PATCH = shapeOf<DiscountPatch>(['value', 'description'])
const RETURN_PATCH = shapeOf<ReturnPatch>(['refundFactor'])
const ADDRESS_PATCH = shapeOf<AddressPatch>(INVOICE_ADDRESS_MEMBERS)
const NEW_LINE = shapeOf<NewLine>(LINE)
const TOTALS = shapeOf<OrderTotals>([
  'orderTotal',
  'orderTaxTotal',
  'orderNetTotal',
  'orderGrossTotal',
  'productTotal',
  'shippingTotal',
  'discountTotal',
])
const INVOICE_LINE_DISCOUNT = shapeOf<InvoiceLineDiscount>([
  'invoiceLineDiscountId',
  'amount',
  'description',
  'referenceId',
])
const INVOICE_LINE = shapeOf<InvoiceLine>([
  'invoiceLineId',
  'invoiceId',
  'invoiceLineNumber',
  'referenceType',
  'referenceId',
  'orderLineId',
  'deliveryId',
  'productNumber',
  'description',
  'quantity',
  'unitPrice',
  'taxFactor',
  'amount',
  'invoiceLineTotal',
  'net',
  'tax',
  ['discounts', INVOICE_LINE_DISCOUNT],
  'originalInvoiceId',
  'originalInvoiceLineId',
  'parts',
])

/** Every kind has `commands`: it is in the first record of a message, whichever that is. */
const RELEASE = ['commands', 'kind', 'id'] as const
const TAG = ['commands', 'key', 'deliveryId'] as const

export const ORDER_SHAPES = recordShapes<OrderRecord>([
  {
    id: 1,
    t: 'orderCreated',
    members: ['commands', 'orderNumber', 'currencyCode', 'taxIncluded', 'createdMs', 'channelKey'],
  },
  {
    id: 2,
    t: 'orderChanged',
    members: ['commands', ['before', ORDER_PATCH], ['after', ORDER_PATCH]],
  },
  { id: 3, t: 'orderStateChanged', members: ['commands', 'from', 'to', 'deliveries'] },
  {
    id: 4,
    t: 'deliveryCreated',
    members: [
      'commands',
      'deliveryId',
      'deliveryNumber',
      'n',
      'shippingProductNumber',
      'shippingDescription',
      'shippingPrice',
      'shippingTaxFactor',
    ],
  },
  {
    id: 5,
    t: 'deliveryChanged',
    members: ['commands', 'deliveryId', ['before', DELIVERY_PATCH], ['after', DELIVERY_PATCH]],
  },
  { id: 6, t: 'deliveryStateChanged', members: ['commands', 'deliveryId', 'from', 'to'] },
  {
    id: 7,
    t: 'deliveryDeleted',
    members: ['commands', 'deliveryId', 'deliveryNumber', 'discounts'],
  },
  { id: 8, t: 'orderLineCreated', members: ['commands', ...LINE] },
  {
    id: 9,
    t: 'orderLineChanged',
    members: ['commands', 'orderLineId', ['before', LINE_PATCH], ['after', LINE_PATCH]],
  },
  { id: 10, t: 'orderLineMoved', members: ['commands', 'orderLineId', 'from', 'to'] },
  {
    id: 11,
    t: 'orderLineSplit',
    members: [
      'commands',
      'orderLineId',
      ['before', LINE_PATCH],
      ['after', LINE_PATCH],
      ['line', NEW_LINE],
    ],
  },
  {
    id: 12,
    t: 'orderLineDeleted',
    members: [
      'commands',
      'orderLineId',
      'orderLineNumber',
      'productNumber',
      'quantity',
      'unitPrice',
      'discounts',
    ],
  },
  {
    id: 13,
    t: 'discountCreated',
    members: [
      'commands',
      'discountId',
      'scope',
      'targetId',
      'isPercentage',
      'value',
      'description',
      'dynamic',
      'family',
    ],
  },
  {
    id: 14,
    t: 'discountChanged',
    members: ['commands', 'discountId', ['before', DISCOUNT_PATCH], ['after', DISCOUNT_PATCH]],
  },
  {
    id: 15,
    t: 'discountDeleted',
    members: ['commands', 'discountId', 'scope', 'targetId', 'value'],
  },
  {
    id: 16,
    t: 'returnCreated',
    members: ['commands', 'returnId', 'orderLineId', 'quantity', 'refundFactor', 'dynamic'],
  },
  {
    id: 17,
    t: 'returnChanged',
    members: ['commands', 'returnId', ['before', RETURN_PATCH], ['after', RETURN_PATCH]],
  },
  { id: 18, t: 'returnDeleted', members: ['commands', 'returnId', 'orderLineId', 'quantity'] },
  { id: 19, t: 'releasedToInvoicing', members: RELEASE },
  { id: 20, t: 'retractedFromInvoicing', members: RELEASE },
  {
    id: 21,
    t: 'invoiceCreated',
    members: [
      'commands',
      'invoiceId',
      'invoiceNumber',
      'n',
      ['invoiceAddress', shapeOf<Address>(INVOICE_ADDRESS_MEMBERS)],
      'invoiceTotal',
      'invoiceNetTotal',
      'invoiceTaxTotal',
      ['lines', INVOICE_LINE],
    ],
  },
  {
    id: 22,
    t: 'invoiceCancelled',
    members: ['commands', 'invoiceId', 'invoiceNumber', 'invoiceTotal', 'lines', 'frees'],
  },
  { id: 23, t: 'tagAdded', members: TAG },
  { id: 24, t: 'tagRemoved', members: TAG },
  {
    id: 25,
    t: 'addressChanged',
    members: ['commands', 'deliveryId', ['before', ADDRESS_PATCH], ['after', ADDRESS_PATCH]],
  },
  { id: 26, t: 'dynamicChanged', members: ['commands', 'owner', 'id', 'before', 'after'] },
  { id: 27, t: 'activityLogged', members: ['commands', 'messageTemplate', 'message', 'dynamic'] },
  {
    id: 28,
    t: 'totalsChanged',
    members: ['commands', ['order', TOTALS], 'lines', 'deliveries', 'discounts', 'returns'],
  },
  { id: 29, t: 'rewound', members: ['commands', 'checkpointId', 'state', 'nodes'] },
  { id: 30, t: 'orderDeleted', members: ['commands', 'nodes'] },
])
