// Totals worked by hand: what a person adds up is what the order shows.

import fc from 'fast-check'
import t from 'tap'
import { id, OrderDriver } from '../testing/order-driver.ts'

type Line = readonly [quantity: number, unitPrice: number, taxFactor?: number]

/** An order with one delivery (id 1) and lines (ids 11, 12, ...). */
function orderOf(
  lines: readonly Line[],
  { shipping, ...body }: { shipping?: number; [member: string]: unknown } = {},
): OrderDriver {
  const order = new OrderDriver()
  const answer = order.create(
    [
      { type: 'createDelivery', deliveryId: id(1), ...(shipping && { shippingPrice: shipping }) },
      ...lines.map(([quantity, unitPrice, taxFactor], i) => ({
        type: 'createOrderLine',
        deliveryId: id(1),
        orderLineId: id(11 + i),
        productNumber: `P${i}`,
        quantity,
        unitPrice,
        ...(taxFactor !== undefined && { taxFactor }),
      })),
    ],
    body,
  )
  if (!answer.ok) throw new Error(JSON.stringify(answer.errors))
  return order
}

const totals = (order: OrderDriver) => order.state!.totals
const lineTotals = (order: OrderDriver) => [...order.state!.lines.values()].map((l) => l.total)
const lineTaxes = (order: OrderDriver) => [...order.state!.lines.values()].map((l) => l.tax)

t.test('tax included: gross in, tax taken out of it', (t) => {
  const order = orderOf(
    [
      [3, 9.99, 0.25],
      [1, 100, 0.12],
    ],
    { shipping: 49 },
  )
  t.strictSame(lineTotals(order), [29.97, 100])
  t.strictSame(lineTaxes(order), [5.99, 10.71])
  t.strictSame(totals(order), {
    orderTotal: 178.97,
    orderTaxTotal: 16.7,
    orderNetTotal: 162.27,
    orderGrossTotal: 178.97,
    productTotal: 129.97,
    shippingTotal: 49,
    discountTotal: 0,
  })
  t.end()
})

t.test('tax excluded: net in, tax on top', (t) => {
  const order = orderOf([[3, 9.99, 0.25]], { taxIncluded: false })
  t.match(totals(order), {
    orderTotal: 29.97,
    orderTaxTotal: 7.49,
    orderNetTotal: 29.97,
    orderGrossTotal: 37.46,
  })
  t.end()
})

t.test('a line is rounded as it is made, half away from zero', (t) => {
  t.strictSame(
    lineTotals(
      orderOf([
        [3, 1.115],
        [1, 1.005],
        [0.5, 0.01],
      ]),
    ),
    [3.35, 1.01, 0.01],
  )
  t.strictSame(lineTotals(orderOf([[3, 33.5]], { currencyCode: 'JPY' })), [101])
  t.strictSame(lineTotals(orderOf([[1, 1.2345]], { currencyCode: 'KWD' })), [1.235])
  t.end()
})

t.test('a price is kept with four decimals', (t) => {
  const order = orderOf([[1000, 0.12345]])
  t.equal(order.doc('orderLine', id(11))['unitPrice'], 0.1235)
  t.strictSame(lineTotals(order), [123.5])
  t.end()
})

t.test('an absolute tax stands as it is, and gives way to a factor', (t) => {
  const order = orderOf([[1, 100, 0.25]])
  order.do({ type: 'setOrderLineTax', orderLineId: id(11), salesTax: 7.5 })
  t.strictSame(lineTaxes(order), [7.5])
  order.do({ type: 'setOrderLineTax', orderLineId: id(11), taxTotal: 8 })
  t.strictSame(lineTaxes(order), [8])
  order.do({ type: 'setOrderLineTax', orderLineId: id(11), taxFactor: 0.06 })
  t.strictSame(lineTaxes(order), [5.66])
  t.end()
})

t.test('discounts: lines first, then the order, each of what is left', (t) => {
  const order = orderOf(
    [
      [1, 100],
      [1, 50],
    ],
    { shipping: 10 },
  )
  order.do(
    { type: 'createStaticOrderDiscount', value: 0.1, isPercentage: true, discountId: id(21) },
    { type: 'createStaticOrderLineDiscount', orderLineId: id(11), value: 20, discountId: id(22) },
    { type: 'createStaticShippingDiscount', deliveryId: id(1), value: 15, discountId: id(23) },
  )
  // 100 - 20 = 80 and 50 and 0: 10 % of 130 = 13, of which 8 and 5.
  t.strictSame(lineTotals(order), [72, 45])
  t.equal(totals(order).shippingTotal, 0, 'a fixed discount takes at most what is there')
  t.equal(totals(order).discountTotal, 43)
  const calculated = order.docs('staticDiscount').map((doc) => doc['calculatedTotal'])
  t.strictSame(calculated, [13, 20, 10])
  t.end()
})

