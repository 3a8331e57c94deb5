// What the tests of permissions stand on: a store with an order of the north and one of the south,
// a client that has attributes, and what a way to find out whether there is an order is.

import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import { startInside, type InnerNode } from '../../harness/node-in-process.ts'
import { create, smallOrderCommands } from '../../harness/orders.ts'
import { until } from '../../harness/patience.ts'

export const NORTH: string = randomUUID()
export const SOUTH: string = randomUUID()
export const DELIVERIES = new Map([NORTH, SOUTH].map((id) => [id, randomUUID()]))

/** What the client is said to be: of the north, and of a locale that no order has. */
export const ATTRIBUTES = { customerNumber: ['north'], locale: ['xx'], 'dynamic.shop': ['n'] }

export async function started(t: Test, filterFields: string): Promise<InnerNode> {
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

export type Outcome = string

export const refusalIn = (text: string): Outcome | null =>
  /"code":"([A-Z_]+)"/.exec(text.split('\n')[0]!)?.[1] ?? null

/** How somebody may find out whether there is an order: `shown`, `absent`, or a refusal's code. */
export interface Way {
  readonly name: string
  readonly look: (node: InnerNode, orderId: string, token: string) => Promise<Outcome>
  /** What is told of an order that isn't seen, where that isn't `absent`: its actor was named. */
  readonly unseen?: Outcome
  /** What is told who may see no order at all, where that isn't FORBIDDEN_NODE. */
  readonly refused?: Outcome
}

export const only = (orderId: string): string => `orderId == '${orderId}'`
export const names = (text: string, orderId: string): boolean => text.includes(orderId)
export const counts = (text: string): boolean => /:1\}/.test(text)
export const message = { fields: ['orderId'] }

/** Entries for orders, and which of the two they show; null: none, and asking is refused. */
export const ENTRIES: readonly (readonly [entries: string, shown: readonly string[] | null])[] = [
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
export const BESIDE = [
  ...['actors/order:query', 'actors/order:applyCommands', 'graph/delivery:query'],
  ...['graph/delivery:field:deliveryId', 'graph/orderJournalEntry:query'],
  ...['graph/orderJournalEntry:field:type', 'graph/orderJournalEntry:field:orderId'],
  'graph/order:field:orderId',
  'graph:explain',
].join(' ')
