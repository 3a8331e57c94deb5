// The state of an order: what its records fold into and its commands decide on. evolve.ts is its
// only writer. Children are replaced when they change, never mutated: a decision works on a copy of
// the maps and shares the rest. Source: commerce/README.md "Graph".

import type { JsonObject } from '../../actor/json.ts'

export const ORDER_STATES = ['pending', 'confirmed', 'completed', 'cancelled'] as const
export type OrderStateName = (typeof ORDER_STATES)[number]

export const DELIVERY_STATES = [
  'open',
  'processing',
  'completed',
  'cancelled',
  'cancelledByOrder',
] as const
export type DeliveryStateName = (typeof DELIVERY_STATES)[number]

/** Their places are stored: a record of an address goes by them (record-shapes.ts). */
export const ADDRESS_MEMBERS = [
  'name',
  'attention',
  'careOf',
  'addressLine1',
  'addressLine2',
  'postalCode',
  'city',
  'state',
  'countryCode',
  'email',
  'phone',
] as const
export const INVOICE_ADDRESS_MEMBERS = [
  ...ADDRESS_MEMBERS,
  'taxId',
  'taxIdType',
  'taxCountryCode',
] as const

/** Members that were never set, or cleared, are not there. */
export type Address = Readonly<Partial<Record<(typeof INVOICE_ADDRESS_MEMBERS)[number], string>>>

/** A share of a discount on one line or shipping fee. */
export interface CalculatedDiscount {
  /** Id of what it comes from: the static discount (or promotion). */
  readonly referenceId: string
  readonly value: number
}

/** What order discounts are shared by: a line, a shipping fee. */
interface Discounted {
  readonly shares: readonly CalculatedDiscount[]
  /**
   * Order discounts that were reckoned over it when it was invoiced, though rounding left it no
   * share of them. Absent where there are none, and while it stands on no invoice.
   */
  readonly reckoned?: readonly string[]
}

/** What can be released to invoicing: a line, a delivery's shipping fee, a return. */
export type BillableKind = 'orderLine' | 'delivery' | 'return'

/** Where a billable thing stands (commerce/README.md "Machines", Billing). */
export interface Billable {
  readonly released: boolean
  /** The active invoice it stands on. */
  readonly invoiceId: string | null
  readonly invoiceLineId: string | null
}

export interface Delivery extends Billable, Discounted {
  readonly deliveryId: string
  readonly deliveryNumber: string
  readonly state: DeliveryStateName
  readonly address: Address
  readonly inventoryKey: string | null
  /** YYYY-MM-DD */
  readonly inventoryDate: string | null
  readonly shippingProductNumber: string | null
  readonly shippingDescription: string | null
  readonly shippingPrice: number | null
  /** Absolute tax of the fee; wins over the factor. At most one of the two is set. */
  readonly shippingTax: number | null
  readonly shippingTaxFactor: number | null
  readonly carrier: string | null
  readonly trackingNumber: string | null
  readonly trackingUrl: string | null
  readonly dynamic: JsonObject
  readonly tags: readonly string[]
  readonly finalizedMs: number | null
  /** After discounts, in the order's convention. */
  readonly total: number
  readonly tax: number
  /** Place in the order's sequence of creation, over lines and deliveries. */
  readonly seq: number
  readonly createdMs: number
  readonly modifiedMs: number
}

export interface OrderLine extends Billable, Discounted {
  readonly orderLineId: string
  readonly deliveryId: string
  readonly orderLineNumber: string
  readonly productNumber: string
  readonly description: string | null
  readonly image: string | null
  readonly quantity: number
  readonly unitPrice: number
  readonly taxFactor: number | null
  /** Absolute tax of the line; wins over the factor. At most one of the two is set. */
  readonly salesTax: number | null
  /** Sku number to quantity per unit of the line. */
  readonly skus: Readonly<Record<string, number>>
  readonly dynamic: JsonObject
  readonly returnedQuantity: number
  /** The first line of those that splits made of one; absent: it was never split. */
  readonly family?: string
  readonly total: number
  readonly tax: number
  readonly seq: number
  readonly createdMs: number
  readonly modifiedMs: number
}

export type DiscountScope = 'order' | 'orderLine' | 'shipping'

export interface StaticDiscount {
  readonly discountId: string
  readonly scope: DiscountScope
  /** The line or delivery it is for; null for the whole order. */
  readonly targetId: string | null
  readonly isPercentage: boolean
  readonly value: number
  readonly description: string | null
  readonly dynamic: JsonObject
  /** The first discount of those that splits made of one; absent: its line was never split. */
  readonly family?: string
  /** Sum of its shares. */
  readonly calculatedTotal: number
  readonly createdMs: number
  readonly modifiedMs: number
}

export interface Return extends Billable {
  readonly returnId: string
  readonly orderLineId: string
  readonly quantity: number
  readonly refundFactor: number
  readonly dynamic: JsonObject
  readonly returnTotal: number
  readonly createdMs: number
  readonly modifiedMs: number
}

export interface InvoiceLineDiscount {
  readonly invoiceLineDiscountId: string
  readonly amount: number
  readonly description: string | null
  readonly referenceId: string
}

