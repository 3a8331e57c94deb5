// No way in shows a node, a field, a count or that there is something, but by an entry for it:
// every way in, in both settings of what filters may look at, for every kind of entry. A way that
// comes is a row of WAYS. Source: specification "Scopes and ACEs", CONTRACT 1.4 "ACL failures".

import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { startInside, type InnerNode } from '../harness/node-in-process.ts'
import { create, smallOrderCommands } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'

const NORTH: string = randomUUID()
const SOUTH: string = randomUUID()
const DELIVERIES = new Map([NORTH, SOUTH].map((id) => [id, randomUUID()]))

/** What the client is said to be: of the north, and of a locale that no order has. */
const ATTRIBUTES = { customerNumber: ['north'], locale: ['xx'], 'dynamic.shop': ['n'] }

async function started(t: Test, filterFields: string): Promise<InnerNode> {
  const env = { KONTOR_GRAPH_FILTER_FIELDS: filterFields }
  const node = await startInside(t, env, (id) => (id === 'bootstrap' ? ATTRIBUTES : {}))
  const owner = await node.token()
  for (const [orderId, customerNumber] of [
    [NORTH, 'north'],
    [SOUTH, 'south'],
  ] as const) {
    const commands = smallOrderCommands(DELIVERIES.get(orderId)!, randomUUID())
    const customer = { type: 'setCustomerNumber', value: customerNumber }
    const shop = { type: 'setDynamicFields', fields: { shop: customerNumber[0] } }
    const message = create({}, ...commands, customer, shop)
    const made = await node.ask(`/resources/actors/order/${orderId}`, owner, [message])
    if (made.status !== 200) throw new Error(made.text)
  }
  const all = [{ edge: 'orders', count: true }]
  await until('both are in the index', async () => {
    return (await node.ask('/resources/graph', owner, all)).text === '{"orders":2}'
  })
  return node
}

type Outcome = string

const refusalIn = (text: string): Outcome | null =>
  /"code":"([A-Z_]+)"/.exec(text.split('\n')[0]!)?.[1] ?? null

/** How somebody may find out whether there is an order: `shown`, `absent`, or a refusal's code. */
interface Way {
  readonly name: string
  readonly look: (node: InnerNode, orderId: string, token: string) => Promise<Outcome>
  /** What is told of an order that isn't seen, where that isn't `absent`: its actor was named. */
  readonly unseen?: Outcome
  /** What is told who may see no order at all, where that isn't FORBIDDEN_NODE. */
  readonly refused?: Outcome
}

/** A body, and whether its answer shows the order. */
const inGraph = (
  name: string,
  bodyOf: (orderId: string) => object,
  isShown: (text: string, orderId: string) => boolean,
): Way => ({
  name,
  look: async (node, orderId, token) => {
    const { text } = await node.ask('/resources/graph', token, [bodyOf(orderId)])
    return refusalIn(text) ?? (isShown(text, orderId) ? 'shown' : 'absent')
  },
})

/** The same over GraphQL, whose schema hasn't what may not be seen. */
const inGraphQl = (
  name: string,
  queryOf: (orderId: string) => string,
  isShown: (text: string, orderId: string) => boolean,
): Way => ({
  name: `GraphQL: ${name}`,
  refused: 'INVALID_QUERY',
  look: async (node, orderId, token) => {
    const { text } = await node.ask('/graphql', token, { query: queryOf(orderId) })
    return refusalIn(text) ?? (isShown(text, orderId) ? 'shown' : 'absent')
  },
})

const only = (orderId: string): string => `orderId == '${orderId}'`
const names = (text: string, orderId: string): boolean => text.includes(orderId)
const counts = (text: string): boolean => /:1\}/.test(text)
const message = { fields: ['orderId'] }

