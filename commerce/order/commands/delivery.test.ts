// Commands on deliveries and their shipping fee: what they change, and what they refuse.

import t from 'tap'
import { id } from '../testing/order-driver.ts'
import {
  confirmedOrder,
  deliveredOrder,
  invoicedOrder,
  lineCommand,
  openOrder,
} from '../testing/sample-orders.ts'

const delivery = { deliveryId: id(1) }

t.test('createDelivery', (t) => {
  const order = openOrder()
  order.do({
    type: 'createDelivery',
    deliveryId: id(2).toUpperCase(),
    numberPrefix: 'X-',
    shippingProductNumber: 'SHIP',
    shippingDescription: 'By bike',
    shippingPrice: 4.99999,
    shippingTaxFactor: 0.25,
  })
  t.match(order.doc('delivery', id(2)), {
    deliveryId: id(2),
    deliveryNumber: 'X-O1D2',
    deliveryState: 'open',
    shippingProductNumber: 'SHIP',
    shippingDescription: 'By bike',
    shippingPrice: 5,
    shippingTotal: 5,
    shippingTaxTotal: 1,
    createdAt: new Date(order.nowMs).toISOString(),
  })
  order.do({ type: 'createDelivery' })
  const made = order.docs('delivery').at(-1)!
  t.match(made, { deliveryNumber: 'O1D3', deliveryId: /^[0-9a-f-]{14}7/ }, 'an id was made')
  t.end()
})

t.test('createDelivery refuses', (t) => {
  const order = openOrder()
  t.match(order.refusal({ type: 'createDelivery', ...delivery }), {
    code: 'DUPLICATE_ID',
    details: { commandIndex: 0, member: 'deliveryId' },
  })
  t.match(order.refusal({ type: 'createDelivery', deliveryId: id(11) }), { code: 'DUPLICATE_ID' })
  t.match(order.refusal({ type: 'createDelivery', deliveryId: order.orderId }), {
    code: 'DUPLICATE_ID',
  })
  t.match(order.refusal({ type: 'createDelivery', deliveryId: 'one' }), {
    message: 'commands[0] createDelivery: deliveryId must be a UUID',
  })
  t.match(order.refusal({ type: 'createDelivery', shippingPrice: -1 }), {
    message: 'commands[0] createDelivery: shippingPrice must be >= 0',
  })
  t.match(order.refusal({ type: 'createDelivery', shippingPrice: 1e13 }), {
    code: 'INVALID_COMMAND',
  })
  order.do({ type: 'setOrderState', orderState: 'cancelled' })
  t.match(order.refusal({ type: 'createDelivery' }), { code: 'INVALID_STATE' })
  t.end()
})

t.test('delivery numbers are not given twice', (t) => {
  const order = openOrder()
  order.do(
    { type: 'createDelivery', deliveryId: id(2) },
    { type: 'deleteDelivery', deliveryId: id(2) },
  )
  order.do({ type: 'createDelivery', deliveryId: id(2) })
  t.equal(order.doc('delivery', id(2))['deliveryNumber'], 'O1D3')
  t.end()
})

t.test('setDeliveryAddress merges, and keeps to the countries of the channel', (t) => {
  const channel = { currencyCode: 'EUR', inventories: ['east'], countries: ['SE', 'NO'] }
  const order = openOrder({ channels: { any: () => true, get: () => channel } })
  const address = { type: 'setDeliveryAddress', ...delivery }
  order.do({ ...address, name: 'Anna', countryCode: 'NO' }, { type: 'setChannelKey', value: 'web' })
  t.match(order.refusal({ ...address, countryCode: 'FI' }), {
    message: /channel web does not serve FI, only SE, NO/,
    details: { member: 'countryCode' },
  })
  order.do({ ...address, countryCode: 'SE', name: null, city: 'Lund' })
  t.strictSame(order.doc('delivery', id(1))['deliveryAddress'], { countryCode: 'SE', city: 'Lund' })
  t.match(order.refusal({ ...address, deliveryId: id(9) }), {
    code: 'INVALID_COMMAND',
    message: /there is no delivery .*009 in this order/,
    details: { member: 'deliveryId' },
  })
  t.match(order.refusal({ ...address, taxId: 'x' }), { message: /taxId is not known here/ })
  t.end()
})

