// The records of an order: every kind of event that its journal can hold. Commands write them;
// evolve, touched and the journal view read them. They are stored for good: a kind or member may be
// added, never renamed. Absent members mean "not set"; `before` is there for the journal view
// alone. Source: commerce/README.md "Journal".

import type { JsonObject } from '../../actor/json.ts'
import type {
  Address,
  BillableKind,
  Delivery,
  DeliveryStateName,
  DiscountScope,
  InvoiceLine,
  OrderLine,
  OrderState,
  OrderStateName,
  OrderTotals,
  Return,
  StaticDiscount,
} from '../state/state.ts'

/** Changed members of a child, by their names in the state. */
type Patch<T, K extends keyof T> = Readonly<Partial<Pick<T, K>>>

export type OrderPatch = Patch<
  OrderState,
  'orderNumber' | 'channelKey' | 'customerNumber' | 'locale' | 'externalReference'
>
export type DeliveryPatch = Patch<
  Delivery,
  | 'inventoryKey'
  | 'inventoryDate'
  | 'shippingProductNumber'
  | 'shippingDescription'
  | 'shippingPrice'
  | 'shippingTax'
  | 'shippingTaxFactor'
  | 'carrier'
  | 'trackingNumber'
  | 'trackingUrl'
>
export type OrderLinePatch = Patch<
  OrderLine,
  | 'quantity'
  | 'unitPrice'
  | 'taxFactor'
  | 'salesTax'
  | 'productNumber'
  | 'description'
  | 'image'
  | 'skus'
>
export type DiscountPatch = Patch<StaticDiscount, 'value' | 'description'>
export type ReturnPatch = Patch<Return, 'refundFactor'>

interface Changed<T extends string, P> {
  readonly t: T
  readonly before: P
  readonly after: P
}

export interface OrderCreated {
  readonly t: 'orderCreated'
  readonly orderNumber: string
  readonly currencyCode: string
  readonly taxIncluded: boolean
  readonly createdMs: number
  readonly channelKey?: string
}

export interface OrderStateChanged {
  readonly t: 'orderStateChanged'
  readonly from: OrderStateName
  readonly to: OrderStateName
  /** Deliveries that went with it. */
  readonly deliveries?: readonly DeliveryMove[]
}
export type DeliveryMove = readonly [id: string, from: DeliveryStateName, to: DeliveryStateName]

export interface DeliveryCreated {
  readonly t: 'deliveryCreated'
  readonly deliveryId: string
  readonly deliveryNumber: string
  /** The n of its number. */
  readonly n: number
  readonly shippingProductNumber?: string
  readonly shippingDescription?: string
  readonly shippingPrice?: number
  readonly shippingTaxFactor?: number
}

export interface DeliveryStateChanged {
  readonly t: 'deliveryStateChanged'
  readonly deliveryId: string
  readonly from: DeliveryStateName
  readonly to: DeliveryStateName
}

export interface DeliveryDeleted {
  readonly t: 'deliveryDeleted'
  readonly deliveryId: string
  readonly deliveryNumber: string
  /** Its shipping discounts, which went with it. */
  readonly discounts?: readonly string[]
}

/** A new line: what was given, nothing that is computed. */
export interface NewLine {
  readonly orderLineId: string
  readonly deliveryId: string
  /** A number that was given out (its text is the orderLineNumber)... */
  readonly n?: number
  /** ...or one that the caller chose. */
  readonly orderLineNumber?: string
  readonly productNumber: string
  readonly quantity: number
  readonly unitPrice: number
  readonly taxFactor?: number
  readonly salesTax?: number
  readonly description?: string
  readonly image?: string
  readonly skus?: Readonly<Record<string, number>>
  readonly dynamic?: JsonObject
  /** Of a line that a split made: the first line of those that were one. */
  readonly family?: string
}

export interface OrderLineCreated extends NewLine {
  readonly t: 'orderLineCreated'
}

export interface OrderLineMoved {
  readonly t: 'orderLineMoved'
  readonly orderLineId: string
  readonly from: string
  readonly to: string
}

export interface OrderLineSplit {
  readonly t: 'orderLineSplit'
  readonly orderLineId: string
  /** Of the line that was split, in `before` and `after`. */
  readonly before: OrderLinePatch
  readonly after: OrderLinePatch
  readonly line: NewLine
}

export interface OrderLineDeleted {
  readonly t: 'orderLineDeleted'
  readonly orderLineId: string
  readonly orderLineNumber: string
  readonly productNumber: string
  readonly quantity: number
  readonly unitPrice: number
  /** Its discounts, which went with it. */
  readonly discounts?: readonly string[]
}

export interface DiscountCreated {
  readonly t: 'discountCreated'
  readonly discountId: string
  readonly scope: DiscountScope
  readonly targetId?: string
  readonly isPercentage: boolean
  readonly value: number
  readonly description?: string
  readonly dynamic?: JsonObject
  /** Of a discount that went along with a split: the first of those that were one. */
  readonly family?: string
}

export interface DiscountDeleted {
  readonly t: 'discountDeleted'
  readonly discountId: string
  readonly scope: DiscountScope
  readonly targetId?: string
  readonly value: number
}

export interface ReturnCreated {
  readonly t: 'returnCreated'
  readonly returnId: string
  readonly orderLineId: string
  readonly quantity: number
  readonly refundFactor: number
  readonly dynamic?: JsonObject
}

