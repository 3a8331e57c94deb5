// Which part of a line each of its returns gives back. A part is worth what is rounded up to its
// end less what is rounded up to its beginning, so that the parts of a line add up to the line, in
// amounts, taxes and discounts. An invoiced credit keeps its part; the others fill what is free, in
// the order of their creation. Source: commerce/README.md "Arithmetic".

import { addDecimals, partOf, portionOf } from '../../../protocol/money.ts'
import type { OrderLine, OrderState, Return } from '../state/state.ts'

/** From and to on the line's quantity. A return has several where it fills gaps. */
export type Part = readonly [from: number, to: number]

/** The parts of all returns whose lines `wanted` holds (all without it), by their ids. */
export function returnedParts(state: OrderState, wanted?: string): Map<string, readonly Part[]> {
  const parts = new Map<string, readonly Part[]>()
  const returns = [...state.returns.values()].filter(
    ({ orderLineId }) => wanted === undefined || orderLineId === wanted,
  )
  for (const [, own] of Map.groupBy(returns, ({ orderLineId }) => orderLineId)) {
    place(state, own, parts)
  }
  return parts
}

/** What parts of a line are worth of one of its amounts, in minor units. */
export function worthOf(
  amount: number,
  line: OrderLine,
  of: { readonly parts: readonly Part[]; readonly factor: number },
): number {
  const { quantity } = line
  let worth = 0
  for (const [from, to] of of.parts) {
    worth += partOf(amount, { quantity, part: to, factor: 1 })
    worth -= partOf(amount, { quantity, part: from, factor: 1 })
  }
  return portionOf(worth, of.factor)
}

function place(
  state: OrderState,
  returns: readonly Return[],
  parts: Map<string, readonly Part[]>,
): void {
  const taken: Part[] = []
  const open: Return[] = []
  for (const item of returns) {
    const kept =
      item.invoiceLineId === null ? undefined : state.invoiceLines.get(item.invoiceLineId)?.parts
    if (kept === undefined) {
      open.push(item)
    } else {
      parts.set(item.returnId, kept)
      taken.push(...kept)
    }
  }
  taken.sort((a, b) => a[0] - b[0])
  let at = 0
  let next = 0
  for (const { returnId, quantity } of open) {
    const own: Part[] = []
    let left = quantity
    while (left > 0) {
      const [from, to] = taken[next] ?? [Infinity, Infinity]
      const end = Math.min(addDecimals(at, left), from)
      if (end > at) {
        own.push([at, end])
        left = addDecimals(left, addDecimals(at, -end))
        at = end
      }
      if (left > 0) {
        at = to
        next++
      }
    }
    parts.set(returnId, own)
  }
}