t.test('setDeliveryInventory keeps to the inventories of the channel', (t) => {
  const channel = { currencyCode: 'EUR', inventories: ['east'], countries: [] }
  const order = openOrder({ channels: { any: () => true, get: () => channel } })
  const inventory = { type: 'setDeliveryInventory', ...delivery }
  order.do({ ...inventory, inventoryKey: 'east', inventoryDate: '2026-03-01' })
  order.do({ type: 'setChannelKey', value: 'web' })
  t.match(order.refusal({ ...inventory, inventoryKey: 'west' }), { message: /no inventory west/ })
  order.do({ ...inventory, inventoryKey: 'east' })
  t.match(order.doc('delivery', id(1)), { inventoryKey: 'east', inventoryDate: '2026-03-01' })
  order.do({ ...inventory, inventoryKey: null, inventoryDate: null })
  t.notOk('inventoryKey' in order.doc('delivery', id(1)))
  for (const inventoryDate of ['2026-02-30', '2026-03-01T00:00:00Z', '']) {
    t.match(order.refusal({ ...inventory, inventoryDate }), { message: /a date such as/ })
  }
  t.end()
})

t.test('dynamic fields and tags of a delivery, final or not', (t) => {
  const order = deliveredOrder()
  order.do(
    { type: 'setDeliveryDynamicFields', ...delivery, fields: { a: 1 } },
    { type: 'addDeliveryTag', ...delivery, key: 'x' },
    { type: 'addDeliveryTag', ...delivery, key: 'y' },
    { type: 'addDeliveryTag', ...delivery, key: 'x' },
    { type: 'removeDeliveryTag', ...delivery, key: 'x' },
    { type: 'removeDeliveryTag', ...delivery, key: 'z' },
  )
  t.match(order.doc('delivery', id(1)), { dynamic: { a: 1 }, tags: ['y'] })
  t.strictSame(order.doc('order')['tags'], [])
  t.end()
})

t.test('a delivery goes its way', (t) => {
  const order = confirmedOrder()
  const state = () => order.doc('delivery', id(1))['deliveryState']
  order.do({ type: 'releaseDelivery', ...delivery })
  t.equal(state(), 'processing')
  order.do({ type: 'retractDelivery', ...delivery })
  t.equal(state(), 'open')
  order.do({ type: 'cancelDelivery', ...delivery })
  t.equal(state(), 'cancelled')
  t.equal(order.doc('delivery', id(1))['finalizedAt'], new Date(order.nowMs).toISOString())
  order.do({ type: 'reopenDelivery', ...delivery })
  t.notOk('finalizedAt' in order.doc('delivery', id(1)))
  order.do({ type: 'completeDelivery', ...delivery })
  t.equal(state(), 'completed')
  t.equal(order.doc('order')['fulfilmentState'], 'complete')
  for (const type of ['releaseDelivery', 'retractDelivery', 'cancelDelivery', 'reopenDelivery']) {
    t.match(order.refusal({ type, ...delivery }), { code: 'INVALID_STATE' }, type)
  }
  t.end()
})

t.test('a delivery goes on only for a confirmed order', (t) => {
  const order = openOrder()
  for (const type of ['releaseDelivery', 'completeDelivery']) {
    t.match(order.refusal({ type, ...delivery }), { message: /order O1 is pending/ }, type)
  }
  order.do({ type: 'setOrderState', orderState: 'cancelled' })
  t.match(order.refusal({ type: 'reopenDelivery', ...delivery }), { message: /O1 is cancelled/ })
  t.end()
})

t.test('what is invoiced is not cancelled away', (t) => {
  const order = invoicedOrder()
  t.match(order.refusal({ type: 'cancelDelivery', ...delivery }), {
    code: 'INVALID_STATE',
    message: /order line 1 is invoiced: cancel invoice IO1-1 first/,
  })
  order.do({ type: 'createDelivery', deliveryId: id(2) })
  t.ok(order.apply({ type: 'cancelDelivery', deliveryId: id(2) }).ok)
  t.end()
})

t.test('deleteDelivery: without lines, not released, not invoiced; its discounts go', (t) => {
  const order = confirmedOrder()
  t.match(order.refusal({ type: 'deleteDelivery', ...delivery }), { message: /has 2 order lines/ })
  order.do({ type: 'createDelivery', deliveryId: id(2), shippingPrice: 5 })
  const discount = { value: 1, discountId: id(21) }
  order.do({ type: 'createStaticShippingDiscount', deliveryId: id(2), ...discount })
  order.do({ type: 'releaseShippingToInvoicing', deliveryId: id(2) })
  t.match(order.refusal({ type: 'deleteDelivery', deliveryId: id(2) }), { message: /is released/ })
  order.do({ type: 'retractShippingFromInvoicing', deliveryId: id(2) })
  order.do({ type: 'deleteDelivery', deliveryId: id(2) })
  t.equal(order.docs('delivery').length, 1)
  t.equal(order.docs('staticDiscount').length, 0)
  order.do({ type: 'releaseShippingToInvoicing', ...delivery }, { type: 'invoice' })
  order.do(
    { type: 'deleteOrderLine', orderLineId: id(11) },
    { type: 'deleteOrderLine', orderLineId: id(12) },
  )
  t.match(order.refusal({ type: 'deleteDelivery', ...delivery }), { message: /is invoiced/ })
  t.end()
})

