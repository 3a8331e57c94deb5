// Credits of returns: all that a line's returns give back is the line, whatever the order in which
// they are made, invoiced, cancelled and deleted.

import fc from 'fast-check'
import t from 'tap'
import { id, OrderDriver } from '../testing/order-driver.ts'
import { confirmedOrder, deliveredOrder } from '../testing/sample-orders.ts'

const line = { orderLineId: id(11) }
const release = { type: 'releaseOrderLineToInvoicing', ...line }
const back = (n: number, quantity = 1, refundFactor = 1) => ({
  type: 'createReturn',
  ...line,
  quantity,
  refundFactor,
  returnId: id(n),
})

/** One delivered line, with its discounts and its invoice. */
function soldOrder(sold: {
  readonly quantity: number
  readonly unitPrice: number
  readonly discounts?: readonly object[]
  readonly taxIncluded?: boolean
}): OrderDriver {
  const order = new OrderDriver()
  const { quantity, unitPrice, discounts = [], taxIncluded = false } = sold
  const answer = order.create(
    [
      { type: 'createDelivery', deliveryId: id(1) },
      {
        type: 'createOrderLine',
        ...line,
        deliveryId: id(1),
        productNumber: 'P',
        quantity,
        unitPrice,
        taxFactor: 0.2,
      },
      ...discounts,
      { type: 'setOrderState', orderState: 'confirmed' },
      { type: 'completeDelivery', deliveryId: id(1) },
      release,
      { type: 'invoice' },
    ],
    { taxIncluded },
  )
  if (!answer.ok) throw new Error(JSON.stringify(answer.errors))
  return order
}

/** Sums of the credits on invoices that stand. */
function credited(order: OrderDriver) {
  const sums = { total: 0, tax: 0, amount: 0, discounts: {} as Record<string, number> }
  for (const doc of order.docs('invoiceLine')) {
    if (doc['referenceType'] !== 'return') continue
    if (order.doc('invoice', doc['invoiceId'] as string)['isCancelled'] === true) continue
    sums.total -= Math.round((doc['invoiceLineTotal'] as number) * 100)
    sums.tax -= Math.round((doc['tax'] as number) * 100)
    sums.amount -= Math.round((doc['amount'] as number) * 100)
    const discounts = (doc['discounts'] ?? []) as { referenceId: string; amount: number }[]
    for (const { referenceId, amount } of discounts) {
      sums.discounts[referenceId] = (sums.discounts[referenceId] ?? 0) - Math.round(amount * 100)
    }
  }
  return sums
}

function debited(order: OrderDriver) {
  const doc = order.docs('invoiceLine')[0]!
  const discounts = (doc['discounts'] ?? []) as { referenceId: string; amount: number }[]
  return {
    total: Math.round((doc['invoiceLineTotal'] as number) * 100),
    tax: Math.round((doc['tax'] as number) * 100),
    amount: Math.round((doc['amount'] as number) * 100),
    discounts: Object.fromEntries(
      discounts.map(({ referenceId, amount }) => [referenceId, Math.round(amount * 100)]),
    ),
  }
}

t.test('three returns of one each give back a line of three, to the cent', (t) => {
  const discount = { type: 'createStaticOrderLineDiscount', ...line, discountId: id(21), value: 1 }
  const order = soldOrder({ quantity: 3, unitPrice: 7, discounts: [discount] })
  t.match(order.doc('orderLine', id(11)), { orderLineTotal: 20, taxTotal: 4 })
  for (const n of [31, 32, 33]) order.do(back(n), { type: 'invoice' })
  t.strictSame(
    order.docs('return').map((doc) => doc['returnTotal']),
    [6.67, 6.66, 6.67],
  )
  t.strictSame(credited(order), {
    total: 2_000,
    tax: 400,
    amount: 2_100,
    discounts: { [id(21)]: 100 },
  })
  t.end()
})

