// The arithmetic of an order: line bases, discounts and their shares, taxes, totals. It stands
// between a draft, whose prices and discounts have changed, and the record that says which amounts
// are others now. Every amount is a whole number of minor units here, rounded half away from zero
// as it is made, so that a person can add up by hand what is shown. Source: COMMERCE 1.
//
// What is invoiced is frozen: it keeps its amounts, and later discounts pass it by. An order
// discount that it holds a share of is still reckoned over it, and the others share what is left of
// the discount: an invoice for a part of an order moves no amount of the rest.

import {
  fromUnits,
  includedTax,
  portionOf,
  PRICE_DECIMALS,
  priceUnits,
  shareOf,
  toUnits,
} from '../../protocol/money.ts'
import { LIMITS } from '../../config/limits.ts'
import type { TargetTotals, TotalsChanged } from './records.ts'
import { invalid } from './refuse.ts'
import { returnedParts, worthOf } from './returned-parts.ts'
import { FamilyRounding } from './split-families.ts'
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
/** Minor units of a fixed discount that may go from one part of a split line to the next. */
const CARRY_MAX = 2

/** A line or a shipping fee while discounts are taken off it. */
interface Target {
  readonly of: OrderLine | Delivery
  readonly frozen: boolean
  /** The lines that were one before they were split; undefined for all others. */
  readonly family: string | undefined
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

function bounded(units: number, digits: number, what: string): number {
  if (units <= amountUnitsMax(digits)) return units
  invalid(`${what} is more than ${fromUnits(amountUnitsMax(digits), digits)}`, what)
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
    targets.push({ of: line, frozen, family: line.family, left, shares: NONE, tax: 0 })
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
    targets.push({ of: delivery, frozen, family: undefined, left, shares: NONE, tax: 0 })
  }
  return targets
}

/** Steps 2 to 4: line and shipping discounts in creation order, then those of the order. */
function discount(
  state: OrderState,
  reckoning: {
    readonly lines: readonly Target[]
    readonly deliveries: readonly Target[]
    readonly digits: number
    readonly rounding: FamilyRounding
  },
): void {
  const { lines, deliveries, digits, rounding } = reckoning
  const byId = new Map<string, Target>()
  for (const target of lines) byId.set((target.of as OrderLine).orderLineId, target)
  for (const target of deliveries) byId.set((target.of as Delivery).deliveryId, target)
  for (const item of state.discounts.values()) {
    if (item.family === undefined) continue
    const target = byId.get(item.targetId!)!
    if (!target.frozen) continue
    const held = heldOf(target, item.discountId, digits)
    rounding.hold(familyKey(item), item.isPercentage ? held.left : held.share, held.share)
  }
  for (const item of state.discounts.values()) {
    if (item.targetId === null) continue
    const target = byId.get(item.targetId)!
    if (!target.frozen) take(target, item.discountId, ownAmount(item, target.left, reckoning))
  }
  const targets = [...byId.values()]
  let shareCount = 0
  for (const item of state.discounts.values()) {
    if (item.targetId !== null) continue
    shareCount += targets.length
    if (shareCount > LIMITS.orderSharesMax) {
      invalid(`order discounts over so many lines make more than ${LIMITS.orderSharesMax} shares`)
    }
    spread(item, targets, digits)
  }
}

/** What a discount of a line or a shipping fee takes of what is left of it. */
function ownAmount(
  item: StaticDiscount,
  left: number,
  { digits, rounding }: { readonly digits: number; readonly rounding: FamilyRounding },
): number {
  if (item.family === undefined) return amountOf(item, left, digits)
  const key = familyKey(item)
  if (item.isPercentage) {
    const round = (sum: number): number => portionOf(sum, item.value)
    return rounding.next(key, left, { round, max: left })
  }
  if (left === 0) return 0
  // What rounding leaves no room for on one part goes to the next.
  const own = toUnits(item.value, digits)
  return rounding.next(key, own, { round: (sum) => sum, max: Math.min(own + CARRY_MAX, left) })
}

function familyKey({ family, isPercentage, value }: StaticDiscount): string {
  return isPercentage ? `discount/${family}/${value}` : `discount/${family}`
}

/** What a discount takes of `left`: a fixed value at most all of it. */
function amountOf(item: StaticDiscount, left: number, digits: number): number {
  if (item.isPercentage) return portionOf(left, item.value)
  return Math.min(toUnits(item.value, digits), left)
}

function take(target: Target, referenceId: string, value: number): void {
  if (value === 0) return
  target.left -= value
  if (target.shares === NONE) target.shares = [{ referenceId, value }]
  else target.shares.push({ referenceId, value })
}

