// Order commands, over HTTP on a real node: each one done once and refused once, those that come
// later, and that a batch is all or nothing. Source: specification "Actor", "Actor messages
// and commands"; commerce/README.md "Commands".

import t from 'tap'
import { COMMANDS, LATER_COMMANDS } from '../../commerce/order/command-table.ts'
import { randomUUID } from 'node:crypto'
import { done, refused } from '../harness/answers.ts'
import { startNode } from '../harness/node-process.ts'
import { apply, create, smallOrder, wholeOrder } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'
import { INVOICING_CASES, RETURN_CASES } from './order-command-cases/billing-cases.ts'
import { TAKEN } from './order-command-cases/case.ts'
import type { CommandCases, Place } from './order-command-cases/case.ts'
import { DISCOUNT_CASES, LINE_CASES } from './order-command-cases/line-cases.ts'
import { DELIVERY_CASES, ORDER_CASES } from './order-command-cases/order-cases.ts'

const COMMAND_CASES: CommandCases = {
  ...ORDER_CASES,
  ...DELIVERY_CASES,
  ...LINE_CASES,
  ...DISCOUNT_CASES,
  ...RETURN_CASES,
  ...INVOICING_CASES,
}

const node = await startNode(t)

const taken = { type: 'setExternalReference', value: TAKEN }
done(t, await node.order('new', [create({ orderNumber: TAKEN }, taken)]))

t.test('there is a case for every command', async (t) => {
  t.strictSame(Object.keys(COMMAND_CASES).sort(), [...COMMANDS.keys()].sort())
})

for (const [type, one] of Object.entries(COMMAND_CASES)) {
  t.test(type, async (t) => {
    const at: Place = { ...(await smallOrder(node)), id: randomUUID() }
    for (const command of one.before?.(at) ?? []) {
      done(t, await node.order(at.orderId, [apply(command)]))
    }
    const members = { ...one.good(at), ...(type === 'cancelInvoice' && (await firstInvoice(at))) }
    const answer = done(t, await node.order(at.orderId, [apply({ type, ...members })]))
    t.match(answer.data, { checkpointId: /^[0-9a-f-]{36}$/ })
    t.match(await wholeOrder(node, at.orderId), one.shows(at))

    for (const command of one.between?.(at) ?? []) {
      done(t, await node.order(at.orderId, [apply(command)]))
    }
    const before = await wholeOrder(node, at.orderId)
    const bad = await node.order(at.orderId, [
      apply({ type: 'addTag', key: 'half' }, { type, ...one.bad(at) }),
    ])
    const { details, message } = refused(t, bad, one.code, one.words)
    t.match(details, { commandIndex: 1, commandType: type })
    t.match(message, `commands[1] ${type}: `, 'where it is wrong')
    t.strictSame(await wholeOrder(node, at.orderId), before, 'and nothing of the batch is done')
  })
}

async function firstInvoice({ orderId }: Place): Promise<{ invoiceId: string }> {
  const { invoices } = (await wholeOrder(node, orderId)) as { invoices: { invoiceId: string }[] }
  return { invoiceId: invoices[0]!.invoiceId }
}

t.test('commands that come with later versions say so', async (t) => {
  const { orderId } = await smallOrder(node)
  t.ok(LATER_COMMANDS.size > 0)
  for (const type of LATER_COMMANDS) {
    const answer = await node.order(orderId, [apply({ type })])
    refused(t, answer, 'NOT_AVAILABLE', new RegExp(`${type} is not available yet`))
  }
})

t.test('commands that nobody knows', async (t) => {
  const { orderId } = await smallOrder(node)
  const near = await node.order(orderId, [apply({ type: 'createOrderline' })])
  refused(t, near, 'INVALID_COMMAND', /no command "createOrderline"; did you mean createOrderLine/)
  const older = await node.order(orderId, [apply({ type: 'invoiceDeliveries' })])
  refused(t, older, 'INVALID_COMMAND', /no command "invoiceDeliveries"/)
  for (const [command, words] of [
    [7, /commands\[0\]: must be an object/],
    [null, /commands\[0\]: must be an object/],
    [{}, /type is missing/],
    [{ type: 7 }, /type is missing|type must/],
    [{ type: 'addTag', key: 'a', more: 1 }, /more/],
    [{ type: 'toString' }, /no command "toString"/],
  ] as const) {
    const answer = await node.order(orderId, [
      { type: 'applyCommands', body: { commands: [command] } },
    ])
    refused(t, answer, 'INVALID_COMMAND', words)
  }
  const none = await node.order(orderId, [{ type: 'applyCommands', body: { commands: [] } }])
  refused(t, none, 'INVALID_MESSAGE_BODY', /commands/)
})

