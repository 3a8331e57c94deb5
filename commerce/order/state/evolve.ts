// Folds records into the state of an order: the one place that changes it, for decisions and for
// replays alike. A record is trusted: it was decided on once, so nothing is checked again, and what
// can't be is an assertion. Source: ARCHITECTURE 2.

import type { RecordMeta } from '../../../protocol/behaviour.ts'
import { patch, present } from '../../actor/children.ts'
import type { JsonObject } from '../../actor/json.ts'
import type {
  AddressChanged,
  DeliveryCreated,
  DynamicChanged,
  NewLine,
  OrderLineSplit,
  OrderRecord,
  OrderStateChanged,
  TagChanged,
} from '../records/records.ts'
import { foldBilling, setTotals } from './evolve-billing.ts'
import { reinstated } from './snapshot.ts'
import {
  type Address,
  countLine,
  type Delivery,
  type DeliveryStateName,
  newOrderState,
  NO_JSON,
  NO_SHARES,
  NO_SKUS,
  NO_TAGS,
  type OrderLine,
  type OrderState,
} from './state.ts'

/**
 * Changes and returns `state`; `null` only before the first record. The order's own `modifiedMs`
 * moves with the records that touched.ts says touch its node.
 */
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
      if (record.after.shippingPrice !== undefined) state.modifiedMs = now
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
      splitLine(state, record, now)
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
  state.modifiedMs = now
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
    ...(record.family !== undefined && { family: record.family }),
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
  state.modifiedMs = now
  if (record.n !== undefined) state.lastLineNumber = record.n
}

function splitLine(state: OrderState, record: OrderLineSplit, now: number): void {
  const { family } = record.line
  const after = family === undefined ? record.after : { ...record.after, family }
  patch(state.lines, record.orderLineId, after, now)
  addLine(state, record.line, now)
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
  return withMembers(address, after)
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
