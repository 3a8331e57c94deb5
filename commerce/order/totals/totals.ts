// The arithmetic of an order: line bases, discounts and their shares, taxes, totals. The record
// says which amounts are others now. Every amount is a whole number of minor units here, rounded
// half away from zero as it is made, so that a person can add up by hand what is shown. Source:
// commerce/README.md "Arithmetic".
//
// What is invoiced is frozen: it keeps its amounts, and later discounts pass it by. An order
// discount that was there by then is still reckoned over it, and the others share what is left of
// the discount: an invoice for a part of an order moves no amount of the rest.

import {
  fromUnits,
  includedTax,
  portionOf,
  PRICE_DECIMALS,
  priceUnits,
  toUnits,
} from '../../../protocol/money.ts'
import { invalid } from '../../actor/refuse.ts'
import type { TargetTotals, TotalsChanged } from '../records/records.ts'
import {
  type CalculatedDiscount,
  isCancelled,
  type OrderLine,
  type OrderState,
  type OrderTotals,
} from '../state/state.ts'
import { bounded } from './amount-bounds.ts'
import { discount, NO_SHARES, type Share, type Target } from './discounting.ts'
import { returnedParts, worthOf } from './returned-parts.ts'
import { FamilyRounding } from './split-families.ts'

/** Refuses a line whose base amount is out of bounds, at the command that makes it so. */
export function checkLineBase(quantity: number, unitPrice: number, digits: number): void {
  bounded(priceUnits(quantity, unitPrice, digits), digits, 'quantity * unitPrice')
}

/** Returns the amounts that differ from the state, or null when none does. */
export function calculate(state: OrderState, digits: number): TotalsChanged | null {
  const rounding = new FamilyRounding()
  const lines = lineTargets(state, digits, rounding)
  const deliveries = deliveryTargets(state, digits)
  if (state.discounts.size > 0) discount(state, { lines, deliveries, digits, rounding })
  const lineChanges = settle(state, lines, { digits, rounding })
  const deliveryChanges = settle(state, deliveries, { digits, rounding })
  const order = orderTotals(state, lines, deliveries, digits)
  const discounts = discountChanges(state, lines, deliveries, digits)
  const returns = returnChanges(state, lines, digits)
  if (
    order === null &&
    lineChanges.length + deliveryChanges.length + discounts.length + returns.length === 0
  ) {
    return null
  }
  return {
    t: 'totalsChanged',
    ...(order !== null && { order }),
    ...(lineChanges.length > 0 && { lines: lineChanges }),
    ...(deliveryChanges.length > 0 && { deliveries: deliveryChanges }),
    ...(discounts.length > 0 && { discounts }),
    ...(returns.length > 0 && { returns }),
  }
}

function lineTargets(state: OrderState, digits: number, rounding: FamilyRounding): Target[] {
  const targets: Target[] = []
  for (const line of state.lines.values()) {
    if (line.family !== undefined && line.invoiceId !== null) holdLine(line, digits, rounding)
  }
  // Lines of one delivery mostly stand together: look the delivery up when it changes.
  let deliveryId = ''
  let cancelled = false
  for (const line of state.lines.values()) {
    if (line.deliveryId !== deliveryId) {
      deliveryId = line.deliveryId
      cancelled = isCancelled(state.deliveries.get(deliveryId)!)
    }
    const frozen = line.invoiceId !== null
    let left = 0
    if (frozen) left = toUnits(line.total, digits)
    else if (!cancelled) left = lineBase(line, digits, rounding)
    targets.push({ of: line, frozen, family: line.family, left, shares: NO_SHARES, tax: 0 })
  }
  return targets
}

function lineBase(line: OrderLine, digits: number, rounding: FamilyRounding): number {
  const { family, quantity, unitPrice } = line
  if (family === undefined) return priceUnits(quantity, unitPrice, digits)
  const round = (sum: number): number =>
    priceUnits(fromUnits(sum, PRICE_DECIMALS), unitPrice, digits)
  const own = toUnits(quantity, PRICE_DECIMALS)
  return rounding.next(`base/${family}/${unitPrice}`, own, { round, max: Infinity })
}

/** Counts an invoiced part of a family in all that is rounded over it but its discounts. */
function holdLine(line: OrderLine, digits: number, rounding: FamilyRounding): void {
  const { family, quantity, unitPrice, total, tax, taxFactor, shares } = line
  const units = toUnits(total, digits)
  const base = shares.reduce((sum, { value }) => sum + toUnits(value, digits), units)
  rounding.hold(`base/${family}/${unitPrice}`, toUnits(quantity, PRICE_DECIMALS), base)
  rounding.hold(`tax/${family}/${taxFactor}`, units, toUnits(tax, digits))
}

function deliveryTargets(state: OrderState, digits: number): Target[] {
  const targets: Target[] = []
  for (const delivery of state.deliveries.values()) {
    const frozen = delivery.invoiceId !== null
    let left = 0
    if (frozen) left = toUnits(delivery.total, digits)
    else if (!isCancelled(delivery)) left = toUnits(delivery.shippingPrice ?? 0, digits)
    targets.push({ of: delivery, frozen, family: undefined, left, shares: NO_SHARES, tax: 0 })
  }
  return targets
}