/** What shares an order discount: a target, or the open lines of a family as if they were one. */
interface Sharing {
  readonly open: Target[]
  /** Of the open ones. */
  left: number
  /** With what invoiced lines of the family had left, and the share of it that they hold. */
  whole: number
  held: number
  seq: number
}

/** Step 3: one order discount over everything left, in proportion to what is left of each. */
function spread(item: StaticDiscount, targets: readonly Target[], digits: number): void {
  let whole = 0
  let given = 0
  const sharings: Sharing[] = []
  const families = new Map<string, Sharing>()
  for (const target of targets) {
    const held = target.frozen ? heldOf(target, item.discountId, digits) : NOTHING_HELD
    const left = target.frozen ? held.left : target.left
    whole += left
    given += held.share
    if (target.frozen && target.family === undefined) continue
    const sharing = sharingOf(target, families, sharings)
    sharing.whole += left
    sharing.held += held.share
    if (target.frozen) continue
    sharing.open.push(target)
    sharing.left += left
  }
  bounded(whole, digits, 'orderTotal')
  const amount = amountOf(item, whole, digits)
  if (amount === 0) return
  const open = sharings.filter((sharing) => sharing.open.length > 0)
  const shares = open.map((of) => limited(shareOf(amount, of.whole, whole) - of.held, of.left))
  const rest = shares.reduce((left, share) => left - share, amount - given)
  if (rest !== 0 && open.length > 0) settleRest(shares, open, rest)
  for (let i = 0; i < open.length; i++) divide(item.discountId, open[i]!, shares[i]!)
}

function sharingOf(target: Target, families: Map<string, Sharing>, sharings: Sharing[]): Sharing {
  const { family } = target
  const known = family === undefined ? undefined : families.get(family)
  if (known !== undefined) return known
  const sharing: Sharing = { open: [], left: 0, whole: 0, held: 0, seq: target.of.seq }
  sharings.push(sharing)
  if (family !== undefined) families.set(family, sharing)
  return sharing
}

/** A share to those who share it: mostly one. */
function divide(referenceId: string, { open, left }: Sharing, share: number): void {
  if (open.length === 1) return take(open[0]!, referenceId, share)
  if (left === 0) return
  const ones = open.map((of) => ({ left: of.left, whole: of.left, seq: of.of.seq }))
  const shares = ones.map((one) => shareOf(share, one.left, left))
  const rest = shares.reduce((over, one) => over - one, share)
  if (rest !== 0) settleRest(shares, ones, rest)
  for (let i = 0; i < open.length; i++) take(open[i]!, referenceId, shares[i]!)
}

function limited(share: number, left: number): number {
  return Math.min(Math.max(share, 0), left)
}

/** A frozen target's share of a discount, and what was left of it before; zeros without a share. */
function heldOf({ of, left }: Target, discountId: string, digits: number): Held {
  // Shares stand in the order in which they were taken.
  let before = left
  for (let i = of.shares.length - 1; i >= 0; i--) {
    const share = toUnits(of.shares[i]!.value, digits)
    before += share
    if (of.shares[i]!.referenceId === discountId) return { left: before, share }
  }
  return NOTHING_HELD
}

interface Held {
  readonly left: number
  readonly share: number
}
const NOTHING_HELD: Held = { left: 0, share: 0 }

/** What can take what rounding leaves over. */
type Taking = Pick<Sharing, 'left' | 'whole' | 'seq'>

/**
 * What rounding left over goes to the largest left (of equals, the first created). A share never
 * leaves 0..left, so what the largest can't take goes to the next: no target goes below 0.
 */
function settleRest(shares: number[], targets: readonly Taking[], rest: number): void {
  let largest = 0
  for (let i = 1; i < targets.length; i++) {
    if (goesBefore(targets[i]!, targets[largest]!)) largest = i
  }
  let open = settleOne(shares, targets, largest, rest)
  if (open === 0) return
  const order = targets.map((_, i) => i)
  order.sort((a, b) => (goesBefore(targets[a]!, targets[b]!) ? -1 : 1))
  for (const i of order) {
    open = settleOne(shares, targets, i, open)
    if (open === 0) return
  }
}

/** Adds to one share what it can take; returns what is left over then. */
function settleOne(shares: number[], targets: readonly Taking[], i: number, rest: number): number {
  const share = Math.min(Math.max(shares[i]! + rest, 0), targets[i]!.left)
  const left = rest - (share - shares[i]!)
  shares[i] = share
  return left
}

function goesBefore(a: Taking, b: Taking): boolean {
  return a.whole > b.whole || (a.whole === b.whole && a.seq < b.seq)
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
