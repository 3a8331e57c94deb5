// Phrases of the graph, over HTTP on a real node: what finds an order, in which order, what is
// refused, and that a hit over an edge goes with the edge. Source: specification "Graph"; CONTRACT
// 1.4.2.

import t from 'tap'
import { refused } from '../harness/answers.ts'
import { startNode } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { apply } from '../harness/orders.ts'
import { graphOrders } from './graph-orders.ts'

const node = await startNode(t)
const { orders: ORDERS, last } = await graphOrders(node)

type Rows = readonly Record<string, unknown>[]

/** Orders that a phrase finds, as places in ORDERS. */
async function found(phrase: string, after: Answer = last): Promise<string> {
  const body = [{ edge: 'orders', phrase, node: { fields: ['orderNumber'] } }]
  const { orders } = await node.graph<{ orders: Rows }>(body, after)
  return orders.map(({ orderNumber }) => String(orderNumber).slice(1)).join('')
}

t.test('words, beginnings, quotes, keywords', async (t) => {
  for (const [phrase, numbers] of [
    ['name', '1234'],
    ['NAME 1', '1324'],
    ['"name 1"', '13'],
    ['"1 name"', ''],
    ['nam*', '1234'],
    ['nam', ''],
    ['g3', '3'],
    ['g*', '12345'],
    ['c1', '1'],
    ['name c1', '1234'],
    ['name "c1"', '1'],
    ['extra-3', '3'],
    ['extra*', '135'],
    ['extra', ''],
    ['name extra-1', '1'],
    ['ab', ''],
    ['nobody', ''],
  ] as const) {
    t.equal(await found(phrase), numbers, phrase)
  }
})

t.test('filters, counts, edges and gates beside a phrase', async (t) => {
  const answer = await node.graph(
    [
      { edge: 'orders', alias: 'some', phrase: 'name', filter: "tags anyof ['odd']", count: true },
      {
        edge: 'orderLines',
        alias: 'lines',
        phrase: 'extra-5',
        node: { fields: ['productNumber'] },
      },
      {
        edge: 'orders',
        node: {
          fields: ['orderNumber'],
          navigate: [{ edge: 'orderLines', phrase: 'extra-1', require: 'some', count: true }],
        },
      },
    ],
    last,
  )
  t.same(answer, {
    some: 2,
    lines: [{ productNumber: 'EXTRA-5' }],
    orders: [{ orderNumber: 'G1', orderLines: 1 }],
  })
})

t.test('a hit over an edge goes with the edge', async (t) => {
  const { orderId, orderLineId } = ORDERS[1]!
  const number = (value: string): Promise<Answer> =>
    node.order(orderId, [apply({ type: 'setOrderLineProduct', orderLineId, productNumber: value })])
  t.equal(await found('zebra-7', await number('ZEBRA-7')), '2')
  const changed = await number('LION-8')
  t.equal(await found('zebra-7', changed), '')
  t.equal(await found('lion-8', changed), '2')
})

t.test('what is refused says where', async (t) => {
  for (const [members, words] of [
    [{ phrase: '' }, /phrase.*position 0: the phrase is empty/],
    [{ phrase: 'a "b' }, /position 2: .*no closing "/],
    [{ phrase: 'x'.repeat(1_000_000) }, /at most 500 characters/],
    [{ phrase: 'ada', orderBy: 'orderNumber' }, /phrase and orderBy/],
    [{ edge: 'returns', phrase: 'ada' }, /no field of return is indexed/],
  ] as const) {
    const answer = await node.ask('/resources/graph', { body: [{ edge: 'orders', ...members }] })
    refused(t, answer, 'INVALID_QUERY', words)
  }
})
