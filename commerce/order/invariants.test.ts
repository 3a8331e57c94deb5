// What must hold of an order at any moment, whatever was done to it, rewinds included: amounts add
// up and are never negative, what is invoiced is locked, credits are never more than what was
// debited, and nothing names what is not there.

import fc from 'fast-check'
import t from 'tap'
import { minorDigits, toUnits } from '../../protocol/money.ts'
import {
  type Delivery,
  type InvoiceLine,
  isCancelled,
  type OrderLine,
  type OrderState,
  copyState,
} from './state/state.ts'
import { id, OrderDriver } from './testing/order-driver.ts'
import { commandArbitrary, scriptArbitrary } from './testing/random-commands.ts'
import { calculate } from './totals/totals.ts'

type Command = Readonly<Record<string, unknown>>

const orderLineId = fc.integer({ min: 11, max: 14 }).map(id)
const deliveryId = fc.integer({ min: 1, max: 2 }).map(id)

/** What moves money, more often than it comes by chance. */
const billing: fc.Arbitrary<Command> = fc.oneof(
  fc.constant({ type: 'setOrderState', orderState: 'confirmed' }),
  deliveryId.map((one) => ({ type: 'completeDelivery', deliveryId: one })),
  orderLineId.map((one) => ({ type: 'releaseOrderLineToInvoicing', orderLineId: one })),
  deliveryId.map((one) => ({ type: 'releaseShippingToInvoicing', deliveryId: one })),
  fc.boolean().map((mixed) => ({ type: 'invoice', mixed })),
  fc.constantFrom('first', 'last').map((which) => ({ type: 'cancelInvoice', invoiceId: which })),
  fc.record({
    type: fc.constant('createReturn'),
    orderLineId,
    quantity: fc.constantFrom(0.25, 0.3333, 0.5, 1, 2),
    refundFactor: fc.constantFrom(0, 1 / 3, 0.5, 1, 1, 1),
    returnId: fc.integer({ min: 31, max: 36 }).map(id),
  }),
  fc.integer({ min: 31, max: 36 }).map((n) => ({ type: 'deleteReturn', returnId: id(n) })),
  fc.record({
    type: fc.constant('splitOrderLine'),
    orderLineId,
    quantity: fc.constantFrom(0.3333, 0.5, 1, 2),
    newOrderLineId: orderLineId,
  }),
)

/** Amounts of a few cents under many discounts, where rounding counts most. */
const cents: fc.Arbitrary<readonly Command[]> = fc
  .record({
    prices: fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 4, maxLength: 4 }),
    quantities: fc.array(fc.constantFrom(1, 2, 3, 7, 0.75), { minLength: 4, maxLength: 4 }),
    factor: fc.constantFrom(undefined, 0.07, 0.25),
    discounts: fc.array(
      fc.record({
        on: fc.constantFrom(null, null, 11, 12),
        isPercentage: fc.boolean(),
        value: fc.constantFrom(0.01, 0.03, 0.1, 1 / 3, 0.5),
      }),
      { maxLength: 5 },
    ),
    isDelivered: fc.boolean(),
  })
  .map(({ prices, quantities, factor, discounts, isDelivered }) => [
    { type: 'createDelivery', deliveryId: id(1), shippingPrice: prices[3]! / 100 },
    { type: 'createDelivery', deliveryId: id(2) },
    ...quantities.map((quantity, i) => ({
      type: 'createOrderLine',
      deliveryId: id(1),
      orderLineId: id(11 + i),
      productNumber: 'p',
      quantity,
      unitPrice: prices[i]! / 100,
      ...(factor !== undefined && { taxFactor: factor }),
    })),
    ...discounts.map(({ on, ...discount }) =>
      on === null
        ? { type: 'createStaticOrderDiscount', ...discount }
        : { type: 'createStaticOrderLineDiscount', orderLineId: id(on), ...discount },
    ),
    { type: 'setOrderState', orderState: 'confirmed' },
    ...(isDelivered ? [{ type: 'completeDelivery', deliveryId: id(1) }] : []),
  ])

type Step = Command | { readonly rewind: number }
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: billing },
  { weight: 4, arbitrary: commandArbitrary },
  { weight: 1, arbitrary: fc.nat().map((rewind) => ({ rewind })) },
)

