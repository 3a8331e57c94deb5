// GraphQL over HTTP on a real node: the audit of its specification, a client of the ecosystem, and
// what is asked over GraphQL against the same question as navigation objects. Source: specification
// "Graph", CONTRACT 1.4.1.

import { GraphQLClient } from 'graphql-request'
import { serverAudits } from 'graphql-http'
import {
  buildClientSchema,
  getIntrospectionQuery,
  type IntrospectionQuery,
  isEnumType,
  isObjectType,
} from 'graphql'
import t from 'tap'
import { type Answer, startNode } from '../harness/node-process.ts'
import { Patience } from '../harness/patience.ts'
import { graphOrders } from './graph-orders.ts'

const node = await startNode(t)
const { last } = await graphOrders(node)
// All that was written is in the graph from here on.
await node.graph([{ edge: 'orders', count: true }], last)
const token = await node.token()
const url = `http://127.0.0.1:${node.port}/graphql`
const authorization = `Bearer ${token}`
const client = new GraphQLClient(url, { headers: { authorization } })

t.test('the audit of GraphQL over HTTP', async (t) => {
  const withToken: typeof fetch = (input, init = {}) => {
    const headers = new Headers(init.headers)
    headers.set('Authorization', authorization)
    return fetch(input, { ...init, headers })
  }
  const audits = serverAudits({ url, fetchFn: withToken })
  t.ok(audits.length > 50, `${audits.length} audits`)
  for (const audit of audits) {
    const result = await audit.fn()
    t.equal(
      result.status,
      'ok',
      `${audit.id} ${audit.name}: ${'reason' in result ? result.reason : ''}`,
    )
  }
})

t.test('a client of the ecosystem: variables, fragments, aliases, directives', async (t) => {
  const document = `
    query Page($filter: String!, $more: Boolean!) {
      orders(filter: $filter, orderBy: "orderNumber", limit: 10) { ...Order }
      all: ordersConnection { totalCount }
    }
    fragment Order on Order {
      __typename
      number: orderNumber
      orderState
      invoiceAddress { name }
      tags
      n: dynamicField(name: "n")
      odd: dynamicField(name: "odd key")
      deliveries { orderLines(orderBy: "orderLineNumber") { quantity order @include(if: $more) { orderNumber } } }
    }`
  const variables = { filter: `orderNumber in ['G1', 'G5']`, more: true }
  const line = (quantity: number, orderNumber: string) => ({ quantity, order: { orderNumber } })
  t.match(await client.request(document, variables), {
    orders: [
      {
        __typename: 'Order',
        number: 'G1',
        orderState: 'confirmed',
        invoiceAddress: { name: 'Name 1' },
        tags: ['odd'],
        n: 1,
        odd: 'v1',
        deliveries: [{ orderLines: [line(5, 'G1'), line(1, 'G1')] }],
      },
      { number: 'G5', deliveries: [{ orderLines: [line(1, 'G5'), line(1, 'G5')] }] },
    ],
    all: { totalCount: 5 },
  })
})

t.test('pages: forward by cursors, each order once', async (t) => {
  const document = `query Page($after: String) {
    ordersConnection(orderBy: "orderTotal desc", first: 2, after: $after) {
      edges { cursor node { orderNumber } }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
      totalCount
    }
  }`
  interface Page {
    readonly ordersConnection: {
      readonly edges: readonly { readonly cursor: string; readonly node: { orderNumber: string } }[]
      readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string }
      readonly totalCount: number
    }
  }
  const seen: string[] = []
  let after: string | null = null
  for (let page = 0; page < 3; page++) {
    const answer: Page = await client.request<Page>(document, { after })
    const { edges, pageInfo, totalCount } = answer.ordersConnection
    seen.push(...edges.map((edge) => edge.node.orderNumber))
    t.equal(totalCount, 5)
    t.equal(pageInfo.hasNextPage, page < 2)
    t.equal(pageInfo.endCursor, edges.at(-1)!.cursor)
    after = pageInfo.endCursor
  }
  t.strictSame(seen, ['G1', 'G2', 'G3', 'G4', 'G5'])
})

