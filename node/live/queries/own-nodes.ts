// The nodes of one changed actor, as a source for plans. What is shown of a node is made once for
// all lists that show the same of it. Source: CONTRACT 1.10.

import type { GraphRow } from '../../../protocol/graph/execute.ts'
import type { NodeSource } from '../../../protocol/graph/find-in-memory.ts'
import type { LiveNode } from './live-window.ts'
import type { NodeChange } from './node-changes.ts'

export class OwnNodes implements NodeSource {
  readonly actorId: string
  readonly #rows = new Map<string, GraphRow[]>()
  readonly #made = new Map<string, Map<GraphRow, LiveNode | null>>()

  constructor({ actorId, nodes }: NodeChange) {
    this.actorId = actorId
    for (const [type, id, doc] of nodes) {
      const rows = this.#rows.get(type)
      const row = { actorId, id, doc }
      if (rows === undefined) this.#rows.set(type, [row])
      else rows.push(row)
    }
  }

  rows(type: string): readonly GraphRow[] {
    return this.#rows.get(type) ?? []
  }

  count(): number {
    let count = 0
    for (const rows of this.#rows.values()) count += rows.length
    return count
  }

  /** What `make` makes of the row, by what is shown of it; null: nothing. */
  shown(shape: string, row: GraphRow, make: () => LiveNode | null): LiveNode | null {
    const known = this.#made.get(shape) ?? new Map<GraphRow, LiveNode | null>()
    this.#made.set(shape, known)
    let node = known.get(row)
    if (node === undefined) {
      node = make()
      known.set(row, node)
    }
    return node
  }
}