t.test('what rounding leaves over goes to the largest, of equals to the first created', (t) => {
  const equal = orderOf([
    [1, 10],
    [1, 10],
    [1, 10],
  ])
  equal.do({ type: 'createStaticOrderDiscount', value: 1 })
  t.strictSame(lineTotals(equal), [9.66, 9.67, 9.67])
  const largest = orderOf([
    [1, 10],
    [1, 10.01],
    [1, 10],
  ])
  largest.do({ type: 'createStaticOrderDiscount', value: 1 })
  t.strictSame(lineTotals(largest), [9.67, 9.67, 9.67])
  t.end()
})

t.test('an equal shipping fee counts as created before its lines', (t) => {
  const order = orderOf(
    [
      [1, 10],
      [1, 10],
    ],
    { shipping: 10 },
  )
  order.do({ type: 'createStaticOrderDiscount', value: 1 })
  t.strictSame(lineTotals(order), [9.67, 9.67])
  t.equal(totals(order).shippingTotal, 9.66)
  t.end()
})

t.test('no share is negative or more than what is left, whatever rounding does', (t) => {
  const up = orderOf(Array.from({ length: 10 }, (): Line => [1, 1]))
  up.do({ type: 'createStaticOrderDiscount', value: 0.05 })
  t.strictSame(
    lineTotals(up),
    [1, 1, 1, 1, 1, 0.99, 0.99, 0.99, 0.99, 0.99],
    'ten shares of half a cent are ten cents: five are taken back',
  )
  const down = orderOf(Array.from({ length: 100 }, (): Line => [1, 0.01]))
  down.do({ type: 'createStaticOrderDiscount', value: 0.49 })
  t.equal(totals(down).orderTotal, 0.51, 'a hundred shares of nothing are made up one by one')
  t.ok(lineTotals(down).every((total) => total === 0 || total === 0.01))
  t.end()
})

t.test('cancelled deliveries count nothing, taxes neither', (t) => {
  const order = orderOf([[1, 100, 0.25]], { shipping: 10 })
  order.do({ type: 'setOrderLineTax', orderLineId: id(11), salesTax: 7 })
  order.do({ type: 'cancelDelivery', deliveryId: id(1) })
  t.match(totals(order), { orderTotal: 0, orderTaxTotal: 0, productTotal: 0, shippingTotal: 0 })
  order.do({ type: 'reopenDelivery', deliveryId: id(1) })
  t.match(totals(order), { orderTotal: 110, orderTaxTotal: 7 })
  t.end()
})

t.test('an invoice for a part moves no amount of the rest', (t) => {
  const order = orderOf([
    [1, 10],
    [1, 10],
    [1, 10],
  ])
  order.do({ type: 'createStaticOrderDiscount', value: 1, discountId: id(21) })
  order.do({ type: 'releaseOrderLineToInvoicing', orderLineId: id(11) }, { type: 'invoice' })
  t.strictSame(lineTotals(order), [9.66, 9.67, 9.67])
  // A new line shares what is left of the discount; the invoiced one keeps its 0.34.
  order.do({
    type: 'createOrderLine',
    deliveryId: id(1),
    productNumber: 'P',
    quantity: 1,
    unitPrice: 70,
  })
  t.strictSame(lineTotals(order), [9.66, 9.9, 9.9, 69.54])
  t.equal(totals(order).discountTotal, 1)
  // A later discount passes the invoiced line by.
  order.do({ type: 'createStaticOrderDiscount', value: 0.5, isPercentage: true })
  t.strictSame(lineTotals(order), [9.66, 4.95, 4.95, 34.77])
  t.end()
})

