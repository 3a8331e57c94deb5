// The heading "Actors" of the specification, over HTTP on a real node: messages, previews, keys,
// names of actors, checkpoints. Source: specification "Actor", "Actor messages and commands",
// "Actors"; CONTRACT 0 (multi-message calls, idempotency), 1.3.

import t from 'tap'
import { randomUUID } from 'node:crypto'
import { done, refused } from '../harness/answers.ts'
import type { ActorAnswer } from '../harness/answers.ts'
import { startNode } from '../harness/node-process.ts'
import type { Answer, RuntimeCall } from '../harness/node-process.ts'
import { apply, create, query, smallOrder } from '../harness/orders.ts'

const node = await startNode(t)
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

interface Checkpoint {
  readonly checkpointId: string
  readonly timestamp: string
}

async function checkpoints(id: string): Promise<readonly Checkpoint[]> {
  const answer = done(t, await node.order(id, [{ type: 'getCheckpoints' }]))
  return answer.data as readonly Checkpoint[]
}

t.test('new makes an order with generated identifiers', async (t) => {
  const answer = await node.order('new', [create()])
  const { paths, data, preview, results, errors } = done(t, answer)
  const { orderId, orderNumber } = data as { orderId: string; orderNumber: string }
  t.match(orderId, UUID)
  t.match(orderNumber, /^O\d+$/)
  t.strictSame(paths, [
    `/resources/actors/order/${orderId}`,
    `/resources/actors/order/${orderNumber}`,
  ])
  t.strictSame(results, [{ type: 'create', success: true, data }])
  t.strictSame([preview, errors], [false, []])
  t.type(answer.headers['x-consistency'], 'string')
  const other = done(t, await node.order('new', [create()])).data as { orderNumber: string }
  t.not(other.orderNumber, orderNumber)
})

t.test('an order is reached by UUID and by its natural key, however that is written', async (t) => {
  const orderNumber = 'Web 1/ü%?#'
  const { orderId } = await smallOrder(node, { orderNumber })
  for (const id of [orderId, orderId.toUpperCase(), encodeURIComponent(orderNumber)]) {
    t.strictSame(done(t, await node.order(id, [query('orderId')])).data, { orderId })
  }
  const prefixed = await node.ask(`/resources/reference/actors/order/${orderId}`, {
    body: [query('orderId')],
  })
  t.strictSame(done(t, prefixed).data, { orderId }, 'the path with the extra segment')
  const again = await node.order('new', [create({ orderNumber })])
  refused(t, again, 'ALREADY_EXISTS', /order number .* is already used/)
  refused(t, await node.order('web%201', [query('orderId')]), 'NOT_FOUND', /no order/)
  refused(t, await node.order(randomUUID(), [query('orderId')]), 'NOT_FOUND', /no order/)
})

t.test('a chosen UUID', async (t) => {
  const id = randomUUID()
  const { data } = done(t, await node.order(id, [create({ orderNumber: 'CHOSEN' })]))
  t.strictSame(data, { orderId: id, orderNumber: 'CHOSEN' })
  refused(t, await node.order(id, [create()]), 'ALREADY_EXISTS', /already there/)
  t.strictSame(done(t, await node.order('CHOSEN', [query('orderId')])).data, { orderId: id })
  refused(t, await node.order('NOT-A-UUID', [create()]), 'NOT_FOUND', /NOT-A-UUID|no order/)
})

t.test('messages are processed one by one; one that fails does not stop the others', async (t) => {
  const answer = await node.order('new', [
    create(),
    apply({ type: 'addTag', key: 'a' }),
    apply({ type: 'addTag', key: 'b' }, { type: 'setOrderState', orderState: 'completed' }),
    { type: 'nonsense' },
    apply({ type: 'addTag', key: 'c' }),
    query('tags'),
  ])
  t.equal(answer.status, 200)
  const { results, errors, data } = answer.json<ActorAnswer>()
  t.strictSame(
    results.map(({ success }) => success),
    [true, true, false, false, true, true],
  )
  t.strictSame(
    errors.map(({ code }) => code),
    ['INVALID_STATE', 'INVALID_MESSAGE_BODY'],
  )
  t.match(errors[0]!.details, { commandIndex: 1, commandType: 'setOrderState' })
  t.strictSame(data, { tags: ['a', 'c'] }, 'a batch is all or nothing')
})

