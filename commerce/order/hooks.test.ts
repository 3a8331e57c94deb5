// The hooks of an order: their places, what their rules see, and which effects count.

import t from 'tap'
import { type Answer, id, OrderDriver, type Payload } from './testing/order-driver.ts'
import { confirmedOrder, openOrder } from './testing/sample-orders.ts'

const errorOf = (answer: Answer) => (answer.ok ? null : answer.errors[0]!)
const addTag = (key: string) => ({ effect: 'orderCommand', type: 'addTag', key })
const tagsOf = (payload: Payload, member = 'order') =>
  (payload[member] as { tags: string[] } | null)?.tags

/** Rules that note what they saw, and answer the effects given for their hook. */
function listening(effects: Readonly<Record<string, readonly unknown[]>>) {
  const seen: [hook: string, payload: Payload][] = []
  const rules = Object.fromEntries(
    Object.entries(effects).map(([hook, answer]) => [
      hook,
      (payload: Payload) => {
        seen.push([hook, payload])
        return answer
      },
    ]),
  )
  return { seen, rules }
}

t.test('without rules nothing is asked', (t) => {
  const order = confirmedOrder()
  order.do({ type: 'releaseOrderLineToInvoicing', orderLineId: id(11) }, { type: 'invoice' })
  t.strictSame(
    order.asks.map((call) => call.call),
    ['number'],
  )
  t.end()
})

t.test(
  'create: before, created, commands, validate, journal, each seeing what came before',
  (t) => {
    const { seen, rules } = listening({
      OnOrderBeforeCreated: [addTag('before')],
      OnOrderCreated: [addTag('created')],
      OnOrderCommands: [addTag('commands')],
      OnOrderValidate: [],
      OnOrderInvoiceCreated: [],
      OnOrderJournal: [],
    })
    const order = new OrderDriver({ rules })
    order.create([
      { type: 'addTag', key: 'own' },
      { type: 'createDelivery', shippingPrice: 5 },
    ])
    t.strictSame(order.doc('order')['tags'], ['before', 'own', 'created', 'commands'])
    t.strictSame(
      seen.filter(([hook]) => hook !== 'OnOrderJournal').map(([hook, p]) => [hook, tagsOf(p)]),
      [
        ['OnOrderBeforeCreated', []],
        ['OnOrderCreated', ['before', 'own']],
        ['OnOrderCommands', ['before', 'own', 'created']],
        ['OnOrderValidate', ['before', 'own', 'created', 'commands']],
      ],
    )
    const commands = seen.find(([hook]) => hook === 'OnOrderCommands')![1]
    t.equal(commands['hook'], 'OnOrderCommands')
    t.equal(commands['before'], null)
    t.match(commands['order'], {
      orderNumber: 'O1',
      orderTotal: 5,
      deliveries: [{ shippingPrice: 5 }],
    })
    const entries = seen
      .filter(([hook]) => hook === 'OnOrderJournal')
      .map(([, p]) => p['journalEntry'])
    t.strictSame(
      entries.map((entry) => (entry as { type: string }).type),
      ['orderCreated', 'tagAdded', 'tagAdded', 'deliveryCreated', 'tagAdded', 'tagAdded'],
    )
    t.same(order.replay(), order.state)
    t.end()
  },
)

t.test('a rule may give a new order its number', (t) => {
  const number = { effect: 'orderCommand', type: 'generateOrderNumberByPrefix', prefix: 'R' }
  const { rules } = listening({ OnOrderBeforeCreated: [number] })
  const order = new OrderDriver({ rules })
  order.create()
  t.equal(order.doc('order')['orderNumber'], 'R1')
  t.equal(order.asks.filter((call) => call.call === 'number').length, 1)
  t.end()
})

t.test('applyCommands: before and after, totals included', (t) => {
  const { seen, rules } = listening({ OnOrderCommands: [], OnOrderValidate: [] })
  const order = openOrder({ rules })
  order.do({ type: 'setOrderLineQuantity', orderLineId: id(11), quantity: 1 })
  for (const [, payload] of seen.slice(-2)) {
    t.match(payload, { before: { orderTotal: 210 }, order: { orderTotal: 160 } })
    t.match(payload['order'], { deliveries: [{ orderLines: [{ quantity: 1 }, { quantity: 4 }] }] })
  }
  t.end()
})

t.test('validationError refuses with the rule’s own code', (t) => {
  const denial = { effect: 'validationError', code: 'NO_MONDAYS', message: 'm', details: { a: 1 } }
  for (const hook of ['OnOrderBeforeCreated', 'OnOrderCommands', 'OnOrderValidate']) {
    const order = new OrderDriver(listening({ [hook]: [denial] }))
    t.strictSame(errorOf(order.create()), { code: 'NO_MONDAYS', message: 'm', details: { a: 1 } })
    t.equal(order.state, null, hook)
  }
  const bare = new OrderDriver(listening({ OnOrderValidate: [{ effect: 'validationError' }] }))
  t.match(errorOf(bare.create()), { code: 'VALIDATION_ERROR', message: /OnOrderValidate/ })
  const outside = new OrderDriver(listening({ OnOrderCreated: [denial] }))
  t.match(errorOf(outside.create()), { code: 'COMPONENT_ERROR', message: /does not count/ })
  t.end()
})

