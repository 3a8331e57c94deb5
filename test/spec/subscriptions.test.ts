// Subscriptions of GraphQL over graphql-transport-ws, by a client of the ecosystem and by hand:
// what is told of a list that changes, and why a connection ends. Source: CONTRACT 1.4.1, 1.10,
// https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md.

import { randomUUID } from 'node:crypto'
import { type Client, CloseCode, createClient } from 'graphql-ws'
import t, { type Test } from 'tap'
import { onCluster } from '../harness/driver.ts'
import { type Answer, startNode } from '../harness/node-process.ts'
import { create, smallOrderCommands } from '../harness/orders.ts'
import { SocketClient } from '../harness/socket-client.ts'

const node = await startNode(t)
const url = `ws://127.0.0.1:${node.port}/graphql`

type Json = Record<string, unknown>

async function newOrder(customer: string): Promise<string> {
  const commands = smallOrderCommands(randomUUID(), randomUUID())
  const answer = await node.order('new', [create({}, ...commands)])
  if (answer.status !== 200) throw new Error(answer.text)
  const id = answer.json<{ paths: string[] }>().paths[0]!.split('/').at(-1)!
  await mark(id, customer)
  return id
}

async function mark(id: string, value: string): Promise<void> {
  const commands = [{ type: 'setCustomerNumber', value }]
  const answer = await node.order(id, [{ type: 'applyCommands', body: { commands } }])
  if (answer.status !== 200) throw new Error(answer.text)
}

async function clientOf(t: Test, scope?: string): Promise<Client> {
  const authorization = `Bearer ${await node.token(scope)}`
  const client = createClient({ url, connectionParams: { authorization }, retryAttempts: 0 })
  t.teardown(() => client.dispose())
  return client
}

/** The next change of the one field of a subscription. */
async function next(changes: AsyncIterator<unknown>): Promise<Json> {
  const { value } = (await changes.next()) as { value: { data?: Json; errors?: unknown } }
  if (value.errors !== undefined) throw new Error(JSON.stringify(value.errors))
  return Object.values(value.data!)[0] as Json
}

const LIST = `subscription List($filter: String!, $limit: Int, $resume: String) {
  list: orders(filter: $filter, orderBy: "customerNumber", limit: $limit, resume: $resume) {
    __typename kind id index previousIndex hasMore position
    node { orderId number: customerNumber }
    nodes { ...Shown }
  }
}
fragment Shown on Order { orderId dynamicField(name: "none") }`

const list = (client: Client, text: string, limit = 2, resume: unknown = null) =>
  client.iterate({
    query: LIST,
    variables: { filter: `customerNumber startsWith '${text}'`, limit, resume },
  })

t.test('a list that changes, and goes on after a reconnect', async (t) => {
  const client = await clientOf(t)
  const changes = list(client, 'a')
  const none = { index: null, previousIndex: null, hasMore: null, node: null, nodes: null }
  t.match(await next(changes), {
    ...none,
    ...{ __typename: 'OrderChange', kind: 'created', id: null, nodes: [], hasMore: false },
    position: /./,
  })
  const second = await newOrder('a2')
  t.match(await next(changes), {
    ...none,
    ...{ kind: 'added', index: 0, id: second, node: { orderId: second, number: 'a2' } },
  })
  const first = await newOrder('a1')
  t.match(await next(changes), { kind: 'added', index: 0, node: { orderId: first } })
  await mark(first, 'a4')
  const moved = { kind: 'updated', index: 1, previousIndex: 0, id: first }
  t.match(await next(changes), { ...none, ...moved, node: { orderId: first, number: 'a4' } })
  const between = await newOrder('a3')
  t.match(await next(changes), { kind: 'added', index: 1, id: between })
  t.match(await next(changes), { ...none, kind: 'removed', index: 2, id: first })
  await mark(second, 'b')
  t.match(await next(changes), { kind: 'removed', index: 0, id: second })
  const { kind, position } = await next(changes)
  t.equal(kind, 'added')
  await changes.return!()
  const again = list(client, 'a', 2, position)
  t.match(await next(again), { kind: 'created', nodes: null }, 'it goes on from there')
  await again.return!()
  await node.order(between, [{ type: 'delete', body: {} }])
  const anew = list(client, 'a', 2, position)
  t.match(await next(anew), {
    kind: 'created',
    nodes: [{ orderId: first, dynamicField: null }],
  })
})

