// Prepared statements of a connection that reads, and what each took where somebody asks.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { LIMITS } from '../../config/limits.ts'
import type { Trace } from '../../protocol/graph/explain/trace.ts'

export type Stored = string | number | Uint8Array | null

export class Statements {
  /** By their text, in order of last use. */
  readonly #prepared = new Map<string, StatementSync>()
  #db: DatabaseSync | null = null
  #made = 0
  /** Hears of each run; null: nobody asks. */
  trace: Trace | null = null

  open(db: DatabaseSync): void {
    this.#db = db
    this.#made = 0
  }

  /**
   * True: the connection is to be opened anew, between plans. What is forgotten of it keeps its
   * memory until the collector comes, who doesn't see that: the closing of a connection frees it.
   */
  get isWorn(): boolean {
    return this.#made >= LIMITS.sqlite.statementsMadeMax
  }

  close(): void {
    this.#prepared.clear()
    this.#db = null
  }

  /** The rows, each an array of its cells. */
  all(text: string, params: readonly Stored[]): readonly unknown[] {
    const { trace } = this
    const startedMs = trace?.now() ?? 0
    const rows = this.#prepare(text).all(...params)
    trace?.query(text, rows.length, startedMs)
    return rows
  }

  /** How SQLite goes about a statement: its steps, those inside others indented. */
  planOf(text: string): string[] {
    const depths = new Map<number, number>()
    const rows = this.#prepare(`EXPLAIN QUERY PLAN ${text}`).all() as unknown as PlanRow[]
    return rows.map(([id, parent, , detail]) => {
      const depth = (depths.get(parent) ?? -1) + 1
      depths.set(id, depth)
      return '  '.repeat(depth) + detail
    })
  }

  #prepare(text: string): StatementSync {
    const known = this.#prepared.get(text)
    if (known !== undefined) {
      this.#prepared.delete(text)
      this.#prepared.set(text, known)
      return known
    }
    if (this.#prepared.size >= LIMITS.sqlite.statementsMax) {
      this.#prepared.delete(this.#prepared.keys().next().value!)
    }
    const statement = this.#db!.prepare(text)
    this.#made++
    statement.setReturnArrays(true)
    this.#prepared.set(text, statement)
    return statement
  }
}

type PlanRow = [id: number, parent: number, unused: number, detail: string]