t.test('shipping: price, product, tax, tracking', (t) => {
  const order = openOrder()
  order.do(
    { type: 'setShippingPrice', ...delivery, shippingPrice: 20 },
    {
      type: 'setShippingProduct',
      ...delivery,
      shippingProductNumber: 'S',
      shippingDescription: 'd',
    },
    { type: 'setDeliveryTracking', ...delivery, carrier: 'Post', trackingNumber: 'T1' },
    { type: 'setDeliveryTracking', ...delivery, trackingUrl: 'https://post.example/T1' },
  )
  t.match(order.doc('delivery', id(1)), {
    shippingPrice: 20,
    shippingTotal: 20,
    shippingTaxTotal: 4,
    shippingTaxFactor: 0.25,
    shippingProductNumber: 'S',
    tracking: { carrier: 'Post', trackingNumber: 'T1', trackingUrl: 'https://post.example/T1' },
  })
  order.do({ type: 'setShippingTax', ...delivery, tax: 3 })
  t.match(order.doc('delivery', id(1)), { shippingTax: 3, shippingTaxTotal: 3 })
  t.notOk('shippingTaxFactor' in order.doc('delivery', id(1)))
  order.do({ type: 'setShippingTax', ...delivery, taxFactor: 0.06 })
  t.match(order.doc('delivery', id(1)), { shippingTaxFactor: 0.06, shippingTaxTotal: 1.13 })
  const tax = { type: 'setShippingTax', ...delivery }
  t.match(order.refusal({ ...tax, tax: 1, taxFactor: 0.1 }), {
    message: /exactly one of tax, taxFactor is to be sent; tax and taxFactor are there/,
  })
  t.match(order.refusal(tax), { message: /none of them is there/ })
  t.match(
    order.refusal({ type: 'setDeliveryTracking', ...delivery, trackingUrl: 'javascript:x' }),
    {
      details: { member: 'trackingUrl' },
    },
  )
  t.end()
})

t.test('final deliveries refuse changes, tracking goes on', (t) => {
  const order = deliveredOrder()
  order.do({ type: 'createDelivery', deliveryId: id(2) })
  order.do({ type: 'cancelDelivery', deliveryId: id(2) })
  for (const deliveryId of [id(1), id(2)]) {
    for (const command of [
      { type: 'setDeliveryAddress', deliveryId, name: 'x' },
      { type: 'setDeliveryInventory', deliveryId, inventoryKey: 'x' },
      { type: 'setShippingPrice', deliveryId, shippingPrice: 1 },
      { type: 'setShippingProduct', deliveryId, shippingDescription: 'x' },
      { type: 'setShippingTax', deliveryId, tax: 1 },
      { type: 'deleteDelivery', deliveryId },
      { type: 'createStaticShippingDiscount', deliveryId, value: 1 },
      { ...lineCommand(13, 1, 1), deliveryId },
    ]) {
      t.match(order.refusal(command), { code: 'INVALID_STATE' }, command['type'] as string)
    }
    t.ok(order.apply({ type: 'setDeliveryTracking', deliveryId, carrier: 'Post' }).ok)
  }
  t.end()
})

t.test('an invoiced shipping fee is fixed', (t) => {
  const order = confirmedOrder()
  order.do({ type: 'releaseShippingToInvoicing', ...delivery }, { type: 'invoice' })
  for (const command of [
    { type: 'setShippingPrice', ...delivery, shippingPrice: 1 },
    { type: 'setShippingTax', ...delivery, tax: 1 },
    { type: 'createStaticShippingDiscount', ...delivery, value: 1 },
    { type: 'retractShippingFromInvoicing', ...delivery },
    { type: 'releaseShippingToInvoicing', ...delivery },
    { type: 'cancelDelivery', ...delivery },
  ]) {
    t.match(order.refusal(command), { code: 'INVALID_STATE' }, command.type)
  }
  t.end()
})
