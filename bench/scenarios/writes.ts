// The writing scenarios: creates one by one, at a steady rate, in bulk; commands to one hot order
// and to many; and the mix of a shop.

import { bulkLoad } from '../load/bulk-load.ts'
import { openLoop } from '../load/open-loop.ts'
import { inTurn, post, type Destination, type PreparedRequest } from '../load/requests.ts'
import type { BenchSettings } from '../options.ts'
import { benchOrder, createMessages } from '../orders.ts'
import type { Installation } from '../target/installation.ts'
import { getNavigation } from './reads.ts'
import { loadInTurn, requestScenario, type Scenario } from './scenario.ts'
import { newPrefix, seedOrders, type SeededOrder } from './seed.ts'

/** Different requests of a load; then they come again. */
const VARIETY = 2_000
const SPREAD_ORDERS = 1_000
const BULK_CONNECTIONS = [1, 2, 4]
const STEADY_CONNECTIONS = 64
const NEW_ORDER = '/resources/actors/order/new'

export function creates(to: Destination): PreparedRequest[] {
  return Array.from({ length: VARIETY }, (_, n) => ({
    kind: 'create',
    bytes: post(to, NEW_ORDER, createMessages(benchOrder(n))),
  }))
}

/** Sets a line's quantity: totals, journal and index move, the order doesn't grow. */
function command(to: Destination, order: SeededOrder, n: number): PreparedRequest {
  return {
    kind: 'command',
    bytes: post(to, `/resources/actors/order/${order.orderId}`, [
      {
        type: 'applyCommands',
        body: {
          commands: [
            {
              type: 'setOrderLineQuantity',
              orderLineId: order.orderLineIds[n % 2],
              quantity: 1 + (n % 30),
            },
          ],
        },
      },
    ]),
  }
}

export function orderCreate(settings: BenchSettings): Scenario {
  return requestScenario(settings, {
    name: 'order-create',
    node: 'order-create',
    load: (run) => loadInTurn(run, creates),
  })
}

export function steady(settings: BenchSettings): Scenario {
  return requestScenario(settings, {
    name: 'steady',
    node: 'steady',
    loop: 'open',
    askedRate: settings.steadyRate,
    connections: [STEADY_CONNECTIONS],
    floorConnections: () => Math.max(...settings.concurrencies),
    async load({ installation, readings, connections }) {
      const to = await installation.destination()
      return openLoop({
        to,
        connections,
        readings,
        warmUpSeconds: settings.warmUpSeconds,
        seconds: settings.steadySeconds,
        rate: settings.steadyRate,
        next: inTurn(creates(to)),
      })
    },
  })
}

export function orderCommands(settings: BenchSettings, where: 'hot' | 'spread'): Scenario {
  let orders: readonly SeededOrder[] = []
  const count = where === 'hot' ? 1 : SPREAD_ORDERS
  return requestScenario(settings, {
    name: `order-commands-${where}`,
    node: 'order-commands',
    async prepare(installation) {
      const prefix = newPrefix(where === 'hot' ? 'H' : 'S')
      orders = await seedOrders(installation, { prefix, count, keep: count })
    },
    load: (run) =>
      loadInTurn(run, (to) =>
        Array.from({ length: VARIETY }, (_, n) => command(to, orders[n % count]!, n)),
      ),
    verify: (installation) => verifyTotals(installation, orders.slice(0, 20)),
  })
}

/** An order's total must be the sum of its parts, whatever happened to them at once. */
async function verifyTotals(
  installation: Installation,
  orders: readonly SeededOrder[],
): Promise<readonly string[]> {
  const problems: string[] = []
  for (const { orderNumber } of orders) {
    const { orders: found } = await installation.post<{
      orders: {
        orderTotal: number
        deliveries: { shippingTotal: number }[]
        orderLines: { orderLineTotal: number }[]
      }[]
    }>('/resources/graph', [
      {
        edge: 'orders',
        filter: `orderNumber == '${orderNumber}'`,
        node: {
          fields: ['orderTotal'],
          navigate: [
            { edge: 'deliveries', node: { fields: ['shippingTotal'] } },
            { edge: 'orderLines', node: { fields: ['orderLineTotal'] } },
          ],
        },
      },
    ])
    const [order] = found
    const parts = [
      ...(order?.deliveries.map((delivery) => delivery.shippingTotal) ?? []),
      ...(order?.orderLines.map((line) => line.orderLineTotal) ?? []),
    ]
    const pennies = parts.reduce((sum, part) => sum + Math.round(part * 100), 0)
    if (order === undefined || Math.round(order.orderTotal * 100) !== pennies) {
      problems.push(`order ${orderNumber}: total ${order?.orderTotal}, its parts ${pennies / 100}`)
    }
  }
  return problems
}

export function bulk(settings: BenchSettings): Scenario {
  return requestScenario(settings, {
    name: 'bulk',
    node: 'bulk',
    loop: 'bulk',
    askedRate: null,
    connections: BULK_CONNECTIONS,
    floorConnections: () => Math.max(...settings.concurrencies),
    async load({ installation, connections, readings }) {
      const lines = Array.from({ length: VARIETY }, (_, n) =>
        Buffer.from(`${JSON.stringify({ id: 'new', messages: createMessages(benchOrder(n)) })}\n`),
      )
      let at = -1
      return bulkLoad({
        to: await installation.destination(),
        connections,
        readings,
        warmUpSeconds: settings.warmUpSeconds,
        seconds: settings.seconds,
        line: () => lines[(at = (at + 1) % VARIETY)]!,
      })
    },
  })
}

/** Of ten requests seven create, two command, one reads. */
export function mixed(settings: BenchSettings): Scenario {
  let orders: readonly SeededOrder[] = []
  return requestScenario(settings, {
    name: 'mixed',
    node: 'mixed',
    async prepare(installation) {
      const prefix = newPrefix('M')
      const count = SPREAD_ORDERS
      orders = await seedOrders(installation, { prefix, count, keep: count })
    },
    load: (run) =>
      loadInTurn(run, (to) =>
        creates(to).map((create, n) => {
          const order = orders[n % orders.length]!
          const place = n % 10
          if (place < 7) return create
          if (place < 9) return command(to, order, n)
          return { kind: 'read', bytes: post(to, '/resources/graph', getNavigation(order)) }
        }),
      ),
    verify: (installation) => verifyTotals(installation, orders.slice(0, 20)),
  })
}
