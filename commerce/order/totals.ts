// The arithmetic of an order: line bases, discounts and their shares, taxes, totals. It stands
// between a draft, whose prices and discounts have changed, and the record that says which amounts
// are others now. Every amount is a whole number of minor units here, rounded half away from zero
// as it is made, so that a person can add up by hand what is shown. Source: COMMERCE 1.
//
// What is invoiced is frozen: it keeps its amounts, later discounts pass it by, and what it holds
// of a fixed order discount counts as given.

import {
  fromUnits,
  includedTax,
  partOf,
  portionOf,
  priceUnits,
  shareOf,
  toUnits,
} from '../../protocol/money.ts'
import { LIMITS } from '../../config/limits.ts'
import type { TargetTotals, TotalsChanged } from './records.ts'
import { invalid } from './refuse.ts'
import {
  type CalculatedDiscount,
  type Delivery,
  isCancelled,
  type OrderLine,
  type OrderState,
  type OrderTotals,
  type StaticDiscount,
} from './state.ts'

interface Share {
  readonly referenceId: string
  readonly value: number
}
const NONE: Share[] = []

/** A line or a shipping fee while discounts are taken off it. */
interface Target {
  readonly of: OrderLine | Delivery
  readonly frozen: boolean
  /** What is left after the earlier steps. */
  left: number
  shares: Share[]
  tax: number
}

/** Highest amount in minor units: LIMITS.amountMax, lower where it would not be exact. */
export function amountUnitsMax(digits: number): number {
  return Math.min(LIMITS.amountMax * 10 ** digits, LIMITS.amountUnitsMax)
}

/** Refuses a line whose base amount is out of bounds, at the command that makes it so. */
export function checkLineBase(quantity: number, unitPrice: number, digits: number): void {
  bounded(priceUnits(quantity, unitPrice, digits), digits, 'quantity * unitPrice')
}

/** Amounts that are others than in the state, or null when all are as they were. */
export function calculate(state: OrderState, digits: number): TotalsChanged | null {
  const lines = lineTargets(state, digits)
  const deliveries = deliveryTargets(state, digits)
  if (state.discounts.size > 0) discount(state, lines, deliveries, digits)
  const lineChanges = settle(state, lines, digits)
  const deliveryChanges = settle(state, deliveries, digits)
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

function bounded(units: number, digits: number, what: string): number {
  if (units <= amountUnitsMax(digits)) return units
  invalid(`${what} is more than ${fromUnits(amountUnitsMax(digits), digits)}`, what)
}

function lineTargets(state: OrderState, digits: number): Target[] {
  const targets: Target[] = []
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
    else if (!cancelled) left = priceUnits(line.quantity, line.unitPrice, digits)
    targets.push({ of: line, frozen, left, shares: NONE, tax: 0 })
  }
  return targets
}

function deliveryTargets(state: OrderState, digits: number): Target[] {
  const targets: Target[] = []
  for (const delivery of state.deliveries.values()) {
    const frozen = delivery.invoiceId !== null
    let left = 0
    if (frozen) left = toUnits(delivery.total, digits)
    else if (!isCancelled(delivery)) left = toUnits(delivery.shippingPrice ?? 0, digits)
    targets.push({ of: delivery, frozen, left, shares: NONE, tax: 0 })
  }
  return targets
}

/** Steps 2 to 4: line and shipping discounts in creation order, then those of the order. */
function discount(
  state: OrderState,
  lines: readonly Target[],
  deliveries: readonly Target[],
  digits: number,
): void {
  const byId = new Map<string, Target>()
  const frozenShares = new Map<string, number>()
  for (const target of lines) byId.set((target.of as OrderLine).orderLineId, target)
  for (const target of deliveries) byId.set((target.of as Delivery).deliveryId, target)
  for (const target of byId.values()) {
    if (!target.frozen) continue
    for (const { referenceId, value } of target.of.shares) {
      const given = frozenShares.get(referenceId) ?? 0
      frozenShares.set(referenceId, given + toUnits(value, digits))
    }
  }
  for (const item of state.discounts.values()) {
    if (item.targetId === null) continue
    const target = byId.get(item.targetId)!
    if (!target.frozen) take(target, item.discountId, amountOf(item, target.left, 0, digits))
  }
  let open: Target[] | null = null
  let shareCount = 0
  for (const item of state.discounts.values()) {
    if (item.targetId !== null) continue
    open ??= [...lines, ...deliveries].filter((target) => !target.frozen)
    shareCount += open.length
    if (shareCount > LIMITS.orderSharesMax) {
      invalid(`order discounts over so many lines make more than ${LIMITS.orderSharesMax} shares`)
    }
    spread(item, open, frozenShares.get(item.discountId) ?? 0, digits)
  }
}

