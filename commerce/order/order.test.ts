// The order actor's messages: create, applyCommands, query, delete, getCheckpoints, rewind.

import t from 'tap'
import { checkpointId } from '../../protocol/checkpoint.ts'
import { type Answer, id, ORDER_ID, OrderDriver, START_MS } from './testing/order-driver.ts'
import { confirmedOrder, invoicedOrder, lineCommand, openOrder } from './testing/sample-orders.ts'

const errorOf = (answer: Answer) => (answer.ok ? null : answer.errors[0]!)

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
  t.same(answer.ok && answer.data, { orderId: ORDER_ID, orderNumber: 'O1' })
  t.match(order.doc('order'), { orderTotal: 34.97, orderTaxTotal: 5.99, orderState: 'pending' })
  t.match(order.doc('delivery', id(1)), { deliveryNumber: 'O1D1', shippingTotal: 5 })
  t.match(order.doc('orderLine', id(2)), { orderLineNumber: '1', orderLineTotal: 29.97 })
  t.strictSame(order.asks, [{ call: 'number', keyType: 'order', prefix: 'O' }])
  t.end()
})

t.test('the keys that a message asks for by name, of any body', (t) => {
  const { behaviour } = new OrderDriver()
  const commands = [
    { type: 'setOrderNumber', value: 'N2' },
    { type: 'addTag', key: 'N3' },
    { type: 'setExternalReference', value: 'R' },
    { type: 'setExternalReference', value: null },
  ]
  t.same(behaviour.mayTake({ type: 'create', body: { orderNumber: 'N1', commands } }), [
    { keyType: 'order', key: 'N1' },
    { keyType: 'order', key: 'N2' },
    { keyType: 'order!externalReference', key: 'R' },
  ])
  for (const body of [null, 7, [], { orderNumber: 1, commands: [null, 7, { type: 'x' }] }]) {
    t.same(behaviour.mayTake({ type: 'create', body }), [])
  }
  t.end()
})

t.test('create: number and channel of the body, time of birth', (t) => {
  const order = new OrderDriver({ taken: ['order/N2'] })
  const body = { orderNumber: 'N1', channelKey: 'web', createdAt: '2025-12-24T18:00:00+01:00' }
  t.same(order.behaviour.chosenKey({ type: 'create', body }), { keyType: 'order', key: 'N1' })
  t.equal(order.behaviour.chosenKey({ type: 'create', body: {} }), null)
  t.equal(order.behaviour.chosenKey({ type: 'applyCommands', body }), null)
  order.create([], body)
  t.strictSame(order.asks, [{ call: 'reserve', keyType: 'order', key: 'N1' }])
  t.match(order.doc('order'), {
    orderNumber: 'N1',
    channelKey: 'web',
    createdAt: '2025-12-24T17:00:00.000Z',
    lastModified: new Date(order.nowMs).toISOString(),
  })
  const taken = new OrderDriver({ taken: ['order/N2'] })
  t.match(errorOf(taken.create([], { orderNumber: 'N2' })), {
    code: 'ALREADY_EXISTS',
    message: 'order number N2 is already used',
    details: { member: 'orderNumber' },
  })
  t.equal(taken.state, null)
  const late = new OrderDriver()
  late.create([], { createdAt: '2999-01-01T00:00:00Z' })
  t.equal(late.doc('order')['createdAt'], new Date(START_MS + 1_000).toISOString(), 'now at most')
  t.end()
})

t.test('create: commands that choose the number come first', (t) => {
  const order = new OrderDriver()
  order.create([
    { type: 'createDelivery', deliveryId: id(1) },
    { type: 'generateOrderNumberByPrefix', prefix: 'WEB-' },
  ])
  t.equal(order.doc('delivery', id(1))['deliveryNumber'], 'WEB-1D1')
  t.equal(order.asks.length, 1, 'no default number was spent')
  const chosen = new OrderDriver({ taken: ['order/X2'] })
  chosen.create([{ type: 'setOrderNumber', value: 'X1' }])
  t.equal(chosen.doc('order')['orderNumber'], 'X1')
  const refused = new OrderDriver({ taken: ['order/X2'] })
  t.match(
    errorOf(
      refused.create([
        { type: 'addTag', key: 'a' },
        { type: 'setOrderNumber', value: 'X2' },
      ]),
    ),
    {
      code: 'ALREADY_EXISTS',
      details: { commandIndex: 1, commandType: 'setOrderNumber', member: 'value' },
    },
  )
  const both = new OrderDriver()
  both.create([{ type: 'generateOrderNumberByPrefix', prefix: 'B' }], { orderNumber: 'A' })
  t.equal(both.doc('order')['orderNumber'], 'B1')
  t.strictSame(both.naturalKeys, ['order/B1'])
  t.end()
})

