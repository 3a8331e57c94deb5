// What a shop's staff and programs ask of its orders: filtered and sorted pages of 50, counts, and
// a page of orders with all that belongs to them, as a navigation and as a GraphQL operation. Each
// is made of values that the shop has; where it is cheap, what must come back is known beforehand.

import type { Shop, ShopLine, ShopOrder } from './shop.ts'

export interface Question {
  readonly path: string
  readonly body: unknown
  /** What is wrong with its answer; null: nothing. */
  readonly fault: (answer: Readonly<Record<string, unknown>>) => string | null
}

export const PAGE = 50
/** Different questions of a kind; then they come again. */
const VARIETY = 200
const GRAPH = '/resources/graph'
const ORDER_FIELDS = [
  ...['orderId', 'orderNumber', 'orderState', 'orderTotal', 'customerNumber', 'createdAt'],
]
const LINE_FIELDS = ['orderLineId', 'productNumber', 'description', 'quantity', 'orderLineTotal']
/** What makes a quantity large. */
const LARGE = 50
const COUNTRIES = ['DE', 'FR', 'IE', 'NL', 'ES', 'BE', 'CH']

export const PAGE_KINDS = ['state', 'customer', 'total', 'country', 'product'] as const
export type PageKind = (typeof PAGE_KINDS)[number]

/** Pages of one kind. */
export function pageQuestions(kind: PageKind, shop: Shop): readonly Question[] {
  return spread(shop.orders, (order, n) => PAGES[kind](order, pickLine(shop, n), shop))
}

type PageOf = (order: ShopOrder, line: ShopLine, shop: Shop) => Question

const PAGES: Readonly<Record<PageKind, PageOf>> = {
  state: ({ orderState, createdAt }, _, shop) =>
    orderPage({
      filter: `orderState == '${orderState}' and createdAt >= '${createdAt}'`,
      orderBy: 'createdAt desc',
      expected: () =>
        newest(
          shop.orders.filter((one) => one.orderState === orderState && one.createdAt >= createdAt),
        ),
    }),
  customer: ({ customerNumber }, _, shop) =>
    orderPage({
      filter: byCustomer(customerNumber),
      orderBy: 'createdAt desc',
      expected: () => newest(shop.orders.filter((one) => one.customerNumber === customerNumber)),
    }),
  total: ({ createdAt, orderTotal }, _, shop) =>
    orderPage({
      filter: `createdAt < '${createdAt}' and orderTotal < ${orderTotal}`,
      orderBy: 'orderTotal desc',
      expected: () =>
        shop.orders
          .filter((one) => one.createdAt < createdAt && one.orderTotal < orderTotal)
          .toSorted((a, b) => b.orderTotal - a.orderTotal || (a.orderId < b.orderId ? -1 : 1)),
    }),
  country({ createdAt }, { quantity }) {
    const country = COUNTRIES[quantity % COUNTRIES.length]
    const deliveries = {
      edge: 'deliveries',
      filter: `deliveryAddress.countryCode == '${country}'`,
      require: 'some',
      node: { fields: ['deliveryAddress.countryCode'] },
    }
    return {
      path: GRAPH,
      body: [
        {
          edge: 'orders',
          filter: `createdAt < '${createdAt}'`,
          orderBy: 'createdAt desc',
          limit: PAGE,
          node: { fields: ORDER_FIELDS, navigate: [deliveries] },
        },
      ],
      fault: ({ orders }) => {
        const isWrong = (orders as readonly (ShopOrder & Delivered)[]).some(
          (order, i, page) =>
            order.deliveries[0]?.deliveryAddress.countryCode !== country ||
            order.createdAt > (page[i - 1]?.createdAt ?? createdAt),
        )
        return isWrong ? `orders to ${country}: not as asked for` : null
      },
    }
  },
  product: (_, { productNumber }, shop) => ({
    path: GRAPH,
    body: [
      {
        edge: 'orderLines',
        filter: `productNumber == '${productNumber}'`,
        orderBy: 'orderLineTotal desc',
        limit: PAGE,
        node: { fields: LINE_FIELDS },
      },
    ],
    fault({ orderLines }) {
      const expected = shop.lines
        .filter((line) => line.productNumber === productNumber)
        .toSorted(
          (a, b) => b.orderLineTotal - a.orderLineTotal || (a.orderLineId < b.orderLineId ? -1 : 1),
        )
      return differing(
        `lines of ${productNumber}`,
        ids(orderLines as readonly ShopLine[], 'orderLineId'),
        ids(expected, 'orderLineId'),
      )
    },
  }),
}

interface Delivered {
  readonly deliveries: readonly { readonly deliveryAddress: { readonly countryCode: string } }[]
}

export const COUNT_KINDS = ['state', 'customer', 'product', 'quantity', 'text'] as const
export type CountKind = (typeof COUNT_KINDS)[number]

/** Counts of one kind: of orders by state or customer, of lines by what the other kinds say. */
export function countQuestions(kind: CountKind, shop: Shop): readonly Question[] {
  return spread(shop.orders, (order, n) => COUNTS[kind](order, pickLine(shop, n), shop))
}

