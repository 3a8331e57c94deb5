// Commands on discounts, returns and invoices: what they change, and what they refuse.

import t from 'tap'
import { id, OrderDriver } from '../testing/order-driver.ts'
import {
  confirmedOrder,
  deliveredOrder,
  invoicedOrder,
  openOrder,
} from '../testing/sample-orders.ts'

const line = { orderLineId: id(11) }
const discount = { discountId: id(21) }
const goodsBack = { type: 'createReturn', ...line, quantity: 1, refundFactor: 1, returnId: id(31) }
const release = { type: 'releaseOrderLineToInvoicing', ...line }
const invoiceOf = (order: OrderDriver, at = 0) => order.docs('invoice').at(at)!

t.test('static discounts: created, changed, described, deleted', (t) => {
  const order = openOrder()
  order.do({
    type: 'createStaticOrderLineDiscount',
    ...line,
    ...discount,
    value: 0.1,
    isPercentage: true,
    description: 'ten',
    dynamic: { a: 1 },
  })
  t.match(order.doc('staticDiscount', id(21)), {
    scope: 'orderLine',
    orderLineId: id(11),
    isPercentage: true,
    value: 0.1,
    calculatedTotal: 10,
    description: 'ten',
    dynamic: { a: 1 },
  })
  const calculated = order.doc('order')['calculatedDiscounts']
  t.match(calculated, [
    { orderLineId: id(11), value: 10, referenceId: id(21), referenceType: 'staticDiscount' },
  ])
  order.do({ type: 'setStaticDiscountValue', ...discount, value: 0.5 })
  t.equal(order.doc('orderLine', id(11))['orderLineTotal'], 50)
  order.do(
    { type: 'setDiscountDescription', ...discount, description: 'half' },
    { type: 'setDiscountDynamicFields', ...discount, fields: { b: 2 } },
  )
  t.match(order.doc('staticDiscount', id(21)), { description: 'half', dynamic: { a: 1, b: 2 } })
  t.match(order.doc('order')['calculatedDiscounts'], [{ description: 'half' }])
  order.do({ type: 'setDiscountDescription', ...discount, description: null })
  t.notOk('description' in order.doc('staticDiscount', id(21)))
  order.do({ type: 'deleteDiscount', ...discount })
  t.equal(order.doc('orderLine', id(11))['orderLineTotal'], 100)
  t.strictSame(order.docs('staticDiscount'), [])
  t.end()
})

t.test('a calculated discount keeps its id while its value changes', (t) => {
  const order = openOrder()
  order.do({ type: 'createStaticOrderDiscount', ...discount, value: 10 })
  const ids = () =>
    (order.doc('order')['calculatedDiscounts'] as { calculatedDiscountId: string }[]).map(
      (doc) => doc.calculatedDiscountId,
    )
  const before = ids()
  t.equal(new Set(before).size, 3, 'two lines and the shipping fee')
  order.do({ type: 'setStaticDiscountValue', ...discount, value: 20 })
  t.strictSame(ids(), before)
  t.end()
})

t.test('discounts refuse', (t) => {
  const order = openOrder()
  const create = { type: 'createStaticOrderDiscount', ...discount }
  t.match(order.refusal({ ...create, value: 1.01, isPercentage: true }), {
    message: /value 1.01 of a percentage must be 0 to 1: 0.25 is 25 %/,
  })
  t.match(order.refusal({ ...create, value: -1 }), { message: /value must be >= 0/ })
  t.match(order.refusal({ ...create, value: 1, orderLineId: id(11) }), { message: /not known/ })
  order.do({ ...create, value: 0.5, isPercentage: true })
  t.match(order.refusal({ ...create, value: 1 }), { code: 'DUPLICATE_ID' })
  t.match(order.refusal({ type: 'setStaticDiscountValue', ...discount, value: 2 }), {
    code: 'INVALID_COMMAND',
  })
  for (const type of ['setStaticDiscountValue', 'deleteDiscount']) {
    const value = type === 'deleteDiscount' ? {} : { value: 1 }
    t.match(order.refusal({ type, discountId: id(29), ...value }), {
      details: { member: 'discountId' },
    })
  }
  t.end()
})