const isRewind = (one: Step): one is { readonly rewind: number } =>
  typeof one['rewind'] === 'number'

/** Commands that move no amount of an order. */
const MOVES_NOTHING = new Set<unknown>([
  'invoice',
  'releaseOrderLineToInvoicing',
  'retractOrderLineFromInvoicing',
  'releaseShippingToInvoicing',
  'retractShippingFromInvoicing',
  'releaseReturnToInvoicing',
  'retractReturnFromInvoicing',
  'createReturn',
  'deleteReturn',
  'completeDelivery',
  'releaseDelivery',
  'retractDelivery',
  'moveOrderLine',
  'splitOrderLine',
  'setOrderLineProduct',
  'setDiscountDescription',
])

/** "The first" and "the last" invoice that stands. */
function named(state: OrderState, command: Command): Command {
  if (command['type'] !== 'cancelInvoice') return command
  const standing = [...state.invoices.values()].filter((one) => !one.isCancelled)
  const one = command['invoiceId'] === 'first' ? standing[0] : standing.at(-1)
  return { ...command, invoiceId: one?.invoiceId ?? state.orderId }
}

class Check {
  readonly #state: OrderState
  readonly #digits: number
  /** Lines of invoices that stand, by what they are for. */
  readonly #active = new Map<string, InvoiceLine>()