t.test('create may confirm, complete and invoice in one batch', (t) => {
  const order = new OrderDriver()
  const line = { orderLineId: id(2), deliveryId: id(1) }
  const answer = order.create([
    { type: 'createDelivery', deliveryId: id(1) },
    { type: 'createOrderLine', ...line, productNumber: 'P', quantity: 1, unitPrice: 10 },
    { type: 'setOrderState', orderState: 'confirmed' },
    { type: 'completeDelivery', deliveryId: id(1) },
    { type: 'releaseOrderLineToInvoicing', orderLineId: id(2) },
    { type: 'invoice' },
    { type: 'setOrderState', orderState: 'completed' },
  ])
  t.ok(answer.ok)
  t.match(order.doc('order'), {
    orderState: 'completed',
    fulfilmentState: 'complete',
    invoiceState: 'complete',
    invoicedTotal: 10,
  })
  t.end()
})

t.test('create refuses bad bodies with 400, bad commands with 422', (t) => {
  const wrong = (body: object, message: string | RegExp, member?: string) =>
    t.match(errorOf(new OrderDriver().create([], body as never)), {
      code: 'INVALID_MESSAGE_BODY',
      message,
      ...(member !== undefined && { details: { member } }),
    })
  wrong({ currencyCode: undefined }, /currencyCode/)
  wrong({ currencyCode: 'eur' }, /"eur" is not a currency of ISO 4217 such as EUR/, 'currencyCode')
  wrong({ currencyCode: 5 }, 'create: currencyCode must be string', 'currencyCode')
  wrong({ taxIncluded: 'yes' }, 'create: taxIncluded must be boolean', 'taxIncluded')
  wrong({ orderNumber: 'new' }, /orderNumber must be text .* not "new" and not a UUID/)
  wrong({ orderNumber: id(1) }, /orderNumber must be text/)
  wrong({ createdAt: '2026-01-31' }, /createdAt must be an ISO 8601 timestamp/)
  wrong({ createdAt: '2026-02-30T00:00:00Z' }, /createdAt must be an ISO 8601 timestamp/)
  wrong({ color: 'red' }, 'create: color is not known here', 'color')
  const order = new OrderDriver()
  t.match(errorOf(order.send('create')), {
    code: 'INVALID_MESSAGE_BODY',
    message: 'create: currencyCode is missing',
  })
  t.match(errorOf(order.send('create', null)), { code: 'INVALID_MESSAGE_BODY' })
  t.match(errorOf(order.send('create', [])), { code: 'INVALID_MESSAGE_BODY' })
  t.match(errorOf(order.create([{ type: 'createOrderline' }])), {
    code: 'INVALID_COMMAND',
    message: /there is no command "createOrderline"; did you mean createOrderLine/,
    details: { commandIndex: 0, commandType: 'createOrderline', member: 'type' },
  })
  for (const command of [null, 'x', [], {}, { type: 5 }, { type: 'constructor' }]) {
    t.match(errorOf(order.create([command])), {
      code: 'INVALID_COMMAND',
      details: { commandIndex: 0 },
    })
  }
  t.equal(order.state, null)
  t.end()
})

t.test('createdAt is in the years 0 to 9999, in UTC', (t) => {
  for (const createdAt of ['0000-01-01T00:00:00+01:00', '9999-12-31T23:59:59-01:00']) {
    t.match(errorOf(new OrderDriver().create([], { createdAt })), {
      code: 'INVALID_MESSAGE_BODY',
      details: { member: 'createdAt' },
    })
  }
  t.ok(new OrderDriver().create([], { createdAt: '0000-01-01T00:00:00Z' }).ok)
  t.end()
})