t.test('a discount with a share on an invoice is fixed', (t) => {
  const order = confirmedOrder()
  order.do(
    { type: 'createStaticOrderDiscount', ...discount, value: 10 },
    { type: 'createStaticOrderLineDiscount', ...line, discountId: id(22), value: 1 },
    { type: 'createStaticShippingDiscount', deliveryId: id(1), discountId: id(23), value: 1 },
    release,
    { type: 'releaseShippingToInvoicing', deliveryId: id(1) },
    { type: 'invoice' },
  )
  for (const discountId of [id(21), id(22), id(23)]) {
    for (const command of [
      { type: 'setStaticDiscountValue', discountId, value: 5 },
      { type: 'deleteDiscount', discountId },
    ]) {
      t.match(order.refusal(command), { code: 'INVALID_STATE', message: /IO1-1/ })
    }
  }
  order.do({ type: 'cancelInvoice', invoiceId: invoiceOf(order)['invoiceId'] })
  order.do({ type: 'deleteDiscount', ...discount }, { type: 'deleteDiscount', discountId: id(22) })
  t.equal(order.doc('orderLine', id(11))['orderLineTotal'], 100)
  t.end()
})

t.test('returns: worth a part of the line, released from the start', (t) => {
  const order = deliveredOrder()
  order.do({ ...goodsBack, refundFactor: 0.5, dynamic: { why: 'broken' } })
  t.match(order.doc('return', id(31)), {
    orderLineId: id(11),
    quantity: 1,
    refundFactor: 0.5,
    returnTotal: 25,
    releasedToInvoice: true,
    invoiced: false,
    dynamic: { why: 'broken' },
  })
  t.equal(order.doc('orderLine', id(11))['returnedQuantity'], 1)
  order.do(
    { type: 'setReturnRefundFactor', returnId: id(31), refundFactor: 1 },
    { type: 'setReturnDynamicFields', returnId: id(31), fields: { why: null, ok: true } },
    { type: 'retractReturnFromInvoicing', returnId: id(31) },
  )
  t.match(order.doc('return', id(31)), {
    returnTotal: 50,
    releasedToInvoice: false,
    dynamic: { ok: true },
  })
  order.do({ type: 'deleteReturn', returnId: id(31) })
  t.equal(order.doc('orderLine', id(11))['returnedQuantity'], 0)
  t.strictSame(order.docs('return'), [])
  t.end()
})

t.test('returns refuse', (t) => {
  const order = confirmedOrder()
  t.match(order.refusal(goodsBack), { code: 'INVALID_STATE', message: /O1D1 is open/ })
  order.do({ type: 'completeDelivery', deliveryId: id(1) })
  order.do({ ...goodsBack, quantity: 1.5 })
  t.match(order.refusal({ ...goodsBack, returnId: id(32) }), {
    code: 'INVALID_COMMAND',
    message: /quantity 1 is more than the 0.5 that can be returned/,
  })
  t.match(order.refusal({ ...goodsBack, quantity: 0.5 }), { code: 'DUPLICATE_ID' })
  t.match(order.refusal({ ...goodsBack, refundFactor: 1.1 }), {
    message: /refundFactor must be <= 1/,
  })
  t.match(order.refusal({ ...goodsBack, quantity: 0.00001, returnId: id(33) }), {
    message: /at most 4 decimals/,
  })
  t.match(order.refusal({ ...goodsBack, quantity: 0 }), { message: /quantity must be > 0/ })
  t.match(order.refusal({ type: 'deleteReturn', returnId: id(39) }), {
    details: { member: 'returnId' },
  })
  t.end()
})

t.test('release and retract: while not invoiced', (t) => {
  const order = confirmedOrder()
  const retract = { type: 'retractOrderLineFromInvoicing', ...line }
  t.match(order.refusal(retract), { code: 'INVALID_STATE', message: /order line 1 is notReleased/ })
  order.do(release)
  t.equal(order.doc('orderLine', id(11))['releasedToInvoice'], true)
  t.strictSame(order.do(release), [], 'twice is once')
  order.do(retract)
  t.equal(order.doc('orderLine', id(11))['releasedToInvoice'], false)
  order.do(release, { type: 'invoice' })
  t.match(order.refusal(retract), { code: 'INVALID_STATE' })
  t.match(order.refusal(release), { code: 'INVALID_STATE' })
  const cancelled = confirmedOrder()
  cancelled.do({ type: 'cancelDelivery', deliveryId: id(1) })
  t.match(cancelled.refusal(release), { message: /nothing of it can be invoiced/ })
  t.end()
})

