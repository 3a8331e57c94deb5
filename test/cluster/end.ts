// What is there in the end: every order that a run has ever named, asked of its actor and of the
// graph, once all is quiet and healed. Source: PROTOCOL 4.1 (K1, K5, K8).

import type { Answer, RuntimeCall } from '../harness/node-process.ts'
import { Patience, tick } from '../harness/patience.ts'
import { shownOf } from './caller.ts'
import type { Door, RawOrder } from './caller.ts'
import { checkIndex } from './checkers/index.ts'
import type { Orders } from './checkers/marks.ts'
import type { OperationHistory, Shown } from './operation-history.ts'
import { SHOWN_FIELDS } from './workload.ts'

const ASKED_AT_ONCE = 12
/** Everything answers within this, once nothing is broken any more (K8). */
const ANSWER_MS = 10_000

/** Every order of the history by its actor, asked over all doors in turn. */
export function readOrders(history: OperationHistory, doors: readonly Door[]): Promise<Orders> {
  const body = [{ type: 'query', body: SHOWN_FIELDS }]
  return readAll(numbersOf(history), async (number, i) => {
    const path = `/resources/actors/order/${number}`
    const answer = await answered(doors[i % doors.length]!, path, { body })
    return answer.status === 404 ? null : shownOf(answer.json<{ data: RawOrder }>().data)
  })
}

/**
 * What the graph shows otherwise than the actors; none when it comes to agree within `ms`.
 * No other orders may be in the store than those of the history.
 */
export async function readIndexProblems(
  history: OperationHistory,
  orders: Orders,
  doors: readonly Door[],
  { ms = 30_000, others = { orders: 0, lines: 0 } } = {},
): Promise<string[]> {
  const patience = new Patience(ms)
  const numbers = numbersOf(history)
  for (;;) {
    const indexed = await readAll(numbers, (number, i) =>
      indexedOrder(doors[i % doors.length]!, number),
    )
    const counts = await indexedCounts(doors[0]!)
    const found = checkIndex(orders, indexed, {
      orders: counts.orders - others.orders,
      lines: counts.lines - others.lines,
    })
    if (found.length === 0 || patience.isOver()) return found
    await tick(500)
  }
}

async function indexedOrder(door: Door, number: string): Promise<Shown | null> {
  const body = [{ edge: 'orders', filter: `orderNumber == '${number}'`, node: SHOWN_FIELDS }]
  const { orders } = (await answered(door, '/resources/graph', { body })).json<{
    orders: RawOrder[]
  }>()
  if (orders.length > 1) throw new Error(`the graph has ${orders.length} orders ${number}`)
  return shownOf(orders[0] ?? null)
}

/** Orders and order lines in the graph. */
export async function indexedCounts(door: Door): Promise<{ orders: number; lines: number }> {
  const body = ['orders', 'orderLines'].map((edge) => ({ edge, count: true }))
  const answer = await answered(door, '/resources/graph', { body })
  const { orders, orderLines } = answer.json<{ orders: number; orderLines: number }>()
  return { orders, lines: orderLines }
}

function numbersOf({ operations }: OperationHistory): string[] {
  return [...new Set(operations.map(({ orderNumber }) => orderNumber))]
}

async function readAll(
  numbers: readonly string[],
  read: (number: string, i: number) => Promise<Shown | null>,
): Promise<Orders> {
  const found = new Map<string, Shown | null>()
  const waiting = [...numbers.entries()].toReversed()
  const reader = async (): Promise<void> => {
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const [i, number] = next
      found.set(number, await read(number, i))
    }
  }
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, reader))
  return found
}

/** The answer once there is one: 200 or 404. */
export async function answered(door: Door, path: string, ask: RuntimeCall): Promise<Answer> {
  const patience = new Patience(ANSWER_MS)
  for (;;) {
    const problem = await door.ask(path, { ...ask, timeoutMs: ANSWER_MS }).then(
      (answer) => (answer.status === 200 || answer.status === 404 ? answer : answer.text),
      (error: Error) => error.message,
    )
    if (typeof problem !== 'string') return problem
    if (patience.isOver()) {
      throw new Error(`K8: ${door.name} does not answer ${path}: ${problem.slice(0, 300)}`)
    }
    await tick(100)
  }
}