t.test('when all fail, the status is that of the first error', async (t) => {
  const { orderId } = await smallOrder(node)
  const answer = await node.order(orderId, [
    { type: 'nonsense' },
    apply({ type: 'cancelInvoice', invoiceId: randomUUID() }),
  ])
  t.equal(answer.status, 400)
  t.equal(answer.json<ActorAnswer>().results.length, 2)
  refused(t, answer, 'INVALID_MESSAGE_BODY', /knows no message "nonsense"; it knows create/)
})

t.test('messages behind a create that failed find nobody', async (t) => {
  const answer = await node.order('new', [create({ currencyCode: 'XXX1' }), query('orderId')])
  t.equal(answer.status, 400)
  const { results } = answer.json<ActorAnswer>()
  t.strictSame(
    results.map(({ errors }) => errors?.[0]?.code),
    ['INVALID_MESSAGE_BODY', 'NOT_FOUND'],
  )
  refused(t, await node.order('new', [query('orderId')]), 'NOT_FOUND', /begin with create/)
})

t.test('how many messages a request has', async (t) => {
  const { orderId } = await smallOrder(node)
  refused(t, await node.order(orderId, []), 'MALFORMED_REQUEST', /1 to 1000 messages.* has 0/)
  const many = Array.from({ length: 1_000 }, () => query('orderId'))
  t.equal(done(t, await node.order(orderId, many)).results.length, 1_000)
  const more = await node.order(orderId, [...many, query('orderId')])
  refused(t, more, 'MALFORMED_REQUEST', /1 to 1000 messages.* has 1001/)
})

t.test('a preview shows what would be, and stores nothing', async (t) => {
  const { orderId } = await smallOrder(node)
  const ask = async (flag: string): Promise<ActorAnswer> => {
    const body = [apply({ type: 'addTag', key: 'seen' }), query('tags')]
    return done(t, await node.ask(`/resources/actors/order/${orderId}${flag}`, { body }))
  }
  for (const flag of ['?preview', '?preview=true', '?preview=1']) {
    const { preview, data } = await ask(flag)
    t.strictSame([preview, data], [true, { tags: ['seen'] }])
  }
  t.strictSame(done(t, await node.order(orderId, [query('tags')])).data, { tags: [] })
  t.equal((await checkpoints(orderId)).length, 1, 'no trace')
  const body = [create({ orderNumber: 'ONLY-SEEN' }), query('orderNumber', 'orderTotal')]
  const made = done(t, await node.ask('/resources/actors/order/new?preview', { body }))
  t.strictSame(made.data, { orderNumber: 'ONLY-SEEN', orderTotal: 0 })
  refused(t, await node.order('ONLY-SEEN', [query('orderId')]), 'NOT_FOUND', /no order/)
  t.equal(done(t, await node.order('new', [create({ orderNumber: 'ONLY-SEEN' })])).errors.length, 0)
  t.equal((await ask('?preview=false')).preview, false)
  t.strictSame(done(t, await node.order(orderId, [query('tags')])).data, { tags: ['seen'] })
})