t.test('invoice: all that is released, with its discounts and taxes', (t) => {
  const order = confirmedOrder()
  order.do(
    { type: 'setInvoiceAddress', name: 'Anna', taxId: 'SE1' },
    { type: 'createStaticOrderLineDiscount', ...line, ...discount, value: 20, description: 'd' },
    release,
    { type: 'releaseShippingToInvoicing', deliveryId: id(1) },
    { type: 'invoice', numberPrefix: 'F' },
  )
  const invoice = invoiceOf(order)
  t.match(invoice, {
    invoiceNumber: 'FO1-1',
    isCancelled: false,
    invoiceAddress: { name: 'Anna', taxId: 'SE1' },
    invoiceRecipient: { name: 'Anna' },
    invoiceTotal: 90,
    invoiceTaxTotal: 18,
    invoiceNetTotal: 72,
    capturedTotal: 0,
  })
  const [goods, shipping] = order.docs('invoiceLine')
  t.match(goods, {
    invoiceId: invoice['invoiceId'],
    invoiceLineNumber: 1,
    referenceType: 'orderLine',
    referenceId: id(11),
    orderLineId: id(11),
    deliveryId: id(1),
    productNumber: 'P11',
    quantity: 2,
    unit: { quantity: 2, value: 50, label: 'pcs' },
    taxFactor: 0.25,
    amount: 100,
    invoiceLineTotal: 80,
    net: 64,
    tax: 16,
    total: 80,
    discounts: [{ amount: 20, description: 'd', referenceId: id(21) }],
  })
  t.match(shipping, {
    invoiceLineNumber: 2,
    referenceType: 'delivery',
    referenceId: id(1),
    invoiceLineTotal: 10,
    tax: 2,
    net: 8,
  })
  t.notOk('orderLineId' in shipping!)
  t.match(order.doc('orderLine', id(11)), { invoicedQuantity: 2 })
  t.match(order.doc('order'), { invoiceState: 'partial', invoicedTotal: 90 })
  t.end()
})

t.test('invoice of a net order: what is to be paid is net and tax', (t) => {
  const order = new OrderDriver()
  order.create(
    [
      { type: 'createDelivery', deliveryId: id(1) },
      {
        type: 'createOrderLine',
        ...line,
        deliveryId: id(1),
        productNumber: 'P',
        quantity: 1,
        unitPrice: 100,
        taxFactor: 0.25,
      },
      release,
      { type: 'invoice' },
    ],
    { taxIncluded: false },
  )
  t.match(invoiceOf(order), { invoiceTotal: 125, invoiceNetTotal: 100, invoiceTaxTotal: 25 })
  t.match(order.docs('invoiceLine')[0], { invoiceLineTotal: 100, net: 100, tax: 25, total: 125 })
  t.match(order.doc('order'), { invoiceState: 'complete', invoicedTotal: 125, orderTotal: 100 })
  t.end()
})

t.test('returns are credited apart, or on one invoice when mixed', (t) => {
  const apart = deliveredOrder()
  apart.do(release, goodsBack, { type: 'invoice' })
  t.strictSame(
    apart.docs('invoice').map((doc) => [doc['invoiceNumber'], doc['invoiceTotal']]),
    [
      ['IO1-1', 100],
      ['IO1-2', -50],
    ],
  )
  const [debit, credit] = apart.docs('invoiceLine')
  t.match(credit, {
    referenceType: 'return',
    returnId: id(31),
    quantity: 1,
    amount: -50,
    invoiceLineTotal: -50,
    net: -40,
    tax: -10,
    total: -50,
    originalInvoiceId: debit!['invoiceId'],
    originalInvoiceLineId: debit!['invoiceLineId'],
  })
  t.match(apart.doc('return', id(31)), { invoiced: true })
  const mixed = deliveredOrder()
  mixed.do(release, goodsBack, { type: 'invoice', mixed: true })
  t.match(invoiceOf(mixed), { invoiceTotal: 50, invoiceNetTotal: 40, invoiceTaxTotal: 10 })
  t.equal(mixed.docs('invoiceLine').length, 2)
  t.end()
})

