// A client of a live query as CONTRACT 1.10 tells it to be: a list, and what it is told of it.

import type { ListChange } from '../list-changes.ts'

/** Makes the changes on a list of texts, as a client does. */
export function applyChanges(list: readonly string[], changes: readonly ListChange[]): string[] {
  const made = [...list]
  for (const change of changes) {
    const { kind, index, node } = change
    if (kind === 'add') made.splice(index, 0, node.text)
    else if (kind === 'remove') made.splice(index, 1)
    else {
      made.splice(change.previousIndex, 1)
      made.splice(index, 0, node.text)
    }
  }
  return made
}