t.test('commands of rules are checked and refused like any other', (t) => {
  const odd = { effect: 'orderCommand', type: 'addTagg', key: 'a' }
  const order = new OrderDriver(listening({ OnOrderCommands: [odd] }))
  t.match(errorOf(order.create()), {
    code: 'INVALID_COMMAND',
    message: /a rule of OnOrderCommands: .*did you mean addTag/,
    details: { commandType: 'addTagg' },
  })
  const impossible = { effect: 'orderCommand', type: 'invoice' }
  const refused = new OrderDriver(listening({ OnOrderCommands: [impossible] }))
  t.match(errorOf(refused.create()), {
    code: 'NOTHING_TO_INVOICE',
    details: { commandIndex: null, commandType: 'invoice' },
  })
  t.end()
})

t.test('effects that do not count in a hook are passed over', (t) => {
  const order = new OrderDriver(
    listening({
      OnOrderValidate: [addTag('late'), null, 'x', { effect: 'custom' }],
      OnOrderCommands: [{ effect: 'sendEmail' }],
    }),
  )
  t.ok(order.create().ok)
  t.strictSame(order.doc('order')['tags'], [])
  t.end()
})

t.test('messageActor leaves after the commit, in both forms', (t) => {
  const messages = [{ type: 'ping', body: { a: 1 } }]
  const byId = { effect: 'messageActor', actorType: 'order', actorId: id(5), messages }
  const older = {
    effect: 'messageActor',
    actorType: 'order',
    actorId: 'O7',
    messageType: 'applyCommands',
    body: { commands: [] },
  }
  const order = new OrderDriver(listening({ OnOrderCreated: [byId, older] }))
  order.create()
  t.strictSame(order.effects, [
    { to: { type: 'order', id: id(5) }, messages },
    {
      to: { type: 'order', key: 'O7' },
      messages: [{ type: 'applyCommands', body: { commands: [] } }],
    },
  ])
  for (const broken of [
    { ...byId, actorId: 5 },
    { ...byId, messages: [{}] },
  ]) {
    t.match(errorOf(new OrderDriver(listening({ OnOrderCreated: [broken] })).create()), {
      code: 'COMPONENT_ERROR',
    })
  }
  t.end()
})

t.test('OnOrderInvoiceCreated once a message, with all its invoices', (t) => {
  const { seen, rules } = listening({ OnOrderInvoiceCreated: [] })
  const order = confirmedOrder({ rules })
  t.strictSame(seen, [])
  const release = (n: number) => ({ type: 'releaseOrderLineToInvoicing', orderLineId: id(n) })
  order.do(release(11), { type: 'invoice' }, release(12), { type: 'invoice' })
  t.equal(seen.length, 1)
  t.match(seen[0]![1]['invoices'], [{ invoiceNumber: 'IO1-1' }, { invoiceNumber: 'IO1-2' }])
  t.end()
})

t.test('delete: rules may refuse it, or tell others', (t) => {
  const denial = { effect: 'validationError', code: 'KEEP' }
  const kept = openOrder(listening({ OnOrderBeforeDeleted: [denial] }))
  t.match(errorOf(kept.send('delete')), { code: 'KEEP' })
  t.notOk(kept.state!.deleted)
  const messages = [{ type: 'ping', body: {} }]
  const tell = { effect: 'messageActor', actorType: 'order', actorId: 'O7', messages }
  const { seen, rules } = listening({ OnOrderBeforeDeleted: [], OnOrderDeleted: [tell] })
  const order = openOrder({ rules })
  order.send('delete')
  t.strictSame(order.effects, [{ to: { type: 'order', key: 'O7' }, messages }])
  t.match(seen[1]![1]['order'], { orderNumber: 'O1' })
  t.end()
})

t.test('rewind passes the hooks that commands pass', (t) => {
  const entries: string[] = []
  const tags: string[][] = []
  let deny = false
  const order = openOrder({
    rules: {
      OnOrderCommands: ({ before, order }) => {
        tags.push([before, order].map((it) => String((it as Payload | null)?.['tags'])))
        return [addTag('ruled')]
      },
      OnOrderValidate: () => (deny ? [{ effect: 'validationError', code: 'KEEP' }] : []),
      OnOrderJournal: ({ journalEntry }) => {
        entries.push((journalEntry as { type: string }).type)
        return []
      },
    },
  })
  order.do({ type: 'addTag', key: 'late' })
  const [first] = order.checkpoints()
  deny = true
  t.match(errorOf(order.send('rewind', { checkpointId: first })), { code: 'KEEP' })
  t.strictSame(order.doc('order')['tags'], ['ruled', 'late'])
  deny = false
  order.do({ type: 'removeTag', key: 'ruled' }, { type: 'addTag', key: 'x' })
  tags.length = 0
  entries.length = 0
  t.ok(order.send('rewind', { checkpointId: first }).ok)
  t.strictSame(tags, [['late,x,ruled', 'ruled']])
  t.strictSame(entries, ['orderRewound'])
  t.strictSame(order.replay(), order.state, 'and it replays')
  t.end()
})

t.test('delete tells its journal entry', (t) => {
  const { seen, rules } = listening({ OnOrderJournal: [] })
  const order = openOrder({ rules })
  seen.length = 0
  order.send('delete')
  t.match(seen, [['OnOrderJournal', { journalEntry: { type: 'orderDeleted' } }]])
  t.match(order.history().at(-1)?.doc, { type: 'orderDeleted' })
  t.end()
})