/** Steps 5 and 6: taxes, and what is now other than in the state. */
function settle(
  state: OrderState,
  targets: readonly Target[],
  { digits, rounding }: { readonly digits: number; readonly rounding: FamilyRounding },
): TargetTotals[] {
  const changes: TargetTotals[] = []
  for (const target of targets) {
    const { of } = target
    if (target.frozen) {
      target.tax = toUnits(of.tax, digits)
      target.shares = of.shares.map((share) => ({
        referenceId: share.referenceId,
        value: toUnits(share.value, digits),
      }))
      continue
    }
    target.tax = taxOf(state, target, { digits, rounding })
    const total = fromUnits(target.left, digits)
    const tax = fromUnits(target.tax, digits)
    const sameShares = equalShares(of.shares, target.shares, digits)
    if (total === of.total && tax === of.tax && sameShares) continue
    checkTax(target, digits)
    const id = 'orderLineId' in of ? of.orderLineId : of.deliveryId
    changes.push(
      sameShares
        ? [id, total, tax]
        : [id, total, tax, target.shares.map((s) => [s.referenceId, fromUnits(s.value, digits)])],
    )
  }
  return changes
}

function taxOf(
  state: OrderState,
  { of, left, family }: Target,
  { digits, rounding }: { readonly digits: number; readonly rounding: FamilyRounding },
): number {
  const isLine = 'orderLineId' in of
  const absolute = isLine ? of.salesTax : of.shippingTax
  if (absolute !== null) {
    const delivery = isLine ? state.deliveries.get(of.deliveryId)! : of
    return isCancelled(delivery) ? 0 : toUnits(absolute, digits)
  }
  const factor = isLine ? of.taxFactor : of.shippingTaxFactor
  if (factor === null || left === 0) return 0
  const round = (sum: number): number =>
    state.taxIncluded ? includedTax(sum, factor) : portionOf(sum, factor)
  if (family === undefined) return round(left)
  return rounding.next(`tax/${family}/${factor}`, left, { round, max: Infinity })
}

/** A tax of a line that is more than the line is a slip of the pen. */
function checkTax({ of, left, tax }: Target, digits: number): void {
  if (!('orderLineId' in of) || of.salesTax === null || tax <= left) return
  invalid(
    `salesTax ${fromUnits(tax, digits)} of order line ${of.orderLineNumber} is more than its ` +
      `total of ${fromUnits(left, digits)}`,
    'salesTax',
  )
}

function equalShares(
  before: readonly CalculatedDiscount[],
  after: readonly Share[],
  digits: number,
): boolean {
  if (before.length !== after.length) return false
  for (let i = 0; i < after.length; i++) {
    if (before[i]!.referenceId !== after[i]!.referenceId) return false
    if (before[i]!.value !== fromUnits(after[i]!.value, digits)) return false
  }
  return true
}

/** Step 7; null when nothing has changed. */
function orderTotals(
  state: OrderState,
  lines: readonly Target[],
  deliveries: readonly Target[],
  digits: number,
): OrderTotals | null {
  let product = 0
  let shipping = 0
  let tax = 0
  let discounts = 0
  for (const target of lines) {
    product = bounded(product + target.left, digits, 'orderTotal')
    tax = bounded(tax + target.tax, digits, 'orderTaxTotal')
    for (const share of target.shares) {
      discounts = bounded(discounts + share.value, digits, 'discountTotal')
    }
  }
  for (const target of deliveries) {
    shipping = bounded(shipping + target.left, digits, 'orderTotal')
    tax = bounded(tax + target.tax, digits, 'orderTaxTotal')
    for (const share of target.shares) {
      discounts = bounded(discounts + share.value, digits, 'discountTotal')
    }
  }
  const total = bounded(product + shipping, digits, 'orderTotal')
  const net = state.taxIncluded ? total - tax : total
  const totals: OrderTotals = {
    orderTotal: fromUnits(total, digits),
    orderTaxTotal: fromUnits(tax, digits),
    orderNetTotal: fromUnits(net, digits),
    orderGrossTotal: fromUnits(bounded(net + tax, digits, 'orderGrossTotal'), digits),
    productTotal: fromUnits(product, digits),
    shippingTotal: fromUnits(shipping, digits),
    discountTotal: fromUnits(discounts, digits),
  }
  const before = state.totals
  for (const name of Object.keys(totals) as (keyof OrderTotals)[]) {
    if (totals[name] !== before[name]) return totals
  }
  return null
}

function discountChanges(
  state: OrderState,
  lines: readonly Target[],
  deliveries: readonly Target[],
  digits: number,
): [discountId: string, calculatedTotal: number][] {
  if (state.discounts.size === 0) return []
  const sums = new Map<string, number>()
  for (const targets of [lines, deliveries]) {
    for (const target of targets) {
      for (const { referenceId, value } of target.shares) {
        sums.set(referenceId, (sums.get(referenceId) ?? 0) + value)
      }
    }
  }
  const changes: [string, number][] = []
  for (const { discountId, calculatedTotal } of state.discounts.values()) {
    const sum = fromUnits(sums.get(discountId) ?? 0, digits)
    if (sum !== calculatedTotal) changes.push([discountId, sum])
  }
  return changes
}

/** A return is worth its part of what its line costs now, until it is invoiced. */
function returnChanges(
  state: OrderState,
  lines: readonly Target[],
  digits: number,
): [returnId: string, returnTotal: number][] {
  if (state.returns.size === 0) return []
  const lefts = new Map(lines.map((target) => [(target.of as OrderLine).orderLineId, target.left]))
  const parts = returnedParts(state)
  const changes: [string, number][] = []
  for (const item of state.returns.values()) {
    if (item.invoiceId !== null) continue
    const line = state.lines.get(item.orderLineId)!
    const of = { parts: parts.get(item.returnId)!, factor: item.refundFactor }
    const worth = worthOf(lefts.get(item.orderLineId)!, line, of)
    const total = fromUnits(worth, digits)
    if (total !== item.returnTotal) changes.push([item.returnId, total])
  }
  return changes
}
