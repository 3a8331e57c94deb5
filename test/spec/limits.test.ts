// The heading "Limits": what is just allowed is done, what is one more is refused with the bound in
// the message, and nothing of it is done. Source: CONTRACT 0 "Bodies", "Multi-message actor calls",
// "Bulk"; 1.4; config/limits.ts.

import t from 'tap'
import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { LIMITS } from '../../config/limits.ts'
import type { ErrorCode } from '../../protocol/errors.ts'
import { done, refused } from '../harness/answers.ts'
import { startNode } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { apply, create, query, smallOrder, wholeOrder } from '../harness/orders.ts'
import type { Command } from '../harness/orders.ts'

const node = await startNode(t)

t.test('a body has at most 10 MiB, as it is sent and as it is meant', async (t) => {
  const bytes = LIMITS.http.bodyBytesMax
  t.equal(bytes, 10 * 1024 * 1024)
  const messages = JSON.stringify([create()])
  const padded = (to: number): string => messages.padEnd(to, ' ')
  const send = (raw: string | Buffer, headers = {}): Promise<Answer> =>
    node.ask('/resources/actors/order/new', { raw, headers })
  done(t, await send(padded(bytes)))
  const more = await send(padded(bytes + 1))
  const { details } = refused(t, more, 'TOO_LARGE', /larger than 10485760 bytes/)
  t.strictSame(details, { bytesMax: bytes })
  t.equal(more.headers['connection'], 'close')
  const gzip = { 'Content-Encoding': 'gzip' }
  done(t, await send(gzipSync(padded(bytes)), gzip))
  refused(t, await send(gzipSync(padded(bytes + 1)), gzip), 'TOO_LARGE', /unpacked body is larger/)
})

t.test('a line of bulk has at most 10 MiB, the body any number of them', async (t) => {
  const good = JSON.stringify({ id: 'new', messages: [create()] })
  const raw = [
    good,
    good.padEnd(LIMITS.http.bulkLineBytesMax, ' '),
    good.padEnd(LIMITS.http.bulkLineBytesMax + 1, ' '),
    good,
  ].join('\n')
  const answer = await node.bulk([], { raw })
  const errors = answer.text
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { errors?: unknown[] }).errors)
  t.match(errors[2], [{ code: 'TOO_LARGE', message: /10485760/, details: { line: 3 } }])
  t.strictSame([errors[0], errors[1], errors[3]], [undefined, undefined, undefined])
})

t.test('URLs, headers, keys', async (t) => {
  const url = `/resources/registry/${'x'.repeat(LIMITS.http.urlCharsMax)}`
  refused(t, await node.ask(url), 'TOO_LARGE', /URL has more than 8192 characters/)
  const long = await node
    .send('/health/live', { headers: { 'X-Long': 'x'.repeat(LIMITS.http.headersBytesMax + 1) } })
    .then((answer) => answer.status)
  t.equal(long, 431)
  t.equal(
    (await node.send('/health/live', { headers: { 'X-Long': 'x'.repeat(8_000) } })).status,
    200,
  )
  const id = 'x'.repeat(LIMITS.commerce.keyCharsMax + 1)
  refused(t, await node.order(id, [query('orderId')]), 'NOT_FOUND', /no order with such an id/)
})

t.test('JSON nests at most 64 deep', async (t) => {
  const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
  const send = (depth: number): Promise<Answer> =>
    node.ask('/resources/registry/deep', { raw: nested(depth) })
  t.equal((await send(LIMITS.protocol.jsonDepthMax)).status, 200)
  refused(t, await send(LIMITS.protocol.jsonDepthMax + 1), 'MALFORMED_REQUEST', /64/)
})

t.test('commands of a message', async (t) => {
  const { orderId } = await smallOrder(node)
  const tags = (count: number): Command[] =>
    Array.from({ length: count }, () => ({ type: 'addTag', key: 'a' }))
  done(t, await node.order(orderId, [apply(...tags(LIMITS.order.commandsMax))]))
  const more = await node.order(orderId, [apply(...tags(LIMITS.order.commandsMax + 1))])
  refused(t, more, 'INVALID_MESSAGE_BODY', /commands .*10000/)
})