export interface ReturnDeleted {
  readonly t: 'returnDeleted'
  readonly returnId: string
  readonly orderLineId: string
  readonly quantity: number
}

export type BillableRef = readonly [kind: BillableKind, id: string]

export interface ReleaseChanged {
  readonly t: 'releasedToInvoicing' | 'retractedFromInvoicing'
  readonly kind: BillableKind
  readonly id: string
}

export interface InvoiceCreated {
  readonly t: 'invoiceCreated'
  readonly invoiceId: string
  readonly invoiceNumber: string
  /** The n of its number. */
  readonly n: number
  readonly invoiceAddress: Address
  readonly invoiceTotal: number
  readonly invoiceNetTotal: number
  readonly invoiceTaxTotal: number
  readonly lines: readonly InvoiceLine[]
}

export interface InvoiceCancelled {
  readonly t: 'invoiceCancelled'
  readonly invoiceId: string
  readonly invoiceNumber: string
  readonly invoiceTotal: number
  readonly lines: readonly string[]
  /** What goes back to `released`. */
  readonly frees: readonly BillableRef[]
}

export interface TagChanged {
  readonly t: 'tagAdded' | 'tagRemoved'
  readonly key: string
  /** null: a tag of the order. */
  readonly deliveryId: string | null
}

export interface AddressChanged {
  readonly t: 'addressChanged'
  /** null: the order's invoice address. */
  readonly deliveryId: string | null
  /** Changed members only; null: not set. */
  readonly before: AddressPatch
  readonly after: AddressPatch
}
export type AddressPatch = { readonly [K in keyof Address]?: string | null }

export type DynamicOwner = 'order' | 'delivery' | 'orderLine' | 'discount' | 'return'
export interface DynamicChanged {
  readonly t: 'dynamicChanged'
  readonly owner: DynamicOwner
  /** Absent for the order. */
  readonly id?: string
  /** Changed keys only; null: not set. */
  readonly before: JsonObject
  readonly after: JsonObject
}

export interface ActivityLogged {
  readonly t: 'activityLogged'
  readonly messageTemplate: string
  readonly message: string
  readonly dynamic?: JsonObject
}

/** What the calculation changed (commerce/README.md "Arithmetic"), without what stayed. */
export interface TotalsChanged {
  readonly t: 'totalsChanged'
  readonly order?: OrderTotals
  readonly lines?: readonly TargetTotals[]
  readonly deliveries?: readonly TargetTotals[]
  readonly discounts?: readonly (readonly [discountId: string, calculatedTotal: number])[]
  readonly returns?: readonly (readonly [returnId: string, returnTotal: number])[]
}
/** The fourth is absent when the shares have not changed. */
export type TargetTotals = readonly [
  id: string,
  total: number,
  tax: number,
  shares?: readonly (readonly [referenceId: string, value: number])[],
]

export interface Rewound {
  readonly t: 'rewound'
  readonly checkpointId: string
  /** The whole state that follows, as a snapshot. */
  readonly state: unknown
  /** Every row-stored node that came, changed or went: type and id. */
  readonly nodes: readonly (readonly [node: string, id: string])[]
}

export interface OrderDeleted {
  readonly t: 'orderDeleted'
  /** Every row-stored node that went. */
  readonly nodes: readonly (readonly [node: string, id: string])[]
}

export type OrderRecord =
  | OrderCreated
  | Changed<'orderChanged', OrderPatch>
  | OrderStateChanged
  | DeliveryCreated
  | (Changed<'deliveryChanged', DeliveryPatch> & { readonly deliveryId: string })
  | DeliveryStateChanged
  | DeliveryDeleted
  | OrderLineCreated
  | (Changed<'orderLineChanged', OrderLinePatch> & { readonly orderLineId: string })
  | OrderLineMoved
  | OrderLineSplit
  | OrderLineDeleted
  | DiscountCreated
  | (Changed<'discountChanged', DiscountPatch> & { readonly discountId: string })
  | DiscountDeleted
  | ReturnCreated
  | (Changed<'returnChanged', ReturnPatch> & { readonly returnId: string })
  | ReturnDeleted
  | ReleaseChanged
  | InvoiceCreated
  | InvoiceCancelled
  | TagChanged
  | AddressChanged
  | DynamicChanged
  | ActivityLogged
  | TotalsChanged
  | Rewound
  | OrderDeleted

export type RecordKind = OrderRecord['t']

/** Kinds after which the totals must be reckoned again. */
export const REPRICES: Readonly<Record<RecordKind, boolean>> = {
  orderCreated: false,
  orderChanged: false,
  orderStateChanged: true,
  deliveryCreated: true,
  deliveryChanged: true,
  deliveryStateChanged: true,
  deliveryDeleted: true,
  orderLineCreated: true,
  orderLineChanged: true,
  orderLineMoved: true,
  orderLineSplit: true,
  orderLineDeleted: true,
  discountCreated: true,
  discountChanged: true,
  discountDeleted: true,
  returnCreated: true,
  returnChanged: true,
  returnDeleted: true,
  releasedToInvoicing: false,
  retractedFromInvoicing: false,
  invoiceCreated: true,
  invoiceCancelled: true,
  tagAdded: false,
  tagRemoved: false,
  addressChanged: false,
  dynamicChanged: false,
  activityLogged: false,
  totalsChanged: false,
  rewound: false,
  orderDeleted: false,
}
