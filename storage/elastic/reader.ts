// Reading the graph index of a cluster: runs plans against one generation of its indexes. Source:
// ARCHITECTURE 5, CONTRACT 1.4, PROTOCOL 3.13.4.

import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import { type CursorSeal, NO_CURSORS } from '../../protocol/graph/cursor.ts'
import { Budget, executeRemotely } from '../../protocol/graph/execute.ts'
import { type Explained, Trace, told } from '../../protocol/graph/explain/trace.ts'
import type { RemoteHistory } from '../../protocol/graph/history.ts'
import type { GraphPlan, GraphResult } from '../../protocol/graph/plan.ts'
import type { GraphSchema } from '../../protocol/graph/schema.ts'
import type { GraphReader } from '../search.ts'
import { EngineAway, NoSuchIndex, type SearchEngine } from './engine.ts'
import { ElasticFinder, FINDER_BOUNDS, type FinderBounds } from './finder.ts'
import { layoutOf, type Layout } from './layout.ts'

export interface ElasticReaderOptions {
  readonly engine: SearchEngine
  readonly schema: GraphSchema
  /** Index of a node type, by its layout's name. */
  readonly indexOf: (name: string) => string
  /** Where history nodes come from; none without it. */
  readonly history?: RemoteHistory
  /** Monotonic milliseconds, for budgets. */
  readonly now: () => number
  /** For plans that ask for cursors. */
  readonly cursors?: CursorSeal
  readonly bounds?: FinderBounds
  /** Another program has made the index: which column is of which field is not known. */
  readonly isForeign?: boolean
}

const NO_HISTORY: RemoteHistory = { read: () => Promise.resolve({ nodes: [], rest: null }) }

export class ElasticReader implements GraphReader {
  readonly #options: ElasticReaderOptions
  readonly #layout: Layout

  constructor(options: ElasticReaderOptions) {
    this.#options = options
    this.#layout = layoutOf(options.schema)
  }

  async query(plan: GraphPlan, budgetMs: number): Promise<GraphResult> {
    return this.#run(plan, budgetMs)
  }

  async explain(plan: GraphPlan, budgetMs: number): Promise<Explained> {
    const trace = new Trace(this.#options.now)
    await this.#run(plan, budgetMs, trace)
    return told(plan.steps, trace, { engine: 'Elasticsearch' })
  }

  async #run(plan: GraphPlan, budgetMs: number, trace?: Trace): Promise<GraphResult> {
    const { engine, schema, indexOf, history = NO_HISTORY, now, bounds } = this.#options
    const { cursors = NO_CURSORS, isForeign = false } = this.#options
    const layout = this.#layout
    const budget = new Budget(now, budgetMs, LIMITS.graph.resultNodesMax)
    const finder = new ElasticFinder({
      engine,
      layout,
      schema,
      indexOf: (node) => indexOf(layout.nodes.get(node)!.name),
      budget,
      bounds: bounds ?? FINDER_BOUNDS,
      isForeign,
      ...(trace && { trace }),
    })
    try {
      return await executeRemotely(plan, {
        finder,
        history,
        budget,
        cursors,
        ...(trace && { trace }),
      })
    } catch (error) {
      throw asRequestError(error, budget)
    }
  }

  async close(): Promise<void> {}
}

function asRequestError(error: unknown, budget: Budget): unknown {
  if (error instanceof EngineAway) {
    if (budget.over) return budget.timeout()
    const text = `the graph index can't be read now; try again (${error.message})`
    return new RequestError('UNAVAILABLE', text)
  }
  if (error instanceof NoSuchIndex) {
    return new RequestError('UNAVAILABLE', 'the graph index is being made; ask again soon')
  }
  return error
}
