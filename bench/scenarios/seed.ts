// Orders put into a store before a scenario, through bulk. For scenarios that need a store in use,
// by the platform's own fast way in.

import { bulkLoad } from '../load/bulk-load.ts'
import { newUuid } from '../load/requests.ts'
import { benchOrder, createMessages, type BenchOrder } from '../orders.ts'
import type { Installation } from '../target/installation.ts'

const SEED_SECONDS_MAX = 600
const GRAPH_WAIT_MS = 600_000
/** Seeded orders are spread over this time before the first of 2026. */
const YEAR_MS = 365 * 86_400_000
const LAST_MS = Date.UTC(2026, 0, 1)

export interface SeededOrder extends BenchOrder {
  readonly orderId: string
  readonly orderNumber: string
}

export interface Seed {
  /** Prefix of the order numbers. */
  readonly prefix: string
  readonly count: number
  /** How many of them are given back. */
  readonly keep: number
}

/** A prefix that no earlier run on the same store has used. */
export function newPrefix(letter: string): string {
  return `${letter}${newUuid().slice(-8)}-`
}

/** Creates the orders and waits until the graph has them. Throws when one was refused. */
export async function seedOrders(
  installation: Installation,
  { prefix, count, keep }: Seed,
): Promise<readonly SeededOrder[]> {
  const before = await installation.countOrders()
  const orders = new Map<string, BenchOrder>()
  const kept: SeededOrder[] = []
  let n = 0
  const result = await bulkLoad({
    to: await installation.destination(),
    connections: 2,
    warmUpSeconds: 0,
    seconds: SEED_SECONDS_MAX,
    lines: count,
    readings: { started: () => {}, ended: () => {} },
    line: () => {
      const order = benchOrder(n)
      const orderNumber = `${prefix}${n}`
      const createdAt = new Date(LAST_MS - Math.floor((n / count) * YEAR_MS)).toISOString()
      if (n < keep) orders.set(orderNumber, order)
      n++
      const body = { orderNumber, createdAt, ...order.body }
      const line = { id: 'new', messages: createMessages({ ...order, body }) }
      return Buffer.from(`${JSON.stringify(line)}\n`)
    },
    answer: (line) => {
      if (kept.length === keep) return
      const { id, data } = JSON.parse(line) as { id: string; data: { orderNumber: string } }
      const order = orders.get(data.orderNumber)
      if (order !== undefined) kept.push({ ...order, orderId: id, orderNumber: data.orderNumber })
    },
  })
  if (result.acknowledged.create !== count) {
    const failures = [...result.failures].map(([what, times]) => `${times} x ${what}`).join(', ')
    throw new Error(`${result.acknowledged.create} of ${count} orders were made: ${failures}`)
  }
  const after = await installation.ordersReach(before + count, GRAPH_WAIT_MS)
  if (after !== before + count) {
    throw new Error(`the graph has ${after - before} of ${count} orders that were acknowledged`)
  }
  return kept
}