/** A new order of a shard that another member has. */
async function ofTheOther(): Promise<string> {
  const { shards } = (await node.ask('/resources/cluster')).json<{
    shards: { shard: number; owner: string | null }[]
  }>()
  // The member puts new ones where it likes: these lie where their ids have them.
  for (let tries = 0; tries < 100; tries++) {
    const id = randomUUID()
    const made = await node.order(id, [create()])
    const { owner } = shards.find(({ shard }) => shard === shardOf(made))!
    if (owner !== null && owner !== 'asked') return id
  }
  throw new Error('the other member has no shard')
}

function shardOf({ headers }: Answer): number {
  const [, , places = ''] = Buffer.from(String(headers['x-consistency']), 'base64url')
    .toString()
    .split('.')
  return Number(places.split(':')[0])
}

if (onCluster) {
  t.test('a list of orders of which the member that is asked has none', async (t) => {
    const client = await clientOf(t)
    const there = await ofTheOther()
    await mark(there, 'far1')
    const changes = list(client, 'far')
    t.match(await next(changes), { kind: 'created' })
    const right = async (what: object): Promise<void> => {
      for (;;) {
        const change = await next(changes)
        // What was written before may be in the first list already, or come behind it.
        if (change['id'] === there && change['kind'] === 'added') continue
        t.match(change, what)
        return
      }
    }
    await mark(there, 'far3')
    await right({ kind: 'updated', index: 0, id: there, node: { number: 'far3' } })
    const second = await ofTheOther()
    await mark(second, 'far2')
    await right({ kind: 'added', index: 0, id: second })
    await mark(there, 'gone')
    await right({ kind: 'removed', index: 1, id: there })
    await node.order(second, [{ type: 'delete', body: {} }])
    await right({ kind: 'removed', index: 0, id: second })
    await changes.return!()
  })
}

t.test('nodes that an order has, with the order that they belong to', async (t) => {
  const client = await clientOf(t)
  const id = await newOrder('d1')
  const lines = client.iterate({
    query: `subscription {
      orderLines(filter: "orderId == '${id}'", limit: 1) {
        nodes { quantity order { customerNumber } of: order { __typename } }
        node { order { customerNumber } }
      }
    }`,
  })
  const of = { __typename: 'Order' }
  t.match(await next(lines), { nodes: [{ order: { customerNumber: 'd1' }, of }], node: null })
  await mark(id, 'd2')
  t.strictSame(await next(lines), { nodes: null, node: { order: { customerNumber: 'd2' } } })
})

t.test('who selects nothing of a node is told that one came, and no more', async (t) => {
  const client = await clientOf(t)
  const places = client.iterate({
    query: `subscription { orders(filter: "customerNumber startsWith 'e'") { kind id } }`,
  })
  t.strictSame(await next(places), { kind: 'created', id: null })
  const id = await newOrder('e1')
  t.strictSame(await next(places), { kind: 'added', id })
  await mark(id, 'e2')
  await mark(id, 'f')
  t.strictSame(await next(places), { kind: 'removed', id })
})

t.test('queries are answered too', async (t) => {
  const client = await clientOf(t)
  const query = client.iterate({ query: '{ ordersConnection { totalCount } __typename }' })
  t.match(await query.next(), { value: { data: { __typename: 'Query' } } })
  t.equal((await query.next()).done, true, 'and complete')
})

