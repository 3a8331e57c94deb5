// The journal view: what people read of an order's records.

import t from 'tap'
import { id, ORDER_ID, type OrderDriver, START_MS } from '../testing/order-driver.ts'
import { deliveredOrder, openOrder } from '../testing/sample-orders.ts'
import { JOURNAL_TYPES } from './journal.ts'

const newest = (order: OrderDriver) => order.history().at(-1)!.doc
const UUID7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

t.test('an entry says what, when, who, and where to go back to', (t) => {
  const order = openOrder()
  const [created] = order.history()
  t.match(created, {
    node: 'orderJournalEntry',
    doc: {
      orderJournalEntryId: created!.id,
      orderId: ORDER_ID,
      timestamp: new Date(START_MS + 1_000).toISOString(),
      lastModified: new Date(START_MS + 1_000).toISOString(),
      type: 'orderCreated',
      references: { orderId: ORDER_ID },
      after: { orderNumber: 'O1', currencyCode: 'EUR', taxIncluded: true, createdAt: /^2026/ },
      identityId: 'tester',
      checkpointId: order.checkpoints()[0],
    },
  })
  t.notOk('commands' in (created!.doc['after'] as object), 'what is of the message stays out')
  t.match(created!.id, UUID7)
  t.strictSame(order.history(), order.history(), 'the same records show the same entries')
  const ids = order.history().map((entry) => entry.id)
  t.equal(new Set(ids).size, ids.length)
  t.end()
})

t.test('changes show before and after, of what changed alone', (t) => {
  const order = openOrder()
  const says = (command: object, type: string, rest: object) => {
    order.do(command)
    const { before, after, references } = newest(order)
    t.match({ type: newest(order)['type'], before, after, references }, { type, ...rest })
  }
  says({ type: 'setChannelKey', value: 'web' }, 'orderChanged', {
    before: { channelKey: null },
    after: { channelKey: 'web' },
  })
  order.do({ type: 'setOrderLineQuantity', orderLineId: id(11), quantity: 3 })
  t.strictSame(newest(order)['before'], { quantity: 2 })
  t.strictSame(newest(order)['after'], { quantity: 3 })
  t.strictSame(newest(order)['references'], { orderId: ORDER_ID, orderLineId: id(11) })
  says({ type: 'setShippingPrice', deliveryId: id(1), shippingPrice: 1 }, 'deliveryChanged', {
    before: { shippingPrice: 10 },
    after: { shippingPrice: 1 },
    references: { deliveryId: id(1) },
  })
  says({ type: 'setDeliveryAddress', deliveryId: id(1), name: 'A' }, 'addressChanged', {
    before: { name: null },
    after: { name: 'A' },
    references: { deliveryId: id(1) },
  })
  const dynamic = { type: 'setOrderLineDynamicFields', orderLineId: id(11), fields: { a: 1 } }
  says(dynamic, 'dynamicChanged', { after: { a: 1 }, references: { orderLineId: id(11) } })
  says({ type: 'addTag', key: 'x' }, 'tagAdded', { after: { tag: 'x' } })
  says({ type: 'removeTag', key: 'x' }, 'tagRemoved', { before: { tag: 'x' } })
  says({ type: 'createDelivery', deliveryId: id(2) }, 'deliveryCreated', {
    after: { deliveryNumber: 'O1D2' },
    references: { deliveryId: id(2) },
  })
  says({ type: 'moveOrderLine', orderLineId: id(11), deliveryId: id(2) }, 'orderLineMoved', {
    before: { deliveryId: id(1) },
    after: { deliveryId: id(2) },
  })
  const split = { type: 'splitOrderLine', orderLineId: id(11), quantity: 1, newOrderLineId: id(13) }
  says(split, 'orderLineSplit', {
    before: { quantity: 3 },
    after: { quantity: 2, newOrderLine: { quantity: 1, orderLineNumber: '3' } },
    references: { orderLineId: id(11), newOrderLineId: id(13) },
  })
  says({ type: 'deleteOrderLine', orderLineId: id(13) }, 'orderLineDeleted', {
    before: { orderLineNumber: '3', productNumber: 'P11' },
  })
  const line = { orderLineId: id(11), discountId: id(21), value: 1 }
  says({ type: 'createStaticOrderLineDiscount', ...line }, 'discountCreated', {
    references: { discountId: id(21), orderLineId: id(11) },
  })
  says({ type: 'setStaticDiscountValue', discountId: id(21), value: 2 }, 'discountChanged', {
    after: { value: 2 },
  })
  says({ type: 'deleteDiscount', discountId: id(21) }, 'discountDeleted', { before: { value: 2 } })
  t.end()
})

t.test('a cancelled order tells of its deliveries too', (t) => {
  const order = openOrder()
  order.do({ type: 'setOrderState', orderState: 'cancelled' })
  const [own, delivery] = order.history().slice(-2)
  t.match(own!.doc, {
    type: 'orderStateChanged',
    before: { orderState: 'pending' },
    after: { orderState: 'cancelled' },
  })
  t.match(delivery!.doc, {
    type: 'deliveryStateChanged',
    references: { deliveryId: id(1) },
    before: { deliveryState: 'open' },
    after: { deliveryState: 'cancelledByOrder' },
  })
  t.not(own!.id, delivery!.id)
  t.end()
})

t.test('financial entries carry their amount', (t) => {
  const order = deliveredOrder()
  const line = { orderLineId: id(11) }
  order.do({ type: 'releaseOrderLineToInvoicing', ...line }, { type: 'invoice' })
  t.match(newest(order), { type: 'invoiceCreated', amount: 100, after: { invoiceNumber: 'IO1-1' } })
  const { invoiceId } = order.docs('invoice')[0]!
  order.do({ type: 'cancelInvoice', invoiceId })
  t.match(newest(order), { type: 'invoiceCancelled', amount: -100, references: { invoiceId } })
  order.do({ type: 'createReturn', ...line, returnId: id(31), quantity: 1, refundFactor: 1 })
  t.match(newest(order), { type: 'returnCreated', references: { returnId: id(31), ...line } })
  order.do({ type: 'deleteReturn', returnId: id(31) })
  t.match(newest(order), { type: 'returnDeleted' })
  t.end()
})

t.test('rewind and delete are told', (t) => {
  const order = openOrder()
  order.do({ type: 'addTag', key: 'a' })
  const [first] = order.checkpoints()
  order.send('rewind', { checkpointId: first })
  t.match(newest(order), { type: 'orderRewound', references: { toCheckpointId: first } })
  order.send('delete')
  t.match(newest(order), { type: 'orderDeleted' })
  t.end()
})

t.test('every type is one of the table, and totals tell nothing', (t) => {
  const order = openOrder()
  t.strictSame(
    order.history().map((entry) => entry.doc['type']),
    ['orderCreated', 'deliveryCreated', 'orderLineCreated', 'orderLineCreated'],
  )
  t.equal(new Set(JOURNAL_TYPES).size, JOURNAL_TYPES.length)
  t.end()
})