t.test('a key has effect once, over restarts too', async (t) => {
  const { orderId } = await smallOrder(node)
  const keyed = { 'Idempotency-Key': 'once' }
  const body = [apply({ type: 'createDelivery' }), query('orderTotal')]
  const requests = [
    { id: 'new', body: [create({ orderNumber: 'KEYED' })] },
    { id: 'new', body: [create()] },
    { id: orderId, body },
    { id: orderId, body: [apply({ type: 'setOrderState', orderState: 'completed' })] },
  ].map((request, i) => ({ ...request, headers: { 'Idempotency-Key': `key-${i}` } }))
  const first: Answer[] = []
  for (const { id, body, headers } of requests) first.push(await node.order(id, body, headers))
  t.strictSame(
    first.map(({ status }) => status),
    [200, 200, 200, 422],
  )
  const repeat = async (when: string): Promise<void> => {
    for (const [i, { id, body, headers }] of requests.entries()) {
      const { status, text } = await node.order(id, body, headers)
      const [a, b] = [status, withoutRequestId(text)]
      t.strictSame([a, b], [first[i]!.status, withoutRequestId(first[i]!.text)], `${when} ${i}`)
    }
  }
  await repeat('at once')
  const tag = [apply({ type: 'addTag', key: 'other' })]
  const other = await node.order(orderId, tag, { 'Idempotency-Key': 'key-2' })
  refused(t, other, 'IDEMPOTENCY_MISMATCH', /key/i)
  t.equal(await node.stop(), 0)
  await node.start()
  await repeat('after a restart')
  t.equal((await checkpoints(orderId)).length, 2)
  // Keys belong to what is addressed: the same key on two actors is two keys.
  const [a, b] = [await smallOrder(node), await smallOrder(node)]
  for (const one of [a, b]) {
    done(t, await node.order(one.orderId, [apply({ type: 'addTag', key: 'k' })], keyed))
    t.equal((await checkpoints(one.orderId)).length, 2)
  }
})

t.test('a refusal by shape or permission is an answer too: its key is of its body', async (t) => {
  const { orderId } = await smallOrder(node)
  const tag = [apply({ type: 'addTag', key: 'right' })]
  const reader = await node.token('actors/order:query')
  const wrong: [string, RuntimeCall, number][] = [
    ['shape', { body: [apply({ type: 'addTag' })] }, 422],
    ['message', { body: [{ type: 'unheard', body: {} }] }, 400],
    ['JSON', { raw: '[{"type":' }, 400],
    ['permission', { body: tag, token: reader }, 403],
  ]
  for (const [why, ask, status] of wrong) {
    for (const id of [orderId, 'new']) {
      const path = `/resources/actors/order/${id}`
      const headers = { 'Idempotency-Key': `${why}-${id}` }
      const first = await node.ask(path, { ...ask, headers })
      t.equal(first.status, status, why)
      const again = await node.ask(path, { ...ask, headers })
      t.equal(again.status, first.status)
      t.strictSame(withoutRequestId(again.text), withoutRequestId(first.text))
      const right = id === 'new' ? [create()] : [apply({ type: 'addTag', key: why })]
      const other = await node.ask(path, { body: right, headers })
      refused(t, other, 'IDEMPOTENCY_MISMATCH', /key/i)
      // Who may do it by now is told what was told before.
      const { token: _, ...mine } = ask
      t.equal((await node.ask(path, { ...mine, headers })).status, first.status, why)
    }
  }
  t.equal((await checkpoints(orderId)).length, 1)
})

/** A repeat of a refusal is told under its own request id. */
function withoutRequestId(text: string): unknown {
  const { requestId, ...rest } = JSON.parse(text) as { requestId?: string }
  return { ...rest, refused: requestId !== undefined }
}

t.test('keys out of bounds', async (t) => {
  for (const key of ['two words', 'x'.repeat(256)]) {
    const answer = await node.order('new', [create()], { 'Idempotency-Key': key })
    refused(t, answer, 'MALFORMED_REQUEST', /1 to 255 printable ASCII characters/)
  }
})

t.test('many at once with one key make one order', async (t) => {
  const headers = { 'Idempotency-Key': 'crowd' }
  const answers = await Promise.all(
    Array.from({ length: 40 }, () => node.order('new', [create()], headers)),
  )
  const ids = new Set(answers.map((answer) => done(t, answer).paths[0]))
  t.equal(ids.size, 1)
})

