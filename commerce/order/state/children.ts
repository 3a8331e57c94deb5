// Children of an order in the maps of its state: looked up where a record says they are, and
// replaced when it changes them. It stands between the folds of records and the state.

import { assert } from '../../../protocol/errors.ts'
import type { OrderState } from './state.ts'

export function present<T>(map: ReadonlyMap<string, T>, id: string): T {
  const child = map.get(id)
  assert(child !== undefined, `a record names ${id}, which is not there`)
  return child
}

/** Replaces a child by a changed copy. */
export function patch<T extends { readonly modifiedMs: number }>(
  map: Map<string, T>,
  id: string,
  change: Partial<NoInfer<T>>,
  now: number,
): void {
  map.set(id, { ...present(map, id), ...change, modifiedMs: now })
}

/** Keeps the number of lines of a delivery. */
export function countLine(state: OrderState, deliveryId: string, by: number): void {
  const count = (state.lineCounts.get(deliveryId) ?? 0) + by
  if (count === 0) state.lineCounts.delete(deliveryId)
  else state.lineCounts.set(deliveryId, count)
}