t.test('the checkpoint of a create names its numbering command too', (t) => {
  for (const numbering of [
    { type: 'setOrderNumber', value: 'X1' },
    { type: 'generateOrderNumberByPrefix', prefix: 'X' },
  ]) {
    const order = new OrderDriver()
    order.create([{ type: 'addTag', key: 'a' }, numbering])
    const { commands } = order.entries[0]!.records[0] as { commands?: string[] }
    t.strictSame(commands, [numbering.type, 'addTag'])
  }
  t.end()
})

t.test('create with an unknown channel, when channels are configured', (t) => {
  const order = new OrderDriver({ channels: { any: () => true, get: () => null } })
  t.match(errorOf(order.create([], { channelKey: 'web' })), {
    code: 'INVALID_COMMAND',
    details: { member: 'channelKey' },
  })
  t.end()
})

t.test('messages to orders that are not there, or there already', (t) => {
  const order = new OrderDriver()
  for (const [type, body] of [
    ['applyCommands', { commands: [{ type: 'addTag', key: 'a' }] }],
    ['query', {}],
    ['delete', {}],
    ['getCheckpoints', {}],
    ['rewind', { checkpointId: id(1) }],
  ] as const) {
    t.match(errorOf(order.send(type, body)), { code: 'NOT_FOUND' }, type)
  }
  order.create()
  t.match(errorOf(order.create()), { code: 'ALREADY_EXISTS' })
  t.match(errorOf(order.send('orderPizza')), {
    code: 'INVALID_MESSAGE_BODY',
    message: /no message "orderPizza"; it knows create, applyCommands, query, delete/,
  })
  t.end()
})

t.test('applyCommands answers the checkpoint that the order then stands at', (t) => {
  const order = openOrder()
  const first = checkpointId(ORDER_ID, 'message-1', START_MS + 1_000)
  t.strictSame(order.apply({ type: 'removeTag', key: 'none' }), {
    ok: true,
    data: { checkpointId: first },
    records: [],
  })
  const answer = order.apply({ type: 'addTag', key: 'a' })
  t.same(answer.ok && answer.data, { checkpointId: order.checkpoints()[1] })
  t.match(errorOf(order.send('applyCommands', { commands: [] })), { code: 'INVALID_MESSAGE_BODY' })
  t.match(errorOf(order.send('applyCommands', {})), { message: /commands is missing/ })
  t.end()
})

t.test('the first record of a message names its kinds of commands', (t) => {
  const order = openOrder()
  t.match(order.entries[0]!.records[0], {
    t: 'orderCreated',
    commands: ['createDelivery', 'createOrderLine'],
  })
  const records = order.do({ type: 'addTag', key: 'a' }, { type: 'addTag', key: 'b' })
  t.match(records[0], { t: 'tagAdded', commands: ['addTag'] })
  t.end()
})

t.test('one failing command rejects the whole batch', (t) => {
  const order = openOrder()
  t.match(
    order.refusal({ type: 'addTag', key: 'a' }, { type: 'completeDelivery', deliveryId: id(1) }),
    {
      code: 'INVALID_STATE',
      message: /^commands\[1\] completeDelivery: order O1 is pending/,
      details: { commandIndex: 1, commandType: 'completeDelivery' },
    },
  )
  t.end()
})

t.test('query and getCheckpoints commit nothing', (t) => {
  const order = openOrder()
  t.ok(order.behaviour.isRead('query') && order.behaviour.isRead('getCheckpoints'))
  t.notOk(order.behaviour.isRead('rewind'))
  const answer = order.send('query', { fields: ['orderNumber'] })
  t.match(answer, { ok: true, data: { orderNumber: 'O1' }, records: [] })
  t.match(order.asks.at(-1), { call: 'query', node: { fields: ['orderNumber'] } })
  t.strictSame(order.send('getCheckpoints'), {
    ok: true,
    data: order.checkpoints(),
    records: [],
  })
  t.match(errorOf(order.send('query', { fields: 'all' })), { code: 'INVALID_MESSAGE_BODY' })
  t.match(errorOf(order.send('getCheckpoints', { limit: 5 })), { message: /limit|must NOT have/ })
  t.end()
})

