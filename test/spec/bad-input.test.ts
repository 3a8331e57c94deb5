// Bad input of every kind, over HTTP and raw sockets on a real node. Each gets its code and words
// that help; after each the order and the graph are as they were, and it is the same process.
// Source: CONTRACT 0 "Bodies", 1.13.

import t from 'tap'
import type { Test } from 'tap'
import { RawClient } from '../../node/http/testing/raw-client.ts'
import { refused } from '../harness/answers.ts'
import { startNode } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { apply, smallOrder, wholeOrder } from '../harness/orders.ts'
import { UNREAD_BODIES, raw, text, type Case } from './unread-bodies.ts'

const node = await startNode(t)
const { pid } = node
const order = await smallOrder(node)
const other = await smallOrder(node)
const token = await node.token()
const ORDER = `/resources/actors/order/${order.orderId}`
for (const { orderId } of [order, other]) {
  const tagged = await node.order(orderId, [apply({ type: 'addTag', key: 'seen' })])
  await node.graph([{ edge: 'orders', count: true }], tagged)
}
const before = await everything()

/** All that the store shows. */
async function everything(): Promise<unknown> {
  const graph = await node.ask('/resources/graph', {
    body: [
      { edge: 'orders', node: { fields: ['orderId', 'lastModified', 'orderTotal', 'tags'] } },
      { edge: 'deliveries', count: true },
      { edge: 'orderLines', count: true },
    ],
  })
  const registry = await node.ask('/resources/registry')
  return [await wholeOrder(node, order.orderId), graph.json(), registry.json()]
}

/** Checks that nothing happened. */
async function untouched(t: Test): Promise<void> {
  t.strictSame(await everything(), before, 'nothing changed')
  t.ok(node.isUp && node.pid === pid, 'the process is up')
}

const commands = (...some: unknown[]): string =>
  text([{ type: 'applyCommands', body: { commands: some } }])
/** A line of the order, its quantity written as it is. */
const quantity = (number: string): string =>
  commands({
    type: 'createOrderLine',
    deliveryId: order.deliveryId,
    productNumber: 'P',
    quantity: 'Q',
    unitPrice: 1,
  }).replace('"Q"', number)

