// Order totals as the graph has them. It waits until each order is there, and tells which total is
// another than the file's.

import { parseE4, E4 } from './online-retail/amount.ts'
import { FatalError, type Session } from '../session.ts'
import type { OrderTotal } from './tally.ts'

/** Numbers of one request: its filter stays far under the node's bound of 8 KiB. */
const FILTER_CHARS = 5_000
const NUMBERS_MAX = 500
const POLL_MS = 50
const TIMEOUT_MS = 15_000

export interface GraphOptions {
  readonly session: Session
  /** Give up when nothing new appears for so long. */
  readonly patienceMs: number
  readonly now: () => number
  readonly delay: (ms: number) => Promise<void>
}

export interface Comparison {
  readonly found: number
  /** Orders that are not in the graph, or have another total there. */
  readonly differing: readonly { readonly order: OrderTotal; readonly problem: string }[]
}

/** Looks up the orders, newest first, waiting for those that are not there yet. */
export async function compareWithGraph(
  orders: readonly OrderTotal[],
  options: GraphOptions,
): Promise<Comparison> {
  const differing: { order: OrderTotal; problem: string }[] = []
  let found = 0
  for (const chunk of chunks([...orders].reverse())) {
    const totals = await totalsOf(chunk, options)
    for (const order of chunk) {
      const problem = compare(order, totals.get(order.orderNumber))
      if (problem === null) found++
      else differing.push({ order, problem })
    }
  }
  return { found, differing }
}

function compare(order: OrderTotal, total: number | undefined): string | null {
  if (total === undefined) return 'is not in the graph'
  const expected = order.pennies * BigInt(E4 / 100)
  return BigInt(parseE4(String(total)) ?? -1) === expected
    ? null
    : `has orderTotal ${total}, ${order.pennies} pennies by the file`
}

function* chunks(orders: readonly OrderTotal[]): Generator<OrderTotal[]> {
  let chunk: OrderTotal[] = []
  let chars = 0
  for (const order of orders) {
    const length = order.orderNumber.length * 2 + 4
    if (chunk.length === NUMBERS_MAX || chars + length > FILTER_CHARS) {
      yield chunk
      chunk = []
      chars = 0
    }
    chunk.push(order)
    chars += length
  }
  if (chunk.length > 0) yield chunk
}

async function totalsOf(
  orders: readonly OrderTotal[],
  options: GraphOptions,
): Promise<Map<string, number>> {
  let untilMs = options.now() + options.patienceMs
  let before = -1
  for (;;) {
    const totals = await fetchTotals(orders, options.session)
    if (totals !== null && totals.size === orders.length) return totals
    if (totals !== null && totals.size > before) {
      before = totals.size
      untilMs = options.now() + options.patienceMs
    }
    if (options.now() >= untilMs) {
      if (totals === null) throw new FatalError('the graph does not answer')
      return totals
    }
    await options.delay(POLL_MS)
  }
}

/** Totals by order number; null when the node can't answer now. */
async function fetchTotals(
  orders: readonly OrderTotal[],
  session: Session,
): Promise<Map<string, number> | null> {
  const list = orders.map((order) => quoted(order.orderNumber)).join(',')
  const navigation = {
    edge: 'orders',
    filter: `orderNumber in [${list}]`,
    limit: NUMBERS_MAX,
    node: { fields: ['orderNumber', 'orderTotal'] },
  }
  let response
  let token
  try {
    token = await session.token()
    response = await fetch(`${session.url}/resources/graph`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify([navigation]),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const text = await response.text()
    if (response.ok) return readTotals(text)
    if (response.status === 401) session.forget(token)
    else if (response.status < 500 && response.status !== 429) {
      throw new FatalError(`the graph refuses the query: ${response.status} ${text.slice(0, 500)}`)
    }
    return null
  } catch (error) {
    if (error instanceof FatalError) throw error
    return null
  }
}

function readTotals(text: string): Map<string, number> {
  const { orders } = JSON.parse(text) as {
    orders: readonly { orderNumber: string; orderTotal: number }[]
  }
  return new Map(orders.map((order) => [order.orderNumber, order.orderTotal]))
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
