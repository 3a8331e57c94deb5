// Folds records into the state of an order: the one place that changes it, for decisions and for
// replays alike. It stands between records.ts and state.ts. A record is trusted: it was decided on
// once, so nothing is checked again, and what can't be is an assertion. Source: ARCHITECTURE 2.

import type { RecordMeta } from '../../protocol/behaviour.ts'
import { assert } from '../../protocol/errors.ts'
import { addDecimals } from '../../protocol/money.ts'
import type {
  AddressChanged,
  BillableRef,
  DeliveryCreated,
  DiscountCreated,
  DynamicChanged,
  InvoiceCancelled,
  InvoiceCreated,
  NewLine,
  OrderRecord,
  OrderStateChanged,
  ReturnCreated,
  TagChanged,
  TotalsChanged,
} from './records.ts'
import { reinstated } from './snapshot.ts'
import {
  type Address,
  type Billable,
  type CalculatedDiscount,
  type Delivery,
  type DeliveryStateName,
  type JsonObject,
  newOrderState,
  NO_JSON,
  NO_SHARES,
  NO_SKUS,
  NO_TAGS,
  type OrderLine,
  type OrderState,
  type StaticDiscount,
} from './state.ts'

/** Changes and returns `state`; `null` only before the first record. */
export function evolve(
  state: OrderState | null,
  record: OrderRecord,
  meta: RecordMeta,
): OrderState {
  const next = record.t === 'orderCreated' ? born(record, meta) : fold(state!, record, meta)
  next.messageId = meta.messageId
  next.messageMs = meta.timeMs
  return next
}

function born(record: OrderRecord & { t: 'orderCreated' }, meta: RecordMeta): OrderState {
  const state = newOrderState({
    orderId: meta.actorId,
    orderNumber: record.orderNumber,
    currencyCode: record.currencyCode,
    taxIncluded: record.taxIncluded,
    createdMs: record.createdMs,
    channelKey: record.channelKey ?? null,
  })
  state.modifiedMs = meta.timeMs
  return state
}

function fold(state: OrderState, record: OrderRecord, meta: RecordMeta): OrderState {
  const now = meta.timeMs
  switch (record.t) {
    case 'orderLineCreated':
      addLine(state, record, now)
      break
    case 'totalsChanged':
      setTotals(state, record, now)
      break
    case 'deliveryCreated':
      addDelivery(state, record, now)
      break
    case 'addressChanged':
      setAddress(state, record, now)
      break
    case 'orderChanged':
      Object.assign(state, record.after)
      state.modifiedMs = now
      break
    case 'orderStateChanged':
      setOrderState(state, record, now)
      break
    case 'deliveryChanged':
      patch(state.deliveries, record.deliveryId, record.after, now)
      break
    case 'deliveryStateChanged':
      setDeliveryState(state, record.deliveryId, record.to, now)
      break
    case 'orderLineChanged':
      patch(state.lines, record.orderLineId, record.after, now)
      break
    case 'orderLineMoved':
      patch(state.lines, record.orderLineId, { deliveryId: record.to }, now)
      countLine(state, record.from, -1)
      countLine(state, record.to, 1)
      break
    case 'orderLineSplit':
      patch(state.lines, record.orderLineId, record.after, now)
      addLine(state, record.line, now)
      break
    case 'dynamicChanged':
      setDynamic(state, record, now)
      break
    case 'tagAdded':
    case 'tagRemoved':
      setTags(state, record, now)
      break
    case 'activityLogged':
      break
    case 'rewound':
      return reinstated(state, record.state, now)
    case 'orderDeleted':
      bury(state, now)
      break
    default:
      foldBilling(state, record, now)
  }
  return state
}

