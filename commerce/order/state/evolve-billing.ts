// Folds the records of discounts, returns, invoices and totals, and of deletions. It stands beside
// evolve.ts, which folds all others and comes here for these.

import { assert } from '../../../protocol/errors.ts'
import { addDecimals } from '../../../protocol/money.ts'
import { patch, present } from '../../actor/children.ts'
import type {
  BillableRef,
  DiscountCreated,
  InvoiceCancelled,
  InvoiceCreated,
  OrderRecord,
  ReturnCreated,
  TotalsChanged,
} from '../records/records.ts'
import {
  type Billable,
  type CalculatedDiscount,
  countLine,
  type Delivery,
  NO_JSON,
  type OrderLine,
  type OrderState,
  type StaticDiscount,
  unreckoned,
} from './state.ts'

/** Kinds of deletions, discounts, returns and invoicing: rarer, and apart to keep both readable. */
export function foldBilling(state: OrderState, record: OrderRecord, now: number): void {
  switch (record.t) {
    case 'deliveryDeleted':
      state.deliveries.delete(record.deliveryId)
      dropDiscounts(state, record.discounts)
      state.modifiedMs = now
      break
    case 'orderLineDeleted':
      countLine(state, present(state.lines, record.orderLineId).deliveryId, -1)
      state.lines.delete(record.orderLineId)
      dropDiscounts(state, record.discounts)
      state.modifiedMs = now
      break
    case 'discountCreated':
      addDiscount(state, record, now)
      break
    case 'discountChanged':
      patch(state.discounts, record.discountId, record.after, now)
      if (record.after.value !== undefined) unreckon(state, record.discountId)
      state.modifiedMs = now
      break
    case 'discountDeleted':
      dropDiscount(state, record.discountId)
      unreckon(state, record.discountId)
      state.modifiedMs = now
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
    ...(record.family !== undefined && { family: record.family }),
    calculatedTotal: 0,
    createdMs: now,
    modifiedMs: now,
  }
  state.discounts.set(discount.discountId, discount)
  const first = record.family === undefined ? undefined : state.discounts.get(record.family)
  // Nobody sees a family: that it has one now is no change of the first.
  if (first !== undefined)
    state.discounts.set(first.discountId, { ...first, family: first.discountId })
  state.modifiedMs = now
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
  state.modifiedMs = now
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
  const discounts = [...state.discounts.values()].filter(({ targetId }) => targetId === null)
  for (const line of record.lines) {
    state.invoiceLines.set(line.invoiceLineId, line)
    const { invoiceId, invoiceLineId, referenceType, referenceId } = line
    bill(state, [referenceType, referenceId], { invoiceId, invoiceLineId }, now)
    if (referenceType === 'orderLine') reckon(state.lines, referenceId, discounts)
    else if (referenceType === 'delivery') reckon(state.deliveries, referenceId, discounts)
  }
}

/** Keeps which discounts an invoiced thing counts for without a share of them. */
function reckon<T extends OrderLine | Delivery>(
  things: Map<string, T>,
  id: string,
  discounts: readonly StaticDiscount[],
): void {
  if (discounts.length === 0) return
  const thing = present(things, id)
  const shared = new Set(thing.shares.map(({ referenceId }) => referenceId))
  const reckoned = discounts.map(({ discountId }) => discountId).filter((one) => !shared.has(one))
  if (reckoned.length > 0) things.set(id, { ...thing, reckoned })
}

/** A discount that is another one now, or gone, passes by what was invoiced without it. */
function unreckon(state: OrderState, discountId: string): void {
  for (const things of [state.lines, state.deliveries]) {
    const map = things as Map<string, OrderLine | Delivery>
    for (const [id, thing] of map) {
      if (thing.reckoned?.includes(discountId) !== true) continue
      const reckoned = thing.reckoned.filter((one) => one !== discountId)
      map.set(id, reckoned.length > 0 ? { ...thing, reckoned } : unreckoned(thing))
    }
  }
}

function cancelInvoice(state: OrderState, record: InvoiceCancelled, now: number): void {
  state.modifiedMs = now
  patch(state.invoices, record.invoiceId, { isCancelled: true }, now)
  for (const ref of record.frees) {
    bill(state, ref, { invoiceId: null, invoiceLineId: null }, now)
    const [kind, id] = ref
    if (kind === 'orderLine') state.lines.set(id, unreckoned(present(state.lines, id)))
    if (kind === 'delivery') state.deliveries.set(id, unreckoned(present(state.deliveries, id)))
  }
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
}

export function setTotals(state: OrderState, record: TotalsChanged, now: number): void {
  if (record.order !== undefined) state.totals = record.order
  state.modifiedMs = now
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
