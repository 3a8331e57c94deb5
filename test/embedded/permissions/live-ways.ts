// Ways to an order that are asked for once and told for as long as they stand: live queries, and
// subscriptions of GraphQL.

import { createClient } from 'graphql-ws'
import { signIn } from '../../harness/socket-client.ts'
import { names, only, refusalIn, type Way } from './stage.ts'

/** The list of a live query, as it is when it is asked for. */
const live = (name: string, filterOf: (orderId: string) => string | undefined): Way => ({
  name: `live query: ${name}`,
  async look(node, orderId, token) {
    const client = await signIn(node, token)
    const filter = filterOf(orderId)
    const query = { edge: 'orders', ...(filter && { filter }), node: { fields: ['orderId'] } }
    client.send({ type: 'createLiveQuery', liveQueryId: 'q', query })
    const { type, code, nodes } = await client.answer('liveQueryCreated', 'liveQueryError')
    client.close()
    if (type === 'liveQueryError') return String(code)
    return names(JSON.stringify(nodes), orderId) ? 'shown' : 'absent'
  },
})

/** What a subscription is told first. */
const subscription = (name: string, queryOf: (orderId: string) => string): Way => ({
  name: `subscription: ${name}`,
  refused: 'INVALID_QUERY',
  async look({ port }, orderId, token) {
    const client = createClient({
      url: `ws://127.0.0.1:${port}/graphql`,
      connectionParams: { authorization: `Bearer ${token}` },
      retryAttempts: 0,
    })
    const changes = client.iterate({ query: queryOf(orderId) })
    try {
      const text = JSON.stringify((await changes.next()).value)
      return refusalIn(text) ?? (names(text, orderId) ? 'shown' : 'absent')
    } catch (error) {
      return refusalIn(JSON.stringify(error)) ?? String(error)
    } finally {
      await client.dispose()
    }
  },
})

export const LIVE_WAYS: readonly Way[] = [
  live('all', () => undefined),
  live('by a filter', only),
  live('by a filter that is not for itself', (id) => `not (${only(id)}) or ${only(id)}`),
  subscription('all', () => 'subscription { orders { nodes { orderId } } }'),
  subscription(
    'by a filter',
    (id) => `subscription { orders(filter: "${only(id)}") { nodes { orderId } } }`,
  ),
]
