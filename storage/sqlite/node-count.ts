// How many nodes an actor has, as far as anybody asks: an actor that grows is counted with each
// write, so rows past the bound are not looked at. Source: CONTRACT 1.4.2.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { NODES_PER_ACTOR, type NodeLayout } from './layout.ts'

export class NodeCount {
  readonly #statements: readonly StatementSync[]

  constructor(db: DatabaseSync, layouts: Iterable<NodeLayout>) {
    this.#statements = Array.from(layouts, ({ table }) =>
      db.prepare(
        `SELECT count(*) AS n FROM (SELECT 1 FROM ${table} ` +
          'WHERE k BETWEEN ? AND ? AND doc IS NOT NULL LIMIT ?)',
      ),
    )
  }

  /** Nodes of the actor whose rows begin at this key, of all types; `most` where there are more. */
  upTo(most: number, first: number): number {
    let sum = 0
    for (const statement of this.#statements) {
      if (sum === most) break
      sum += Number(statement.get(first, first + NODES_PER_ACTOR - 1, most - sum)!['n'])
    }
    return sum
  }
}
