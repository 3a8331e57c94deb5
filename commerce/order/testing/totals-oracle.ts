// The totals of an order worked out the plain way: big.js in the major unit, no fast path, nothing
// shared with totals.ts but the steps of commerce/README.md "Arithmetic". It stands against it in
// property tests.

import { Big } from 'big.js'
import { isCancelled, type OrderState, type Return, type StaticDiscount } from '../state/state.ts'

const HALF_AWAY = Big.roundHalfUp
const Exact = Big()
Exact.DP = 60

interface Target {
  readonly id: string
  readonly seq: number
  readonly frozen: boolean
  left: Big
  tax: Big
  readonly shares: { referenceId: string; value: Big }[]
  /** Order discounts that it counts for without a share. */
  readonly reckoned: readonly string[]
}

/** Amounts by the names that the state gives them. */
export interface OracleTotals {
  readonly targets: Record<string, { total: number; tax: number; shares: [string, number][] }>
  readonly discounts: Record<string, number>
  readonly returns: Record<string, number>
  readonly order: OrderState['totals']
}

export function oracleTotals(state: OrderState, digits: number): OracleTotals {
  const round = (value: Big): Big => value.round(digits, HALF_AWAY)
  const targets = targetsOf(state, round)
  applyDiscounts(state, targets, round)
  for (const target of targets) if (!target.frozen) target.tax = taxOf(state, target, round)
  return {
    targets: Object.fromEntries(
      targets.map(({ id, left, tax, shares }) => [
        id,
        {
          total: Number(left),
          tax: Number(tax),
          shares: shares.map((s): [string, number] => [s.referenceId, Number(s.value)]),
        },
      ]),
    ),
    discounts: Object.fromEntries(
      [...state.discounts.keys()].map((id) => {
        const own = targets.flatMap((t) => t.shares).filter((s) => s.referenceId === id)
        return [id, Number(sum(own.map((s) => s.value)))]
      }),
    ),
    returns: Object.fromEntries(
      [...state.returns.values()].map((item) => {
        if (item.invoiceId !== null) return [item.returnId, item.returnTotal]
        const { left } = targets.find((t) => t.id === item.orderLineId)!
        const { quantity } = state.lines.get(item.orderLineId)!
        const upTo = (n: Big): Big => round(Exact(left).times(n).div(quantity))
        const worth = sum(partsOf(state, item).map(([from, to]) => upTo(to).minus(upTo(from))))
        return [item.returnId, Number(round(worth.times(item.refundFactor)))]
      }),
    ),
    order: orderTotals(state, targets),
  }
}

/** What of its line's quantity a return covers: invoiced ones keep theirs, others fill the gaps. */
function partsOf(state: OrderState, wanted: Return): [from: Big, to: Big][] {
  const own = [...state.returns.values()].filter((r) => r.orderLineId === wanted.orderLineId)
  const kept = own.filter((item) => item.invoiceLineId !== null)
  let free: [Big, Big][] = [[Big(0), Big(state.lines.get(wanted.orderLineId)!.quantity)]]
  for (const { invoiceLineId } of kept) {
    for (const [from, to] of state.invoiceLines.get(invoiceLineId!)!.parts!) {
      free = free.flatMap(([a, b]): [Big, Big][] =>
        Big(from).gte(a) && Big(to).lte(b)
          ? [
              [a, Big(from)],
              [Big(to), b],
            ]
          : [[a, b]],
      )
    }
  }
  for (const item of own.filter((other) => other.invoiceLineId === null)) {
    const parts: [Big, Big][] = []
    let left = Big(item.quantity)
    free = free.flatMap(([a, b]): [Big, Big][] => {
      const end = b.minus(a).gt(left) ? a.plus(left) : b
      parts.push([a, end])
      left = left.minus(end.minus(a))
      return end.lt(b) ? [[end, b]] : []
    })
    if (item === wanted) return parts
  }
  return []
}

function targetsOf(state: OrderState, round: (value: Big) => Big): Target[] {
  const things = [
    ...[...state.lines.values()].map((line) => ({
      of: line,
      id: line.orderLineId,
      base: Big(line.quantity).times(line.unitPrice),
      cancelled: isCancelled(state.deliveries.get(line.deliveryId)!),
    })),
    ...[...state.deliveries.values()].map((delivery) => ({
      of: delivery,
      id: delivery.deliveryId,
      base: Big(delivery.shippingPrice ?? 0),
      cancelled: isCancelled(delivery),
    })),
  ]
  return things.map(({ of, id, base, cancelled }) => {
    if (of.invoiceId === null) {
      const left = cancelled ? Big(0) : round(base)
      return { id, seq: of.seq, frozen: false, left, tax: Big(0), shares: [], reckoned: [] }
    }
    const shares = of.shares.map((s) => ({ referenceId: s.referenceId, value: Big(s.value) }))
    const { reckoned = [] } = of
    return {
      id,
      seq: of.seq,
      frozen: true,
      left: Big(of.total),
      tax: Big(of.tax),
      shares,
      reckoned,
    }
  })
}

