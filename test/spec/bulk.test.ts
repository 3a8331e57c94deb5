// Bulk, over HTTP on a real node: lines in, lines out, in order, each for itself. Source: CONTRACT
// 0 "Bulk", "Multi-message actor calls".

import t from 'tap'
import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { ErrorItem } from '../../protocol/errors.ts'
import { refused } from '../harness/answers.ts'
import { startNode } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { apply, create, query, smallOrder } from '../harness/orders.ts'
import type { Message } from '../harness/orders.ts'

const node = await startNode(t)

interface Line {
  readonly id: string | null
  readonly paths: readonly string[]
  readonly data: Record<string, unknown> | null
  readonly results: readonly { readonly success: boolean }[]
  readonly errors?: readonly ErrorItem[]
  readonly consistency?: string
}

const line = (id: string, ...messages: Message[]): object => ({ id, messages })

function linesOf(answer: Answer): Line[] {
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text.slice(0, 300)}`)
  return answer.text
    .trimEnd()
    .split('\n')
    .map((text) => JSON.parse(text) as Line)
}

const bulk = async (...lines: unknown[]): Promise<Line[]> => linesOf(await node.bulk(lines))

t.test('one line in, one line out, in order', async (t) => {
  const answer = await node.bulk([
    line('new', create({ orderNumber: 'B1' })),
    line('B1', apply({ type: 'addTag', key: 'a' }), query('tags')),
    line('B1', apply({ type: 'addTag', key: 'b' }), query('tags')),
    line('nobody', query('tags')),
    line('B1', query('tags')),
  ])
  t.match(answer.headers['content-type'], /^application\/x-ndjson/)
  const [made, first, second, nobody, last] = linesOf(answer) as [Line, Line, Line, Line, Line]
  const { orderId } = made.data as { orderId: string }
  t.equal(made.id, orderId)
  t.strictSame(made.paths, [`/resources/actors/order/${orderId}`, '/resources/actors/order/B1'])
  t.notOk('errors' in made, 'no errors, no member')
  t.strictSame(first.data, { tags: ['a'] })
  t.strictSame(second.data, { tags: ['a', 'b'] }, 'lines to one actor take effect in line order')
  t.equal(nobody.id, 'nobody', "the line's own id where it failed")
  t.match(nobody.errors, [{ code: 'NOT_FOUND' }])
  t.strictSame(last.data, { tags: ['a', 'b'] })
  t.equal(last.id, orderId)
})

t.test('a bad line is told with its number, and the rest goes on', async (t) => {
  const bad: [unknown, string, RegExp][] = [
    ['{"id": "new", ', 'MALFORMED_REQUEST', /line 1, column 14|position|expected/],
    ['7', 'MALFORMED_REQUEST', /\{"id"/],
    ['[]', 'MALFORMED_REQUEST', /\{"id"/],
    [{ messages: [create()] }, 'MALFORMED_REQUEST', /needs an "id"/],
    [{ id: 'new' }, 'MALFORMED_REQUEST', /array of messages/],
    [{ id: 'new', messages: [] }, 'MALFORMED_REQUEST', /1 to 1000 messages/],
    [{ id: 'new', messages: [create()], colour: 1 }, 'MALFORMED_REQUEST', /member "colour"/],
    [{ id: 'new', messages: [create()], idempotencyKey: 7 }, 'MALFORMED_REQUEST', /idempotencyKey/],
    [
      { id: 'new', messages: [create()], idempotencyKey: '' },
      'MALFORMED_REQUEST',
      /idempotencyKey/,
    ],
    [line('new', create({ currencyCode: 'X' })), 'INVALID_MESSAGE_BODY', /currencyCode/],
    [line('new', query('orderId')), 'NOT_FOUND', /begin with create/],
    [
      '{"id":"new","messages":[{"type":"create","body":{"__proto__":{}}}]}',
      'MALFORMED_REQUEST',
      /__proto__/,
    ],
    ['{"id":"\\ud800","messages":[]}', 'MALFORMED_REQUEST', /surrogate/],
  ]
  const answers = await bulk(
    line('new', create({ orderNumber: 'GOOD-1' })),
    ...bad.map(([one]) => one),
    line('new', create({ orderNumber: 'GOOD-2' })),
  )
  t.equal(answers.length, bad.length + 2)
  t.notOk(answers[0]!.errors ?? answers.at(-1)!.errors, 'the good ones are done')
  for (const [i, [, code, words]] of bad.entries()) {
    const [error] = answers[i + 1]!.errors!
    t.equal(error!.code, code, JSON.stringify(error))
    t.match(error!.message, words)
    // What a message fails by has its place by itself: in the line's results.
    if (code === 'MALFORMED_REQUEST') t.equal(error!.details?.['line'], i + 2)
  }
})

t.test('keys: a repeat has no second effect and the same answer', async (t) => {
  const { orderId } = await smallOrder(node)
  const lines = [
    { ...line('new', create()), idempotencyKey: 'k-1' },
    { ...line(orderId, apply({ type: 'createDelivery' })), idempotencyKey: 'k-2' },
    { ...line(orderId, apply({ type: 'createDelivery' })), idempotencyKey: 'k-2' },
    {
      ...line(orderId, apply({ type: 'createDelivery' }, { type: 'invoice' })),
      idempotencyKey: 'k-3',
    },
  ]
  const plain = (answers: Line[]): unknown =>
    answers.map(({ id, paths, data, results, errors }) => ({ id, paths, data, results, errors }))
  const first = await bulk(...lines)
  t.strictSame(
    first.map(({ errors }) => errors?.[0]?.code),
    [undefined, undefined, undefined, 'NOTHING_TO_INVOICE'],
  )
  t.strictSame(plain(await bulk(...lines)), plain(first))
  const [other] = await bulk({
    ...line(orderId, apply({ type: 'addTag', key: 'x' })),
    idempotencyKey: 'k-2',
  })
  t.match(other!.errors, [{ code: 'IDEMPOTENCY_MISMATCH' }])
  const [seen] = await bulk(
    line(orderId, { type: 'query', body: { navigate: [{ edge: 'deliveries', count: true }] } }),
  )
  t.strictSame(seen!.data, { deliveries: 2 })
})

t.test('previews store nothing', async (t) => {
  const path = '/resources/actors/order?preview'
  const raw = JSON.stringify(
    line('new', create({ orderNumber: 'B-PREVIEW' }), query('orderNumber')),
  )
  const [one] = linesOf(
    await node.ask(path, { raw, headers: { 'Content-Type': 'application/x-ndjson' } }),
  )
  t.strictSame(one!.data, { orderNumber: 'B-PREVIEW' })
  refused(t, await node.order('B-PREVIEW', [query('orderId')]), 'NOT_FOUND', /no order/)
})

t.test('thousands of lines, packed, and all of them in the graph', async (t) => {
  const count = 3_000
  const lines = Array.from({ length: count }, (_, i) =>
    line('new', create({ orderNumber: `MANY-${i}` })),
  )
  const raw = gzipSync(lines.map((one) => `${JSON.stringify(one)}\r\n`).join(''))
  const answers = linesOf(await node.bulk([], { raw, headers: { 'Content-Encoding': 'gzip' } }))
  t.equal(answers.length, count)
  t.strictSame(
    answers.map(({ data }) => data?.['orderNumber']),
    Array.from({ length: count }, (_, i) => `MANY-${i}`),
  )
  const { consistency } = answers.at(-1)!
  t.type(consistency, 'string', 'the last line has a token that covers all before it')
  const filter = `orderNumber startsWith 'MANY-'`
  const answer = await node.ask('/resources/graph', {
    body: [{ edge: 'orders', filter, count: true }],
    headers: { 'X-Consistency': consistency! },
  })
  t.strictSame(answer.json(), { orders: count })
})

t.test('permissions are each message’s own', async (t) => {
  const { orderId } = await smallOrder(node)
  const graph = 'graph/order:query graph/order:field:orderNumber'
  const token = await node.token(`actors/order:create actors/order/${orderId}:query ${graph}`)
  const answer = await node.bulk(
    [
      line('new', create()),
      line(orderId, query('orderNumber')),
      line(orderId, apply({ type: 'addTag', key: 'a' })),
      line(randomUUID(), query('orderNumber')),
    ],
    { token },
  )
  t.strictSame(
    linesOf(answer).map(({ errors }) => errors?.[0]?.code),
    [undefined, undefined, 'UNAUTHORIZED_MESSAGE', 'UNAUTHORIZED_MESSAGE'],
  )
})

t.test('what is no bulk', async (t) => {
  const json = await node.ask('/resources/actors/order', { body: [line('new', create())] })
  refused(t, json, 'UNSUPPORTED_MEDIA_TYPE', /application\/x-ndjson/)
  const type = await node.ask('/resources/actors/parrot', {
    raw: '{}',
    headers: { 'Content-Type': 'application/x-ndjson' },
  })
  refused(t, type, 'NOT_FOUND', /no actor type "parrot"/)
  const none = await node.ask('/resources/actors/order', {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-ndjson' },
  })
  t.ok(none.status === 200 ? none.text === '' : none.status === 400, `${none.status} ${none.text}`)
})
