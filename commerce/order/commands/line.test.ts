// Commands on order lines: what they change, and what they refuse.

import t from 'tap'
import { id } from '../testing/order-driver.ts'
import {
  confirmedOrder,
  deliveredOrder,
  invoicedOrder,
  lineCommand,
  openOrder,
} from '../testing/sample-orders.ts'

const line = { orderLineId: id(11) }

t.test('createOrderLine with everything', (t) => {
  const order = openOrder()
  order.do({
    ...lineCommand(13, 1.5, 10.00005),
    orderLineNumber: 'A-1',
    description: '  as it came ',
    image: 'https://img.example/1.png',
    skus: { S1: 2, S2: 0.5 },
    dynamic: { colour: 'red' },
  })
  t.match(order.doc('orderLine', id(13)), {
    orderLineNumber: 'A-1',
    productNumber: 'P13',
    quantity: 1.5,
    unitPrice: 10.0001,
    orderLineTotal: 15,
    taxTotal: 3,
    description: '  as it came ',
    image: 'https://img.example/1.png',
    dynamic: { colour: 'red' },
    deliveryId: id(1),
    returnedQuantity: 0,
    reservedQuantity: 0,
    invoicedQuantity: 0,
    releasedToInvoice: false,
    skus: [
      { skuNumber: 'S1', unitQuantity: 2, totalQuantity: 3 },
      { skuNumber: 'S2', unitQuantity: 0.5, totalQuantity: 0.75 },
    ],
  })
  t.end()
})

t.test('line numbers: the next free one, or the caller’s', (t) => {
  const order = openOrder()
  order.do(
    { ...lineCommand(13, 1, 1), orderLineNumber: 4 },
    lineCommand(14, 1, 1),
    lineCommand(15, 1, 1),
  )
  const numbers = () => order.docs('orderLine').map((doc) => doc['orderLineNumber'])
  t.strictSame(numbers(), ['1', '2', '4', '3', '5'])
  t.match(order.refusal({ ...lineCommand(16, 1, 1), orderLineNumber: '4' }), {
    code: 'DUPLICATE_ID',
    message: /orderLineNumber 4 is already used/,
  })
  order.do(
    { type: 'deleteOrderLine', orderLineId: id(13) },
    { ...lineCommand(16, 1, 1), orderLineNumber: '4' },
  )
  t.strictSame(numbers(), ['1', '2', '3', '5', '4'], 'a deleted line gives its number back')
  order.do({ type: 'deleteOrderLine', orderLineId: id(15) }, lineCommand(17, 1, 1))
  t.equal(order.doc('orderLine', id(17))['orderLineNumber'], '6', 'given numbers only rise')
  t.end()
})

t.test('line numbers within one batch', (t) => {
  const order = openOrder()
  const chosen = (n: number, orderLineNumber: string) => ({
    ...lineCommand(n, 1, 1),
    orderLineNumber,
  })
  t.match(order.refusal(lineCommand(13, 1, 1), chosen(14, '3')), { code: 'DUPLICATE_ID' })
  t.match(order.refusal(chosen(13, 'A'), chosen(14, 'A')), { code: 'DUPLICATE_ID' })
  order.do(
    chosen(13, 'A'),
    { type: 'deleteOrderLine', orderLineId: id(13) },
    chosen(14, 'A'),
    chosen(15, '3'),
    lineCommand(16, 1, 1),
  )
  const numbers = order.docs('orderLine').map((doc) => doc['orderLineNumber'])
  t.strictSame(numbers, ['1', '2', 'A', '3', '4'])
  t.end()
})

t.test('createOrderLine refuses', (t) => {
  const order = openOrder()
  const wrong = (members: object, message: RegExp) =>
    t.match(order.refusal({ ...lineCommand(13, 1, 1), ...members }), {
      code: 'INVALID_COMMAND',
      message,
      details: { commandIndex: 0, commandType: 'createOrderLine' },
    })
  wrong({ quantity: 0 }, /quantity must be > 0/)
  wrong({ quantity: -1 }, /quantity must be > 0/)
  wrong({ quantity: 1.00001 }, /quantity 1.00001 must have at most 4 decimals/)
  wrong({ quantity: 1e-300 }, /at most 4 decimals/)
  wrong({ quantity: 1e9 + 1 }, /quantity must be <= 1000000000/)
  wrong({ quantity: '1' }, /quantity must be number/)
  wrong({ unitPrice: -0.01 }, /unitPrice must be >= 0/)
  wrong({ unitPrice: Infinity }, /unitPrice must be/)
  wrong({ unitPrice: Number.NaN }, /unitPrice must be/)
  wrong({ taxFactor: -0.1 }, /taxFactor must be >= 0/)
  wrong({ productNumber: '' }, /productNumber must NOT have fewer than 1 char/)
  wrong({ productNumber: undefined }, /productNumber/)
  wrong({ deliveryId: id(9) }, /there is no delivery/)
  wrong({ skus: { S1: 0 } }, /skus.S1 must be > 0/)
  wrong({ skus: { S1: 1.00001 } }, /skus.S1 1.00001 must have at most 4 decimals/)
  wrong({ skus: [] }, /skus must be object/)
  wrong({ colour: 'red' }, /colour is not known here/)
  wrong({ orderLineNumber: 1.5 }, /orderLineNumber/)
  t.match(order.refusal(lineCommand(11, 1, 1)), { code: 'DUPLICATE_ID' })
  t.match(order.refusal(lineCommand(1, 1, 1)), { code: 'DUPLICATE_ID' })
  t.end()
})

