// A split moves no total: what a line cost, its discounts and its taxes are there after it as
// before, in as many parts as it has then.

import fc from 'fast-check'
import t from 'tap'
import { id, OrderDriver } from '../testing/order-driver.ts'
import { openOrder } from '../testing/sample-orders.ts'

const line = { orderLineId: id(11) }
const split = (quantity: number, n: number) => ({
  type: 'splitOrderLine',
  ...line,
  quantity,
  newOrderLineId: id(n),
})

t.test('half off stays half off, and the discount is on both lines', (t) => {
  const order = openOrder()
  const half = { type: 'createStaticOrderLineDiscount', ...line, value: 0.5, isPercentage: true }
  const fixed = { type: 'createStaticOrderLineDiscount', ...line, value: 10 }
  order.do(
    { ...half, discountId: id(21), description: 'half', dynamic: { why: 'old' } },
    { ...fixed, discountId: id(22) },
  )
  const before = order.state!.totals
  t.match(order.doc('orderLine', id(11)), { orderLineTotal: 40 })
  order.do(split(1, 13))
  t.strictSame(order.state!.totals, before)
  for (const n of [11, 13]) {
    t.match(order.doc('orderLine', id(n)), { quantity: 1, orderLineTotal: 20 })
  }
  t.match(
    order.docs('staticDiscount').filter((doc) => doc['orderLineId'] === id(13)),
    [
      { isPercentage: true, value: 0.5, description: 'half', dynamic: { why: 'old' } },
      { isPercentage: false, value: 5, calculatedTotal: 5 },
    ],
  )
  t.match(order.doc('staticDiscount', id(22)), { value: 5 })
  order.do({ type: 'deleteOrderLine', orderLineId: id(13) })
  t.equal(order.doc('orderLine', id(11))['orderLineTotal'], 20, 'each has its own')
  t.equal(order.docs('staticDiscount').length, 2)
  t.end()
})

const price = fc.oneof(
  fc.integer({ min: 0, max: 5_000 }).map((n) => n / 100),
  fc.integer({ min: 0, max: 50_000 }).map((n) => n / 10_000),
)
const script = fc.record({
  taxIncluded: fc.boolean(),
  prices: fc.array(price, { minLength: 3, maxLength: 3 }),
  factor: fc.constantFrom(0.07, 0.19, 0.25),
  discounts: fc.array(
    fc.oneof(
      fc.record({
        isPercentage: fc.constant(true),
        value: fc.constantFrom(0.05, 0.1, 1 / 3, 0.5, 1),
        ofLine: fc.boolean(),
      }),
      fc.record({
        isPercentage: fc.constant(false),
        value: fc.integer({ min: 1, max: 3_000 }).map((n) => n / 100),
        ofLine: fc.boolean(),
      }),
    ),
    { maxLength: 4 },
  ),
  steps: fc.array(
    fc.record({
      line: fc.nat(9),
      quantity: fc.constantFrom(0.5, 1, 2, 2.25),
      invoice: fc.boolean(),
    }),
    { minLength: 1, maxLength: 8 },
  ),
})

type Script = typeof script extends fc.Arbitrary<infer Value> ? Value : never

/** An invoiced part whose share of the percentage was rounded to nothing. */
const SHARE_OF_NOTHING: Script = {
  taxIncluded: false,
  prices: [0.01, 0, 0],
  factor: 0.07,
  discounts: [{ isPercentage: true, value: 0.1, ofLine: true }],
  steps: [
    { line: 0, quantity: 2.25, invoice: false },
    { line: 0, quantity: 0.5, invoice: true },
  ],
}
/** A last part that has no room for its share of the second amount. */
const NO_ROOM_AT_THE_END: Script = {
  taxIncluded: false,
  prices: [0.03, 2.85, 0],
  factor: 0.07,
  discounts: [1, 2].map(() => ({ isPercentage: false, value: 0.07, ofLine: true })),
  steps: [{ line: 0, quantity: 0.5, invoice: false }],
}

t.test('any sequence of splits and invoices keeps every total', (t) => {
  fc.assert(
    fc.property(script, ({ taxIncluded, prices, factor, discounts, steps }) => {
      const order = new OrderDriver()
      const lines = [11, 12].map((n, i) => ({
        type: 'createOrderLine',
        orderLineId: id(n),
        deliveryId: id(1),
        productNumber: 'P',
        quantity: 7,
        unitPrice: prices[i],
        taxFactor: factor,
      }))
      order.create(
        [
          { type: 'createDelivery', deliveryId: id(1), shippingPrice: prices[2] },
          ...lines,
          ...discounts.map(({ ofLine, ...discount }) =>
            ofLine
              ? { type: 'createStaticOrderLineDiscount', ...line, ...discount }
              : { type: 'createStaticOrderDiscount', ...discount },
          ),
        ],
        { taxIncluded },
      )
      const before = JSON.stringify(order.state!.totals)
      for (const step of steps) {
        const ids = [...order.state!.lines.keys()]
        const orderLineId = ids[step.line % ids.length]!
        order.apply({ type: 'splitOrderLine', orderLineId, quantity: step.quantity })
        if (step.invoice && holdsAll(order, orderLineId)) {
          order.apply({ type: 'releaseOrderLineToInvoicing', orderLineId }, { type: 'invoice' })
        }
        const after = JSON.stringify(order.state!.totals)
        if (after !== before) throw new Error(`${before} became ${after}`)
      }
    }),
    { numRuns: 1_000, examples: [[SHARE_OF_NOTHING], [NO_ROOM_AT_THE_END]] },
  )
  t.end()
})

/** An order discount passes an invoiced line by that holds no share of it, not even a cent. */
function holdsAll(order: OrderDriver, orderLineId: string): boolean {
  const { shares } = order.state!.lines.get(orderLineId)!
  return [...order.state!.discounts.values()].every(
    ({ scope, discountId }) =>
      scope !== 'order' || shares.some(({ referenceId }) => referenceId === discountId),
  )
}
