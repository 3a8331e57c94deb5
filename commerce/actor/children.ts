// Children of an actor in the maps of its state: looked up where a record says they are, and
// replaced when it changes them.

import { assert } from '../../protocol/errors.ts'

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