t.test('introspection is whole, and a schema that tools can build', async (t) => {
  const schema = buildClientSchema(
    await client.request<IntrospectionQuery>(getIntrospectionQuery()),
  )
  const order = schema.getType('Order')
  t.equal(String(isObjectType(order) && order.getFields()['orderState']?.type), 'OrderState')
  t.ok(isEnumType(schema.getType('OrderState')))
  t.ok(schema.getQueryType()?.getFields()['ordersConnection'])
})

t.test('a write is seen with its token of consistency', async (t) => {
  const headers = { 'X-Consistency': String(last.headers['x-consistency']) }
  const body = { query: '{ ordersConnection { totalCount } }' }
  const answer = await node.ask('/graphql', { body, headers })
  t.strictSame(answer.json(), { data: { ordersConnection: { totalCount: 5 } } })
  const wrong = await node.ask('/graphql', { body, headers: { 'X-Consistency': 'x' } })
  t.match(wrong.json(), { errors: [{ extensions: { code: 'INVALID_PARAMETERS' } }] })
})

t.test('the schema follows a custom field, with the token of what defined it', async (t) => {
  const key = '/resources/registry/graph/order/fields/odd'
  const names = '{ __type(name: "Order") { fields { name } } }'
  const accept = { Accept: 'application/graphql-response+json' }
  /** 200, or 503 for a while; never 400. */
  const asked = async (query: string, after: Answer): Promise<string> => {
    const headers = { ...accept, 'X-Consistency': String(after.headers['x-consistency']) }
    const patience = new Patience(60_000)
    for (;;) {
      const answer = await node.ask('/graphql', { body: { query }, headers })
      if (answer.status === 200) return answer.text
      if (answer.status !== 503 || patience.isOver()) throw new Error(answer.text)
    }
  }
  const body = { type: 'text', source: `dynamic->'odd key'` }
  const query = `{ orders(filter: "odd == 'v1'") { orderNumber odd } }`
  const defined = await node.ask(key, { body })
  t.equal(await asked(query, defined), '{"data":{"orders":[{"orderNumber":"G1","odd":"v1"}]}}')
  t.match(await asked(names, defined), /"odd"/)
  const again = await node.ask(key, { body: { ...body, type: 'number' } })
  const typed = await asked('{ __type(name: "Order") { fields { name type { name } } } }', again)
  t.ok(typed.includes('{"name":"odd","type":{"name":"Decimal"}}'), typed)
  const deleted = await node.ask(key, { method: 'DELETE' })
  t.notMatch(await asked(names, deleted), /"odd"/)
  const refused = await node.ask('/graphql', { body: { query }, headers: accept })
  t.equal(refused.status, 400)
  t.match(refused.text, /Cannot query field .+odd/)
})

t.test('without a token nothing is told', async (t) => {
  const answer = await fetch(url, { method: 'POST', body: '{}' })
  t.equal(answer.status, 401)
})

t.test('GraphiQL is served from here alone', async (t) => {
  const page = await fetch(`http://127.0.0.1:${node.port}/graphiql`)
  t.equal(page.status, 200)
  const policy = page.headers.get('content-security-policy')!
  t.match(policy, /default-src 'none'; script-src 'self';/)
  t.notMatch(policy, /unsafe|https?:/)
  const html = await page.text()
  const places = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, place]) => place!)
  t.equal(places.length, 8)
  for (const place of places) {
    if (place.startsWith('data:')) continue
    t.match(place, /^\/graphiql\//)
    const file = await fetch(`http://127.0.0.1:${node.port}${place}`)
    t.equal(file.status, 200, place)
    t.ok((await file.text()).length > 100, place)
  }
})