const WAYS: readonly Way[] = [
  inGraph('all of the set', () => ({ edge: 'orders' }), names),
  inGraph('all, sorted', () => ({ edge: 'orders', orderBy: 'orderId desc' }), names),
  inGraph('by a filter', (id) => ({ edge: 'orders', filter: only(id) }), names),
  inGraph('a count', (id) => ({ edge: 'orders', filter: only(id), count: true }), counts),
  inGraph(
    'an edge',
    (id) => ({
      edge: 'deliveries',
      filter: `deliveryId == '${DELIVERIES.get(id)}'`,
      node: { navigate: [{ edge: 'order' }] },
    }),
    names,
  ),
  inGraph(
    'a gate',
    (id) => ({
      edge: 'deliveries',
      filter: `deliveryId == '${DELIVERIES.get(id)}'`,
      count: true,
      node: { navigate: [{ edge: 'order', require: 'some' }] },
    }),
    counts,
  ),
  inGraph(
    'a gate the other way',
    (id) => ({
      edge: 'deliveries',
      filter: `deliveryId == '${DELIVERIES.get(id)}'`,
      count: true,
      node: { navigate: [{ edge: 'order', require: 'none' }] },
    }),
    (text) => !counts(text),
  ),
  inGraph(
    'history',
    (id) => ({ edge: 'orderJournalEntries', filter: only(id), node: { fields: ['type'] } }),
    (text) => text.includes('"type"'),
  ),
  inGraph(
    'a count of history',
    (id) => ({ edge: 'orderJournalEntries', filter: only(id), count: true }),
    (text) => !text.includes(':0}'),
  ),
  inGraphQl('all of the set', () => '{ orders { orderId } }', names),
  inGraphQl(
    'a page',
    () => '{ ordersConnection { edges { cursor node { orderId } } pageInfo { endCursor } } }',
    names,
  ),
  inGraphQl(
    'a count',
    (id) => `{ ordersConnection(filter: "${only(id)}") { totalCount } }`,
    (text) => text.includes('"totalCount":1'),
  ),
  inGraphQl(
    'an edge',
    (id) => `{ deliveries(filter: "deliveryId == '${DELIVERIES.get(id)}'") { order { orderId } } }`,
    names,
  ),
  inGraphQl(
    'a gate',
    (id) =>
      `{ deliveries(filter: "deliveryId == '${DELIVERIES.get(id)}'")
         { deliveryId order(require: some) { orderId } } }`,
    (text) => text.includes('"deliveryId"'),
  ),
  {
    name: 'GET, page by page',
    look: async (node, orderId, token) => {
      for (let after: string | undefined; ;) {
        const body = { edge: 'orders', limit: 1, cursor: 'last', ...(after && { after }) }
        const q = encodeURIComponent(JSON.stringify([body]))
        const { text } = await node.ask(`/resources/graph?q=${q}`, token)
        const refused = refusalIn(text)
        if (refused !== null) return refused
        if (names(text, orderId)) return 'shown'
        after = (JSON.parse(text) as { ordersCursor?: string }).ordersCursor
        if (after === undefined) return 'absent'
      }
    },
  },
  ...['', '?preview'].map((suffix): Way => ({
    name: `query message${suffix}`,
    unseen: 'FORBIDDEN_NODE',
    look: async (node, orderId, token) => {
      const path = `/resources/actors/order/${orderId}${suffix}`
      const { text } = await node.ask(path, token, [{ type: 'query', body: message }])
      return refusalIn(text) ?? (text.includes('"orderId"') ? 'shown' : 'absent')
    },
  })),
  {
    name: 'a preview that changes what it is seen by',
    unseen: 'FORBIDDEN_NODE',
    look: async (node, orderId, token) => {
      const commands = [
        { type: 'setCustomerNumber', value: 'north' },
        { type: 'setDynamicFields', fields: { shop: 'n' } },
      ]
      const { text } = await node.ask(`/resources/actors/order/${orderId}?preview`, token, [
        { type: 'applyCommands', body: { commands } },
        { type: 'query', body: message },
      ])
      return refusalIn(text) ?? (text.includes('"orderId"') ? 'shown' : 'absent')
    },
  },
  {
    name: 'query in bulk',
    unseen: 'FORBIDDEN_NODE',
    look: async (node, orderId, token) => {
      const line = JSON.stringify({ id: orderId, messages: [{ type: 'query', body: message }] })
      const path = '/resources/actors/order'
      const { text } = await node.ask(path, token, `${line}\n`, 'application/x-ndjson')
      return refusalIn(text) ?? (text.includes('"orderId"') ? 'shown' : 'absent')
    },
  },
]

/** Entries for orders, and which of the two they show; null: none, and asking is refused. */
const ENTRIES: readonly (readonly [entries: string, shown: readonly string[] | null])[] = [
  ['', null],
  ['graph/order:field:orderId', null],
  ['graph/order:query', [NORTH, SOUTH]],
  [`graph/order/${SOUTH}:query`, [SOUTH]],
  [`graph/order/${randomUUID()}:query`, []],
  ['customerNumber@graph/order:query', [NORTH]],
  ['customerNumber@graph:query', [NORTH]],
  ['dynamic.shop@graph/order:query', [NORTH]],
  ['locale@graph/order:query', []],
  ['customerNumber@graph/delivery:query', null],
  [`customerNumber@graph/order:query graph/order/${SOUTH}:query`, [NORTH, SOUTH]],
]

