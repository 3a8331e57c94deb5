// K5: once all is quiet the graph index shows every order as its own actor does, and no order that
// isn't there. Source: PROTOCOL 4.1.

import type { Shown } from '../operation-history.ts'
import type { Orders } from './marks.ts'

/** `indexed`: every order of the run as the graph shows it; null: it doesn't. */
export function checkIndex(
  orders: Orders,
  indexed: Orders,
  counts: { readonly orders: number; readonly lines: number },
): string[] {
  const found: string[] = []
  let there = 0
  let lines = 0
  for (const [number, shown] of orders) {
    if (shown !== null) {
      there++
      lines += shown.marks.length
    }
    const graph = indexed.get(number) ?? null
    if (text(shown) !== text(graph)) {
      found.push(`K5: ${number} is ${text(shown)}, the graph shows ${text(graph)}`)
    }
  }
  if (counts.orders !== there) found.push(`K5: ${there} orders, the graph has ${counts.orders}`)
  if (counts.lines !== lines) found.push(`K5: ${lines} lines, the graph has ${counts.lines}`)
  return found
}

function text(shown: Shown | null): string {
  return shown === null ? 'not there' : JSON.stringify(shown)
}
