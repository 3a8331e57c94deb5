// What a client must be told to get from the list that it has to the one that is right: only nodes
// that came, went, changed or moved, each once. Source: CONTRACT 1.10.

import { type LiveNode, keyOf } from './live-window.ts'

/**
 * In the order in which they are to be made. `previousIndex` and the `index` of a removal count
 * before the change, `index` of an addition and of an update after it.
 */
export type ListChange =
  | { readonly kind: 'add'; readonly index: number; readonly node: LiveNode }
  | {
      readonly kind: 'update'
      readonly index: number
      readonly previousIndex: number
      readonly node: LiveNode
    }
  | { readonly kind: 'remove'; readonly index: number; readonly node: LiveNode }

/**
 * `isPushedOut`: of a node that is to go, whether others only took its place; it goes after they
 * came. Nodes that are the same object in both lists are in the same order in both.
 */
export function listChanges(
  had: readonly LiveNode[],
  wanted: readonly LiveNode[],
  isPushedOut: (node: LiveNode) => boolean,
): readonly ListChange[] {
  const changes: ListChange[] = []
  const list = [...had]
  const stays = new Set(wanted.map(keyOf))
  const remove = (goes: (node: LiveNode) => boolean): void => {
    for (let index = list.length - 1; index >= 0; index--) {
      const node = list[index]!
      if (stays.has(keyOf(node)) || !goes(node)) continue
      list.splice(index, 1)
      changes.push({ kind: 'remove', index, node })
    }
  }
  remove((node) => !isPushedOut(node))
  place(list, wanted, changes)
  remove(() => true)
  return changes
}

/** Puts each node that is new or another behind the one that it follows. */
function place(list: LiveNode[], wanted: readonly LiveNode[], changes: ListChange[]): void {
  const same = new Set<LiveNode>(list)
  const places = new Map(list.map((node) => [keyOf(node), node]))
  let before: LiveNode | null = null
  for (const node of wanted) {
    if (!same.has(node)) {
      const old = places.get(keyOf(node))
      const previousIndex = old === undefined ? -1 : list.indexOf(old)
      if (old !== undefined) list.splice(previousIndex, 1)
      const index: number = before === null ? 0 : list.indexOf(before) + 1
      list.splice(index, 0, node)
      if (old === undefined) changes.push({ kind: 'add', index, node })
      else if (index !== previousIndex || old.text !== node.text) {
        changes.push({ kind: 'update', index, previousIndex, node })
      }
    }
    before = node
  }
}