/** What every way needs beside the order's own entry. */
const BESIDE = [
  ...['actors/order:query', 'actors/order:applyCommands', 'graph/delivery:query'],
  ...['graph/delivery:field:deliveryId', 'graph/orderJournalEntry:query'],
  ...['graph/orderJournalEntry:field:type', 'graph/orderJournalEntry:field:orderId'],
  'graph/order:field:orderId',
].join(' ')

for (const setting of ['any', 'granted']) {
  t.test(`which orders are seen, filters looking at ${setting} fields`, async (t) => {
    const node = await started(t, setting)
    for (const [entries, shown] of ENTRIES) {
      const token = await node.token(`${BESIDE} ${entries}`)
      const meta = JSON.parse((await node.ask('/resources/graph/meta', token)).text) as {
        sets: readonly { name: string }[]
      }
      const isListed = meta.sets.some(({ name }) => name === 'orders')
      t.equal(isListed, shown !== null, `meta: ${entries}`)
      for (const way of WAYS) {
        for (const orderId of [NORTH, SOUTH]) {
          const outcome = await way.look(node, orderId, token)
          const isSeen = shown?.includes(orderId) ? 'shown' : (way.unseen ?? 'absent')
          const right = shown === null ? (way.refused ?? 'FORBIDDEN_NODE') : isSeen
          const which = orderId === NORTH ? 'north' : 'south'
          t.equal(outcome, right, `${way.name}, ${which}: ${entries}`)
        }
      }
    }
  })
}

/** Ways to look at a hidden field: to be shown it, or to have it decide what is shown. */
const LOOKS: readonly (readonly [name: string, isFilter: boolean, body: object])[] = [
  ['shown', false, { edge: 'orders', node: { fields: ['orderId', 'customerNumber'] } }],
  ['a member shown', false, { edge: 'orders', node: { fields: ["dynamic->'shop'"] } }],
  ['sorted by', false, { edge: 'orders', orderBy: 'customerNumber' }],
  ['sorted by, counted', false, { edge: 'orders', orderBy: 'customerNumber', count: true }],
  ['sorted by, paged', false, { edge: 'orders', orderBy: "dynamic->'shop'", cursor: 'each' }],
  [
    'an edge sorted by',
    false,
    {
      edge: 'deliveries',
      node: { navigate: [{ edge: 'order', orderBy: 'customerNumber' }] },
    },
  ],
  ['filtered by', true, { edge: 'orders', filter: "customerNumber == 'north'" }],
  ['told missing', true, { edge: 'orders', filter: 'customerNumber == nothing' }],
  ['counted by', true, { edge: 'orders', filter: "dynamic->'shop' == 'n'", count: true }],
  [
    'a gate by',
    true,
    {
      edge: 'deliveries',
      count: true,
      node: {
        navigate: [{ edge: 'order', filter: "customerNumber == 'north'", require: 'some' }],
      },
    },
  ],
]

