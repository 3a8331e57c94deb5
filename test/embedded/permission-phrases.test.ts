// Phrases show no order, no field and no existence but by an entry for it: in the graph, GraphQL
// and `query` messages, in both settings of what filters may look at. Source: specification
// "Scopes and ACEs", "Graph" (phrase matching), CONTRACT 1.4 "ACL failures", 1.1 "Search indexes".

import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { type InnerNode, startInside } from '../harness/node-in-process.ts'
import { create, smallOrderCommands } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'
import { BESIDE, counts, DELIVERIES, ENTRIES, names, NORTH } from './permissions/stage.ts'
import { refusalIn, SOUTH, started, type Way } from './permissions/stage.ts'

const wordOf = (orderId: string): string => (orderId === NORTH ? 'north' : 'south')

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

const ofDelivery = (id: string, more: object): object => ({
  edge: 'deliveries',
  filter: `deliveryId == '${DELIVERIES.get(id)}'`,
  node: { navigate: [{ edge: 'order', phrase: wordOf(id), ...more }] },
})

const WAYS: readonly Way[] = [
  inGraph('a phrase', (id) => ({ edge: 'orders', phrase: wordOf(id) }), names),
  inGraph('a beginning', (id) => ({ edge: 'orders', phrase: `${wordOf(id).slice(0, 3)}*` }), names),
  inGraph('a count', (id) => ({ edge: 'orders', phrase: wordOf(id), count: true }), counts),
  inGraph('an edge', (id) => ofDelivery(id, {}), names),
  inGraph('a gate', (id) => ({ ...ofDelivery(id, { require: 'some' }), count: true }), counts),
  {
    name: 'GraphQL',
    refused: 'INVALID_QUERY',
    look: async (node, orderId, token) => {
      const query = `{ orders(phrase: "${wordOf(orderId)}") { orderId } }`
      const { text } = await node.ask('/graphql', token, { query })
      return refusalIn(text) ?? (names(text, orderId) ? 'shown' : 'absent')
    },
  },
]

/** Without a token's entry on the number nothing would be looked into, where that is asked. */
const NUMBER = 'graph/order:field:customerNumber'

for (const setting of ['any', 'granted']) {
  t.test(`which orders phrases show, looking at ${setting} fields`, async (t) => {
    const node = await started(t, setting)
    for (const [entries, shown] of ENTRIES) {
      const token = await node.token(`${BESIDE} ${NUMBER} ${entries}`)
      for (const way of WAYS) {
        for (const orderId of [NORTH, SOUTH]) {
          const outcome = await way.look(node, orderId, token)
          const isSeen = shown?.includes(orderId) ? 'shown' : 'absent'
          const right = shown === null ? (way.refused ?? 'FORBIDDEN_NODE') : isSeen
          t.equal(outcome, right, `${way.name}, ${wordOf(orderId)}: ${entries}`)
        }
      }
    }
    await fields(t, node, setting)
    await messages(t, node)
  })
}

/** How many orders a phrase finds, or the code of the refusal. */
async function found(node: InnerNode, scope: string, phrase: string): Promise<string> {
  const body = [{ edge: 'orders', phrase, count: true }]
  const { text } = await node.ask('/resources/graph', await node.token(scope), body)
  return refusalIn(text) ?? String((JSON.parse(text) as { orders: number }).orders)
}

async function fields(t: Test, node: InnerNode, setting: string): Promise<void> {
  const seen = 'graph/order:query'
  const isAny = setting === 'any'
  t.equal(await found(node, seen, 'north'), isAny ? '1' : 'FORBIDDEN_FIELD', 'no field is granted')
  t.equal(await found(node, `${seen} ${NUMBER}`, 'north'), '1')
  const other = `${seen} graph/order:field:orderNumber`
  t.equal(await found(node, other, 'north'), isAny ? '1' : '0', 'another field is granted')
  const both = 'graph/order:query graph/orderLine:query'
  const line = `${both} graph/orderLine:field:productNumber`
  t.equal(await found(node, `${both} ${NUMBER}`, 'P-1'), isAny ? '2' : '0', 'over an edge')
  t.equal(await found(node, line, 'P-1'), '2')
  t.equal(await found(node, `${seen} ${NUMBER}`, 'P-1'), '0', 'over an edge to hidden nodes')
}