t.test('an invoiced line counts for a discount that rounding left it no share of', (t) => {
  const order = orderOf([
    [1, 0.04],
    [1, 0.04],
  ])
  order.do({
    type: 'createStaticOrderDiscount',
    value: 0.1,
    isPercentage: true,
    discountId: id(21),
  })
  t.strictSame(lineTotals(order), [0.04, 0.03], '10 % of 0.08')
  order.do({ type: 'releaseOrderLineToInvoicing', orderLineId: id(11) }, { type: 'invoice' })
  t.strictSame(lineTotals(order), [0.04, 0.03], 'and not of 0.04, which would be nothing')
  // Another value is another discount: it passes by, like one that is created now.
  order.do({ type: 'setStaticDiscountValue', discountId: id(21), value: 0.5 })
  t.strictSame(lineTotals(order), [0.04, 0.02])
  order.do({ type: 'setStaticDiscountValue', discountId: id(21), value: 0.1 })
  t.strictSame(lineTotals(order), [0.04, 0.04])
  t.end()
})

t.test('invoices for parts, one after the other, move no amount', (t) => {
  const price = fc.oneof(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 3_000 }))
  const discount = fc.oneof(
    fc.record({ isPercentage: fc.constant(true), value: fc.constantFrom(0.01, 0.05, 0.1, 1 / 3) }),
    fc.record({ isPercentage: fc.constant(false), value: fc.constantFrom(0, 0.01, 0.02, 0.07, 5) }),
  )
  fc.assert(
    fc.property(
      fc.array(price, { minLength: 2, maxLength: 6 }),
      fc.array(discount, { minLength: 1, maxLength: 4 }),
      fc.array(fc.record({ n: fc.nat(5), cancel: fc.boolean() }), { maxLength: 8 }),
      (prices, discounts, steps) => {
        const order = orderOf(prices.map((cents) => [1, cents / 100]))
        for (const one of discounts) order.do({ type: 'createStaticOrderDiscount', ...one })
        const shown = (): string => JSON.stringify([lineTotals(order), totals(order)])
        const before = shown()
        for (const { n, cancel } of steps) {
          const orderLineId = id(11 + (n % prices.length))
          order.apply({ type: 'releaseOrderLineToInvoicing', orderLineId }, { type: 'invoice' })
          if (shown() !== before) throw new Error(`${before} became ${shown()}`)
          const last = order.docs('invoice').at(-1)?.['invoiceId']
          if (cancel) order.apply({ type: 'cancelInvoice', invoiceId: last })
          if (shown() !== before) throw new Error(`${before} became ${shown()}`)
        }
      },
    ),
    { numRuns: Number(process.env['TOTALS_RUNS'] ?? 200) },
  )
  t.end()
})

t.test('a cancelled invoice thaws what it held', (t) => {
  const order = orderOf([
    [1, 10],
    [1, 30],
  ])
  order.do({ type: 'releaseOrderLineToInvoicing', orderLineId: id(11) }, { type: 'invoice' })
  order.do({ type: 'createStaticOrderDiscount', value: 4 })
  t.strictSame(lineTotals(order), [10, 26])
  const [invoice] = order.docs('invoice')
  order.do({ type: 'cancelInvoice', invoiceId: invoice!['invoiceId'] })
  t.strictSame(lineTotals(order), [9, 27])
  t.end()
})

t.test('amounts beyond a trillion are refused, at the line or at the order', (t) => {
  const order = orderOf([[1, 1]])
  const line = { type: 'createOrderLine', deliveryId: id(1), productNumber: 'P' }
  t.match(order.refusal({ ...line, quantity: 1_000_001, unitPrice: 1_000_000 }), {
    code: 'INVALID_COMMAND',
    message: 'commands[0] createOrderLine: quantity * unitPrice is more than 1000000000000',
    details: { commandIndex: 0, commandType: 'createOrderLine' },
  })
  const large = { ...line, quantity: 1, unitPrice: 6e11 }
  t.match(order.refusal(large, large), {
    code: 'INVALID_COMMAND',
    message: 'orderTotal is more than 1000000000000',
  })
  order.do(large)
  t.equal(totals(order).orderTotal, 600_000_000_001)
  t.end()
})

t.test('shares of order discounts are bounded', (t) => {
  const order = orderOf(Array.from({ length: 999 }, (): Line => [1, 1]))
  const discounts = Array.from({ length: 101 }, () => ({
    type: 'createStaticOrderDiscount',
    value: 0.01,
  }))
  t.match(order.refusal(...discounts), { code: 'INVALID_COMMAND', message: /100000 shares/ })
  t.ok(order.apply(...discounts.slice(1)).ok)
  t.end()
})
