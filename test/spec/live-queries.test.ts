// Live queries over `/ws`: what is told of a list of the graph that changes, to whom, and how a
// client goes on after a reconnect. Source: CONTRACT 1.10, specification "Graph".

import { randomUUID } from 'node:crypto'
import t from 'tap'
import { startNode } from '../harness/node-process.ts'
import { create, smallOrderCommands } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'
import { signIn } from '../harness/socket-client.ts'
import type { SocketClient } from '../harness/socket-client.ts'

const node = await startNode(t)

type Node = Record<string, unknown>

async function newOrder(purchase: string): Promise<string> {
  const commands = smallOrderCommands(randomUUID(), randomUUID())
  const answer = await node.order('new', [create({}, ...commands)])
  if (answer.status !== 200) throw new Error(answer.text)
  const id = answer.json<{ paths: string[] }>().paths[0]!.split('/').at(-1)!
  await mark(id, purchase)
  return id
}

async function mark(id: string, value: string): Promise<void> {
  const commands = [{ type: 'setCustomerNumber', value }]
  const answer = await node.order(id, [{ type: 'applyCommands', body: { commands } }])
  if (answer.status !== 200) throw new Error(answer.text)
}

const query = (text: string, limit = 2): Node => ({
  edge: 'orders',
  filter: `customerNumber startsWith '${text}'`,
  orderBy: 'customerNumber',
  limit,
  node: { fields: ['orderId', 'customerNumber'] },
})

async function live(client: SocketClient, asked: Node, resume?: unknown): Promise<Node> {
  client.send({ type: 'createLiveQuery', requestId: 'r', liveQueryId: 'q', query: asked, resume })
  return client.frame('liveQueryCreated')
}

t.test('a list that changes, and a reconnect', async (t) => {
  const client = await signIn(node)
  const created = await live(client, query('a'))
  t.match(created, { requestId: 'r', liveQueryId: 'q', nodes: [], hasMore: false })
  const second = await newOrder('a2')
  t.match(await client.frame('liveQueryAdd'), { index: 0, node: { orderId: second } })
  const first = await newOrder('a1')
  t.match(await client.frame('liveQueryAdd'), { index: 0, node: { orderId: first } })
  await mark(second, 'a3')
  t.match(await client.frame('liveQueryUpdate'), { index: 1, previousIndex: 1 })
  const between = await newOrder('a2')
  t.match(await client.frame('liveQueryAdd'), { index: 1, node: { orderId: between } })
  t.match(await client.frame('liveQueryRemove'), { index: 2, id: second })
  await mark(first, 'b')
  t.match(await client.frame('liveQueryRemove'), { index: 0, id: first })
  const { position } = await client.frame('liveQueryAdd')
  client.close()

  const again = await signIn(node)
  const resumed = await live(again, query('a'), position)
  t.equal(resumed['nodes'], undefined, 'it goes on from there')
  again.send({ type: 'deleteLiveQuery', liveQueryId: 'q' })
  await again.frame('liveQueryDeleted')
  await node.order(between, [{ type: 'delete', body: {} }])
  const anew = await live(again, query('a'), position)
  t.match(anew['nodes'], [{ orderId: second }], 'it begins anew')
  again.close()
})

/** A list as a client keeps it by what it is told. */
class ClientList {
  nodes: Node[] = []

  take(frame: Node): void {
    const { type, index, previousIndex, node: shown, nodes } = frame
    const at = index as number
    if (type === 'liveQueryAdd') this.nodes.splice(at, 0, shown as Node)
    else if (type === 'liveQueryRemove') this.nodes.splice(at, 1)
    else if (type === 'liveQueryUpdate') {
      this.nodes.splice(previousIndex as number, 1)
      this.nodes.splice(at, 0, shown as Node)
    } else if (nodes !== undefined) this.nodes = nodes as Node[]
  }
}

t.test('clients that come while orders change have what the graph has', async (t) => {
  const orders = await Promise.all(['c1', 'c2', 'c3', 'c4', 'c5', 'c6'].map(newOrder))
  const asked = query('c', 3)
  const clients = await Promise.all(Array.from({ length: 4 }, () => signIn(node)))
  const change = async (): Promise<void> => {
    for (let i = 0; i < 30; i++) {
      const text = i % 7 === 0 ? 'out' : `c${(i * 5) % 11}`
      await mark(orders[(i * 7) % orders.length]!, text)
    }
    await mark(orders[0]!, 'c-last')
  }
  const changed = change()
  const created = await Promise.all(clients.map((client) => live(client, asked)))
  await changed
  const deadline = Date.now() + 15_000
  for (const [i, client] of clients.entries()) {
    const list = new ClientList()
    list.take(created[i]!)
    const isRight = async (): Promise<boolean> => {
      for (const frame of client.frames.splice(0)) list.take(frame)
      const answer = await node.ask('/resources/graph', { body: [asked] })
      return answer.text === JSON.stringify({ orders: list.nodes, ordersHasMore: true })
    }
    while (!(await isRight()) && Date.now() < deadline);
    t.ok(await isRight(), JSON.stringify(list.nodes))
    client.close()
  }
})