t.test('messages without members may leave their body out', (t) => {
  const { behaviour } = openOrder()
  for (const type of ['delete', 'getCheckpoints']) {
    t.equal(behaviour.check({ type, body: undefined }), null)
    t.equal(behaviour.check({ type, body: null }), null)
    t.match(behaviour.check({ type, body: { a: 1 } }), [{ code: 'INVALID_MESSAGE_BODY' }])
  }
  t.end()
})

t.test('a batch of small commands does not write without bound', (t) => {
  const order = openOrder()
  const many = (count: number, ...commands: object[]) =>
    Array.from({ length: count }, () => commands).flat()
  const deliveries = many(900, { type: 'createDelivery' })
  t.ok(order.apply(...deliveries).ok)
  const back = [
    { type: 'setOrderState', orderState: 'cancelled' },
    { type: 'setOrderState', orderState: 'pending' },
  ]
  t.match(order.refusal(...many(30, ...back)), { code: 'TOO_LARGE', message: /send it in parts/ })
  t.ok(order.apply(...back).ok)
  const dynamic = { text: 'x'.repeat(1_000) }
  const log = { type: 'addActivityLog', messageTemplate: '{text}'.repeat(60), dynamic }
  t.match(order.refusal(...many(40, log)), { code: 'TOO_LARGE' })
  const line = { orderLineId: id(11) }
  order.do({ type: 'setOrderLineDynamicFields', ...line, fields: { text: 'x'.repeat(60_000) } })
  const split = { type: 'splitOrderLine', ...line, quantity: 0.001 }
  t.match(order.refusal(...many(40, split)), { code: 'TOO_LARGE' })
  const long = { ...lineCommand(0, 1, 1), orderLineId: undefined, description: 'x'.repeat(10_000) }
  order.do(...many(150, long))
  order.do(...many(150, long))
  const released = order.docs('orderLine').map((doc) => ({
    type: 'releaseOrderLineToInvoicing',
    orderLineId: doc['orderLineId'],
  }))
  order.do(...released)
  t.match(order.refusal({ type: 'invoice' }), { code: 'TOO_LARGE' })
  t.end()
})

t.test('delete leaves a tombstone that keeps its keys', (t) => {
  const order = openOrder()
  order.do({ type: 'createStaticOrderDiscount', value: 1, discountId: id(21) })
  const answer = order.send('delete')
  const { behaviour, state } = order
  t.ok(behaviour.isDeleted(state!))
  t.strictSame(behaviour.keys(state!), ['O1'])
  t.strictSame(behaviour.nodes(state!), [])
  const touched = behaviour.touched(answer.ok ? answer.records[0]! : { t: '' }, ORDER_ID)
  t.strictSame(touched, [
    { node: 'order', id: ORDER_ID },
    { node: 'delivery', id: id(1) },
    { node: 'orderLine', id: id(11) },
    { node: 'orderLine', id: id(12) },
    { node: 'staticDiscount', id: id(21) },
  ])
  for (const ref of touched) t.equal(behaviour.project(state!, ref), null)
  t.same(order.replay(), state)
  t.match(errorOf(order.send('delete')), { code: 'NOT_FOUND' })
  t.match(errorOf(order.create()), { code: 'ALREADY_EXISTS' })
  t.match(errorOf(invoicedOrder().send('delete')), {
    code: 'INVALID_STATE',
    message: /invoice IO1-1 is not cancelled/,
  })
  t.end()
})

