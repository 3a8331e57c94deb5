// Who is let see orders by an attribute sees the same over each member, whichever has the orders:
// attributes travel with what is asked of another. Source: specification "Scopes and ACEs",
// CONTRACT 1.4 "ACL failures".

import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { clusterSettings } from '../harness/driver.ts'
import { startInside, type InnerNode } from '../harness/node-in-process.ts'
import { create } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'
import { signIn } from '../harness/socket-client.ts'

const ATTRIBUTES = { customerNumber: ['north'] }
const FIELDS = ['orderId', 'customerNumber']
const SCOPE = [
  ...['actors/order:query', 'actors/order:applyCommands', 'customerNumber@graph/order:query'],
  ...FIELDS.map((name) => `graph/order:field:${name}`),
].join(' ')

/** As many of the one as of the other; on a cluster both members have some of them. */
const CUSTOMERS = new Map(
  Array.from({ length: 16 }, (_, n) => [randomUUID(), n % 2 === 0 ? 'north' : 'south'] as const),
)
const OWN = [...CUSTOMERS].filter(([, customer]) => customer === 'north').map(([id]) => id)

const attributesOf = (id: string): object => (id === 'bootstrap' ? ATTRIBUTES : {})
const shared = await clusterSettings()
const start = (name: string): Promise<InnerNode> =>
  startInside(t, { ...shared, ...(shared && { KONTOR_MEMBER_ID: name }) }, attributesOf as never)
const members = [await start('one'), ...(shared === null ? [] : [await start('two')])]

/** What is told of an order: its fields, or a refusal's code. */
async function queried(node: InnerNode, token: string, id: string, more = ''): Promise<string> {
  const messages = [{ type: 'query', body: { fields: FIELDS } }]
  const { text } = await node.ask(`/resources/actors/order/${id}${more}`, token, messages)
  return /"code":"([A-Z_]+)"/.exec(text)?.[1] ?? /"customerNumber":"(\w+)"/.exec(text)?.[1] ?? text
}

t.before(async () => {
  const [first] = members
  await until('the first member gives tokens', () =>
    first!.token().then(
      () => true,
      () => false,
    ),
  )
  const owner = await first!.token()
  for (const [id, value] of CUSTOMERS) {
    const order = create({}, { type: 'setCustomerNumber', value })
    await until('it takes orders', async () => {
      const { status } = await first!.ask(`/resources/actors/order/${id}`, owner, [order])
      return status === 200 || status === 409
    })
  }
})

async function ownedByEach(t: Test): Promise<void> {
  const [first] = members
  const owner = await first!.token()
  const owners = async (): Promise<Set<string>> => {
    const { text } = await first!.ask('/resources/cluster', owner)
    const { shards } = JSON.parse(text) as { shards: { shard: number; owner: string | null }[] }
    return new Set(shards.flatMap(({ shard, owner }) => (shard < 0 ? [] : (owner ?? 'nobody'))))
  }
  await until('each has shards', async () => {
    const all = await owners()
    return all.has('one') && all.has('two') && all.size === 2
  })
  t.strictSame([...(await owners())].sort(), ['one', 'two'])
}
if (shared !== null) t.test('orders are owned by each member', ownedByEach)

for (const [i, node] of members.entries()) {
  t.test(`over member ${i + 1}`, async (t) => {
    const token = await node.token(SCOPE)
    for (const [id, customer] of CUSTOMERS) {
      const right = customer === 'north' ? 'north' : 'FORBIDDEN_NODE'
      t.equal(await queried(node, token, id), right)
      t.equal(await queried(node, token, id, '?preview'), right)
    }
    const page = [{ edge: 'orders', orderBy: 'orderId', node: { fields: FIELDS } }]
    const orders = OWN.toSorted().map((orderId) => ({ orderId, customerNumber: 'north' }))
    const graph = async (): Promise<unknown> =>
      JSON.parse((await node.ask('/resources/graph', token, page)).text)
    await until('all are in the graph', async () => {
      const { orders: found } = (await graph()) as { orders?: unknown[] }
      return found?.length === OWN.length
    })
    t.strictSame(await graph(), { orders })
    const query = `{ orders(orderBy: "orderId") { ${FIELDS.join(' ')} } }`
    t.strictSame(JSON.parse((await node.ask('/graphql', token, { query })).text), {
      data: { orders },
    })
    const client = await signIn(node, token)
    client.send({ type: 'createLiveQuery', liveQueryId: 'q', query: page[0] })
    t.strictSame((await client.frame('liveQueryCreated'))['nodes'], orders)
    client.close()
  })
}

t.test('what changes is told over each member to who may see it', async (t) => {
  const [id] = OWN
  const clients = []
  for (const node of members) {
    const client = await signIn(node, await node.token(SCOPE))
    t.teardown(() => client.close())
    const query = { edge: 'orders', orderBy: 'orderId', node: { fields: FIELDS } }
    client.send({ type: 'createLiveQuery', liveQueryId: 'q', query })
    await client.frame('liveQueryCreated')
    clients.push(client)
  }
  const owner = await members[0]!.token()
  for (const value of ['elsewhere', 'north']) {
    const commands = [{ type: 'setCustomerNumber', value }]
    const message = { type: 'applyCommands', body: { commands } }
    await members[0]!.ask(`/resources/actors/order/${id}`, owner, [message])
    for (const client of clients) {
      const frame = await client.answer('liveQueryAdd', 'liveQueryRemove', 'liveQueryUpdate')
      t.match(
        frame,
        value === 'north'
          ? { type: 'liveQueryAdd', node: { orderId: id, customerNumber: 'north' } }
          : { type: 'liveQueryRemove', id },
      )
    }
  }
})