export interface InvoiceLine {
  readonly invoiceLineId: string
  readonly invoiceId: string
  readonly invoiceLineNumber: number
  readonly referenceType: BillableKind
  readonly referenceId: string
  readonly orderLineId: string | null
  readonly deliveryId: string
  readonly productNumber: string | null
  readonly description: string | null
  readonly quantity: number
  readonly unitPrice: number
  readonly taxFactor: number | null
  /** Before discounts; with them it is the line's total, both in the order's convention. */
  readonly amount: number
  readonly invoiceLineTotal: number
  readonly net: number
  readonly tax: number
  readonly discounts: readonly InvoiceLineDiscount[]
  readonly originalInvoiceId: string | null
  readonly originalInvoiceLineId: string | null
  /** A credit's parts of its line's quantity, from and to; credits of older versions have none. */
  readonly parts?: readonly (readonly [from: number, to: number])[]
}

export interface Invoice {
  readonly invoiceId: string
  readonly invoiceNumber: string
  readonly isCancelled: boolean
  readonly invoiceAddress: Address
  /** What is to be paid: net and tax. */
  readonly invoiceTotal: number
  readonly invoiceNetTotal: number
  readonly invoiceTaxTotal: number
  readonly invoiceLineIds: readonly string[]
  readonly createdMs: number
  readonly modifiedMs: number
}

export interface OrderTotals {
  readonly orderTotal: number
  readonly orderTaxTotal: number
  readonly orderNetTotal: number
  readonly orderGrossTotal: number
  readonly productTotal: number
  readonly shippingTotal: number
  readonly discountTotal: number
}

export interface OrderState {
  readonly orderId: string
  deleted: boolean
  orderNumber: string
  state: OrderStateName
  readonly currencyCode: string
  readonly taxIncluded: boolean
  readonly createdMs: number
  channelKey: string | null
  customerNumber: string | null
  locale: string | null
  externalReference: string | null
  invoiceAddress: Address
  dynamic: JsonObject
  tags: readonly string[]
  totals: OrderTotals
  readonly deliveries: Map<string, Delivery>
  readonly lines: Map<string, OrderLine>
  readonly discounts: Map<string, StaticDiscount>
  readonly returns: Map<string, Return>
  readonly invoices: Map<string, Invoice>
  readonly invoiceLines: Map<string, InvoiceLine>
  /** Counters: they only rise, so that no number is given twice, whatever is deleted or rewound. */
  seq: number
  lastDeliveryNumber: number
  lastLineNumber: number
  lastInvoiceNumber: number
  modifiedMs: number
  /** Message and time of the last commit: the checkpoint that the order stands at. */
  messageId: string
  messageMs: number
  /** Derived, not in snapshots: lines of each delivery, and static discounts of each target. */
  readonly lineCounts: Map<string, number>
  readonly discountsOf: Map<string, readonly string[]>
}

export const NO_TOTALS: OrderTotals = {
  orderTotal: 0,
  orderTaxTotal: 0,
  orderNetTotal: 0,
  orderGrossTotal: 0,
  productTotal: 0,
  shippingTotal: 0,
  discountTotal: 0,
}
export const NO_SHARES: readonly CalculatedDiscount[] = []
export const NO_JSON: JsonObject = {}
export const NO_TAGS: readonly string[] = []
export const NO_SKUS: Readonly<Record<string, number>> = {}

/** What an order is made with. */
export interface OrderBirth {
  readonly orderId: string
  readonly orderNumber: string
  readonly currencyCode: string
  readonly taxIncluded: boolean
  readonly createdMs: number
  readonly channelKey: string | null
}

export function newOrderState(birth: OrderBirth): OrderState {
  return {
    orderId: birth.orderId,
    deleted: false,
    orderNumber: birth.orderNumber,
    state: 'pending',
    currencyCode: birth.currencyCode,
    taxIncluded: birth.taxIncluded,
    createdMs: birth.createdMs,
    channelKey: birth.channelKey,
    customerNumber: null,
    locale: null,
    externalReference: null,
    invoiceAddress: {},
    dynamic: NO_JSON,
    tags: NO_TAGS,
    totals: NO_TOTALS,
    deliveries: new Map(),
    lines: new Map(),
    discounts: new Map(),
    returns: new Map(),
    invoices: new Map(),
    invoiceLines: new Map(),
    seq: 0,
    lastDeliveryNumber: 0,
    lastLineNumber: 0,
    lastInvoiceNumber: 0,
    modifiedMs: 0,
    messageId: '',
    messageMs: 0,
    lineCounts: new Map(),
    discountsOf: new Map(),
  }
}

/** A copy that may be changed without the original noticing: own maps, shared children. */
export function copyState(state: OrderState): OrderState {
  return {
    ...state,
    deliveries: new Map(state.deliveries),
    lines: new Map(state.lines),
    discounts: new Map(state.discounts),
    returns: new Map(state.returns),
    invoices: new Map(state.invoices),
    invoiceLines: new Map(state.invoiceLines),
    lineCounts: new Map(state.lineCounts),
    discountsOf: new Map(state.discountsOf),
  }
}

/** A line or a shipping fee that stands on no invoice any more. */
export function unreckoned<T extends object>(thing: T): T {
  if (!('reckoned' in thing)) return thing
  const { reckoned: _, ...rest } = thing
  return rest as unknown as T
}

/** True when nothing in a delivery counts, and nothing may be done in it. */
export function isCancelled(delivery: Delivery): boolean {
  return delivery.state === 'cancelled' || delivery.state === 'cancelledByOrder'
}

/** Keeps the number of lines of a delivery. */
export function countLine(state: OrderState, deliveryId: string, by: number): void {
  const count = (state.lineCounts.get(deliveryId) ?? 0) + by
  if (count === 0) state.lineCounts.delete(deliveryId)
  else state.lineCounts.set(deliveryId, count)
}