t.test('quantity, price, product, skus, dynamic', (t) => {
  const order = openOrder()
  order.do(
    { type: 'setOrderLineQuantity', ...line, quantity: 3 },
    { type: 'setOrderLineUnitPrice', ...line, unitPrice: 1.23456 },
    { type: 'setOrderLineProduct', ...line, productNumber: 'Q', description: 'd', image: 'i' },
    { type: 'setOrderLineSkus', ...line, skus: { S: 2 } },
    { type: 'setOrderLineDynamicFields', ...line, fields: { a: 1 } },
  )
  t.match(order.doc('orderLine', id(11)), {
    quantity: 3,
    unitPrice: 1.2346,
    orderLineTotal: 3.7,
    productNumber: 'Q',
    description: 'd',
    image: 'i',
    dynamic: { a: 1 },
    skus: [{ skuNumber: 'S', totalQuantity: 6 }],
  })
  order.do({ type: 'setOrderLineProduct', ...line, description: null, image: null })
  order.do({ type: 'setOrderLineSkus', ...line, skus: {} })
  for (const gone of ['description', 'image', 'skus']) {
    t.notOk(gone in order.doc('orderLine', id(11)), gone)
  }
  t.strictSame(order.do({ type: 'setOrderLineQuantity', ...line, quantity: 3 }), [])
  t.match(order.refusal({ type: 'setOrderLineQuantity', ...line, quantity: 0.00001 }), {
    code: 'INVALID_COMMAND',
  })
  t.match(order.refusal({ type: 'setOrderLineQuantity', orderLineId: id(9), quantity: 1 }), {
    message: /there is no order line/,
    details: { member: 'orderLineId' },
  })
  t.match(order.refusal({ type: 'setOrderLineUnitPrice', ...line, unitPrice: 1e12 }), {
    message: /quantity \* unitPrice is more than/,
  })
  t.end()
})

t.test('setOrderLineTax takes exactly one of its members', (t) => {
  const order = openOrder()
  const tax = { type: 'setOrderLineTax', ...line }
  for (const members of [{}, { salesTax: 1, taxTotal: 1 }, { salesTax: 1, taxFactor: 0.1 }]) {
    t.match(order.refusal({ ...tax, ...members }), {
      code: 'INVALID_COMMAND',
      message: /exactly one of salesTax, taxTotal, taxFactor/,
    })
  }
  order.do({ ...tax, salesTax: 1 })
  t.notOk('taxFactor' in order.doc('orderLine', id(11)))
  t.end()
})

t.test('moveOrderLine keeps id, number and discounts', (t) => {
  const order = openOrder()
  order.do({ type: 'createStaticOrderLineDiscount', ...line, value: 10 })
  order.do(
    { type: 'createDelivery', deliveryId: id(2) },
    { type: 'moveOrderLine', ...line, deliveryId: id(2) },
  )
  t.match(order.doc('orderLine', id(11)), {
    deliveryId: id(2),
    orderLineNumber: '1',
    orderLineTotal: 90,
  })
  t.strictSame(order.do({ type: 'moveOrderLine', ...line, deliveryId: id(2) }), [])
  t.match(order.refusal({ type: 'moveOrderLine', ...line, deliveryId: id(3) }), {
    details: { member: 'deliveryId' },
  })
  order.do({ type: 'cancelDelivery', deliveryId: id(1) })
  t.match(order.refusal({ type: 'moveOrderLine', ...line, deliveryId: id(1) }), {
    code: 'INVALID_STATE',
  })
  t.match(order.refusal({ type: 'moveOrderLine', orderLineId: id(12), deliveryId: id(2) }), {
    code: 'INVALID_STATE',
  })
  t.end()
})

