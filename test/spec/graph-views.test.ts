// The graph beside its queries, over HTTP on a real node: history, consistency tokens, GET,
// metadata, permissions. Source: specification "Graph", "Scopes and ACEs"; CONTRACT 0 (read your
// writes), 1.4.

import t from 'tap'
import { ORDER_NODE_TYPES } from '../../commerce/order/graph/node-types.ts'
import { refused } from '../harness/answers.ts'
import { startNode } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { WHOLE_ORDER, apply, smallOrder, wholeOrder } from '../harness/orders.ts'
import { graphOrders } from './graph-orders.ts'

const node = await startNode(t)
const { orders: ORDERS, last } = await graphOrders(node)
const PATH = '/resources/graph'

type Rows = readonly Record<string, unknown>[]

const ask = (body: unknown, extra = {}): Promise<Answer> => node.ask(PATH, { body, ...extra })

t.test('journal and activity entries: newest first, through their order', async (t) => {
  const order = await smallOrder(node)
  const log = { type: 'addActivityLog', messageTemplate: 'Called {who}', dynamic: { who: 'Ada' } }
  await node.order(order.orderId, [apply({ type: 'addTag', key: 'a' })])
  const wrote = await node.order(order.orderId, [apply(log, { ...log, dynamic: { who: 'Bo' } })])
  const filter = `orderId == '${order.orderId}'`
  const { orders, orderJournalEntries, activityLogs } = await node.graph<Record<string, Rows>>(
    [
      {
        edge: 'orders',
        filter,
        node: {
          fields: ['orderId'],
          navigate: [
            {
              edge: 'journalEntries',
              limit: 2,
              node: { fields: ['type', 'timestamp', 'identityId', 'checkpointId', 'references'] },
            },
            { edge: 'activityLogs', node: { fields: ['message', 'createdBy', "dynamic->'who'"] } },
          ],
        },
      },
      { edge: 'orderJournalEntries', filter, node: { fields: ['type'] } },
      { edge: 'activityLogs', filter, limit: 1, node: { fields: ['message'] } },
    ],
    wrote,
  )
  t.match(orders, [
    {
      journalEntries: [
        { type: 'tagAdded', identityId: 'bootstrap', references: { orderId: order.orderId } },
        { type: 'orderLineCreated', references: { orderLineId: order.orderLineId } },
      ],
      journalEntriesHasMore: true,
      activityLogs: [
        { message: 'Called Bo', createdBy: 'bootstrap', dynamic: { who: 'Bo' } },
        { message: 'Called Ada' },
      ],
    },
  ])
  t.strictSame(
    orderJournalEntries!.map(({ type }) => type),
    ['tagAdded', 'orderLineCreated', 'deliveryCreated', 'orderCreated'],
  )
  t.strictSame(activityLogs, [{ message: 'Called Bo' }])
  const whole = await ask([{ edge: 'activityLogs', node: { fields: ['message'] } }])
  refused(t, whole, 'INVALID_QUERY', /follow an edge from order, or filter by orderId/)
})

t.test('the graph shows what the actor shows', async (t) => {
  const { orderId } = ORDERS[0]!
  const { orders } = await node.graph<{ orders: Rows }>(
    [{ edge: 'orders', filter: `orderId == '${orderId}'`, node: WHOLE_ORDER }],
    last,
  )
  t.strictSame(orders, [await wholeOrder(node, orderId)])
})