  constructor(state: OrderState) {
    this.#state = state
    this.#digits = minorDigits(state.currencyCode)
    for (const { isCancelled: isVoid, invoiceLineIds } of state.invoices.values()) {
      for (const lineId of isVoid ? [] : invoiceLineIds) {
        const line = state.invoiceLines.get(lineId)!
        const key = `${line.referenceType} ${line.referenceId}`
        must(!this.#active.has(key), `${key} stands on two invoices`)
        this.#active.set(key, line)
      }
    }
  }

  all(): void {
    must(calculate(copyState(this.#state), this.#digits) === null, 'totals are not up to date')
    this.#sums()
    for (const line of this.#state.lines.values()) this.#line(line)
    for (const delivery of this.#state.deliveries.values()) this.#delivery(delivery)
    this.#returns()
    this.#invoices()
    this.#names()
  }

  #units(amount: number): number {
    return toUnits(amount, this.#digits)
  }

  #sums(): void {
    const { lines, deliveries, discounts, totals } = this.#state
    const targets = [...lines.values(), ...deliveries.values()]
    const sum = (amounts: number[]): number =>
      amounts.reduce((all, amount) => all + this.#units(amount), 0)
    must(sum(targets.map(({ total }) => total)) === this.#units(totals.orderTotal), 'orderTotal')
    must(sum(targets.map(({ tax }) => tax)) === this.#units(totals.orderTaxTotal), 'orderTaxTotal')
    const shares = targets.flatMap((target) => target.shares)
    for (const { discountId, calculatedTotal } of discounts.values()) {
      const own = shares.filter(({ referenceId }) => referenceId === discountId)
      must(sum(own.map(({ value }) => value)) === this.#units(calculatedTotal), 'calculatedTotal')
    }
    for (const { referenceId, value } of shares) {
      must(discounts.has(referenceId), 'a share of no discount')
      must(value > 0, 'a share of nothing')
    }
  }

  #target(of: OrderLine | Delivery, key: string): void {
    must(of.total >= 0 && of.tax >= 0, `${key} is negative`)
    const on = this.#active.get(key)
    must((of.invoiceId === null) === (on === undefined), `${key}: invoiceId`)
    must(of.invoiceId !== null || of.reckoned === undefined, `${key}: reckoned without an invoice`)
    if (on === undefined) return
    must(of.released, `${key} is invoiced and not released`)
    must(of.total === on.invoiceLineTotal && of.tax === on.tax, `${key} is other than invoiced`)
    const discounts = on.discounts.map((one) => [one.referenceId, one.amount])
    const shares = of.shares.map((one) => [one.referenceId, one.value])
    must(JSON.stringify(shares) === JSON.stringify(discounts), `${key}: shares`)
  }

  #line(line: OrderLine): void {
    const { deliveries, returns } = this.#state
    const key = `orderLine ${line.orderLineId}`
    const delivery = deliveries.get(line.deliveryId)
    must(delivery !== undefined, `${key} is in no delivery`)
    this.#target(line, key)
    const on = this.#active.get(key)
    must(on === undefined || !isCancelled(delivery), `${key} is invoiced and cancelled`)
    must(on === undefined || on.quantity === line.quantity, `${key}: quantity`)
    must(on === undefined || on.unitPrice === line.unitPrice, `${key}: unitPrice`)
    const own = [...returns.values()].filter((one) => one.orderLineId === line.orderLineId)
    const returned = own.reduce((sum, { quantity }) => sum + toUnits(quantity, 4), 0)
    must(returned === toUnits(line.returnedQuantity, 4), `${key}: returnedQuantity`)
    must(line.returnedQuantity <= line.quantity, `${key}: more returned than there is`)
    must(own.length === 0 || delivery.state === 'completed', `${key}: returned, not delivered`)
    // What is given back with factor 1 of a whole line is the line.
    const isWhole = returned === toUnits(line.quantity, 4)
    const worth = own.reduce((sum, { returnTotal }) => sum + this.#units(returnTotal), 0)
    must(own.length === 0 || worth <= this.#units(line.total), `${key}: more worth than the line`)
    const isFull = own.every(({ refundFactor }) => refundFactor === 1)
    must(!isWhole || !isFull || worth === this.#units(line.total), `${key}: returns are not it`)
    this.#credits(line, on)
  }

  /** Credits that stand give back at most what was debited; of all of it, exactly that. */
  #credits(line: OrderLine, debit: InvoiceLine | undefined): void {
    const credits = [...this.#active.values()].filter(
      (one) => one.referenceType === 'return' && one.orderLineId === line.orderLineId,
    )
    if (credits.length === 0) return
    const key = `orderLine ${line.orderLineId}`
    must(debit !== undefined, `${key} is credited and not debited`)
    for (const name of ['amount', 'invoiceLineTotal', 'net', 'tax'] as const) {
      const given = credits.reduce((sum, one) => sum - this.#units(one[name]), 0)
      must(
        credits.every((one) => one[name] <= 0),
        `${key}: a credit's ${name} is a debit`,
      )
      must(given <= this.#units(debit[name]), `${key}: ${name} given back ${given} is too much`)
      const all = credits.map((one) => this.#state.returns.get(one.referenceId)!)
      const quantity = all.reduce((sum, one) => sum + toUnits(one.quantity, 4), 0)
      const isAll = quantity === toUnits(line.quantity, 4)
      if (!isAll || all.some(({ refundFactor }) => refundFactor !== 1)) continue
      must(given === this.#units(debit[name]), `${key}: ${name} given back ${given} is not it`)
    }
    for (const { originalInvoiceLineId } of credits) {
      must(originalInvoiceLineId === debit.invoiceLineId, `${key} credits another invoice line`)
    }
  }

  #delivery(delivery: Delivery): void {
    const key = `delivery ${delivery.deliveryId}`
    this.#target(delivery, key)
    const { state } = this.#state
    must(delivery.invoiceId === null || !isCancelled(delivery), `${key}: invoiced and cancelled`)
    must(!isCancelled(delivery) || delivery.total === 0, `${key}: cancelled and costs something`)
    must(state !== 'cancelled' || isCancelled(delivery), `${key}: open in a cancelled order`)
    const isByOrder = delivery.state === 'cancelledByOrder'
    must(state === 'cancelled' || !isByOrder, `${key}: cancelled by an order that is not`)
    const isFinal = delivery.state === 'completed' || delivery.state === 'cancelled'
    must(isFinal === (delivery.finalizedMs !== null), `${key}: finalizedAt`)
  }

  #returns(): void {
    for (const {
      returnId,
      orderLineId: of,
      invoiceId,
      returnTotal,
    } of this.#state.returns.values()) {
      const key = `return ${returnId}`
      must(this.#state.lines.has(of), `${key} of no line`)
      const on = this.#active.get(key)
      must((invoiceId === null) === (on === undefined), `${key}: invoiceId`)
      must(returnTotal >= 0, `${key} is negative`)
      const credited = on === undefined ? 0 : this.#units(on.invoiceLineTotal)
      must(on === undefined || -credited === this.#units(returnTotal), `${key}: credited otherwise`)
    }
  }

  #invoices(): void {
    for (const key of this.#active.keys()) {
      const [kind, one] = key.split(' ') as [string, string]
      const { lines, deliveries, returns } = this.#state
      const things = kind === 'orderLine' ? lines : kind === 'delivery' ? deliveries : returns
      must(things.has(one), `${key} is invoiced and gone`)
    }
    for (const invoice of this.#state.invoices.values()) {
      const lines = invoice.invoiceLineIds.map((one) => this.#state.invoiceLines.get(one)!)
      const sum = (name: 'net' | 'tax'): number =>
        lines.reduce((all, line) => all + this.#units(line[name]), 0)
      must(sum('net') === this.#units(invoice.invoiceNetTotal), 'invoiceNetTotal')
      must(sum('tax') === this.#units(invoice.invoiceTaxTotal), 'invoiceTaxTotal')
      must(sum('net') + sum('tax') === this.#units(invoice.invoiceTotal), 'invoiceTotal')
      for (const line of lines) {
        const off = line.discounts.reduce((all, one) => all + this.#units(one.amount), 0)
        const total = this.#units(line.invoiceLineTotal)
        must(this.#units(line.amount) - off === total, 'an invoice line is not amount - discounts')
      }
    }
  }

  #names(): void {
    const { lines, deliveries, invoices, discounts } = this.#state
    const once = (names: string[], what: string): void =>
      must(new Set(names).size === names.length, `${what} twice`)
    once(
      [...lines.values()].map((one) => one.orderLineNumber),
      'a line number',
    )
    once(
      [...deliveries.values()].map((one) => one.deliveryNumber),
      'a delivery number',
    )
    once(
      [...invoices.values()].map((one) => one.invoiceNumber),
      'an invoice number',
    )
    once(
      [...lines.values(), ...deliveries.values()].map(({ seq }) => String(seq)),
      'a place',
    )
    for (const { targetId, scope } of discounts.values()) {
      const isThere =
        targetId === null || (scope === 'orderLine' ? lines : deliveries).has(targetId)
      must(isThere, 'a discount of nothing')
    }
  }
}

function must(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what)
}

/** Lives an order through, and looks after each step. */
function live(order: OrderDriver, steps: readonly Step[]): void {
  for (const one of steps) {
    const { totals } = order.state!
    if (isRewind(one)) {
      const checkpoints = order.checkpoints()
      order.send('rewind', { checkpointId: checkpoints[one.rewind % checkpoints.length] })
    } else order.apply(named(order.state!, one))
    try {
      new Check(order.state!).all()
      const isKept = JSON.stringify(order.state!.totals) === JSON.stringify(totals)
      const moves = isRewind(one) || !MOVES_NOTHING.has(one['type'])
      must(isKept || moves, 'it moved the totals')
    } catch (error) {
      throw new Error(`after ${JSON.stringify(one)}: ${(error as Error).message}`, { cause: error })
    }
  }
}

t.test('what must hold of an order always holds', (t) => {
  fc.assert(
    fc.property(
      scriptArbitrary,
      fc.option(cents, { freq: 1 }),
      fc.array(step, { minLength: 10, maxLength: 60, size: 'max' }),
      ({ beginning, currencyCode, taxIncluded }, small, steps) => {
        const order = new OrderDriver()
        const body = { currencyCode, taxIncluded }
        if (!order.create(small ?? beginning, body).ok) order.create([], body)
        live(order, steps)
        const replayed = JSON.stringify(order.behaviour.toSnapshot(order.replay()!))
        must(replayed === JSON.stringify(order.snapshot()), 'a replay is another order')
        const back = order.behaviour.fromSnapshot(JSON.parse(replayed))
        must(JSON.stringify(order.behaviour.toSnapshot(back)) === replayed, 'a snapshot is another')
      },
    ),
    { numRuns: Number(process.env['INVARIANT_RUNS'] ?? 50) },
  )
  t.end()
})