t.test('splitOrderLine hands part of a line to a new one', (t) => {
  const order = openOrder()
  order.do(
    { type: 'setOrderLineDynamicFields', ...line, fields: { a: 1 } },
    { type: 'setOrderLineSkus', ...line, skus: { S: 1 } },
    { type: 'setOrderLineTax', ...line, salesTax: 0.05 },
    { type: 'createDelivery', deliveryId: id(2) },
  )
  const split = { type: 'splitOrderLine', ...line }
  order.do({ ...split, quantity: 1, newOrderLineId: id(13), newDeliveryId: id(2) })
  t.match(order.doc('orderLine', id(11)), { quantity: 1, orderLineTotal: 50, taxTotal: 0.02 })
  t.match(order.doc('orderLine', id(13)), {
    quantity: 1,
    orderLineTotal: 50,
    taxTotal: 0.03,
    deliveryId: id(2),
    orderLineNumber: '3',
    productNumber: 'P11',
    dynamic: { a: 1 },
    skus: [{ skuNumber: 'S' }],
  })
  order.do({ ...split, quantity: 0.25 })
  t.equal(order.doc('orderLine', id(11))['quantity'], 0.75)
  for (const quantity of [0.75, 1]) {
    t.match(order.refusal({ ...split, quantity }), { message: /must be less than the line's 0.75/ })
  }
  t.match(order.refusal({ ...split, quantity: 0.1, newOrderLineId: id(13) }), {
    code: 'DUPLICATE_ID',
  })
  t.match(order.refusal({ ...split, quantity: 0.1, newDeliveryId: id(9) }), {
    details: { member: 'newDeliveryId' },
  })
  t.end()
})

t.test('deleteOrderLine takes its discounts along', (t) => {
  const order = openOrder()
  order.do(
    { type: 'createStaticOrderLineDiscount', ...line, value: 1 },
    { type: 'createStaticOrderLineDiscount', ...line, value: 2 },
    { type: 'createStaticOrderLineDiscount', orderLineId: id(12), value: 3, discountId: id(23) },
  )
  order.do({ type: 'deleteOrderLine', ...line })
  t.strictSame(
    order.docs('staticDiscount').map((doc) => doc['discountId']),
    [id(23)],
  )
  t.equal(order.docs('orderLine').length, 1)
  t.equal(order.doc('order')['productTotal'], 97)
  t.end()
})

t.test('lines of final deliveries and invoiced lines are fixed', (t) => {
  const described = [
    { type: 'setOrderLineProduct', ...line, productNumber: 'x' },
    { type: 'setOrderLineSkus', ...line, skus: { S: 1 } },
    { type: 'moveOrderLine', ...line, deliveryId: id(1) },
  ]
  const amounts = [
    { type: 'setOrderLineQuantity', ...line, quantity: 1 },
    { type: 'setOrderLineUnitPrice', ...line, unitPrice: 1 },
    { type: 'setOrderLineTax', ...line, salesTax: 1 },
    { type: 'splitOrderLine', ...line, quantity: 1 },
    { type: 'deleteOrderLine', ...line },
    { type: 'createStaticOrderLineDiscount', ...line, value: 1 },
  ]
  const cancelled = confirmedOrder()
  cancelled.do({ type: 'cancelDelivery', deliveryId: id(1) })
  for (const order of [deliveredOrder(), invoicedOrder(), cancelled]) {
    const invoiced = order.docs('invoice').length > 0
    for (const command of invoiced ? amounts : [...amounts, ...described]) {
      t.match(order.refusal(command), { code: 'INVALID_STATE' }, command.type)
    }
    t.ok(order.apply({ type: 'setOrderLineDynamicFields', ...line, fields: { a: 1 } }).ok)
  }
  t.end()
})

t.test('an invoiced line can be moved and described anew; its amounts are closed', (t) => {
  const order = invoicedOrder()
  order.do(
    { type: 'releaseShippingToInvoicing', deliveryId: id(1) },
    { type: 'invoice' },
    { type: 'createDelivery', deliveryId: id(2) },
  )
  const line = { orderLineId: id(11) }
  const { totals } = order.state!
  order.do(
    { type: 'setOrderLineProduct', ...line, productNumber: 'P2', description: 'new' },
    { type: 'setOrderLineSkus', ...line, skus: { S: 1 } },
    { type: 'setShippingProduct', deliveryId: id(1), shippingProductNumber: 'air' },
    { type: 'moveOrderLine', ...line, deliveryId: id(2) },
  )
  t.match(order.doc('orderLine', id(11)), { deliveryId: id(2), productNumber: 'P2' })
  t.strictSame(order.state!.totals, totals)
  t.match(order.refusal({ type: 'cancelDelivery', deliveryId: id(2) }), { code: 'INVALID_STATE' })
  for (const command of [
    { type: 'setOrderLineQuantity', ...line, quantity: 1 },
    { type: 'setOrderLineUnitPrice', ...line, unitPrice: 1 },
    { type: 'setOrderLineTax', ...line, taxFactor: 0 },
    { type: 'createStaticOrderLineDiscount', ...line, value: 1 },
    { type: 'splitOrderLine', ...line, quantity: 1 },
    { type: 'deleteOrderLine', ...line },
    { type: 'setShippingPrice', deliveryId: id(1), shippingPrice: 1 },
    { type: 'setShippingTax', deliveryId: id(1), tax: 1 },
    { type: 'createStaticShippingDiscount', deliveryId: id(1), value: 1 },
  ]) {
    t.match(order.refusal(command), { code: 'INVALID_STATE' }, command.type)
  }
  t.end()
})