/** What a discount takes of `left`; `given` of a fixed one is already on frozen targets. */
function amountOf(item: StaticDiscount, left: number, given: number, digits: number): number {
  if (item.isPercentage) return portionOf(left, item.value)
  return Math.min(Math.max(toUnits(item.value, digits) - given, 0), left)
}

function take(target: Target, referenceId: string, value: number): void {
  if (value === 0) return
  target.left -= value
  if (target.shares === NONE) target.shares = [{ referenceId, value }]
  else target.shares.push({ referenceId, value })
}

/** Step 3: one order discount over everything left, in proportion to what is left of each. */
function spread(
  item: StaticDiscount,
  targets: readonly Target[],
  given: number,
  digits: number,
): void {
  let whole = 0
  for (const target of targets) whole += target.left
  bounded(whole, digits, 'orderTotal')
  const amount = amountOf(item, whole, given, digits)
  if (amount === 0) return
  const shares = targets.map((target) => shareOf(amount, target.left, whole))
  const rest = shares.reduce((left, share) => left - share, amount)
  if (rest !== 0) settleRest(shares, targets, rest)
  for (let i = 0; i < targets.length; i++) take(targets[i]!, item.discountId, shares[i]!)
}

/**
 * What rounding left over goes to the largest left (of equals, the first created). A share never
 * leaves 0..left, so what the largest can't take goes to the next: no target goes below 0.
 */
function settleRest(shares: number[], targets: readonly Target[], rest: number): void {
  let largest = 0
  for (let i = 1; i < targets.length; i++) {
    if (goesBefore(targets[i]!, targets[largest]!)) largest = i
  }
  const settled = Math.min(Math.max(shares[largest]! + rest, 0), targets[largest]!.left)
  let open = rest - (settled - shares[largest]!)
  shares[largest] = settled
  if (open === 0) return
  const order = targets.map((_, i) => i)
  order.sort((a, b) => (goesBefore(targets[a]!, targets[b]!) ? -1 : 1))
  for (const i of order) {
    const next = Math.min(Math.max(shares[i]! + open, 0), targets[i]!.left)
    open -= next - shares[i]!
    shares[i] = next
    if (open === 0) return
  }
}

function goesBefore(a: Target, b: Target): boolean {
  return a.left > b.left || (a.left === b.left && a.of.seq < b.of.seq)
}

/** Steps 5 and 6: taxes, and what is now other than in the state. */
function settle(state: OrderState, targets: readonly Target[], digits: number): TargetTotals[] {
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
    target.tax = taxOf(state, target, digits)
    const total = fromUnits(target.left, digits)
    const tax = fromUnits(target.tax, digits)
    const sameShares = equalShares(of.shares, target.shares, digits)
    if (total === of.total && tax === of.tax && sameShares) continue
    const id = 'orderLineId' in of ? of.orderLineId : of.deliveryId
    changes.push(
      sameShares
        ? [id, total, tax]
        : [id, total, tax, target.shares.map((s) => [s.referenceId, fromUnits(s.value, digits)])],
    )
  }
  return changes
}

function taxOf(state: OrderState, { of, left }: Target, digits: number): number {
  const isLine = 'orderLineId' in of
  const absolute = isLine ? of.salesTax : of.shippingTax
  if (absolute !== null) {
    const delivery = isLine ? state.deliveries.get(of.deliveryId)! : of
    return isCancelled(delivery) ? 0 : toUnits(absolute, digits)
  }
  const factor = isLine ? of.taxFactor : of.shippingTaxFactor
  if (factor === null || left === 0) return 0
  return state.taxIncluded ? includedTax(left, factor) : portionOf(left, factor)
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

/** Step 7; null when all are as they were. */
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

/** A return is worth its part of what its line costs now, until it is invoiced (COMMERCE 3). */
function returnChanges(
  state: OrderState,
  lines: readonly Target[],
  digits: number,
): [returnId: string, returnTotal: number][] {
  if (state.returns.size === 0) return []
  const lefts = new Map(lines.map((target) => [(target.of as OrderLine).orderLineId, target.left]))
  const changes: [string, number][] = []
  for (const item of state.returns.values()) {
    if (item.invoiceId !== null) continue
    const worth = partOf(lefts.get(item.orderLineId)!, {
      quantity: state.lines.get(item.orderLineId)!.quantity,
      part: item.quantity,
      factor: item.refundFactor,
    })
    const total = fromUnits(worth, digits)
    if (total !== item.returnTotal) changes.push([item.returnId, total])
  }
  return changes
}