t.test('rewind goes back and forth, and makes a checkpoint of its own', (t) => {
  const order = openOrder()
  order.do({ type: 'setOrderNumber', value: 'N5' }, { type: 'setExternalReference', value: 'E' })
  order.do({ type: 'deleteOrderLine', orderLineId: id(11) }, { type: 'addTag', key: 'later' })
  const [first, , later] = order.checkpoints()
  const answer = order.send('rewind', { checkpointId: first!.toUpperCase() })
  t.same(answer.ok && answer.data, { success: true, checkpointId: order.checkpoints()[3] })
  t.match(order.doc('order'), { orderTotal: 210, tags: [], orderNumber: 'N5' })
  t.equal(order.doc('order')['externalReference'], 'E', 'keys are not rewound')
  t.equal(order.docs('orderLine').length, 2)
  order.do({ type: 'createDelivery', deliveryId: id(2) })
  order.send('rewind', { checkpointId: later })
  t.match(order.doc('order'), { orderTotal: 110, tags: ['later'] })
  t.equal(order.docs('orderLine').length, 1)
  t.equal(order.docs('delivery').length, 1)
  order.do({ type: 'createDelivery', deliveryId: id(3) })
  t.equal(order.doc('delivery', id(3))['deliveryNumber'], 'N5D3', 'D2 was given out already')
  t.match(errorOf(order.send('rewind', { checkpointId: id(1) })), { code: 'NOT_FOUND' })
  t.match(errorOf(order.send('rewind', { checkpointId: 'x' })), { code: 'INVALID_MESSAGE_BODY' })
  t.end()
})

t.test('rewind names the nodes that changed, and leaves the others their time', (t) => {
  const order = openOrder()
  const before = order.doc('orderLine', id(12))['lastModified']
  order.do({ type: 'setOrderLineQuantity', orderLineId: id(11), quantity: 5 })
  order.do({ type: 'createDelivery', deliveryId: id(2) })
  const answer = order.send('rewind', { checkpointId: order.checkpoints()[0] })
  t.strictSame(order.behaviour.touched(answer.ok ? answer.records[0]! : { t: '' }, ORDER_ID), [
    { node: 'order', id: ORDER_ID },
    { node: 'delivery', id: id(2) },
    { node: 'orderLine', id: id(11) },
  ])
  t.equal(order.doc('orderLine', id(12))['lastModified'], before)
  t.equal(order.doc('orderLine', id(11))['lastModified'], new Date(order.nowMs).toISOString())
  t.end()
})

t.test('rewind never unmakes an invoice', (t) => {
  const order = confirmedOrder()
  order.do({ type: 'releaseOrderLineToInvoicing', orderLineId: id(11) })
  order.do({ type: 'invoice' })
  const [created, , released, invoiced] = order.checkpoints()
  t.match(errorOf(order.send('rewind', { checkpointId: released })), {
    code: 'INVALID_STATE',
    message: /invoice IO1-1 was made after that checkpoint/,
  })
  const { invoiceId } = order.docs('invoice')[0]!
  order.do({ type: 'cancelInvoice', invoiceId })
  t.ok(order.send('rewind', { checkpointId: invoiced }).ok)
  t.match(order.doc('invoice', invoiceId as string), { isCancelled: true })
  t.match(order.doc('orderLine', id(11)), { releasedToInvoice: true, invoicedQuantity: 0 })
  t.ok(order.send('rewind', { checkpointId: created }).ok, 'a cancelled one stays as a document')
  t.equal(order.docs('invoice').length, 1)
  t.equal(order.docs('invoiceLine').length, 1)
  order.do({ type: 'releaseOrderLineToInvoicing', orderLineId: id(11) }, { type: 'invoice' })
  t.equal(order.docs('invoice')[1]!['invoiceNumber'], 'IO1-2')
  t.end()
})

t.test('a snapshot of another format is refused with its number', (t) => {
  t.throws(() => openOrder().behaviour.fromSnapshot({ format: 99 }), {
    message: 'an order snapshot has format 99, not 1',
  })
  t.end()
})

t.test('a record of an unknown kind stops the order', (t) => {
  const order = openOrder()
  const meta = { actorId: ORDER_ID, version: 9, timeMs: 0, by: '', messageId: '' }
  t.throws(() => order.behaviour.evolve(order.state, { t: 'odd' }, meta), /no such record: odd/)
  t.throws(() => order.behaviour.touched({ t: 'odd' }, ORDER_ID), /no such record: odd/)
  t.throws(() => order.behaviour.history({ t: 'odd' }, meta), /no such record: odd/)
  t.end()
})