/** Within one actor, as it is and as a preview would have it. */
async function messages(t: Test, node: InnerNode): Promise<void> {
  const body = { navigate: [{ edge: 'orderLines', phrase: 'P-1', count: true }] }
  const beside = 'actors/order:query graph/order:query'
  for (const suffix of ['', '?preview']) {
    const look = async (scope: string): Promise<string> => {
      const path = `/resources/actors/order/${NORTH}${suffix}`
      const token = await node.token(`${beside} ${scope}`)
      const { text } = await node.ask(path, token, [{ type: 'query', body }])
      return refusalIn(text) ?? /"orderLines":(\d+)/.exec(text)![1]!
    }
    t.equal(await look(''), 'FORBIDDEN_NODE')
    t.equal(await look('graph/orderLine:query graph/orderLine:field:productNumber'), '1')
  }
}

t.test(
  'two stores that differ only in hidden fields answer phrases alike to the byte',
  async (t) => {
    const answers: string[][] = []
    for (const hidden of ['north', 'south']) {
      const node = await startInside(t, { KONTOR_GRAPH_FILTER_FIELDS: 'granted' }, () => ({}))
      const owner = await node.token()
      for (const [n, orderId] of IDS.entries()) {
        const commands = [
          ...smallOrderCommands(...CHILDREN[n]!),
          { type: 'setCustomerNumber', value: `${hidden} ${n}` },
          { type: 'setDynamicFields', fields: { gift: `pen ${n}`, hidden: `${hidden}${n}` } },
        ]
        const message = create({ orderNumber: `N-${n}` }, ...commands)
        const made = await node.ask(`/resources/actors/order/${orderId}`, owner, [message])
        if (made.status !== 200) throw new Error(made.text)
      }
      const names = ['orderNumber', 'customerNumber', `dynamic->'gift'`, `dynamic->'hidden'`]
      const search = { fields: names.map((field) => ({ field })) }
      await node.ask('/resources/registry/system/graph/order/search', owner, search)
      const all = [{ edge: 'orders', phrase: `${hidden}*`, count: true }]
      await until('all are found by all', async () => {
        return (await node.ask('/resources/graph', owner, all)).text === `{"orders":${IDS.length}}`
      })
      const token = await node.token(GRANTED)
      const told: string[] = []
      for (const phrase of PHRASES) {
        const body = [{ edge: 'orders', phrase, node: { fields: ['orderNumber'] } }]
        const { status, text } = await node.ask('/resources/graph', token, body)
        told.push(`${phrase}: ${status} ${text.replace(/"requestId":"[^"]+"/, '')}`)
        const query = `{ ordersConnection(phrase: ${JSON.stringify(phrase)}) { totalCount } }`
        told.push((await node.ask('/graphql', token, { query })).text)
      }
      told.push((await node.ask('/resources/graph/meta', token)).text)
      answers.push(told)
    }
    const [first, second] = answers
    t.same(second, first)
    t.ok(first!.some((text) => text.includes('200 {"orders":[{"orderNumber":"N-')))
  },
)

const IDS: readonly string[] = Array.from({ length: 3 }, () => randomUUID())
const CHILDREN = IDS.map((): [string, string] => [randomUUID(), randomUUID()])
const GRANTED =
  'graph:query graph/order:field:orderId graph/order:field:orderNumber graph/order:field:dynamic:gift'

/** Of hidden words, of shown ones, and of both: order included. */
const PHRASES = [
  ...['north', 'south', 'north*', 'n*', 'pen', 'pe*', 'pen 1', '"pen 1"', 'pen north', 'N-1'],
  ...['pen north0', `'north 0'`, 'south2 pen', '*', '"', ''],
]