t.test('commands of create: the first one that is wrong undoes the order', async (t) => {
  const orderNumber = 'NEVER-MADE'
  const bad = create(
    { orderNumber },
    { type: 'createDelivery' },
    { type: 'setOrderState', orderState: 'completed' },
  )
  const answer = await node.order('new', [bad])
  const { details } = refused(t, answer, 'INVALID_STATE', /pending and can't become completed/)
  t.match(details, { commandIndex: 1, commandType: 'setOrderState' })
  refused(t, await node.order(orderNumber, [{ type: 'query', body: {} }]), 'NOT_FOUND', /no order/)
  done(t, await node.order('new', [create({ orderNumber })]))
})

t.test('bodies of create', async (t) => {
  for (const [body, words] of [
    [{ currencyCode: 'EURO' }, /"EURO" is not a currency of ISO 4217 such as EUR/],
    [{ currencyCode: 7 }, /currencyCode must be .*string/],
    [{ taxIncluded: 'yes' }, /taxIncluded must be .*boolean/],
    [{ orderNumber: '' }, /orderNumber must/],
    [{ orderNumber: 'new' }, /orderNumber must/],
    [{ orderNumber: randomUUID() }, /orderNumber must/],
    [{ createdAt: 'yesterday' }, /createdAt must be .*timestamp/],
    [{ colour: 'red' }, /colour/],
  ] as const) {
    refused(t, await node.order('new', [create(body)]), 'INVALID_MESSAGE_BODY', words)
  }
  const missing = await node.order('new', [{ type: 'create', body: { currencyCode: 'EUR' } }])
  refused(t, missing, 'INVALID_MESSAGE_BODY', /taxIncluded is missing/)
  const none = await node.order('new', [{ type: 'create' }])
  refused(t, none, 'INVALID_MESSAGE_BODY', /body/)
})

t.test('createdAt may lie in the past, never in the future', async (t) => {
  const past = create({ createdAt: '2020-02-29T12:00:00.000Z' })
  const future = create({ createdAt: '2999-01-01T00:00:00Z' })
  const fields = { type: 'query', body: { fields: ['createdAt'] } }
  const [a, b] = [
    done(t, await node.order('new', [past, fields])).data as { createdAt: string },
    done(t, await node.order('new', [future, fields])).data as { createdAt: string },
  ]
  t.equal(a.createdAt, '2020-02-29T12:00:00.000Z')
  t.ok(Math.abs(Date.parse(b.createdAt) - Date.now()) < 60_000, b.createdAt)
})

t.test('children of other orders are not found', async (t) => {
  const [mine, other] = [await smallOrder(node), await smallOrder(node)]
  const before = await wholeOrder(node, other.orderId)
  for (const [command, words] of [
    [{ type: 'deleteOrderLine', orderLineId: other.orderLineId }, /there is no order line/],
    [
      { type: 'moveOrderLine', orderLineId: mine.orderLineId, deliveryId: other.deliveryId },
      /no delivery/,
    ],
    [{ type: 'setShippingPrice', deliveryId: other.deliveryId, shippingPrice: 0 }, /no delivery/],
  ] as const) {
    refused(t, await node.order(mine.orderId, [apply(command)]), 'INVALID_COMMAND', words)
  }
  // The same ids in two orders stay two things.
  const { deliveryId, orderLineId } = other
  const same = await node.order(mine.orderId, [
    apply({ type: 'createDelivery', deliveryId }),
    apply({
      type: 'createOrderLine',
      deliveryId,
      orderLineId,
      productNumber: 'MINE',
      quantity: 1,
      unitPrice: 1,
    }),
  ])
  done(t, same)
  t.strictSame(await wholeOrder(node, other.orderId), before)
  const { orderLines } = await node.graph<{ orderLines: { productNumber: string }[] }>(
    [
      {
        edge: 'orderLines',
        filter: `orderLineId == '${orderLineId}'`,
        orderBy: 'productNumber',
        node: { fields: ['productNumber'] },
      },
    ],
    same,
  )
  t.strictSame(
    orderLines.map(({ productNumber }) => productNumber),
    ['MINE', 'P-1'],
  )
})

t.test('with KONTOR_ORDER_COMPLETION=automatic the last thing to do completes it', async (t) => {
  const own = await startNode(t, { KONTOR_ORDER_COMPLETION: 'automatic' })
  for (const [at, orderState] of [
    [node, 'confirmed'],
    [own, 'completed'],
  ] as const) {
    const { orderId, deliveryId, orderLineId } = await smallOrder(at)
    const commands = [
      { type: 'setOrderState', orderState: 'confirmed' },
      { type: 'completeDelivery', deliveryId },
      { type: 'releaseOrderLineToInvoicing', orderLineId },
      { type: 'releaseShippingToInvoicing', deliveryId },
      { type: 'invoice' },
    ]
    for (const one of commands) done(t, await at.order(orderId, [apply(one)]))
    t.match(await wholeOrder(at, orderId), { orderState, invoiceState: 'complete' })
  }
})

t.test('an external reference that reads like no value is given back like any other', async (t) => {
  for (const value of ['null', 'undefined', '__proto__']) {
    const one = await smallOrder(node)
    const other = await smallOrder(node)
    const set = (order: { orderId: string }, to: string | null): ReturnType<typeof node.order> =>
      node.order(order.orderId, [apply({ type: 'setExternalReference', value: to })])
    done(t, await set(one, value))
    refused(t, await set(other, value), 'ALREADY_EXISTS', /another order/)
    done(t, await set(one, null))
    // In a cluster the word that frees it goes to its shard behind the commit (PROTOCOL 3.6).
    await until('given up, it is free', async () => (await set(other, value)).status === 200)
  }
})