for (const setting of ['any', 'granted']) {
  t.test(`which fields are seen, filters looking at ${setting} fields`, async (t) => {
    const node = await started(t, setting)
    const hidden = await node.token(`${BESIDE} graph/order:query`)
    const some = 'graph/order:field:customerNumber graph/order:field:dynamic:shop'
    const open = await node.token(`${BESIDE} graph/order:query ${some}`)
    for (const [name, isFilter, body] of LOOKS) {
      const look = async (token: string): Promise<Outcome> =>
        refusalIn((await node.ask('/resources/graph', token, [body])).text) ?? 'answered'
      const isAnswered = isFilter && setting === 'any'
      t.equal(await look(hidden), isAnswered ? 'answered' : 'FORBIDDEN_FIELD', name)
      t.equal(await look(open), 'answered', name)
    }
    for (const query of [
      '{ orders { customerNumber } }',
      '{ orders { dynamicField(name: "shop") } }',
    ]) {
      const look = async (token: string): Promise<Outcome> =>
        refusalIn((await node.ask('/graphql', token, { query })).text) ?? 'answered'
      t.equal(await look(hidden), 'INVALID_QUERY', query)
      t.equal(await look(open), 'answered', query)
    }
    const meta = (await node.ask('/resources/graph/meta', hidden)).text
    t.notMatch(meta, /"name":"(customerNumber|dynamic|orderNumber)/)
    const near = [{ edge: 'orders', node: { fields: ['customerNumbr'] } }]
    t.notMatch((await node.ask('/resources/graph', hidden, near)).text, /customerNumber/)
    t.match((await node.ask('/resources/graph', open, near)).text, /customerNumber/)
  })
}

t.test('two stores that differ only in hidden fields answer alike to the byte', async (t) => {
  const answers: string[][] = []
  for (const customerNumber of ['north', 'south']) {
    const node = await startInside(t, { KONTOR_GRAPH_FILTER_FIELDS: 'granted' }, () => ({}))
    const owner = await node.token()
    for (const [n, orderId] of IDS.entries()) {
      const commands = [
        ...smallOrderCommands(...CHILDREN[n]!),
        { type: 'setCustomerNumber', value: n === 0 ? customerNumber : `other-${n}` },
        { type: 'setDynamicFields', fields: { gift: n, hidden: [customerNumber, n] } },
        { type: 'addTag', key: `${customerNumber}${n}` },
      ]
      const message = create({ orderNumber: `N-${n}` }, ...commands)
      const made = await node.ask(`/resources/actors/order/${orderId}`, owner, [message])
      if (made.status !== 200) throw new Error(made.text)
    }
    const all = [{ edge: 'orders', count: true }]
    const number = `{"orders":${IDS.length}}`
    await until('all are in the index', async () => {
      return (await node.ask('/resources/graph', owner, all)).text === number
    })
    const token = await node.token(GRANTED)
    const told: string[] = []
    for (const body of PROBES) {
      const { status, text } = await node.ask('/resources/graph', token, [body])
      // Each request has an id of its own; cursors are sealed with the store's secret.
      const bare = text.replace(/"requestId":"[^"]+"/, '').replace(/Cursor(s?)":.*?[\]"][,}]/, '')
      told.push(`${JSON.stringify(body)}: ${status} ${bare}`)
    }
    for (const query of GRAPHQL_PROBES) {
      const { status, text } = await node.ask('/graphql', token, { query })
      told.push(`${query}: ${status} ${text}`)
    }
    told.push((await node.ask('/resources/graph/meta', token)).text)
    const query = [{ type: 'query', body: { fields: ['orderNumber'] } }]
    told.push((await node.ask(`/resources/actors/order/${IDS[0]}?preview`, token, query)).text)
    answers.push(told)
  }
  const [first, second] = answers
  t.same(second, first)
  t.ok(first!.some((text) => text.includes('200 {"orders":[{')))
})

const IDS: readonly string[] = Array.from({ length: 4 }, () => randomUUID())

const CHILDREN = IDS.map((): [string, string] => [randomUUID(), randomUUID()])

const GRANTED = [
  ...['actors/order:query', 'graph:query', 'graph/order:field:orderId'],
  ...['graph/order:field:orderNumber', 'graph/order:field:dynamic:gift'],
  ...['graph/orderLine:field', 'graph/delivery:field:deliveryId', 'graph/delivery:field:orderId'],
].join(' ')

/** What somebody may try who wants to know a hidden field. */
const PROBES: readonly object[] = [
  ...LOOKS.map(([, , body]) => body),
  { edge: 'orders', node: { fields: ['orderNumber', "dynamic->'gift'"] } },
  { edge: 'orders', limit: 2, cursor: 'last', orderBy: "dynamic->'gift' desc" },
  { edge: 'orders', limit: 1, node: { fields: ['orderNumber'] } },
  { edge: 'orders', filter: "dynamic->'gift' > 1", count: true },
  { edge: 'orders', filter: "dynamic->'hidden' anyof ['north']", count: true },
  { edge: 'orders', filter: "tags anyof ['north0']" },
  { edge: 'orders', filter: "customerNumber == 'north' or orderNumber == 'N-1'" },
  { edge: 'orders', node: { fields: ['dynamic'] } },
  { edge: 'orders', node: { fields: ['tags'] } },
  { edge: 'orders', node: { fields: ['custmerNumber'] } },
  {
    edge: 'deliveries',
    node: {
      fields: ['deliveryId'],
      navigate: [{ edge: 'order', node: { fields: ['orderNumber'] } }],
    },
  },
  { edge: 'orderLines', orderBy: 'quantity', node: { fields: ['orderLineId', 'quantity'] } },
]

const GRAPHQL_PROBES: readonly string[] = [
  '{ __schema { types { name fields { name args { name } type { name } } enumValues { name } } } }',
  '{ orders { orderNumber gift: dynamicField(name: "gift") } }',
  '{ orders { hidden: dynamicField(name: "hidden") } }',
  '{ orders { customerNumber } }',
  '{ orders { custmerNumber tags } }',
  '{ orders(orderBy: "customerNumber") { orderNumber } }',
  '{ ordersConnection(filter: "customerNumber == \'north\'") { totalCount } }',
  `{ deliveries { order(filter: "tags anyof ['north0']", require: some) { orderNumber } } }`,
]