t.test('a return of a line with an absolute tax gives back its part of it', (t) => {
  const order = confirmedOrder()
  order.do(
    { type: 'setOrderLineTax', ...line, salesTax: 7 },
    { type: 'completeDelivery', deliveryId: id(1) },
    release,
    { ...goodsBack, refundFactor: 0.5 },
    { type: 'invoice' },
  )
  t.match(order.docs('invoiceLine')[1], { invoiceLineTotal: -25, tax: -1.75, net: -23.25 })
  t.end()
})

t.test('an invoiced return is fixed', (t) => {
  const order = deliveredOrder()
  order.do(release, goodsBack, { type: 'invoice' })
  for (const command of [
    { type: 'deleteReturn', returnId: id(31) },
    { type: 'setReturnRefundFactor', returnId: id(31), refundFactor: 0 },
    { type: 'retractReturnFromInvoicing', returnId: id(31) },
    { type: 'releaseReturnToInvoicing', returnId: id(31) },
  ]) {
    t.match(order.refusal(command), { code: 'INVALID_STATE' }, command.type)
  }
  t.ok(order.apply({ type: 'setReturnDynamicFields', returnId: id(31), fields: { a: 1 } }).ok)
  t.end()
})

t.test('invoice refuses', (t) => {
  const order = confirmedOrder()
  t.match(order.refusal({ type: 'invoice' }), { code: 'NOTHING_TO_INVOICE' })
  order.do(release, { type: 'releaseOrderLineToInvoicing', orderLineId: id(12) })
  order.do({ type: 'cancelDelivery', deliveryId: id(1) })
  t.match(order.refusal({ type: 'invoice' }), { code: 'NOTHING_TO_INVOICE' }, 'it counts nothing')
  order.do({ type: 'setOrderState', orderState: 'cancelled' })
  t.match(order.refusal({ type: 'invoice' }), { code: 'INVALID_STATE' })
  t.end()
})

t.test('a batch has few invoices, a line few discounts', (t) => {
  const order = confirmedOrder()
  const lines = Array.from({ length: 21 }, (_, i) => id(100 + i))
  order.do(
    ...lines.map((orderLineId) => ({
      type: 'createOrderLine',
      orderLineId,
      deliveryId: id(1),
      productNumber: 'P',
      quantity: 1,
      unitPrice: 1,
    })),
  )
  const invoices = lines.flatMap((orderLineId) => [
    { type: 'releaseOrderLineToInvoicing', orderLineId },
    { type: 'invoice' },
  ])
  t.match(order.refusal(...invoices), { message: /at most 20 invoice commands/ })
  t.ok(order.apply(...invoices.slice(2)).ok)
  t.equal(order.docs('invoice').length, 20)
  const discounts = Array.from({ length: 101 }, () => ({
    type: 'createStaticOrderLineDiscount',
    ...line,
    value: 0.01,
  }))
  t.match(order.refusal(...discounts), { message: /at most 100 discounts on one line/ })
  t.ok(order.apply(...discounts.slice(1)).ok)
  t.end()
})

t.test('cancelInvoice: the document stays, what stood on it is released again', (t) => {
  const order = invoicedOrder()
  const { invoiceId } = invoiceOf(order)
  order.do({ type: 'cancelInvoice', invoiceId: (invoiceId as string).toUpperCase() })
  t.match(invoiceOf(order), { isCancelled: true, invoiceTotal: 100 })
  t.match(order.doc('orderLine', id(11)), { releasedToInvoice: true, invoicedQuantity: 0 })
  t.match(order.doc('order'), { invoiceState: 'none', invoicedTotal: 0 })
  t.match(order.refusal({ type: 'cancelInvoice', invoiceId }), {
    code: 'INVALID_STATE',
    message: /invoice IO1-1 is cancelled/,
  })
  t.match(order.refusal({ type: 'cancelInvoice', invoiceId: id(9) }), {
    details: { member: 'invoiceId' },
  })
  order.do({ type: 'invoice' })
  t.equal(invoiceOf(order, 1)['invoiceNumber'], 'IO1-2', 'numbers are not given twice')
  t.end()
})
