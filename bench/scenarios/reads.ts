// The reading scenarios: an order by its id or number with what belongs to it, and filtered pages
// of 50 among the preloaded orders.

import { post, type Destination, type PreparedRequest } from '../load/requests.ts'
import type { BenchSettings } from '../options.ts'
import { customerNumber } from '../orders.ts'
import type { Installation } from '../target/installation.ts'
import { loadInTurn, requestScenario, type Scenario } from './scenario.ts'
import { newPrefix, seedOrders, type SeededOrder } from './seed.ts'

const GET_CONNECTIONS = [1, 4, 16]
const PAGE_CONNECTIONS = [1, 4]
const GETS = 1_000
const PAGE = 50
const WEEK_MS = 7 * 86_400_000
const FIRST_MS = Date.UTC(2025, 0, 2)

/** What an order is found by. */
export type OrderKeys = Pick<SeededOrder, 'orderId' | 'orderNumber'>

/** An order with its deliveries and lines, by id or by number in turn. */
export function getNavigation(order: OrderKeys, byNumber = false): readonly unknown[] {
  return [
    {
      edge: 'orders',
      filter: byNumber ? `orderNumber == '${order.orderNumber}'` : `orderId == '${order.orderId}'`,
      node: {
        fields: ['orderId', 'orderNumber', 'orderState', 'orderTotal', 'createdAt'],
        navigate: [
          {
            edge: 'deliveries',
            node: {
              fields: ['deliveryId', 'deliveryAddress', 'shippingTotal'],
              navigate: [
                {
                  edge: 'orderLines',
                  node: { fields: ['productNumber', 'quantity', 'unitPrice', 'orderLineTotal'] },
                },
              ],
            },
          },
        ],
      },
    },
  ]
}

function page(filter: string): readonly unknown[] {
  return [
    {
      edge: 'orders',
      filter,
      orderBy: 'createdAt desc',
      limit: PAGE,
      node: {
        fields: [
          'orderId',
          'orderNumber',
          'orderState',
          'orderTotal',
          'customerNumber',
          'createdAt',
        ],
      },
    },
  ]
}

const PAGES = {
  state: ['confirmed', 'pending'].map((state) => page(`orderState == '${state}'`)),
  customer: Array.from({ length: 500 }, (_, n) =>
    page(`customerNumber == '${customerNumber(n * 7)}'`),
  ),
  dates: Array.from({ length: 50 }, (_, n) => {
    const at = (ms: number): string => new Date(FIRST_MS + ms).toISOString()
    return page(`createdAt >= '${at(n * WEEK_MS)}' and createdAt < '${at((n + 1) * WEEK_MS)}'`)
  }),
} as const

/** The preloaded orders of a node; made once, by the first scenario that needs them. */
class Preloaded {
  orders: readonly SeededOrder[] = []
  #filled: Promise<void> | null = null
  readonly #count: number

  constructor(count: number) {
    this.#count = count
  }

  fill(installation: Installation): Promise<void> {
    this.#filled ??= seedOrders(installation, {
      prefix: newPrefix('G'),
      count: this.#count,
      keep: Math.min(GETS, this.#count),
    }).then((orders) => {
      this.orders = orders
    })
    return this.#filled
  }
}

export function graphScenarios(settings: BenchSettings): readonly Scenario[] {
  const preloaded = new Preloaded(settings.preload)
  return [
    graphGet(settings, preloaded),
    ...(Object.keys(PAGES) as (keyof typeof PAGES)[]).map((by) =>
      graphPage(settings, preloaded, by),
    ),
  ]
}

function graphGet(settings: BenchSettings, preloaded: Preloaded): Scenario {
  return requestScenario(settings, {
    name: 'graph-get',
    node: 'graph',
    connections: GET_CONNECTIONS,
    floors: ['http'],
    prepare: (installation) => preloaded.fill(installation),
    load: (run) =>
      loadInTurn(run, (to) =>
        preloaded.orders.map((order, n) => read(to, getNavigation(order, n % 2 === 1))),
      ),
    async verify(installation) {
      const problems: string[] = []
      for (const byNumber of [false, true]) {
        problems.push(
          ...(await readWhole(installation, preloaded.orders[byNumber ? 1 : 0]!, byNumber)),
        )
      }
      return problems
    },
  })
}

function graphPage(
  settings: BenchSettings,
  preloaded: Preloaded,
  by: keyof typeof PAGES,
): Scenario {
  return requestScenario(settings, {
    name: `graph-page-${by}`,
    node: 'graph',
    connections: PAGE_CONNECTIONS,
    floors: ['http'],
    prepare: (installation) => preloaded.fill(installation),
    load: (run) => loadInTurn(run, (to) => PAGES[by].map((navigation) => read(to, navigation))),
    verify: (installation) => verifyPage(installation, PAGES[by][0]!, by === 'state'),
  })
}

/** The graph must have the order with its one delivery and two lines. */
export async function readWhole(
  installation: Installation,
  order: OrderKeys,
  byNumber = false,
): Promise<readonly string[]> {
  const { orders } = await installation.post<{
    orders: { orderId: string; deliveries: { orderLines: unknown[] }[] }[]
  }>('/resources/graph', getNavigation(order, byNumber))
  const right =
    orders.length === 1 &&
    orders[0]!.orderId === order.orderId &&
    orders[0]!.deliveries.length === 1 &&
    orders[0]!.deliveries[0]!.orderLines.length === 2
  return right ? [] : [`order ${order.orderNumber} reads ${JSON.stringify(orders)}`]
}

function read(to: Destination, navigation: readonly unknown[]): PreparedRequest {
  return { kind: 'read', bytes: post(to, '/resources/graph', navigation) }
}

async function verifyPage(
  installation: Installation,
  navigation: readonly unknown[],
  full: boolean,
): Promise<readonly string[]> {
  const { orders } = await installation.post<{ orders: { createdAt: string }[] }>(
    '/resources/graph',
    navigation,
  )
  const dates = orders.map((order) => order.createdAt)
  const sorted = dates.every((date, i) => i === 0 || date <= dates[i - 1]!)
  const problems: string[] = []
  if (!sorted) problems.push('the page is not ordered by createdAt, newest first')
  if (dates.length === 0 || (full && dates.length !== PAGE)) {
    problems.push(`the page has ${dates.length} orders, not ${PAGE}`)
  }
  return problems
}