/** Kinds of deletions, discounts, returns and invoicing: rarer, and apart to keep both readable. */
function foldBilling(state: OrderState, record: OrderRecord, now: number): void {
  switch (record.t) {
    case 'deliveryDeleted':
      state.deliveries.delete(record.deliveryId)
      dropDiscounts(state, record.discounts)
      break
    case 'orderLineDeleted':
      countLine(state, present(state.lines, record.orderLineId).deliveryId, -1)
      state.lines.delete(record.orderLineId)
      dropDiscounts(state, record.discounts)
      break
    case 'discountCreated':
      addDiscount(state, record, now)
      break
    case 'discountChanged':
      patch(state.discounts, record.discountId, record.after, now)
      break
    case 'discountDeleted':
      dropDiscount(state, record.discountId)
      break
    case 'returnCreated':
      addReturn(state, record, now)
      break
    case 'returnChanged':
      patch(state.returns, record.returnId, record.after, now)
      break
    case 'returnDeleted':
      state.returns.delete(record.returnId)
      addReturned(state, record.orderLineId, -record.quantity, now)
      break
    case 'releasedToInvoicing':
    case 'retractedFromInvoicing':
      bill(state, [record.kind, record.id], { released: record.t === 'releasedToInvoicing' }, now)
      break
    case 'invoiceCreated':
      addInvoice(state, record, now)
      break
    case 'invoiceCancelled':
      cancelInvoice(state, record, now)
      break
    default:
      assert(false, `no such record: ${record.t}`)
  }
}

function present<T>(map: ReadonlyMap<string, T>, id: string): T {
  const child = map.get(id)
  assert(child !== undefined, `a record names ${id}, which is not there`)
  return child
}

function patch<T extends { readonly modifiedMs: number }>(
  map: Map<string, T>,
  id: string,
  change: Partial<NoInfer<T>>,
  now: number,
): void {
  map.set(id, { ...present(map, id), ...change, modifiedMs: now })
}

function addDelivery(state: OrderState, record: DeliveryCreated, now: number): void {
  const delivery: Delivery = {
    deliveryId: record.deliveryId,
    deliveryNumber: record.deliveryNumber,
    state: 'open',
    address: {},
    inventoryKey: null,
    inventoryDate: null,
    shippingProductNumber: record.shippingProductNumber ?? null,
    shippingDescription: record.shippingDescription ?? null,
    shippingPrice: record.shippingPrice ?? null,
    shippingTax: null,
    shippingTaxFactor: record.shippingTaxFactor ?? null,
    carrier: null,
    trackingNumber: null,
    trackingUrl: null,
    dynamic: NO_JSON,
    tags: NO_TAGS,
    finalizedMs: null,
    total: 0,
    tax: 0,
    shares: NO_SHARES,
    released: false,
    invoiceId: null,
    invoiceLineId: null,
    seq: state.seq++,
    createdMs: now,
    modifiedMs: now,
  }
  state.deliveries.set(delivery.deliveryId, delivery)
  if (record.n > state.lastDeliveryNumber) state.lastDeliveryNumber = record.n
}

function addLine(state: OrderState, record: NewLine, now: number): void {
  const line: OrderLine = {
    orderLineId: record.orderLineId,
    deliveryId: record.deliveryId,
    orderLineNumber: record.orderLineNumber ?? String(record.n),
    productNumber: record.productNumber,
    description: record.description ?? null,
    image: record.image ?? null,
    quantity: record.quantity,
    unitPrice: record.unitPrice,
    taxFactor: record.taxFactor ?? null,
    salesTax: record.salesTax ?? null,
    skus: record.skus ?? NO_SKUS,
    dynamic: record.dynamic ?? NO_JSON,
    returnedQuantity: 0,
    total: 0,
    tax: 0,
    shares: NO_SHARES,
    released: false,
    invoiceId: null,
    invoiceLineId: null,
    seq: state.seq++,
    createdMs: now,
    modifiedMs: now,
  }
  state.lines.set(line.orderLineId, line)
  countLine(state, line.deliveryId, 1)
  if (record.n !== undefined) state.lastLineNumber = record.n
}

function countLine(state: OrderState, deliveryId: string, by: number): void {
  const count = (state.lineCounts.get(deliveryId) ?? 0) + by
  if (count === 0) state.lineCounts.delete(deliveryId)
  else state.lineCounts.set(deliveryId, count)
}

