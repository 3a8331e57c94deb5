// No way in shows a node, a field, a count or that there is something, but by an entry for it:
// every way in, in both settings of what filters may look at, for every kind of entry. A way that
// comes is a row in `permissions/`. Source: specification "Scopes and ACEs", CONTRACT 1.4 "ACL
// failures".

import { randomUUID } from 'node:crypto'
import t from 'tap'
import { startInside } from '../harness/node-in-process.ts'
import { create, smallOrderCommands } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'
import { ACTOR_WAYS } from './permissions/actor-ways.ts'
import { GRAPH_WAYS } from './permissions/graph-ways.ts'
import { GRAPHQL_WAYS } from './permissions/graphql-ways.ts'
import { LIVE_WAYS } from './permissions/live-ways.ts'
import { BESIDE, ENTRIES, NORTH, refusalIn, SOUTH, started } from './permissions/stage.ts'
import type { Outcome, Way } from './permissions/stage.ts'

const WAYS: readonly Way[] = [...GRAPH_WAYS, ...GRAPHQL_WAYS, ...ACTOR_WAYS, ...LIVE_WAYS]

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
