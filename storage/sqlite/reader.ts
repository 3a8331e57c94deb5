// Reading the embedded graph index: runs plans on a read-only connection, each on one snapshot of
// the file. Source: ARCHITECTURE 5, CONTRACT 1.4.

import type { DatabaseSync } from 'node:sqlite'
import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import {
  Budget,
  executePlan,
  type Found,
  type GraphRow,
  type NodeFinder,
} from '../../protocol/graph/execute.ts'
import { type CursorSeal, NO_CURSORS } from '../../protocol/graph/cursor.ts'
import { NO_HISTORY, type HistorySource } from '../../protocol/graph/history.ts'
import { type Explained, Trace, told } from '../../protocol/graph/explain/trace.ts'
import { Merged } from '../../protocol/graph/merged.ts'
import type { GraphPlan, GraphResult, Step } from '../../protocol/graph/plan.ts'
import type { GraphSchema } from '../../protocol/graph/schema.ts'
import type { GraphReader } from '../search.ts'
import { fingerprintOf, type IndexPlace, openForReading } from './file.ts'
import { keyBytes, layoutOf, type IndexLayoutOfAll } from './layout.ts'
import { TICK } from './sql.ts'
import { heldFind } from './held-find.ts'
import { Statements } from './statements.ts'
import { elementRank } from './element-rank.ts'
import { RANK } from './match.ts'
import { NO_PARENT, StepFind } from './step-find.ts'

export interface GraphReaderOptions {
  /** The data directory, and which of its indexes; 0 by default. */
  readonly dir: string
  readonly number?: number
  readonly schema: GraphSchema
  /** Where history nodes come from; none without it. */
  readonly history?: HistorySource
  /** Monotonic milliseconds, for budgets. */
  readonly now?: () => number
  /** Asked amid each plan, many times; what it throws stops the plan, and `query` throws it. */
  readonly mayGoOn?: () => void
  /** For plans that ask for cursors. */
  readonly cursors?: CursorSeal
}

export class SqliteGraphReader implements GraphReader, NodeFinder {
  readonly #place: IndexPlace
  readonly #layout: IndexLayoutOfAll
  readonly #history: HistorySource
  readonly #now: () => number
  readonly #mayGoOn: () => void
  readonly #cursors: CursorSeal
  readonly #statements = new Statements()
  #db: DatabaseSync | null = null
  #budget: Budget

  constructor(options: GraphReaderOptions) {
    this.#place = { dir: options.dir, number: options.number ?? 0 }
    this.#layout = layoutOf(options.schema)
    this.#history = options.history ?? NO_HISTORY
    this.#now = options.now ?? (() => performance.now())
    this.#mayGoOn = options.mayGoOn ?? (() => undefined)
    this.#cursors = options.cursors ?? NO_CURSORS
    this.#budget = new Budget(this.#now, 0, 0)
  }

  query(plan: GraphPlan, budgetMs: number): GraphResult {
    return this.#run(plan, budgetMs)
  }

  explain(plan: GraphPlan, budgetMs: number): Explained {
    const trace = new Trace(this.#now)
    this.#run(plan, budgetMs, trace)
    const planOf = (text: string): readonly string[] => this.#statements.planOf(text)
    return told(plan.steps, trace, { engine: 'SQLite', planOf })
  }

  #run(plan: GraphPlan, budgetMs: number, trace?: Trace): GraphResult {
    if (this.#statements.isWorn) this.close()
    const db = this.#open()
    const budget = new Budget(this.#now, budgetMs, LIMITS.graph.resultNodesMax)
    this.#budget = budget
    const statements = this.#statements
    statements.trace = trace ?? null
    // One snapshot for all statements of the plan.
    statements.all('BEGIN', [])
    try {
      const [history, cursors] = [this.#history, this.#cursors]
      return executePlan(plan, { finder: this, history, budget, cursors, ...(trace && { trace }) })
    } finally {
      if (db.isTransaction) statements.all('COMMIT', [])
      statements.trace = null
    }
  }

  #check(): void {
    this.#budget.check()
    this.#mayGoOn()
  }

  /** The connection, made at first use: the writer makes the file. */
  #open(): DatabaseSync {
    if (this.#db !== null) return this.#db
    let db: DatabaseSync | null = null
    try {
      db = openForReading(this.#place)
      if (fingerprintOf(db) === this.#layout.fingerprint) {
        db.function(TICK, () => {
          this.#check()
          return 1
        })
        this.#statements.open(db)
        db.function(RANK, { deterministic: true }, elementRank())
        this.#db = db
        return db
      }
    } catch (error) {
      db?.close()
      throw new RequestError(
        'UNAVAILABLE',
        `The graph index can't be opened now: ${(error as Error).message}`,
      )
    }
    db.close()
    throw new RequestError('UNAVAILABLE', 'The graph index is being made; ask again soon')
  }

  find(step: Step, parents: readonly GraphRow[] | null): Found[] {
    const find = new StepFind(step, this.#layout.nodes, this.#statements)
    if (parents === null) return [find.run(NO_PARENT)]
    const inParent = heldFind(step)
    return parents.map((parent) => {
      this.#check()
      const held = inParent?.(parent) ?? null
      if (held !== null) return held
      const founds = new Merged(step)
      for (const given of find.givenBy(parent, (actorId) => this.#actorNumber(actorId))) {
        founds.add(find.run(given))
      }
      return founds.found()
    })
  }

  /** Number of an actor, for parents that are no rows (history nodes); null: it has no rows. */
  #actorNumber(actorId: string): number | null {
    const text = 'SELECT number FROM actor WHERE id = ?'
    const row = this.#statements.all(text, [keyBytes(actorId)])[0] as [number] | undefined
    return row?.[0] ?? null
  }

  close(): void {
    this.#db?.close()
    this.#db = null
    this.#statements.close()
  }
}
