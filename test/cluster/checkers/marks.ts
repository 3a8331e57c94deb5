// K1 and K9 over the orders as they are in the end: every mark that a client was told of is in its
// order exactly once, none that was refused or rejected is anywhere, one of which nobody knows is
// there once at most; a batch is there whole or not at all, in the end and in all that anybody was
// shown; an order's total is the sum of its lines. Source: PROTOCOL 4.1.

import type { OperationHistory, Operation, Shown } from '../operation-history.ts'

/** Every order of a run as it is in the end, by its number; null: there is none. */
export type Orders = ReadonlyMap<string, Shown | null>

export function checkMarks(history: OperationHistory, orders: Orders): string[] {
  const found: string[] = []
  const places = placesOf(orders)
  const sent = new Set<string>()
  for (const operation of history.operations) {
    for (const mark of operation.marks) sent.add(mark)
    found.push(...problemsOf(operation, places))
  }
  for (const [mark, where] of places) {
    if (!sent.has(mark)) found.push(`K1: nobody has sent ${mark}, which is in ${where.join()}`)
    if (where.length > 1) found.push(`K1: ${mark} is there ${where.length} times: ${where.join()}`)
  }
  return found
}

/** Numbers of the orders that have a mark, once for each time. */
function placesOf(orders: Orders): Map<string, string[]> {
  const places = new Map<string, string[]>()
  for (const [number, shown] of orders) {
    for (const mark of shown?.marks ?? []) {
      const where = places.get(mark)
      if (where) where.push(number)
      else places.set(mark, [number])
    }
  }
  return places
}

function problemsOf(operation: Operation, places: ReadonlyMap<string, string[]>): string[] {
  const { id, op, marks, outcome, rejected, orderNumber } = operation
  if (marks.length === 0) return []
  const found: string[] = []
  const who = `of operation ${id} (${op})`
  const there = marks.filter((mark) => places.has(mark))
  const mayBe = op === 'create' || op === 'mark'
  const mustBe = mayBe && outcome === 'ok' && !rejected
  const isTold = outcome === 'fail' || rejected || !mayBe
  if (isTold && there.length > 0) {
    const told = rejected ? 'rejected' : mayBe ? 'nothing was done' : `that it was a ${op}`
    found.push(`K1: ${there.join()} ${who} is there, though its client was told: ${told}`)
  }
  if (mustBe) {
    for (const mark of marks) {
      const where = places.get(mark)?.[0]
      if (where === undefined) found.push(`K1: ${mark} ${who} was acknowledged and is lost`)
      else if (where !== orderNumber) {
        found.push(`K1: ${mark} ${who} is in ${where}, not in ${orderNumber}`)
      }
    }
  }
  if (there.length > 0 && there.length < marks.length) {
    found.push(`K9: of the batch ${marks.join()} ${who} only ${there.join()} is there`)
  }
  return found
}

/** K9 over one order as somebody was shown it. */
function checkWhole(who: string, shown: Shown, batches: Batches): string[] {
  const found: string[] = []
  const there = new Set(shown.marks)
  for (const mark of shown.marks) {
    const missing = batches.get(mark)?.filter((other) => !there.has(other)) ?? []
    if (missing.length > 0) found.push(`K9: ${who} was shown ${mark} without ${missing.join()}`)
  }
  const sum = shown.lineTotals.reduce((total, one) => total + one, 0)
  if (Math.abs(sum - shown.orderTotal) > 0.001) {
    const { orderNumber, orderTotal } = shown
    found.push(`K9: ${who} was shown ${orderNumber} at ${orderTotal}, its lines are ${sum}`)
  }
  return found
}

/** By mark: the marks that come with it or not at all. */
export type Batches = ReadonlyMap<string, readonly string[]>

function batchesOf(history: OperationHistory): Batches {
  const batches = new Map<string, readonly string[]>()
  for (const { marks } of history.operations) {
    if (marks.length > 1) for (const mark of marks) batches.set(mark, marks)
  }
  return batches
}

/** K9 over all that anybody was shown, by actors and by the graph, and the orders in the end. */
export function checkBatches(history: OperationHistory, orders: Orders): string[] {
  const batches = batchesOf(history)
  const found: string[] = []
  for (const { id, op, shown } of history.operations) {
    if (shown === null) continue
    found.push(...checkWhole(`operation ${id} (${op})`, shown, batches))
  }
  for (const shown of orders.values()) {
    if (shown !== null) found.push(...checkWhole('the end', shown, batches))
  }
  return found
}