function setAddress(state: OrderState, record: AddressChanged, now: number): void {
  if (record.deliveryId === null) {
    state.invoiceAddress = withAddress(state.invoiceAddress, record.after)
    state.modifiedMs = now
    return
  }
  const delivery = present(state.deliveries, record.deliveryId)
  const address = withAddress(delivery.address, record.after)
  state.deliveries.set(delivery.deliveryId, { ...delivery, address, modifiedMs: now })
}

function withAddress(address: Address, after: AddressChanged['after']): Address {
  return withMembers(address as JsonObject, after as JsonObject) as Address
}

/** Members set to what `after` says; null takes them away. */
export function withMembers(members: JsonObject, after: JsonObject): JsonObject {
  const next: Record<string, JsonObject[string]> = { ...members }
  for (const key of Object.keys(after)) {
    const value = after[key]!
    if (value === null) delete next[key]
    else next[key] = value
  }
  return next
}

function setDynamic(state: OrderState, record: DynamicChanged, now: number): void {
  if (record.owner === 'order') {
    state.dynamic = withMembers(state.dynamic, record.after)
    state.modifiedMs = now
    return
  }
  const maps = {
    delivery: state.deliveries,
    orderLine: state.lines,
    discount: state.discounts,
    return: state.returns,
  }
  const map = maps[record.owner] as Map<string, { dynamic: JsonObject; modifiedMs: number }>
  const { dynamic } = present(map, record.id!)
  patch(map, record.id!, { dynamic: withMembers(dynamic, record.after) }, now)
}

function setTags(state: OrderState, record: TagChanged, now: number): void {
  const change = (tags: readonly string[]): readonly string[] =>
    record.t === 'tagAdded' ? [...tags, record.key] : tags.filter((tag) => tag !== record.key)
  if (record.deliveryId === null) {
    state.tags = change(state.tags)
    state.modifiedMs = now
  } else {
    const { tags } = present(state.deliveries, record.deliveryId)
    patch(state.deliveries, record.deliveryId, { tags: change(tags) }, now)
  }
}

function setOrderState(state: OrderState, record: OrderStateChanged, now: number): void {
  state.state = record.to
  state.modifiedMs = now
  for (const [id, , to] of record.deliveries ?? []) setDeliveryState(state, id, to, now)
}

function setDeliveryState(
  state: OrderState,
  deliveryId: string,
  to: DeliveryStateName,
  now: number,
): void {
  const final = to === 'completed' || to === 'cancelled'
  patch(state.deliveries, deliveryId, { state: to, finalizedMs: final ? now : null }, now)
  state.modifiedMs = now
}

function addDiscount(state: OrderState, record: DiscountCreated, now: number): void {
  const targetId = record.targetId ?? null
  const discount: StaticDiscount = {
    discountId: record.discountId,
    scope: record.scope,
    targetId,
    isPercentage: record.isPercentage,
    value: record.value,
    description: record.description ?? null,
    dynamic: record.dynamic ?? NO_JSON,
    calculatedTotal: 0,
    createdMs: now,
    modifiedMs: now,
  }
  state.discounts.set(discount.discountId, discount)
  if (targetId === null) return
  state.discountsOf.set(targetId, [...(state.discountsOf.get(targetId) ?? []), discount.discountId])
}

function dropDiscount(state: OrderState, discountId: string): void {
  const { targetId } = present(state.discounts, discountId)
  state.discounts.delete(discountId)
  if (targetId === null) return
  const rest = state.discountsOf.get(targetId)!.filter((id) => id !== discountId)
  if (rest.length === 0) state.discountsOf.delete(targetId)
  else state.discountsOf.set(targetId, rest)
}

function dropDiscounts(state: OrderState, ids: readonly string[] | undefined): void {
  if (ids !== undefined) for (const id of ids) dropDiscount(state, id)
}