/** Commands on a small order: one too much by the last of them. */
const TOO_MUCH: readonly [string, (ids: Ids) => Command[], ErrorCode, RegExp][] = [
  ['tags', () => tags(LIMITS.order.tagsMax + 1), 'INVALID_COMMAND', /at most 100 tags/],
  ['a tag', () => [{ type: 'addTag', key: 'x'.repeat(101) }], 'INVALID_COMMAND', /100/],
  [
    'deliveries',
    () => Array.from({ length: LIMITS.order.deliveriesMax }, () => ({ type: 'createDelivery' })),
    'INVALID_COMMAND',
    /at most 1000 deliveries/,
  ],
  [
    'skus',
    ({ orderLineId }) => [
      {
        type: 'setOrderLineSkus',
        orderLineId,
        skus: Object.fromEntries(
          Array.from({ length: LIMITS.order.skusMax + 1 }, (_, i) => [`s${i}`, 1]),
        ),
      },
    ],
    'INVALID_COMMAND',
    /skus .*100/,
  ],
  [
    'dynamic fields',
    () => [
      { type: 'setDynamicFields', fields: { a: 'x'.repeat(LIMITS.commerce.dynamicCharsMax) } },
    ],
    'INVALID_COMMAND',
    /65536/,
  ],
  [
    'texts',
    () => [
      { type: 'addActivityLog', messageTemplate: 'x'.repeat(LIMITS.commerce.textCharsMax + 1) },
    ],
    'INVALID_COMMAND',
    /10000/,
  ],
  [
    'addresses',
    () => [{ type: 'setInvoiceAddress', name: 'x'.repeat(LIMITS.order.addressCharsMax + 1) }],
    'INVALID_COMMAND',
    /500/,
  ],
  ['prices', (ids) => [line(ids, { unitPrice: 1e12 + 1 })], 'INVALID_COMMAND', /1000000000000/],
  ['quantities', (ids) => [line(ids, { quantity: 1e9 + 1 })], 'INVALID_COMMAND', /1000000000/],
  [
    'amounts',
    (ids) => [line(ids, { unitPrice: 1e12, quantity: 1e9 })],
    'INVALID_COMMAND',
    /quantity|total|amount|large/,
  ],
  [
    'what one batch writes',
    () =>
      Array.from({ length: 250 }, () => ({
        type: 'addActivityLog',
        messageTemplate: 'x'.repeat(LIMITS.commerce.textCharsMax),
      })),
    'TOO_LARGE',
    /more than 2097152 bytes: send it in parts/,
  ],
]

interface Ids {
  readonly deliveryId: string
  readonly orderLineId: string
}

function tags(count: number): Command[] {
  return Array.from({ length: count }, (_, i) => ({ type: 'addTag', key: `t${i}` }))
}

function line({ deliveryId }: Ids, members: object): Command {
  return {
    type: 'createOrderLine',
    deliveryId,
    productNumber: 'P',
    quantity: 1,
    unitPrice: 1,
    ...members,
  }
}

for (const [what, commands, code, words] of TOO_MUCH) {
  t.test(`too much: ${what}`, async (t) => {
    const order = await smallOrder(node)
    const before = await wholeOrder(node, order.orderId)
    refused(t, await node.order(order.orderId, [apply(...commands(order))]), code, words)
    t.strictSame(await wholeOrder(node, order.orderId), before)
  })
}

t.test('what an order takes in all', async (t) => {
  const { orderId } = await smallOrder(node)
  const fields = (i: number): Command => ({
    type: 'setDynamicFields',
    fields: { [`k${i}`]: 'x'.repeat(60_000) },
  })
  let i = 0
  let answer: Answer
  do {
    answer = await node.order(orderId, [apply(fields(i++), fields(i++), fields(i++), fields(i++))])
  } while (answer.status === 200 && i < 100)
  refused(t, answer, 'TOO_LARGE', /would take \d+ bytes, at most 3145728 are possible/)
  done(t, await node.order(orderId, [apply({ type: 'addTag', key: 'still-writable' })]))
})

t.test('the bound itself is no mistake', async (t) => {
  const deliveryId = randomUUID()
  const body = create(
    {},
    { type: 'createDelivery', deliveryId },
    line({ deliveryId, orderLineId: '' }, { quantity: 1e9, unitPrice: 0.01 }),
    line({ deliveryId, orderLineId: '' }, { quantity: 0.0001, unitPrice: 1e12 }),
    line({ deliveryId, orderLineId: '' }, { unitPrice: 1e12 - 1e7 - 1e8 }),
    ...tags(LIMITS.order.tagsMax),
  )
  const { data } = done(t, await node.order('new', [body, query('orderTotal')]))
  t.strictSame(data, { orderTotal: 1e12 })
  const above = create(
    {},
    { type: 'createDelivery', deliveryId, shippingPrice: 1 },
    line({ deliveryId, orderLineId: '' }, { unitPrice: 1e12 }),
  )
  const answer = await node.order('new', [above])
  refused(t, answer, 'INVALID_COMMAND', /orderTotal is more than 1000000000000/)
})