t.test('checkpoints, rewind, and forward again', async (t) => {
  const { orderId } = await smallOrder(node)
  await node.order(orderId, [apply({ type: 'addTag', key: 'first' })])
  await node.order(orderId, [apply({ type: 'addTag', key: 'second' })])
  const points = await checkpoints(orderId)
  t.equal(points.length, 3)
  const stamps = points.map(({ timestamp }) => timestamp)
  t.strictSame(stamps, [...stamps].sort(), 'oldest first')
  const [made, first, second] = points.map(({ checkpointId }) => checkpointId)
  const rewind = async (checkpointId: unknown): Promise<unknown> => {
    const messages = [{ type: 'rewind', body: { checkpointId } }, query('tags', 'orderTotal')]
    const { results } = done(t, await node.order(orderId, messages))
    const { checkpointId: newest } = (await checkpoints(orderId)).at(-1)!
    t.strictSame(results[0]!.data, { success: true, checkpointId: newest })
    return (results[1]!.data as { tags: string[] }).tags
  }
  t.strictSame(await rewind(made), [])
  t.strictSame(await rewind(second), ['first', 'second'], 'forward to a later one')
  t.strictSame(await rewind(first), ['first'])
  t.equal((await checkpoints(orderId)).length, 6, 'a rewind is a change of its own')
  const unknown = await node.order(orderId, [
    { type: 'rewind', body: { checkpointId: randomUUID() } },
  ])
  refused(t, unknown, 'NOT_FOUND', /checkpoint/)
  const wrong = await node.order(orderId, [{ type: 'rewind', body: { checkpointId: 7 } }])
  refused(t, wrong, 'INVALID_MESSAGE_BODY', /checkpointId/)
})

t.test('nothing goes back behind an invoice that stands', async (t) => {
  const { orderId, deliveryId } = await smallOrder(node)
  const [made] = await checkpoints(orderId)
  const release = { type: 'releaseShippingToInvoicing', deliveryId }
  done(t, await node.order(orderId, [apply(release, { type: 'invoice' })]))
  const rewind = { type: 'rewind', body: { checkpointId: made!.checkpointId } }
  refused(t, await node.order(orderId, [rewind]), 'INVALID_STATE', /invoice/)
  refused(t, await node.order(orderId, [{ type: 'delete' }]), 'INVALID_STATE', /invoice/)
})

t.test('a deleted order is gone, and its number stays taken', async (t) => {
  const { orderId, orderNumber } = await smallOrder(node)
  const gone = await node.order(orderId, [{ type: 'delete' }])
  done(t, gone)
  for (const id of [orderId, orderNumber]) {
    refused(t, await node.order(id, [query('orderId')]), 'NOT_FOUND', /no order|deleted/)
  }
  refused(t, await node.order(orderId, [create()]), 'ALREADY_EXISTS', /was deleted/)
  refused(t, await node.order('new', [create({ orderNumber })]), 'ALREADY_EXISTS', /used/)
  const found = await node.graph<{ orders: number }>(
    [{ edge: 'orders', filter: `orderId == '${orderId}'`, count: true }],
    gone,
  )
  t.strictSame(found, { orders: 0 })
})

t.test('types that are not there', async (t) => {
  for (const type of ['payment', 'sku', 'asset', 'ticket']) {
    const answer = await node.ask(`/resources/actors/${type}/new`, { body: [{ type: 'create' }] })
    refused(t, answer, 'NOT_AVAILABLE', new RegExp(`"${type}" are not available yet`))
  }
  const none = await node.ask('/resources/actors/parrot/new', { body: [{ type: 'create' }] })
  refused(t, none, 'NOT_FOUND', /no actor type "parrot"; there is order/)
  const registry = await node.ask('/resources/actors/registry/a', { body: [{ type: 'put' }] })
  refused(t, registry, 'NOT_FOUND', /no actor type "registry"/)
  const typed = await node.ask('/resources/actors/order/claim/17', { body: [{ type: 'create' }] })
  refused(t, typed, 'NOT_FOUND', /no type key/)
  const { orderId } = await smallOrder(node)
  const capture = await node.order(orderId, [{ type: 'capturePayments' }])
  refused(t, capture, 'NOT_AVAILABLE', /capturePayments is not available yet/)
  const undefinedType = await node.ask('/resources/actors/ticket/claim/17', {
    body: [{ type: 'x' }],
  })
  t.equal(undefinedType.status, 422)
  t.match(undefinedType.json(), { errors: [{ code: 'UNDEFINED_TICKET_TYPE' }] })
})