function addReturn(state: OrderState, record: ReturnCreated, now: number): void {
  state.returns.set(record.returnId, {
    returnId: record.returnId,
    orderLineId: record.orderLineId,
    quantity: record.quantity,
    refundFactor: record.refundFactor,
    dynamic: record.dynamic ?? NO_JSON,
    returnTotal: 0,
    released: true,
    invoiceId: null,
    invoiceLineId: null,
    createdMs: now,
    modifiedMs: now,
  })
  addReturned(state, record.orderLineId, record.quantity, now)
}

function addReturned(state: OrderState, orderLineId: string, quantity: number, now: number): void {
  const { returnedQuantity } = present(state.lines, orderLineId)
  const sum = addDecimals(returnedQuantity, quantity)
  patch(state.lines, orderLineId, { returnedQuantity: sum }, now)
}

function addInvoice(state: OrderState, record: InvoiceCreated, now: number): void {
  state.invoices.set(record.invoiceId, {
    invoiceId: record.invoiceId,
    invoiceNumber: record.invoiceNumber,
    isCancelled: false,
    invoiceAddress: record.invoiceAddress,
    invoiceTotal: record.invoiceTotal,
    invoiceNetTotal: record.invoiceNetTotal,
    invoiceTaxTotal: record.invoiceTaxTotal,
    invoiceLineIds: record.lines.map((line) => line.invoiceLineId),
    createdMs: now,
    modifiedMs: now,
  })
  if (record.n > state.lastInvoiceNumber) state.lastInvoiceNumber = record.n
  for (const line of record.lines) {
    state.invoiceLines.set(line.invoiceLineId, line)
    const { invoiceId, invoiceLineId } = line
    bill(state, [line.referenceType, line.referenceId], { invoiceId, invoiceLineId }, now)
  }
}

function cancelInvoice(state: OrderState, record: InvoiceCancelled, now: number): void {
  patch(state.invoices, record.invoiceId, { isCancelled: true }, now)
  for (const ref of record.frees) bill(state, ref, { invoiceId: null, invoiceLineId: null }, now)
}

function bill(
  state: OrderState,
  [kind, id]: BillableRef,
  change: Partial<Billable>,
  now: number,
): void {
  if (kind === 'orderLine') patch(state.lines, id, change, now)
  else if (kind === 'delivery') patch(state.deliveries, id, change, now)
  else patch(state.returns, id, change, now)
  state.modifiedMs = now
}

function setTotals(state: OrderState, record: TotalsChanged, now: number): void {
  if (record.order !== undefined) {
    state.totals = record.order
    state.modifiedMs = now
  }
  for (const [id, total, tax, shares] of record.lines ?? []) {
    const line = present(state.lines, id)
    const own = shares === undefined ? line.shares : sharesOf(shares)
    state.lines.set(id, { ...line, total, tax, shares: own, modifiedMs: now })
  }
  for (const [id, total, tax, shares] of record.deliveries ?? []) {
    const delivery = present(state.deliveries, id)
    const own = shares === undefined ? delivery.shares : sharesOf(shares)
    state.deliveries.set(id, { ...delivery, total, tax, shares: own, modifiedMs: now })
  }
  for (const [id, calculatedTotal] of record.discounts ?? []) {
    patch(state.discounts, id, { calculatedTotal }, now)
  }
  for (const [id, returnTotal] of record.returns ?? []) {
    patch(state.returns, id, { returnTotal }, now)
  }
}

function sharesOf(
  pairs: readonly (readonly [referenceId: string, value: number])[],
): readonly CalculatedDiscount[] {
  return pairs.map(([referenceId, value]) => ({ referenceId, value }))
}

/** A tombstone: the keys stay taken, all else goes. */
function bury(state: OrderState, now: number): void {
  state.deleted = true
  state.invoiceAddress = {}
  state.dynamic = NO_JSON
  state.tags = NO_TAGS
  state.modifiedMs = now
  for (const map of [state.deliveries, state.lines, state.discounts, state.returns]) map.clear()
  for (const map of [state.invoices, state.invoiceLines, state.lineCounts]) map.clear()
  state.discountsOf.clear()
}