t.test('nodes that an order has, with the order they belong to', async (t) => {
  const client = await signIn(node)
  const id = await newOrder('d1')
  const body = {
    fields: ['quantity'],
    navigate: [{ edge: 'order', node: { fields: ['customerNumber'] } }],
  }
  const filter = `orderId == '${id}'`
  const created = await live(client, { edge: 'orderLines', filter, limit: 1, node: body })
  t.match(created['nodes'], [{ order: { customerNumber: 'd1' } }])
  await mark(id, 'd2')
  const update = await client.frame('liveQueryUpdate')
  t.match(update, { index: 0, previousIndex: 0, node: { order: { customerNumber: 'd2' } } })
  await node.order(id, [{ type: 'delete', body: {} }])
  await client.frame('liveQueryRemove')
  client.close()
})

t.test('a custom field, which is defined, changes, is taken from elsewhere and goes', async (t) => {
  const key = '/resources/registry/graph/order/fields/season'
  const define = async (source: string): Promise<string> => {
    const answer = await node.ask(key, { body: { type: 'text', source: `dynamic->'${source}'` } })
    t.equal(answer.status, 200, answer.text)
    return String(answer.headers['x-consistency'])
  }
  const client = await signIn(node)
  const id = await newOrder('s1')
  const set = async (fields: Node): Promise<void> => {
    const commands = [{ type: 'setDynamicFields', fields }]
    const answer = await node.order(id, [{ type: 'applyCommands', body: { commands } }])
    t.equal(answer.status, 200, answer.text)
  }
  const token = await define('season')
  const shown = { edge: 'orders', filter: `season == 'x'`, node: { fields: ['orderId', 'season'] } }
  const isKnown = async (): Promise<boolean> => {
    const headers = { 'X-Consistency': token }
    return (await node.ask('/resources/graph', { body: [shown], headers })).status === 200
  }
  await until('the field is known', isKnown, 60_000)
  t.match(await live(client, shown), { nodes: [] })
  await set({ season: 'x', other: 'y' })
  t.match(await client.frame('liveQueryAdd'), { node: { orderId: id, season: 'x' } })
  await define('other')
  t.match(await client.frame('liveQueryReset', undefined, 60_000), { nodes: [] })
  await set({ season: 'y', other: 'x' })
  t.match(await client.frame('liveQueryAdd'), { node: { orderId: id, season: 'x' } })
  const removed = await node.ask(key, { method: 'DELETE' })
  t.equal(removed.status, 200, removed.text)
  t.match(await client.frame('liveQueryError', undefined, 60_000), { code: /INVALID/ })
  client.close()
})

t.test('what can not be followed is refused', async (t) => {
  const client = await signIn(node)
  for (const [wrong, code, message] of [
    [{ ...query('a'), phrase: 'x' }, 'INVALID_QUERY', /phrase/],
    [{ ...query('a'), filter: 'createdAt < now' }, 'INVALID_QUERY', /now/],
    [{ ...query('a'), limit: 501 }, 'INVALID_QUERY', /limit/],
    [{ edge: 'orders', node: { navigate: [{ edge: 'deliveries' }] } }, 'INVALID_QUERY', /deliv/],
    [{ edge: 'nothing' }, 'INVALID_QUERY', /nothing/],
  ] as const) {
    client.send({ type: 'createLiveQuery', requestId: 'r', liveQueryId: 'q', query: wrong })
    t.match(await client.frame('liveQueryError'), {
      liveQueryId: 'q',
      requestId: 'r',
      code,
      message,
    })
  }
  const token = await node.token('graph/order:query')
  const other = await signIn(node, token)
  other.send({ type: 'createLiveQuery', liveQueryId: 'q', query: query('a') })
  t.match(await other.frame('liveQueryError'), { code: 'FORBIDDEN_FIELD' })
  for (const one of [client, other]) one.close()
})