const NOT_JSON: Case[] = (
  [
    ['nothing', '', /body is missing/],
    ['white space', ' \n ', /line 2, column 2.*the end of the text, expected a JSON value/],
    ['prose', 'hello', /line 1, column 1 there is 'h', expected a JSON value/],
    ['single quotes', "[{'type': 'x'}]", /column 3 there is ''', expected a key in double quotes/],
    ['a trailing comma', '[1,]', /column 4 there is '\]'/],
    ['two values', '[] []', /column 4 there is '\[', expected the end of the text/],
    ['a comment', '[] // x', /column 4 there is '\/'/],
    ['an open string', '["x', /end of the text, expected '"'/],
    ['a control character', '["\u0001"]', /U\+0001/],
    ['NaN', '[NaN]', /column 2 there is 'N'/],
    ['Infinity', '[-Infinity]', /column 3 there is 'I', expected a digit/],
    ['hex', '[0x10]', /column 3 there is 'x'/],
    ['a leading zero', '[01]', /column 3 there is '1'/],
    ['a byte order mark', '\ufeff[]', /byte order mark/],
    ['100,000 brackets', '['.repeat(100_000), /64/],
    ['100,000 brackets, closed', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, /64/],
    ['100,000 objects', '{"a":'.repeat(100_000), /64/],
    ['a lone surrogate', '["\\ud800"]', /surrogate/],
    ['a lone surrogate as a key', '[{"type":"x","body":{"\\udfff":1}}]', /surrogate/],
    ['a key __proto__', '[{"type":"x","body":{"__proto__":{"a":1}}}]', /__proto__/],
    ['the same, escaped', '[{"type":"x","body":{"\\u005f_proto__":{"a":1}}}]', /__proto__/],
    ['the same, deep', '[{"type":"x","body":{"a":[[{"b":{"__proto__":1}}]]}}]', /__proto__/],
    ['1e999', '[1e999]', /number 1e999 at byte 1 is out of range/],
    ['-1e999 in a body', quantity('-1e999'), /number -?1e999 at byte \d+ is out of range/],
    ['1e-999 in a body', quantity('1e-999'), /number 1e-999 at byte \d+ is out of range/],
  ] as const
).map(([what, body, words]) => [what, ORDER, raw(body), 'MALFORMED_REQUEST', words])

const BYTES = UNREAD_BODIES.map(([what, ...refused]): Case => [what, ORDER, ...refused])

const MESSAGES: Case[] = (
  [
    ['an object', {}, /should be an array of messages/],
    ['a text', 'x', /should be an array of messages/],
    ['null', null, /should be an array of messages/],
    ['no message', [], /1 to 1000 messages, this one has 0/],
    ['10,000 messages', Array.from({ length: 10_000 }, () => apply()), /this one has 10000/],
    ['a number as a message', [7], /message 0 should be an object/],
    ['null as a message', [null], /message 0 should be an object/],
    ['an array as a message', [[]], /message 0 should be an object/],
    ['a message without type', [{ body: {} }], /message 0 needs a "type"/],
    ['a type that is no text', [{ type: 7 }], /message 0 needs a "type", a string/],
    ['a third member', [{ type: 'x', body: 1, id: 2 }], /message 0 has a member "id"/],
  ] as const
).map(([what, body, words]) => [what, ORDER, { body }, 'MALFORMED_REQUEST', words])

const BODIES: Case[] = (
  [
    ['an unknown message', [{ type: 'destroy' }], /knows no message "destroy"; it knows create/],
    ['a message of the runtime', [{ type: 'put', body: {} }], /knows no message "put"/],
    ['toString', [{ type: 'toString', body: {} }], /knows no message "toString"/],
    ['no body', [{ type: 'applyCommands' }], /applyCommands: .*body/],
    ['a text as the body', [{ type: 'applyCommands', body: 'x' }], /applyCommands: the body/],
    ['no commands', [{ type: 'applyCommands', body: {} }], /commands is missing/],
    ['an object as commands', [{ type: 'applyCommands', body: { commands: {} } }], /commands must/],
    ['a body where there is none', [{ type: 'delete', body: { now: true } }], /delete/],
    ['a query of numbers', [{ type: 'query', body: { fields: [7] } }], /fields.*string/],
  ] as const
).map(([what, body, words]) => [what, ORDER, { body }, 'INVALID_MESSAGE_BODY', words])

const COMMANDS: Case[] = (
  [
    ['an unknown command', commands({ type: 'explode' }), /no command "explode"/],
    ['a quantity of -1', quantity('-1'), /quantity must be > 0/],
    ['a quantity of 0', quantity('0'), /quantity must be > 0/],
    ['a quantity of -0', quantity('-0'), /quantity must be > 0/],
    ['a quantity of 1e300', quantity('1e300'), /quantity must be <= 1000000000/],
    ['a quantity of 0.00001', quantity('0.00001'), /quantity .* at most 4 decimals/],
    ['a quantity of 1e-300', quantity('1e-300'), /quantity .* at most 4 decimals/],
    ['a quantity as text', quantity('"NaN"'), /quantity must be .*number/],
    ['a quantity of null', quantity('null'), /quantity must be .*number/],
    ['a quantity of true', quantity('true'), /quantity must be .*number/],
    ['a quantity in a list', quantity('[1]'), /quantity must be .*number/],
    [
      'a delivery of another order',
      commands({ type: 'setShippingPrice', deliveryId: other.deliveryId, shippingPrice: 1 }),
      /there is no delivery .* in this order/,
    ],
    [
      'an id that is none',
      commands({ type: 'deleteOrderLine', orderLineId: '../../etc/passwd' }),
      /orderLineId must be a UUID/,
    ],
    ['a negative price', commands({ type: 'createDelivery', shippingPrice: -1 }), /must be >= 0/],
    ['a member too many', commands({ type: 'addTag', key: 'a', keys: 'b' }), /keys/],
    ['a tag of control characters', commands({ type: 'addTag', key: 'a\u0000b' }), /key/],
    ['a constructor', commands({ type: 'constructor' }), /no command "constructor"/],
  ] as const
).map(([what, body, words]) => [what, ORDER, raw(body), 'INVALID_COMMAND', words])

const PLACES: Case[] = [
  ['a bad escape', '/resources/registry/%zz', {}, 'MALFORMED_REQUEST', /path has a %/],
  ['half a UTF-8 escape', '/resources/registry/%c3', {}, 'MALFORMED_REQUEST', /path has a %/],
  ['dots', '/resources/registry/a/../b', {}, 'INVALID_PARAMETERS', /segments "\." or "\.\."/],
  ['an empty id', '/resources/actors/order/%20', { body: [] }, 'MALFORMED_REQUEST', /messages/],
  ['nowhere', '/resources/actors', { body: [] }, 'NOT_FOUND', /there is nothing at/],
  ['a type of dots', '/resources/actors/../order', { body: [] }, 'NOT_FOUND', /\w/],
  ['a wrong method', ORDER, { method: 'GET' }, 'METHOD_NOT_ALLOWED', /allowed: POST/],
  ['an unknown method', ORDER, { method: 'PROPFIND' }, 'METHOD_NOT_ALLOWED', /PROPFIND is not/],
  ['a query of no JSON', '/resources/graph?q=%7B', {}, 'MALFORMED_REQUEST', /JSON/],
  [
    'a filter of 9,000 characters',
    '/resources/graph',
    { body: [{ edge: 'orders', filter: 'x'.repeat(9_000) }] },
    'INVALID_FILTER',
    /8192/,
  ],
  [
    'a filter of SQL',
    '/resources/graph',
    { body: [{ edge: 'orders', filter: `1=1; DROP TABLE "order"--` }] },
    'INVALID_FILTER',
    /position/,
  ],
]

for (const [kind, cases] of Object.entries({
  NOT_JSON,
  BYTES,
  MESSAGES,
  BODIES,
  COMMANDS,
  PLACES,
})) {
  t.test(kind.toLowerCase().replace('_', ' '), async (t) => {
    for (const [what, path, ask, code, words] of cases) {
      await t.test(what, async (t) => {
        refused(t, await node.ask(path, ask), code, words)
        await untouched(t)
      })
    }
  })
}

/** A raw request to the order; `lines` stand among its headers. */
const head = (...lines: string[]): string =>
  [
    `POST ${ORDER} HTTP/1.1`,
    'Host: kontor',
    `Authorization: Bearer ${token}`,
    ...lines,
    '',
    '',
  ].join('\r\n')
const JSON_TYPE = 'Content-Type: application/json'

function client(t: Test): RawClient {
  const made = new RawClient(node.port)
  t.teardown(() => made.destroy())
  return made
}

t.test('framing in doubt is refused and the connection closed', async (t) => {
  for (const lines of [
    ['Content-Length: 2', 'Content-Length: 3'],
    ['Content-Length: 2, 2'],
    ['Content-Length: -2'],
    ['Content-Length: 2x'],
    ['Transfer-Encoding: gzip, chunked'],
    ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'],
  ]) {
    const one = client(t).send(`${head(JSON_TYPE, ...lines)}[]`)
    const answer = await one.response()
    t.equal(answer.status, 400, lines.join())
    await one.closed()
  }
  await untouched(t)
})

t.test('headers that come twice', async (t) => {
  const twice = client(t).send(`${head(JSON_TYPE, JSON_TYPE, 'Content-Length: 2')}[]`)
  const { status } = await twice.response()
  t.equal(status, 415)
  const tokens = client(t).send(
    `${head(JSON_TYPE, 'Authorization: Bearer x', 'Content-Length: 2')}[]`,
  )
  t.equal((await tokens.response()).status, 401)
  const keys = ['Idempotency-Key: a', 'Idempotency-Key: b', JSON_TYPE]
  const body = text([apply({ type: 'addTag', key: 'a' })])
  const keyed = client(t).send(`${head(...keys, `Content-Length: ${body.length}`)}${body}`)
  t.equal((await keyed.response()).status, 400)
  await untouched(t)
})

t.test('what is no HTTP', async (t) => {
  for (const bytes of [
    'hello\r\n\r\n',
    'GET\r\n\r\n',
    'GET / HTTP/9.9\r\n\r\n',
    '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001',
    `GET /${'x'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    head(`X-Huge: ${'x'.repeat(100_000)}`),
    'POST / HTTP/1.1\r\nHost : x\r\n\r\n',
    '\r\n'.repeat(10_000),
  ]) {
    const one = client(t)
    one.send(Buffer.from(bytes, 'latin1'))
    one.socket.end()
    await one.closed()
  }
  await untouched(t)
})

t.test('clients that leave in the middle of a body', async (t) => {
  const body = text([apply({ type: 'addTag', key: 'never' })])
  for (const cut of [0, 1, Math.floor(body.length / 2), body.length - 1]) {
    const one = client(t)
    one.send(head(JSON_TYPE, `Content-Length: ${body.length}`) + body.slice(0, cut))
    await node.send('/health/live')
    one.destroy()
  }
  const chunked = client(t)
  chunked.send(`${head(JSON_TYPE, 'Transfer-Encoding: chunked')}5\r\n[{"ty`)
  await node.send('/health/live')
  chunked.destroy()
  await untouched(t)
})

t.test('clients that leave before the answer, and in the middle of it', async (t) => {
  const body = text([{ edge: 'orders', node: { fields: ['orderId', 'lastModified'] } }])
  const graph = head(JSON_TYPE, `Content-Length: ${body.length}`).replace(ORDER, '/resources/graph')
  for (let i = 0; i < 50; i++) {
    const one = client(t)
    one.send(graph + body)
    await new Promise((sent) => void one.socket.write('', sent))
    one.destroy()
  }
  const slow = client(t)
  slow.socket.pause()
  const asked = 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'
  for (let i = 0; i < 200; i++) slow.send(asked)
  await node.send('/health/live')
  slow.destroy()
  await untouched(t)
})

t.test('clients that stall hold nobody up', async (t) => {
  const stalled = Array.from({ length: 50 }, () => client(t))
  for (const one of stalled) one.send(`${head(JSON_TYPE, 'Content-Length: 100')}[{"type":`)
  const began = performance.now()
  await untouched(t)
  t.ok(performance.now() - began < 5_000, 'others are served')
  for (const one of stalled) one.destroy()
  await untouched(t)
})

t.test('bulk lines of every kind', async (t) => {
  const lines = [...NOT_JSON, ...MESSAGES, ...BODIES, ...COMMANDS]
    .filter(([what]) => !['nothing', 'white space', 'a byte order mark'].includes(what))
    .map(([, , ask]) => (ask.raw as string | undefined) ?? text(ask.body))
    .map((body) => `{"id":"${order.orderId}","messages":${body}}`)
  const answer: Answer = await node.bulk(lines)
  t.equal(answer.status, 200)
  const answers = answer.text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { errors?: { code: string }[] })
  t.equal(answers.length, lines.length)
  for (const [i, { errors }] of answers.entries()) {
    if (errors === undefined) t.fail(`taken: ${lines[i]!.slice(0, 200)}`)
  }
  await untouched(t)
})

t.test('nothing of it is a mistake of ours', async (t) => {
  const { text: numbers } = await node.ask('/metrics')
  const faults = numbers.match(/^kontor_http_requests_total\{[^\n]*status="500"[^\n]*/gm)
  t.equal(faults, null)
  t.equal(node.output.split('\n').filter((line) => line.includes('"level":50')).length, 0)
})
