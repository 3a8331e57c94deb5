// What a token may see of the graph, by every way in: the graph by POST and GET, `query` messages,
// previews, bulk. All answer the same caller alike. On a real node, whose filters look at granted
// fields only. Source: specification "Scopes and ACEs", CONTRACT 1.3 "query message", 1.4.

import t from 'tap'
import { startNode } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { smallOrder } from '../harness/orders.ts'

const node = await startNode(t, { KONTOR_GRAPH_FILTER_FIELDS: 'granted' })
const own = await smallOrder(node)
const other = await smallOrder(node)
const wrote = await node.order(other.orderId, [
  { type: 'applyCommands', body: { commands: [{ type: 'addTag', key: 'hidden' }] } },
])
await node.graph([{ edge: 'orders', count: true }], wrote)

type Node = Readonly<Record<string, unknown>>
type Outcome = string

interface Way {
  readonly name: string
  readonly ask: (order: string, node: Node, token: string) => Promise<Outcome>
}

/** `ok`, or the code of the refusal, of the answer's first result where it has some. */
function outcomeOf(answer: Answer): Outcome {
  const text = answer.text.trim().split('\n')[0]!
  const { errors } = JSON.parse(text) as { errors?: readonly { code: string }[] }
  return errors?.[0]?.code ?? 'ok'
}

const inGraph = (order: string, body: Node): unknown => [
  { edge: 'orders', filter: `orderId == '${order}'`, node: body },
]
const messages = (body: Node): unknown => [{ type: 'query', body }]

const WAYS: readonly Way[] = [
  {
    name: 'POST graph',
    ask: async (order, body, token) =>
      outcomeOf(await node.ask('/resources/graph', { body: inGraph(order, body), token })),
  },
  {
    name: 'GET graph',
    ask: async (order, body, token) => {
      const q = encodeURIComponent(JSON.stringify(inGraph(order, body)))
      return outcomeOf(await node.ask(`/resources/graph?q=${q}`, { token }))
    },
  },
  ...['', '?preview'].map((suffix): Way => {
    const ask: Way['ask'] = async (order, body, token) => {
      const path = `/resources/actors/order/${order}${suffix}`
      return outcomeOf(await node.ask(path, { body: messages(body), token }))
    }
    return { name: `query message${suffix}`, ask }
  }),
  {
    name: 'query in bulk',
    ask: async (order, body, token) => {
      const line = JSON.stringify({ id: order, messages: messages(body) })
      const headers = { 'Content-Type': 'application/x-ndjson' }
      return outcomeOf(
        await node.ask('/resources/actors/order', { raw: `${line}\n`, headers, token }),
      )
    },
  },
]

/** What every way in needs: the message, and the graph's filter on the id. */
const EVERYWHERE = 'actors/order:query graph/order:field:orderId'

const number = { fields: ['orderNumber'] }
const lines = (more: Node): Node => ({ navigate: [{ edge: 'orderLines', ...more }] })

const MATRIX: readonly (readonly [scope: string, node: Node, expected: Outcome])[] = [
  ['', number, 'FORBIDDEN_NODE'],
  ['graph/order:query', number, 'FORBIDDEN_FIELD'],
  ['graph/order:query graph/order:field:orderNumber', number, 'ok'],
  ['graph:*', number, 'ok'],
  [`graph/order/${own.orderId}:query graph/order:field`, number, 'ok'],
  ['graph/order:query', lines({ count: true }), 'FORBIDDEN_NODE'],
  ['graph:query', lines({ count: true }), 'ok'],
  ['graph:query', lines({ count: true, filter: 'quantity > 0' }), 'FORBIDDEN_FIELD'],
  ['graph:query', lines({ require: 'some', filter: 'quantity > 0' }), 'FORBIDDEN_FIELD'],
  [
    'graph:query graph/orderLine:field:orderLineId',
    lines({ orderBy: 'quantity', node: { fields: ['orderLineId'] } }),
    'FORBIDDEN_FIELD',
  ],
  [
    'graph:query graph/orderLine:field:quantity',
    lines({ orderBy: 'quantity', filter: 'quantity > 0', node: { fields: ['quantity'] } }),
    'ok',
  ],
  [
    'graph/order:query',
    { navigate: [{ edge: 'journalEntries', node: { fields: ['type'] } }] },
    'FORBIDDEN_NODE',
  ],
]

t.test('all ways in answer the same caller alike', async (t) => {
  for (const [scope, body, expected] of MATRIX) {
    const token = await node.token(`${EVERYWHERE} ${scope}`)
    for (const way of WAYS) {
      const outcome = await way.ask(own.orderId, body, token)
      t.equal(outcome, expected, `${way.name}: ${scope}: ${JSON.stringify(body)}`)
    }
  }
})

t.test('an entry on one order opens nothing of another, its journal included', async (t) => {
  const scope =
    `${EVERYWHERE} graph/order/${own.orderId}:query graph/order:field ` +
    'graph/orderJournalEntry:query graph/orderJournalEntry:field'
  const token = await node.token(scope)
  const entries = async (orderId: string): Promise<unknown> => {
    const filter = `orderId == '${orderId}'`
    const body = [{ edge: 'orderJournalEntries', filter, node: { fields: ['type'] } }]
    const answer = await node.ask('/resources/graph', { body, token })
    return answer.json<{ orderJournalEntries: unknown[] }>().orderJournalEntries.length
  }
  t.not(await entries(own.orderId), 0)
  t.equal(await entries(other.orderId), 0)
  const [, , message, preview] = WAYS
  const journal = { navigate: [{ edge: 'journalEntries', node: { fields: ['type'] } }] }
  t.equal(await message!.ask(own.orderId, journal, token), 'ok')
  for (const way of [message!, preview!]) {
    t.equal(await way.ask(other.orderId, journal, token), 'FORBIDDEN_NODE')
  }
})