function applyDiscounts(
  state: OrderState,
  targets: readonly Target[],
  round: (value: Big) => Big,
): void {
  const all = [...state.discounts.values()]
  const ordered = [
    ...all.filter((discount) => discount.scope !== 'order'),
    ...all.filter((discount) => discount.scope === 'order'),
  ]
  for (const discount of ordered) {
    const reached = targets.filter(
      (target) => !target.frozen && (discount.targetId === null || target.id === discount.targetId),
    )
    const later = ordered.slice(ordered.indexOf(discount) + 1)
    const held =
      discount.scope === 'order' ? targets.flatMap((t) => heldOf(t, discount, later)) : []
    const whole = sum([...reached, ...held].map((target) => target.left))
    const given = sum(held.map((target) => target.share))
    let amount = round(discount.isPercentage ? whole.times(discount.value) : Big(discount.value))
    if (amount.gt(whole)) amount = whole
    if (whole.eq(0)) continue
    const shares = reached.map((target) => round(Exact(amount).times(target.left).div(whole)))
    let rest = amount.minus(given).minus(sum(shares))
    const largestFirst = reached
      .map((target, i) => ({ target, i }))
      .toSorted((a, b) => b.target.left.cmp(a.target.left) || a.target.seq - b.target.seq)
    for (const { target, i } of largestFirst) {
      let share = most(shares[i]!.plus(rest), 0)
      if (share.gt(target.left)) share = target.left
      rest = rest.minus(share.minus(shares[i]!))
      shares[i] = share
    }
    reached.forEach((target, i) => {
      if (shares[i]!.eq(0)) return
      target.left = target.left.minus(shares[i]!)
      target.shares.push({ referenceId: discount.discountId, value: shares[i]! })
    })
  }
}

/** What an invoiced target holds of a discount, and what was left of it before it took that. */
function heldOf(
  { frozen, left, shares, reckoned }: Target,
  { discountId }: StaticDiscount,
  later: readonly StaticDiscount[],
): { left: Big; share: Big }[] {
  const own = shares.filter((share) => share.referenceId === discountId)
  if (!frozen || (own.length === 0 && !reckoned.includes(discountId))) return []
  const share = sum(own.map(({ value }) => value))
  const after = shares.filter((one) => later.some((other) => other.discountId === one.referenceId))
  return [{ left: left.plus(share).plus(sum(after.map(({ value }) => value))), share }]
}

function taxOf(state: OrderState, target: Target, round: (value: Big) => Big): Big {
  const line = state.lines.get(target.id)
  const delivery = state.deliveries.get(line?.deliveryId ?? target.id)!
  const absolute = line === undefined ? delivery.shippingTax : line.salesTax
  const factor = line === undefined ? delivery.shippingTaxFactor : line.taxFactor
  if (isCancelled(delivery)) return Big(0)
  if (absolute !== null) return round(Big(absolute))
  if (factor === null) return Big(0)
  if (!state.taxIncluded) return round(target.left.times(factor))
  // total - total / (1 + f), as one fraction.
  return round(Exact(target.left).times(factor).div(Exact(factor).plus(1)))
}

function orderTotals(state: OrderState, targets: readonly Target[]): OrderState['totals'] {
  const isLine = (target: Target): boolean => state.lines.has(target.id)
  const product = sum(targets.filter(isLine).map((target) => target.left))
  const shipping = sum(targets.filter((target) => !isLine(target)).map((target) => target.left))
  const total = product.plus(shipping)
  const tax = sum(targets.map((target) => target.tax))
  const net = state.taxIncluded ? total.minus(tax) : total
  return {
    orderTotal: Number(total),
    orderTaxTotal: Number(tax),
    orderNetTotal: Number(net),
    orderGrossTotal: Number(net.plus(tax)),
    productTotal: Number(product),
    shippingTotal: Number(shipping),
    discountTotal: Number(sum(targets.flatMap((target) => target.shares).map((s) => s.value))),
  }
}

function sum(values: readonly Big[]): Big {
  return values.reduce((a, b) => a.plus(b), Big(0))
}

function most(value: Big, least: number): Big {
  return value.lt(least) ? Big(least) : value
}
