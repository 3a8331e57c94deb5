// Ways to an order over the graph's own requests.

import { counts, DELIVERIES, names, only, refusalIn, type Way } from './stage.ts'

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

export const GRAPH_WAYS: readonly Way[] = [
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
]
