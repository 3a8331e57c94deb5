// What discounts take of an order's lines and shipping fees. What is invoiced is frozen: it keeps
// its amounts, and later discounts pass it by. An order discount that was there by then is still
// reckoned over it, and the others share what is left of the discount. Source: commerce/README.md
// "Arithmetic".

import { LIMITS } from '../../../config/limits.ts'
import { portionOf, shareOf, toUnits } from '../../../protocol/money.ts'
import { invalid } from '../../actor/refuse.ts'
import {
  type Delivery,
  isCancelled,
  type OrderLine,
  type OrderState,
  type StaticDiscount,
} from '../state/state.ts'
import { bounded } from './amount-bounds.ts'
import type { FamilyRounding } from './split-families.ts'

export interface Share {
  readonly referenceId: string
  readonly value: number
}
export const NO_SHARES: Share[] = []

/** A line or a shipping fee while discounts are taken off it. */
export interface Target {
  readonly of: OrderLine | Delivery
  readonly frozen: boolean
  /** The lines that were one before they were split; undefined for all others. */
  readonly family: string | undefined
  /** What is left after the earlier steps. */
  left: number
  shares: Share[]
  tax: number
}

/** Minor units of a fixed discount that may go from one part of a split line to the next. */
const CARRY_MAX = 2

/** Steps 2 to 4: line and shipping discounts in creation order, then those of the order. */
export function discount(
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
  const families = familiesOf(state)
  if (families.size > 0) holdInvoiced(state, byId, reckoning)
  for (const item of state.discounts.values()) {
    if (item.targetId === null) continue
    const family = item.family === undefined ? undefined : families.get(item.family)
    if (family === undefined) {
      const target = byId.get(item.targetId)!
      if (!target.frozen) take(target, item.discountId, amountOf(item, target.left, digits))
    } else if (family[0] === item) takeTogether(state, family, { byId, digits, rounding })
  }
  const targets = [...byId.values()]
  let shareCount = 0
  const earlier = new Set<string>()
  for (const { discountId, targetId } of state.discounts.values()) {
    if (targetId !== null) earlier.add(discountId)
  }
  for (const item of state.discounts.values()) {
    if (item.targetId !== null) continue
    shareCount += targets.length
    if (shareCount > LIMITS.order.sharesMax) {
      invalid(`order discounts over so many lines make more than ${LIMITS.order.sharesMax} shares`)
    }
    spread(item, targets, { earlier, digits })
    earlier.add(item.discountId)
  }
}

/** Discounts that were one before their line was split, in their order. */
function familiesOf(state: OrderState): Map<string, StaticDiscount[]> {
  const families = new Map<string, StaticDiscount[]>()
  for (const item of state.discounts.values()) {
    if (item.family === undefined) continue
    const known = families.get(item.family)
    if (known === undefined) families.set(item.family, [item])
    else known.push(item)
  }
  return families
}

interface Reckoning {
  readonly byId: ReadonlyMap<string, Target>
  readonly digits: number
  readonly rounding: FamilyRounding
}

/** Counts what invoiced lines hold of discounts that were one with those of open lines. */
function holdInvoiced(
  state: OrderState,
  byId: ReadonlyMap<string, Target>,
  { digits, rounding }: Pick<Reckoning, 'digits' | 'rounding'>,
): void {
  const earlier = new Set<string>()
  for (const item of state.discounts.values()) {
    if (item.targetId === null) continue
    earlier.add(item.discountId)
    if (item.family === undefined) continue
    const target = byId.get(item.targetId)!
    if (!target.frozen) continue
    const held = heldOfOwn(target, item.discountId, { earlier, digits })
    const own = item.isPercentage ? held.left : fixedOwn(item, held.left, digits)
    rounding.hold(familyKey(item), own, held.share)
  }
}

/** Takes what was one discount off all its lines, so that the parts are together what it was. */
function takeTogether(
  state: OrderState,
  family: readonly StaticDiscount[],
  { byId, digits, rounding }: Reckoning,
): void {
  const open = family.filter(({ targetId }) => isOpen(state, byId.get(targetId!)!))
  for (const item of open) {
    const target = byId.get(item.targetId!)!
    const { left } = target
    const key = familyKey(item)
    if (item.isPercentage) {
      const round = (sum: number): number => portionOf(sum, item.value)
      take(target, item.discountId, rounding.next(key, left, { round, max: left }))
    } else {
      // What rounding leaves no room for on one part goes to the next.
      const own = fixedOwn(item, left, digits)
      const max = Math.min(own + CARRY_MAX, left)
      take(target, item.discountId, rounding.next(key, own, { round: (sum) => sum, max }))
    }
  }
  // What the last parts have no room for goes to the first.
  for (const item of open) {
    if (item.isPercentage) continue
    const target = byId.get(item.targetId!)!
    take(target, item.discountId, rounding.rest(familyKey(item), target.left))
  }
}

function isOpen(state: OrderState, { of, frozen }: Target): boolean {
  return !frozen && !isCancelled(state.deliveries.get(of.deliveryId)!)
}

/** A fixed discount's part of its family's: all of it unless its line was made cheaper since. */
function fixedOwn(item: StaticDiscount, left: number, digits: number): number {
  const own = toUnits(item.value, digits)
  return own - left > CARRY_MAX ? left : own
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
  const last = target.shares.at(-1)
  if (last === undefined) target.shares = [{ referenceId, value }]
  else if (last.referenceId !== referenceId) target.shares.push({ referenceId, value })
  else target.shares[target.shares.length - 1] = { referenceId, value: last.value + value }
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
function spread(item: StaticDiscount, targets: readonly Target[], taken: Taken): void {
  const { digits } = taken
  let whole = 0
  let given = 0
  const sharings: Sharing[] = []
  const families = new Map<string, Sharing>()
  for (const target of targets) {
    const held = target.frozen ? heldOf(target, item.discountId, taken) : NOTHING_HELD
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

/** Divides a share among those who have it together: mostly one. */
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

/** Which discounts had been taken before one. */
interface Taken {
  readonly earlier: ReadonlySet<string>
  readonly digits: number
}

/** A frozen target's share of an order discount; zeros where that came later. */
function heldOf(target: Target, discountId: string, taken: Taken): Held {
  const held = heldOfOwn(target, discountId, taken)
  const isReckoned = held.share > 0 || target.of.reckoned?.includes(discountId) === true
  return isReckoned ? held : NOTHING_HELD
}

/**
 * A frozen target's share of a discount that was taken, and what was left of it before; rounding
 * may have left no share.
 */
function heldOfOwn({ of, left }: Target, discountId: string, { earlier, digits }: Taken): Held {
  let before = left
  // Shares stand in the order in which they were taken.
  for (let i = of.shares.length - 1; i >= 0; i--) {
    const { referenceId } = of.shares[i]!
    const share = toUnits(of.shares[i]!.value, digits)
    if (referenceId === discountId) return { left: before + share, share }
    if (earlier.has(referenceId)) break
    before += share
  }
  return { left: before, share: 0 }
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
