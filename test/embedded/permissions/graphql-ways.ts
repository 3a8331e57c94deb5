// Ways to an order over GraphQL.

import { DELIVERIES, names, only, refusalIn, type Way } from './stage.ts'

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

export const GRAPHQL_WAYS: readonly Way[] = [
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
]
