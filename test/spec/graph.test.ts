// The heading "Graph" of the specification, over HTTP on a real node: navigations, filters, order,
// pages, counts, semi-joins, names. Source: specification "Graph nodes", "Graph"; CONTRACT 1.4,
// Appendix A.

import t from 'tap'
import { refused } from '../harness/answers.ts'
import { startNode } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { apply } from '../harness/orders.ts'
import type { SmallOrder } from '../harness/orders.ts'
import { graphOrders } from './graph-orders.ts'

const node = await startNode(t)
const { orders: ORDERS, last } = await graphOrders(node)
const PATH = '/resources/graph'

type Rows = readonly Record<string, unknown>[]

const ask = (body: unknown, extra = {}): Promise<Answer> => node.ask(PATH, { body, ...extra })

/** The numbers of the orders that a filter finds, in order of their numbers. */
async function found(filter: string): Promise<string> {
  const { orders } = await node.graph<{ orders: Rows }>(
    [{ edge: 'orders', filter, orderBy: 'orderNumber', node: { fields: ['orderNumber'] } }],
    last,
  )
  return orders.map(({ orderNumber }) => String(orderNumber).slice(1)).join('')
}

t.test('filters', async (t) => {
  for (const [filter, numbers] of [
    [`orderState == 'confirmed'`, '135'],
    [`orderState != "confirmed"`, '24'],
    [`orderTotal > 35`, '123'],
    [`orderTotal >= 35 and orderTotal <= 45`, '23'],
    [`orderNumber == 'G1' or orderNumber == 'G5'`, '15'],
    [`not (orderNumber in ['G1', 'G2'])`, '345'],
    [`orderNumber in []`, ''],
    [`customerNumber == nothing`, '345'],
    [`customerNumber == null`, '345'],
    [`customerNumber != 'C1'`, '2'],
    [`not (customerNumber == 'C1')`, '2345'],
    [`createdAt >= 2025-01-03`, '345'],
    [`createdAt > '2025-01-03T10:00:00.000Z'`, '45'],
    [`createdAt < now - 7 days`, '12345'],
    [`createdAt > now - 1 hour`, ''],
    [`dynamic->'n' == 3`, '3'],
    [`dynamic->'n' > 3`, '45'],
    [`dynamic->'odd key' == 'v2'`, '2'],
    [`dynamic->'nobody' == 1`, ''],
    [`invoiceAddress.name == 'Name 1'`, '13'],
    [`invoiceAddress.name startsWith 'Name'`, '1234'],
    [`invoiceAddress.name contains 'e 0'`, '24'],
    [`orderNumber endsWith '5'`, '5'],
    [`tags anyof ['odd', 'nobody']`, '135'],
    [`tags allof ['even']`, '24'],
    [`taxIncluded == true and currencyCode == 'EUR'`, '12345'],
    [`orderId == ${ORDERS[1]!.orderId}`, '2'],
    [`orderId == '${ORDERS[1]!.orderId.toUpperCase()}'`, '2'],
    [`orderNumber == 'it\\'s'`, ''],
    [`orderTotal + 5 > 55`, '1'],
    [`orderTotal - 1 == 35`, ''],
  ] as const) {
    t.equal(await found(filter), numbers, filter)
  }
})