t.test('what can not be is refused by its message', async (t) => {
  const client = await clientOf(t)
  const errors = async (query: string, of: Client = client): Promise<unknown> => {
    try {
      return await of.iterate({ query }).next()
    } catch (error) {
      return error
    }
  }
  const invalid = { code: 'INVALID_QUERY' }
  for (const [query, message, extensions, path] of [
    ['subscription { orders(limit: 501) { kind } }', /limit is from 1 to 500/, invalid],
    [
      'subscription { orders(filter: "createdAt < now") { kind node { orderId } } }',
      /now/,
      invalid,
    ],
    [
      'subscription { orders(filter: "total >") { kind } }',
      /./,
      { code: 'INVALID_FILTER' },
      ['orders'],
    ],
    [
      'subscription { x: orders { node { y: deliveries { deliveryId } } } }',
      /^x\.y: a live query follows edges to one node/,
      invalid,
    ],
    ['subscription { a: orders { kind } b: orders { kind } }', /only one/, invalid],
    ['subscription { orders @skip(if: true) { kind } }', /selects nothing|skip/, invalid],
    ['subscription { payments { kind } }', /Cannot query field/, invalid],
    ['mutation { x }', /mutation/, invalid],
    ['{ orders { ...A } } fragment A on Order { ...A }', /part of itself/, invalid],
    ['{', /Syntax Error/, invalid],
  ] as const) {
    t.match(await errors(query), [{ message, extensions, ...(path && { path }) }], query)
  }
  const counts = await clientOf(t, 'graph/order:query')
  t.match(await errors('subscription { orders { kind } }', counts), [
    { message: /no list that can be followed|Cannot query field/ },
  ])
  const some = await clientOf(t, 'graph/order:query graph/order:field:orderId')
  t.match(await errors('subscription { orders { node { customerNumber } } }', some), [
    { message: /Cannot query field/ },
  ])
  const over = await node.ask('/graphql', { body: { query: 'subscription { orders { kind } }' } })
  t.match(over.text, /graphql-transport-ws/)
})

// --- by hand ------------------------------------------------------------------------------

function opened(protocol?: string | string[]): Promise<SocketClient> {
  const socket = new WebSocket(url, protocol ?? 'graphql-transport-ws')
  const client = new SocketClient(socket)
  return new Promise((resolve, reject) => {
    socket.addEventListener('open', () => resolve(client))
    socket.addEventListener('error', () => reject(new Error('no socket was let in')))
  })
}

async function known(scope?: string): Promise<SocketClient> {
  const client = await opened()
  const authorization = `Bearer ${await node.token(scope)}`
  client.send({ type: 'connection_init', payload: { authorization } })
  await client.frame('connection_ack')
  return client
}

t.test('close codes are those of the protocol', async (t) => {
  const init = { type: 'connection_init', payload: { authorization: 'Bearer none' } }
  const subscribe = {
    type: 'subscribe',
    id: '1',
    payload: { query: 'subscription { orders { kind } }' },
  }
  for (const [code, frames] of [
    [CloseCode.BadRequest, ['{']],
    [CloseCode.BadRequest, [{ type: 'nothing' }]],
    [CloseCode.BadRequest, [{ type: 'subscribe', id: '', payload: { query: '{x}' } }]],
    [CloseCode.BadRequest, [{ type: 'next', id: '1', payload: {} }]],
    [CloseCode.Unauthorized, [subscribe]],
    [CloseCode.Forbidden, [init]],
    [CloseCode.Forbidden, [{ type: 'connection_init' }]],
  ] as const) {
    const client = await opened()
    for (const frame of frames) client.send(frame)
    t.equal((await client.ended()).code, code, JSON.stringify(frames))
  }
  const bytes = await opened()
  bytes.sendBytes(new Uint8Array([1]))
  t.equal((await bytes.ended()).code, CloseCode.BadRequest)
  const twice = await known()
  for (let i = 0; i < 2; i++) twice.send(subscribe)
  t.equal((await twice.ended()).code, CloseCode.SubscriberAlreadyExists)
  const late = await known()
  late.send({ type: 'connection_init' })
  t.equal((await late.ended()).code, CloseCode.TooManyInitialisationRequests)
})
