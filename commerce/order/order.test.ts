import t from 'tap'
import { id, OrderDriver } from './testing/order-driver.ts'

t.test('create with a delivery and lines, as the specification shows it', (t) => {
  const order = new OrderDriver()
  const answer = order.create([
    { type: 'setChannelKey', value: 'web' },
    { type: 'createDelivery', deliveryId: id(1), shippingPrice: 5 },
    { type: 'setDeliveryAddress', deliveryId: id(1), name: 'A', countryCode: 'SE' },
    {
      type: 'createOrderLine',
      deliveryId: id(1),
      orderLineId: id(2),
      productNumber: 'P1',
      quantity: 3,
      unitPrice: 9.99,
      taxFactor: 0.25,
      skus: { S1: 2 },
    },
  ])
  t.same(answer.ok && answer.data, { orderId: order.orderId, orderNumber: 'O1' })
  t.match(order.doc('order'), { orderTotal: 34.97, orderTaxTotal: 5.99, orderState: 'pending' })
  t.match(order.doc('delivery', id(1)), { deliveryNumber: 'O1D1', shippingTotal: 5 })
  t.match(order.doc('orderLine', id(2)), { orderLineNumber: '1', orderLineTotal: 29.97 })
  t.same(order.replay(), order.state)
  t.end()
})