t.test('filters that cannot be: where, what, what would be right', async (t) => {
  for (const [filter, words] of [
    [`orderTotal >`, /position 12: found the end, expected a field or a value/],
    [`orderTotal = 3`, /==/],
    [`orderTota > 3`, /no field orderTota.*did you mean orderTotal/],
    [`orderTotal > 'x'`, /number/],
    [`orderNumber > 3`, /text/],
    [`(orderTotal > 3`, /\)/],
    [`orderNumber == 'open`, /'|quote/],
    [`tags anyof 'x'`, /\[/],
    [`orderTotal`, /position|condition|boolean/],
    [`${'('.repeat(40)}orderTotal > 1${')'.repeat(40)}`, /deep|nest|32/],
    [`x`.repeat(8193), /8192/],
  ] as const) {
    const answer = await ask([{ edge: 'orders', filter, count: true }])
    const { details } = refused(t, answer, 'INVALID_FILTER', words)
    t.match(details, { path: '/0/filter' }, filter)
  }
})

t.test('orderBy, limit, HasMore', async (t) => {
  const numbers = async (members: object): Promise<unknown> => {
    const answer = await node.graph<{ orders: Rows; ordersHasMore?: boolean }>(
      [{ edge: 'orders', node: { fields: ['orderNumber'] }, ...members }],
      last,
    )
    const text = answer.orders.map(({ orderNumber }) => String(orderNumber).slice(1)).join('')
    return answer.ordersHasMore === true ? `${text}...` : text
  }
  t.equal(await numbers({ orderBy: 'orderNumber desc' }), '54321')
  t.equal(await numbers({ orderBy: 'createdAt desc', limit: 2 }), '54...')
  t.equal(await numbers({ orderBy: 'createdAt', limit: 5 }), '12345', 'just enough is not cut')
  t.equal(await numbers({ orderBy: 'orderState desc, orderNumber desc' }), '42531')
  t.equal(await numbers({ orderBy: 'customerNumber, orderNumber' }), '12345', 'missing ones last')
  t.equal(await numbers({ orderBy: 'customerNumber desc, orderNumber desc' }), '21543')
  t.equal(await numbers({ orderBy: "dynamic->'n' desc", limit: 1 }), '5...')
  t.equal(await numbers({}), '12345', 'base sets by node id, which rises with time')
  for (const [members, words] of [
    [{ orderBy: 'nobody' }, /no field nobody/],
    [{ orderBy: 'orderNumber down' }, /asc|desc/],
    [{ orderBy: 'tags' }, /tags/],
    [{ limit: 1001 }, /limit .*1000/],
    [{ limit: 0 }, /limit/],
    [{ limit: 1.5 }, /limit/],
    [{ limit: '5' }, /limit/],
    [{ phrase: 'ada', orderBy: 'orderNumber' }, /phrase/],
    [{ colour: 1 }, /colour/],
  ] as const) {
    refused(t, await ask([{ edge: 'orders', ...members }]), 'INVALID_QUERY', words)
  }
})

t.test('cursors', async (t) => {
  interface Page {
    readonly orders: Rows
    readonly ordersCursor?: string
    readonly ordersCursors?: readonly string[]
  }
  const page = (more: object): Promise<Page> => {
    const shown = { limit: 2, node: { fields: ['orderNumber'] } }
    const body = { edge: 'orders', orderBy: 'createdAt desc', ...shown, ...more }
    return node.graph<Page>([body], last)
  }
  const numbers = ({ orders }: Page): string =>
    orders.map(({ orderNumber }) => String(orderNumber).slice(1)).join('')
  const first = await page({ cursor: 'last' })
  const second = await page({ after: first.ordersCursor })
  const third = await page({ after: second.ordersCursor })
  t.same([first, second, third].map(numbers), ['54', '32', '1'])
  t.notOk('ordersCursor' in third, 'the end')
  const { ordersCursors: each } = await page({ cursor: 'each', limit: 5 })
  t.equal(numbers(await page({ after: each![3], limit: 1 })), '1', 'behind any node')
  const entries = { edge: 'orderJournalEntries', filter: `orderId == ${ORDERS[0]!.orderId}` }
  const all = await node.graph<{ orderJournalEntries: Rows }>([entries], last)
  const [newest] = all.orderJournalEntries
  const cut = [{ ...entries, limit: 1, cursor: true }]
  const { orderJournalEntriesCursor: after } = await node.graph<Record<string, string>>(cut, last)
  const rest = await node.graph<{ orderJournalEntries: Rows }>([{ ...entries, after }], last)
  t.same([newest, ...rest.orderJournalEntries], all.orderJournalEntries, 'of history, too')
  for (const [members, words] of [
    [{ after: first.ordersCursor, orderBy: 'createdAt' }, /no cursor of this query/],
    [{ after: first.ordersCursor, filter: 'orderTotal > 0' }, /no cursor of this query/],
    [{ after: 'x' }, /no cursor of this query/],
    [{ cursor: 'first' }, /last or each/],
    [
      { node: { navigate: [{ edge: 'deliveries', cursor: true }] } },
      /cursors are of base sets; the list of one order by its orderId: .*deliveries/,
    ],
  ] as const) {
    const body = [{ edge: 'orders', orderBy: 'createdAt desc', ...members }]
    refused(t, await ask(body), 'INVALID_QUERY', words)
  }
})

t.test('counts', async (t) => {
  const answer = await node.graph(
    [
      { edge: 'orders', alias: 'all', count: true },
      { edge: 'orders', alias: 'confirmed', filter: `orderState == 'confirmed'`, count: true },
      {
        edge: 'orders',
        alias: 'gated',
        count: true,
        node: { navigate: [{ edge: 'orderLines', filter: 'quantity > 0', require: 'none' }] },
      },
      {
        edge: 'orders',
        alias: 'both',
        count: true,
        limit: 1,
        orderBy: 'orderNumber',
        node: {
          fields: ['orderNumber'],
          navigate: [
            { edge: 'orderLines', count: true },
            { edge: 'deliveries', count: true, node: { fields: ['deliveryNumber'] } },
          ],
        },
      },
    ],
    last,
  )
  t.match(answer, {
    all: 5,
    confirmed: 3,
    gated: 0,
    both: {
      count: 5,
      nodes: [
        {
          orderNumber: 'G1',
          orderLines: 2,
          deliveries: { count: 1, nodes: [{ deliveryNumber: 'G1D1' }] },
        },
      ],
    },
  })
})

t.test('nested navigation, single edges, aliases, cut lists', async (t) => {
  const [order] = ORDERS as [SmallOrder]
  const answer = await node.graph(
    [
      {
        edge: 'orders',
        filter: `orderNumber == 'G1'`,
        node: {
          fields: ['orderNumber', 'invoiceAddress.name', "dynamic->'n'", "dynamic->'deep'"],
          navigate: [
            {
              edge: 'orderLines',
              limit: 1,
              orderBy: 'unitPrice desc',
              node: {
                fields: ['productNumber'],
                navigate: [
                  { edge: 'skus', node: { fields: ['skuNumber', 'totalQuantity'] } },
                  { edge: 'order', node: { fields: ['orderNumber'] } },
                  { edge: 'delivery', alias: 'from', node: { fields: ['deliveryId'] } },
                ],
              },
            },
            {
              edge: 'orderLines',
              alias: 'extra',
              filter: `productNumber startsWith 'EXTRA'`,
              node: { fields: ['productNumber', 'orderLineTotal'] },
            },
            { edge: 'orderLines', alias: 'inOrder', node: { fields: ['orderLineNumber'] } },
          ],
        },
      },
    ],
    last,
  )
  t.strictSame(answer, {
    orders: [
      {
        orderNumber: 'G1',
        invoiceAddress: { name: 'Name 1' },
        dynamic: { n: 1, deep: { x: 1 } },
        orderLines: [
          {
            productNumber: 'P-1',
            skus: [{ skuNumber: 'S', totalQuantity: 5 }],
            order: { orderNumber: 'G1' },
            from: { deliveryId: order.deliveryId },
          },
        ],
        orderLinesHasMore: true,
        extra: [{ productNumber: 'EXTRA-1', orderLineTotal: 1 }],
        inOrder: [{ orderLineNumber: '1' }, { orderLineNumber: '2' }],
      },
    ],
  })
})

t.test('a single edge that leads nowhere is null', async (t) => {
  const made = await node.order(ORDERS[3]!.orderId, [
    apply({ type: 'createStaticOrderDiscount', value: 1 }),
  ])
  const { staticDiscounts } = await node.graph<{ staticDiscounts: Rows }>(
    [
      {
        edge: 'staticDiscounts',
        node: {
          fields: ['scope'],
          navigate: [
            { edge: 'orderLine', node: { fields: ['orderLineId'] } },
            { edge: 'order', node: { fields: ['orderNumber'] } },
          ],
        },
      },
    ],
    made,
  )
  t.strictSame(staticDiscounts, [{ scope: 'order', orderLine: null, order: { orderNumber: 'G4' } }])
})

t.test('require: parents by their children', async (t) => {
  const gated = async (require: unknown, filter = `productNumber startsWith 'EXTRA'`) => {
    const { orders } = await node.graph<{ orders: Rows }>(
      [
        {
          edge: 'orders',
          orderBy: 'orderNumber',
          node: {
            fields: ['orderNumber'],
            navigate: [{ edge: 'orderLines', filter, require }],
          },
        },
      ],
      last,
    )
    return orders.map(({ orderNumber }) => String(orderNumber).slice(1)).join('')
  }
  t.equal(await gated('some'), '135')
  t.equal(await gated('none'), '24')
  t.equal(await gated('any'), '12345')
  t.equal(await gated(true), '135', 'the earlier form')
  t.equal(await gated(false), '12345')
  t.equal(await gated('some', `quantity > 4`), '1')
  const counted = await node.graph(
    [
      {
        edge: 'orders',
        count: true,
        node: {
          navigate: [
            { edge: 'orderLines', filter: `productNumber startsWith 'EXTRA'`, require: 'some' },
          ],
        },
      },
    ],
    last,
  )
  t.strictSame(counted, { orders: 3 }, 'a count with semi-joins alone is a number')
  refused(t, await ask([{ edge: 'orders', require: 'all' }]), 'INVALID_QUERY', /require/)
})

t.test('names that are not there', async (t) => {
  for (const [body, words, path] of [
    [[{ edge: 'order' }], /no base set "order"; did you mean orders/, '/0'],
    [
      [{ edge: 'orders', node: { fields: ['orderNumbr'] } }],
      /orderNumbr.*mean orderNumber/,
      '/0/node/fields/0',
    ],
    [
      [{ edge: 'orders', node: { navigate: [{ edge: 'orderlines' }] } }],
      /orderlines.*mean orderLines/,
      '/0/node/navigate/0',
    ],
    [
      [{ edge: 'orders', node: { fields: ['invoiceAddress.nam'] } }],
      /nam.*name/,
      '/0/node/fields/0',
    ],
    [[{ edge: 'orders', node: { fields: ['orderNumber.x'] } }], /orderNumber/, '/0/node/fields/0'],
    [[{}], /edge is missing/, '0.edge'],
    [[7], /object/, '0'],
    [[{ edge: 7 }], /edge must be .*string/, '0.edge'],
    [[{ edge: 'orders', alias: 'a b' }], /alias must be letters, digits and _/, '/0'],
    [[{ edge: 'orders', alias: '__proto__' }], /alias/, '/0'],
  ] as const) {
    const { details } = refused(t, await ask(body), 'INVALID_QUERY', words)
    t.equal(details?.['path'] ?? details?.['member'], path)
  }
  refused(t, await ask({ edge: 'orders' }), 'INVALID_QUERY', /array/)
  const twice = await ask([{ edge: 'orders', count: true }, { edge: 'orders' }])
  refused(t, twice, 'DUPLICATE_ALIAS', /orders/)
})

t.test('bounds of a query', async (t) => {
  const many = Array.from({ length: 33 }, (_, i) => ({
    edge: 'orders',
    alias: `a${i}`,
    count: true,
  }))
  refused(t, await ask(many), 'INVALID_QUERY', /more than 32 navigations/)
  let deep: object = { edge: 'order', node: { fields: ['orderId'] } }
  for (let i = 0; i < 8; i++)
    deep = { edge: i % 2 ? 'order' : 'orderLines', node: { navigate: [deep] } }
  refused(
    t,
    await ask([{ edge: 'orders', node: { navigate: [deep] } }]),
    'INVALID_QUERY',
    /deeper than 8/,
  )
  const fields = Array.from({ length: 201 }, () => 'orderId')
  refused(t, await ask([{ edge: 'orders', node: { fields } }]), 'INVALID_QUERY', /200|twice/)
})