t.test('every write is seen with its token', async (t) => {
  const order = await smallOrder(node)
  for (let i = 0; i < 30; i++) {
    const wrote = await node.order(order.orderId, [
      apply({ type: 'setCustomerNumber', value: `c${i}` }),
    ])
    const filter = `customerNumber == 'c${i}' and orderId == '${order.orderId}'`
    const { orders } = await node.graph<{ orders: number }>(
      [{ edge: 'orders', filter, count: true }],
      wrote,
    )
    t.equal(orders, 1)
  }
  const registry = await node.ask('/resources/registry/x', { body: 1 })
  t.type(registry.headers['x-consistency'], 'string')
  t.match(await node.graph([{ edge: 'orders', count: true, limit: 1 }], registry), {
    orders: Number,
  })
  const token = String(last.headers['x-consistency'])
  const both = await ask([{ edge: 'orders', count: true }], {
    headers: { 'X-Consistency': `${token}, ${String(registry.headers['x-consistency'])}` },
  })
  t.equal(both.status, 200, both.text)
  for (const bad of ['x', token.slice(1), `${token}A`, `${token},`, 'A'.repeat(5_000)]) {
    const answer = await ask([{ edge: 'orders', count: true }], {
      headers: { 'X-Consistency': bad },
    })
    const { details } = refused(t, answer, 'INVALID_PARAMETERS', /X-Consistency can't be used: /)
    t.match(details, { header: 'X-Consistency' })
  }
})

t.test('GET takes the navigations in the query string', async (t) => {
  const body = [
    { edge: 'orders', filter: `orderNumber == 'G1'`, node: { fields: ['orderNumber'] } },
  ]
  const q = encodeURIComponent(JSON.stringify(body))
  const answer = await node.ask(`${PATH}?q=${q}`)
  t.strictSame(answer.json(), { orders: [{ orderNumber: 'G1' }] })
  refused(t, await node.ask(PATH), 'INVALID_PARAMETERS', /parameter q is missing/)
  refused(t, await node.ask(`${PATH}?q=[{`), 'MALFORMED_REQUEST', /JSON/)
  refused(t, await node.ask(`${PATH}?q=7`), 'INVALID_QUERY', /array/)
})

t.test(
  'meta lists the sets, fields and edges that there are, and all of them can be asked for',
  async (t) => {
    const meta = (await node.ask(`${PATH}/meta`)).json<{
      sets: { name: string; node: string }[]
      nodes: {
        name: string
        idField: string
        fields: { name: string; type: string; enum?: string[] }[]
        edges: { name: string; node: string; cardinality: string }[]
      }[]
    }>()
    const identities = [
      { set: 'clients', name: 'client' },
      { set: 'principals', name: 'principal' },
      { set: 'roles', name: 'role' },
      { set: 'identityActivities', name: 'identityActivity' },
    ]
    t.strictSame(
      meta.sets,
      [...identities, ...ORDER_NODE_TYPES].map(({ set, name }) => ({ name: set, node: name })),
    )
    const order = meta.nodes.find(({ name }) => name === 'order')!
    t.equal(order.idField, 'orderId')
    const state = order.fields.find(({ name }) => name === 'orderState')
    t.match(state, {
      type: 'enum',
      enum: ['pending', 'confirmed', 'completed', 'cancelled'],
    })
    for (const name of [
      'orderId',
      'orderNumber',
      'channelKey',
      'customerNumber',
      'orderTotal',
      'invoiceAddress',
      'invoiceAddress.name',
      'dynamic',
      'createdAt',
      'lastModified',
    ]) {
      t.ok(
        order.fields.some((field) => field.name === name),
        name,
      )
    }
    for (const { name, fields, edges } of meta.nodes) {
      const { name: edge } = meta.sets.find((set) => set.node === name)!
      const paths = fields.map((field) => field.name)
      const tops = paths.filter((path) => !path.includes('.'))
      const below = paths.filter((path) => path.includes('.'))
      const filter = /^(orderJ|activityL)/.test(name)
        ? `orderId == '${ORDERS[0]!.orderId}'`
        : undefined
      const navigate = edges.map((one) => ({
        edge: one.name,
        limit: one.cardinality === 'many' ? 1 : undefined,
      }))
      for (const some of [tops, below]) {
        const answer = await ask([{ edge, filter, limit: 1, node: { fields: some, navigate } }])
        t.equal(answer.status, 200, `${name}: ${answer.text.slice(0, 200)}`)
      }
    }
  },
)

t.test('permissions: nodes and fields', async (t) => {
  const { orderId } = ORDERS[1]!
  const as = async (scope: string, body: unknown): Promise<Answer> =>
    ask(body, { token: await node.token(scope) })
  const orders = [{ edge: 'orders', node: { fields: ['orderNumber'] } }]
  const count = [{ edge: 'orders', count: true }]
  refused(t, await as('registry:read', count), 'FORBIDDEN_NODE', /graph\/order:query/)
  refused(t, await as('graph/delivery:query', count), 'FORBIDDEN_NODE', /graph\/order:query/)
  t.equal((await as('graph/order:query', count)).status, 200, 'query alone allows counting')
  refused(t, await as('graph/order:query', orders), 'FORBIDDEN_FIELD', /field:orderNumber/)
  const fields = 'graph/order:query graph/order:field:orderNumber graph/order:field:dynamic:n'
  t.equal((await as(fields, orders)).status, 200)
  t.equal(
    (await as(fields, [{ edge: 'orders', filter: 'orderTotal > 1', count: true }])).status,
    200,
  )
  const dynamic = [{ edge: 'orders', node: { fields: ["dynamic->'n'"] } }]
  t.equal((await as(fields, dynamic)).status, 200)
  const deep = [{ edge: 'orders', node: { fields: ["dynamic->'deep'"] } }]
  refused(t, await as(fields, deep), 'FORBIDDEN_FIELD', /field:dynamic:deep/)
  refused(
    t,
    await as(fields, [{ edge: 'orders', node: { fields: ['dynamic'] } }]),
    'FORBIDDEN_FIELD',
    /dynamic/,
  )
  const nested = [{ edge: 'orders', node: { navigate: [{ edge: 'orderLines', count: true }] } }]
  refused(t, await as(fields, nested), 'FORBIDDEN_NODE', /graph\/orderLine:query/)
  const one = await as(`graph/order/${orderId}:query graph/order:field`, orders)
  t.strictSame(one.json(), { orders: [{ orderNumber: 'G2' }] }, 'an ACE on one node')
  const meta = await node.ask(`${PATH}/meta`, { token: await node.token(fields) })
  t.match(meta.json(), {
    sets: [{ name: 'orders' }],
    nodes: [{ name: 'order', fields: [{ name: 'orderNumber' }], edges: [] }],
  })
  t.equal(meta.json<{ sets: unknown[] }>().sets.length, 1)
})

t.test('explain', async (t) => {
  const { orderId } = ORDERS[1]!
  const lines = { edge: 'orderLines', node: { fields: ['quantity'] } }
  const filter = `orderNumber startsWith 'G'`
  const body = [
    { edge: 'orders', filter, limit: 3, node: { fields: ['orderNumber'], navigate: [lines] } },
  ]
  const by = async (scope: string): Promise<Answer> =>
    node.ask(`${PATH}?explain`, { body, token: await node.token(scope) })
  const queries = 'graph/order:query graph/orderLine:query graph/orderLine:field'
  const fields = `${queries} graph/order:field:orderNumber`
  refused(t, await by(fields), 'FORBIDDEN', /graph:explain/)
  refused(t, await by(`${queries} graph:explain`), 'FORBIDDEN_FIELD', /orderNumber/)
  const told = (await by(`${fields} graph:explain`)).json<Told>()
  const plan = [
    { at: '/0', node: 'order', filter: 'orderNumber:text startsWith "G"', access: null },
    { at: '/0/node/navigate/0', node: 'orderLine', from: /^edge orderLines within the actor/ },
  ]
  t.match(told, {
    plan,
    engine: {
      name: /^(SQLite|Elasticsearch)$/,
      steps: [{ at: '/0', parents: null, rows: 3 }],
    },
    timings: Object.fromEntries(
      ['total', 'planning', 'consistency', 'queue', 'engine', 'assembling'].map((part) => [
        `${part}Ms`,
        Number,
      ]),
    ),
  })
  // Where there are several, the last one brings the rows.
  t.match(told.engine.steps[0]!.queries.at(-1), { query: /./, runs: 1, rows: 4 })
  t.match(told.engine.steps[1], { at: '/0/node/navigate/0', parents: 3, rows: 5 })
  t.notMatch(JSON.stringify(told.engine), /"G"|'G'/)
  const one = `graph/order/${orderId}:query graph/order:field graph/orderLine:* graph:explain`
  const narrowed = (await by(one)).json<Told>()
  t.match(narrowed.plan[0], { access: 'order: orderId:text in [?]' })
  t.match(narrowed.engine.steps[0], { rows: 1, queries: 'hidden' })
  t.notMatch(JSON.stringify(narrowed), orderId)
})

interface Told {
  readonly plan: readonly object[]
  readonly engine: { readonly steps: readonly { readonly queries: readonly object[] }[] }
}

t.test('what is deleted leaves the graph', async (t) => {
  const { orderId } = await smallOrder(node)
  const gone = await node.order(orderId, [{ type: 'delete' }])
  const counts = await node.graph(
    ['orders', 'deliveries', 'orderLines'].map((edge) => ({
      edge,
      count: true,
      filter: `orderId == '${orderId}'`,
    })),
    gone,
  )
  t.strictSame(counts, { orders: 0, deliveries: 0, orderLines: 0 })
})