const COUNTS: Readonly<Record<CountKind, PageOf>> = {
  state: ({ orderState, createdAt }, _, { orders }) =>
    count('orders', `orderState == '${orderState}' and createdAt >= '${createdAt}'`, () =>
      orders.filter((one) => one.orderState === orderState && one.createdAt >= createdAt),
    ),
  customer: ({ customerNumber }, _, { orders }) =>
    count('orders', byCustomer(customerNumber), () =>
      orders.filter((one) => one.customerNumber === customerNumber),
    ),
  product: (_, { productNumber }, { lines }) =>
    count('orderLines', `productNumber == '${productNumber}'`, () =>
      lines.filter((line) => line.productNumber === productNumber),
    ),
  quantity: (_, { quantity }, { lines }) =>
    count('orderLines', `quantity >= ${quantity + LARGE}`, () =>
      lines.filter((line) => line.quantity >= quantity + LARGE),
    ),
  text(_, { description }, { lines }) {
    const word = description?.split(/[^A-Z]+/i).find(({ length }) => length > 3) ?? 'HEART'
    return count('orderLines', `description contains '${word}'`, () =>
      lines.filter((line) => line.description?.includes(word)),
    )
  },
}

function byCustomer(customerNumber: string | null): string {
  return customerNumber === null
    ? 'customerNumber == nothing'
    : `customerNumber == '${customerNumber}'`
}

/** 50 orders with their deliveries and lines. */
export function wholePageQuestions(
  { orders }: Pick<Shop, 'orders'>,
  form: 'graphql' | 'navigation',
): readonly Question[] {
  return spread(orders, ({ createdAt }) => {
    const filter = `orderState == 'confirmed' and createdAt <= '${createdAt}'`
    const expected = (): readonly string[] => {
      const known = orders.filter((o) => o.orderState === 'confirmed' && o.createdAt <= createdAt)
      return ids(newest(known), 'orderId')
    }
    const fault: Question['fault'] = (answer) => {
      const page = answer['orders'] as readonly WholeOrder[]
      const isWhole = page.every(
        ({ deliveries }) => deliveries.length === 1 && deliveries[0]!.orderLines.length > 0,
      )
      return isWhole
        ? differing('whole orders', ids(page, 'orderId'), expected())
        : 'a line is missing'
    }
    if (form === 'navigation') return { path: GRAPH, body: wholePage(filter), fault }
    return {
      path: '/graphql',
      body: { query: WHOLE_QUERY, variables: { filter } },
      fault: ({ data }) => fault(data as Readonly<Record<string, unknown>>),
    }
  })
}

interface WholeOrder {
  readonly orderId: string
  readonly deliveries: readonly { readonly orderLines: readonly unknown[] }[]
}

const DELIVERIES_MAX = 10
const LINES_MAX = 100

function wholePage(filter: string): readonly unknown[] {
  const lines = {
    edge: 'orderLines',
    limit: LINES_MAX,
    node: { fields: ['productNumber', 'description', 'quantity', 'unitPrice', 'orderLineTotal'] },
  }
  const deliveries = {
    edge: 'deliveries',
    limit: DELIVERIES_MAX,
    node: { fields: ['deliveryId', 'deliveryState', 'shippingTotal'], navigate: [lines] },
  }
  const node = { fields: ORDER_FIELDS, navigate: [deliveries] }
  return [{ edge: 'orders', filter, orderBy: 'createdAt desc', limit: PAGE, node }]
}

const WHOLE_QUERY = `query Page($filter: String!) {
  orders(filter: $filter, orderBy: "createdAt desc", limit: ${PAGE}) {
    ${ORDER_FIELDS.join(' ')}
    deliveries(limit: ${DELIVERIES_MAX}) {
      deliveryId deliveryState shippingTotal
      orderLines(limit: ${LINES_MAX}) { productNumber description quantity unitPrice orderLineTotal }
    }
  }
}`

function orderPage({
  filter,
  orderBy,
  expected,
}: {
  readonly filter: string
  readonly orderBy: string
  readonly expected: () => readonly ShopOrder[]
}): Question {
  const node = { fields: ORDER_FIELDS }
  return {
    path: GRAPH,
    body: [{ edge: 'orders', filter, orderBy, limit: PAGE, node }],
    fault: ({ orders }) =>
      differing(filter, ids(orders as readonly ShopOrder[], 'orderId'), ids(expected(), 'orderId')),
  }
}

function count(edge: string, filter: string, expected: () => readonly unknown[]): Question {
  return {
    path: GRAPH,
    body: [{ edge, filter, count: true }],
    fault(answer) {
      const [found, right] = [answer[edge], expected().length]
      return found === right ? null : `${filter}: ${String(found)}, not ${right}`
    },
  }
}

/** Newest first, those of one moment by their ids. */
function newest(orders: readonly ShopOrder[]): readonly ShopOrder[] {
  return orders.toSorted((a, b) => {
    if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? 1 : -1
    return a.orderId < b.orderId ? -1 : 1
  })
}

function ids<K extends string>(
  nodes: readonly Readonly<Record<K, string>>[],
  key: K,
): readonly string[] {
  return nodes.slice(0, PAGE).map((node) => node[key])
}

function differing(
  what: string,
  found: readonly string[],
  expected: readonly string[],
): string | null {
  const at = expected.findIndex((id, i) => found[i] !== id)
  if (at < 0 && found.length === expected.length) return null
  return `${what}: ${found.length} of ${expected.length}, another one at place ${at}`
}

/** Made of things that lie apart, the same ones each time. */
export function spread<T>(
  things: readonly T[],
  make: (thing: T, n: number) => Question,
): readonly Question[] {
  const step = Math.max(1, Math.floor(things.length / VARIETY))
  return Array.from({ length: Math.min(VARIETY, things.length) }, (_, n) =>
    make(things[n * step]!, n),
  )
}

/** A line at another place for each number, products that sell well more often. */
function pickLine({ lines }: Pick<Shop, 'lines'>, n: number): ShopLine {
  return lines[(n * 7919) % lines.length]!
}
