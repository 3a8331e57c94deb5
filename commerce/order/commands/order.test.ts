// Commands on the order itself: what they change, and what they refuse.

import t from 'tap'
import { id, OrderDriver } from '../testing/order-driver.ts'
import {
  confirmedOrder,
  deliveredOrder,
  invoicedOrder,
  openOrder,
} from '../testing/sample-orders.ts'

const setState = (orderState: string) => ({ type: 'setOrderState', orderState })

t.test('setOrderState moves the order, and cancellation takes its deliveries along', (t) => {
  const order = confirmedOrder()
  order.do(
    { type: 'createDelivery', deliveryId: id(2) },
    { type: 'createDelivery', deliveryId: id(3) },
  )
  order.do(
    { type: 'releaseDelivery', deliveryId: id(2) },
    { type: 'cancelDelivery', deliveryId: id(3) },
  )
  order.do(setState('cancelled'))
  const states = () => order.docs('delivery').map((doc) => doc['deliveryState'])
  t.strictSame(states(), ['cancelledByOrder', 'cancelledByOrder', 'cancelled'])
  t.equal(order.doc('order')['orderTotal'], 0)
  t.equal(order.doc('delivery', id(1))['finalizedAt'], undefined)
  order.do(setState('confirmed'))
  t.strictSame(states(), ['open', 'open', 'cancelled'], 'what was cancelled by itself stays so')
  t.equal(order.doc('order')['orderTotal'], 210)
  t.end()
})

t.test('setOrderState: the same state is no change', (t) => {
  const order = openOrder()
  t.strictSame(order.do(setState('pending')), [])
  t.end()
})

t.test('setOrderState refuses what the machine has not, and what is under way', (t) => {
  t.match(openOrder().refusal(setState('completed')), { code: 'INVALID_STATE' })
  const delivered = deliveredOrder()
  t.match(delivered.refusal(setState('pending')), { message: /O1D1 is completed/ })
  t.match(delivered.refusal(setState('cancelled')), { message: /O1D1 is completed/ })
  const processing = confirmedOrder()
  processing.do({ type: 'releaseDelivery', deliveryId: id(1) })
  t.match(processing.refusal(setState('pending')), { message: /O1D1 is processing/ })
  t.ok(processing.apply(setState('cancelled')).ok)
  const invoiced = invoicedOrder()
  t.match(invoiced.refusal(setState('pending')), { message: /invoice IO1-1 is not cancelled/ })
  t.match(invoiced.refusal(setState('cancelled')), { message: /invoice IO1-1 is not cancelled/ })
  t.match(openOrder().refusal(setState('lost')), {
    code: 'INVALID_COMMAND',
    message: /orderState must be one of pending, confirmed, completed, cancelled/,
  })
  t.end()
})

t.test('setChannelKey takes any key until channels are configured', (t) => {
  const free = openOrder()
  free.do({ type: 'setChannelKey', value: 'web' })
  t.equal(free.doc('order')['channelKey'], 'web')
  t.strictSame(free.do({ type: 'setChannelKey', value: 'web' }), [])
  const channel = { currencyCode: 'EUR', inventories: [], countries: [] }
  const channels = { any: () => true, get: (key: string) => (key === 'web' ? channel : null) }
  const bound = openOrder({ channels })
  bound.do({ type: 'setChannelKey', value: 'web' })
  t.match(bound.refusal({ type: 'setChannelKey', value: 'app' }), {
    code: 'INVALID_COMMAND',
    message: /there is no channel app/,
    details: { member: 'value' },
  })
  t.end()
})

t.test('setCustomerNumber, setLocale: set, clear, refuse', (t) => {
  const order = openOrder()
  order.do({ type: 'setCustomerNumber', value: 'C1' }, { type: 'setLocale', locale: 'sv-SE' })
  t.match(order.doc('order'), { customerNumber: 'C1', locale: 'sv-SE' })
  order.do({ type: 'setCustomerNumber', value: null }, { type: 'setLocale', locale: null })
  t.notHas(order.doc('order'), { customerNumber: 'C1' })
  t.notOk('locale' in order.doc('order'))
  t.match(order.refusal({ type: 'setLocale', locale: 'Swedish!' }), {
    details: { member: 'locale' },
  })
  t.match(order.refusal({ type: 'setCustomerNumber' }), { message: /value is missing/ })
  t.match(order.refusal({ type: 'setCustomerNumber', value: ' x' }), {
    message: /spaces at its ends/,
  })
  t.end()
})

t.test('setOrderNumber takes the new key in the place of the old one', (t) => {
  const order = openOrder({ taken: ['order/N7'] })
  order.do({ type: 'setOrderNumber', value: 'N8' })
  t.equal(order.doc('order')['orderNumber'], 'N8')
  t.strictSame(order.naturalKeys, ['order/N8'])
  t.same(order.asks.at(-1), { call: 'reserve', keyType: 'order', key: 'N8' })
  t.strictSame(order.do({ type: 'setOrderNumber', value: 'N8' }), [])
  t.match(order.refusal({ type: 'setOrderNumber', value: 'N7' }), {
    code: 'ALREADY_EXISTS',
    details: { commandIndex: 0, commandType: 'setOrderNumber', member: 'value' },
  })
  t.match(confirmedOrder().refusal({ type: 'setOrderNumber', value: 'N9' }), {
    code: 'INVALID_STATE',
  })
  for (const value of ['new', id(1), '', 'a\nb', 'x'.repeat(201)]) {
    t.match(order.refusal({ type: 'setOrderNumber', value }), { code: 'INVALID_COMMAND' }, value)
  }
  t.end()
})