t.test('any sequence of returns, credits and cancellations adds up to the line', (t) => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('return' as const), quantity: fc.constantFrom(0.5, 1, 2, 3.25) }),
    fc.record({ do: fc.constantFrom('delete', 'retract', 'release', 'cancel'), at: fc.nat(9) }),
    fc.constant({ do: 'invoice' as const }),
  )
  const sold = fc.record({
    quantity: fc.constantFrom(3, 7, 10.5, 0.75),
    unitPrice: fc.integer({ min: 1, max: 9_999 }).map((n) => n / 100),
    taxIncluded: fc.boolean(),
    discounts: fc.array(
      fc.record({
        type: fc.constant('createStaticOrderLineDiscount'),
        orderLineId: fc.constant(id(11)),
        value: fc.constantFrom(0.05, 0.1, 1 / 3),
        isPercentage: fc.boolean(),
      }),
      { maxLength: 3 },
    ),
  })
  fc.assert(
    fc.property(sold, fc.array(step, { maxLength: 25 }), (line, steps) => {
      const order = soldOrder(line)
      const whole = debited(order)
      let made = 0
      for (const step of steps) {
        if (step.do === 'return') order.apply(back(100 + made++, step.quantity))
        else order.apply(...commandOf(order, step))
        const sums = credited(order)
        if (sums.total > whole.total || sums.tax > whole.tax) throw new Error('too much given back')
      }
      // What is left comes back, and everything is credited.
      const { quantity, returnedQuantity } = order.state!.lines.get(id(11))!
      const rest = Math.round((quantity - returnedQuantity) * 10_000) / 10_000
      for (const { returnId } of order.state!.returns.values()) {
        order.apply({ type: 'releaseReturnToInvoicing', returnId })
      }
      order.apply(...(rest > 0 ? [back(99, rest)] : []), { type: 'invoice' })
      for (const [id, amount] of Object.entries(whole.discounts)) {
        if (amount === 0) delete whole.discounts[id]
      }
      const sums = credited(order)
      const found = JSON.stringify([sums.total, sums.tax, sums.amount])
      const wanted = JSON.stringify([whole.total, whole.tax, whole.amount])
      if (found !== wanted) throw new Error(`credited ${found} of ${wanted}`)
      for (const [id, amount] of Object.entries(whole.discounts)) {
        if (sums.discounts[id] !== amount) throw new Error(`discount ${id}: ${sums.discounts[id]}`)
      }
    }),
    { numRuns: 300 },
  )
  t.end()
})

function commandOf(order: OrderDriver, step: { do: string; at?: number }): object[] {
  if (step.do === 'invoice') return [{ type: 'invoice' }]
  const returns = [...order.state!.returns.keys()]
  const credits = [...order.state!.invoices.keys()].slice(1)
  const returnId = returns[step.at! % returns.length] ?? id(98)
  const invoiceId = credits[step.at! % credits.length] ?? id(98)
  if (step.do === 'delete') return [{ type: 'deleteReturn', returnId }]
  if (step.do === 'retract') return [{ type: 'retractReturnFromInvoicing', returnId }]
  if (step.do === 'release') return [{ type: 'releaseReturnToInvoicing', returnId }]
  return [{ type: 'cancelInvoice', invoiceId }]
}

t.test('a return is credited once its line is invoiced, not before', (t) => {
  const order = deliveredOrder()
  order.do(back(31))
  t.match(order.refusal({ type: 'invoice' }), { code: 'NOTHING_TO_INVOICE' })
  order.do({ type: 'releaseOrderLineToInvoicing', orderLineId: id(12) }, { type: 'invoice' })
  t.match(order.doc('return', id(31)), { invoiced: false, releasedToInvoice: true })
  order.do(release, { type: 'invoice', mixed: true })
  const [debit, credit] = order.docs('invoiceLine').slice(1)
  t.match(credit, {
    referenceType: 'return',
    invoiceLineTotal: -50,
    originalInvoiceId: debit!['invoiceId'],
    originalInvoiceLineId: debit!['invoiceLineId'],
  })
  t.end()
})

t.test('an invoice with credits on it can not be cancelled before they are', (t) => {
  const order = deliveredOrder()
  order.do(release, { type: 'invoice' })
  order.do(back(31), { type: 'invoice' })
  const [debit, credit] = order.docs('invoice').map((doc) => doc['invoiceId'])
  t.match(order.refusal({ type: 'cancelInvoice', invoiceId: debit }), {
    code: 'INVALID_STATE',
    message: /invoice IO1-2 credits a line of invoice IO1-1/,
  })
  order.do(
    { type: 'cancelInvoice', invoiceId: credit },
    { type: 'cancelInvoice', invoiceId: debit },
  )
  t.end()
})

t.test('the number of an order with an invoice that stands is fixed', (t) => {
  const order = new OrderDriver()
  order.create([
    { type: 'createDelivery', deliveryId: id(1), shippingPrice: 10 },
    { type: 'releaseShippingToInvoicing', deliveryId: id(1) },
    { type: 'invoice' },
  ])
  t.match(order.refusal({ type: 'setOrderNumber', value: 'N' }), {
    code: 'INVALID_STATE',
    message: /invoice IO1-1 names order O1/,
  })
  t.match(order.refusal({ type: 'generateOrderNumberByPrefix', prefix: 'N' }), {
    code: 'INVALID_STATE',
  })
  order.do({ type: 'cancelInvoice', invoiceId: order.docs('invoice')[0]!['invoiceId'] })
  order.do({ type: 'setOrderNumber', value: 'N' })
  t.end()
})

t.test('a sales tax above the total of its line is refused', (t) => {
  const order = confirmedOrder()
  t.match(order.refusal({ type: 'setOrderLineTax', ...line, salesTax: 100.01 }), {
    code: 'INVALID_COMMAND',
    message: /salesTax 100.01 of order line 1 is more than its total of 100/,
  })
  order.do({ type: 'setOrderLineTax', ...line, salesTax: 100 })
  const discount = { type: 'createStaticOrderLineDiscount', ...line, value: 1 }
  t.match(order.refusal(discount), { code: 'INVALID_COMMAND' }, 'whatever makes it so')
  order.do({ type: 'setOrderLineTax', ...line, taxFactor: 0.2 }, discount)
  t.end()
})