t.test('a key that the order takes again in the same batch is its own as before', (t) => {
  const order = openOrder()
  order.do(
    { type: 'setOrderNumber', value: 'A' },
    { type: 'setOrderNumber', value: 'B' },
    { type: 'setOrderNumber', value: 'O1' },
    { type: 'setExternalReference', value: 'O1' },
  )
  t.strictSame(order.naturalKeys, ['order/O1', 'order!externalReference/O1'])
  order.do({ type: 'setExternalReference', value: null })
  t.strictSame(order.naturalKeys, ['order/O1'], 'whatever other keys are named')
  t.end()
})

t.test('generateOrderNumberByPrefix', (t) => {
  const order = openOrder()
  order.do({ type: 'generateOrderNumberByPrefix', prefix: '' })
  t.equal(order.doc('order')['orderNumber'], '1')
  t.strictSame(order.naturalKeys, ['order/1'])
  t.match(confirmedOrder().refusal({ type: 'generateOrderNumberByPrefix', prefix: 'X' }), {
    code: 'INVALID_STATE',
  })
  t.end()
})

t.test('setExternalReference is unique, and null gives it up', (t) => {
  const order = openOrder({ taken: ['order!externalReference/E2'] })
  order.do({ type: 'setExternalReference', value: 'E1' })
  t.equal(order.doc('order')['externalReference'], 'E1')
  t.match(order.refusal({ type: 'setExternalReference', value: 'E2' }), { code: 'ALREADY_EXISTS' })
  order.do({ type: 'setExternalReference', value: null })
  t.strictSame(order.naturalKeys, ['order/O1'])
  t.notOk('externalReference' in order.doc('order'))
  t.end()
})

t.test('setInvoiceAddress replaces the members that are sent, null clears', (t) => {
  const order = openOrder()
  const address = { type: 'setInvoiceAddress' }
  order.do({ ...address, name: 'Anna', city: 'Lund', taxId: 'SE1', taxIdType: 'vat' })
  order.do({ ...address, city: 'Malmö', taxIdType: null })
  t.strictSame(order.doc('order')['invoiceAddress'], { name: 'Anna', city: 'Malmö', taxId: 'SE1' })
  t.strictSame(order.do({ ...address, name: 'Anna', phone: null }), [], 'nothing new: no record')
  t.match(order.refusal({ ...address, street: 'x' }), { message: /street is not known here/ })
  t.end()
})

t.test('setDynamicFields merges, null removes a key', (t) => {
  const order = openOrder()
  order.do({ type: 'setDynamicFields', fields: { a: 1, b: { c: [1, 'x', null] } } })
  order.do({ type: 'setDynamicFields', fields: { a: null, d: true, e: null } })
  t.strictSame(order.doc('order')['dynamic'], { b: { c: [1, 'x', null] }, d: true })
  t.strictSame(order.do({ type: 'setDynamicFields', fields: { b: { c: [1, 'x', null] } } }), [])
  t.end()
})

t.test('tags are an ordered set', (t) => {
  const order = openOrder()
  order.do({ type: 'addTag', key: 'b' }, { type: 'addTag', key: 'a' }, { type: 'addTag', key: 'b' })
  t.strictSame(order.doc('order')['tags'], ['b', 'a'])
  order.do({ type: 'removeTag', key: 'b' })
  t.strictSame(order.doc('order')['tags'], ['a'])
  t.strictSame(order.do({ type: 'removeTag', key: 'gone' }, { type: 'addTag', key: 'a' }), [])
  t.match(order.refusal({ type: 'addTag', key: 'x'.repeat(101) }), { details: { member: 'key' } })
  const many = Array.from({ length: 100 }, (_, i) => ({ type: 'addTag', key: `t${i}` }))
  t.match(order.refusal(...many), { message: /at most 100 tags/, details: { commandIndex: 99 } })
  t.end()
})

t.test('addActivityLog fills the placeholders and leaves the state alone', (t) => {
  const order = openOrder()
  const before = order.doc('order')
  order.do({
    type: 'addActivityLog',
    messageTemplate: '{who} sent {parcel.count} parcels {with} {parcel}',
    dynamic: { who: 'Anna', parcel: { count: 2 } },
  })
  t.strictSame(order.doc('order'), before)
  const entry = order.history().at(-1)!
  t.equal(entry.node, 'activityLog')
  t.match(entry.doc, {
    orderId: order.orderId,
    message: 'Anna sent 2 parcels {with} {"count":2}',
    createdBy: 'tester',
  })
  t.match(order.refusal({ type: 'addActivityLog', messageTemplate: '' }), {
    code: 'INVALID_COMMAND',
  })
  const dynamic = { long: 'x'.repeat(60_000) }
  t.match(
    order.refusal({ type: 'addActivityLog', messageTemplate: '{long}{long}{long}', dynamic }),
    {
      message: /longer than 65536/,
    },
  )
  t.end()
})

t.test('commands for later are known by name', (t) => {
  const order = new OrderDriver()
  order.create()
  for (const type of ['createPromotion', 'deletePromotion', 'linkPayment', 'unlinkPayment']) {
    t.match(order.refusal({ type: 'addTag', key: 'a' }, { type }), {
      code: 'NOT_AVAILABLE',
      details: { commandIndex: 1, commandType: type },
    })
  }
  t.match(order.send('capturePayments'), { ok: false, errors: [{ code: 'NOT_AVAILABLE' }] })
  t.end()
})
