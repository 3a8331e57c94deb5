// The graph as the routes see it: takes navigations with the caller's permissions, waits for the
// index where a consistency token asks for it, and answers with ready JSON. A reader thread runs
// plans embedded, Elasticsearch in a cluster. Plans are made here, on the main thread: what a
// caller may not see never leaves it. Source: CONTRACT 0, 1.4, PROTOCOL 3.13.6.

import type { Acl } from '../../protocol/ace.ts'
import { RequestError, lacking } from '../../protocol/errors.ts'
import { type Position, SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { CursorSeal } from '../../protocol/graph/cursor.ts'
import { type GraphMeta, metaOf as graphMeta } from '../../protocol/graph/meta.ts'
import { planNavigations } from '../../protocol/graph/navigation.ts'
import { actorFieldOf } from '../../protocol/graph/own-actor.ts'
import type { PlanNotes } from '../../protocol/graph/planning.ts'
import type { GraphPlan, Step } from '../../protocol/graph/plan.ts'
import { LIMITS } from '../../config/limits.ts'
import { type FilterFields, graphAccess, openDynamics } from './access.ts'
import type { ConsistencyTokens } from './consistency.ts'
import type { RegistrySchema } from './custom/registry-schema.ts'
import { Explaining, type Explanation } from './explaining.ts'
import type { LiveSchema, SchemaVersion } from './live-schema.ts'
import { PlanCache, type ReadyPlan } from './plans/plan-cache.ts'
import type { Caller } from './plans/plan-queue.ts'

/** Runs plans against the index. */
export interface PlanRunner {
  /**
   * The answer as JSON. Rejects with RequestError: TOO_BUSY past the queue's bound, UNAVAILABLE
   * past the deadline or when the index can't be read now. `generation` is asked when the plan's
   * turn has come: it is IndexWatch.generation, or throws what the caller is told where the index
   * can't answer.
   */
  run(
    plan: ReadyPlan,
    deadlineMs: number,
    generation: () => number,
    caller: Caller,
  ): Promise<string>
}

/** What the graph needs to know of its index. */
export interface IndexWatch {
  /** Null, or why the index can't answer at all now (it is being filled). */
  unready(): string | null
  /** Changes when the index may have been made anew: who has it open must open it again. */
  readonly generation: number
  head(shard: number): number
  /** Resolves with true when the index has all of the positions, with false after `waitMs`. */
  reached(positions: readonly Position[], waitMs: number): Promise<boolean> | true
  /** The same for what history is read from: the actors' records. */
  recorded(positions: readonly Position[], waitMs: number): Promise<boolean> | true
}

export interface GraphOptions {
  readonly schema: LiveSchema
  /** The version that the index that is read was filled for. */
  readonly served: () => SchemaVersion
  readonly runner: PlanRunner
  readonly index: IndexWatch
  readonly tokens: ConsistencyTokens
  /** What the registry defines beside the node types of the platform; nothing by default. */
  readonly custom?: Pick<RegistrySchema, 'reached' | 'refused'>
  readonly cursors: CursorSeal
  readonly filterFields: FilterFields
  /** Wall clock, milliseconds since 1970: what `now` means in filters. */
  readonly nowMs: () => number
  /** Monotonic milliseconds. */
  readonly monotonicMs: () => number
}

export interface GraphRequest {
  /** Array of navigations, as the caller sent it. */
  readonly body: unknown
  /** The body's text, for finding its plan again; null: don't look. */
  readonly text: string | null
  readonly acl: Acl
  readonly caller: Caller
  /** Value of X-Consistency; empty: none. */
  readonly consistency: string
  readonly budgetMs: number
}

export class Graph {
  readonly #options: GraphOptions
  readonly #plans: PlanCache

  constructor(options: GraphOptions) {
    this.#options = options
    this.#plans = new PlanCache(LIMITS.graph.plansMax)
  }

  /** The answer to a graph request (CONTRACT 1.4 "Response shape"). Rejects with RequestError. */
  async run(request: GraphRequest): Promise<{ readonly json: string }> {
    const startedMs = this.#options.monotonicMs()
    const plan = (version: SchemaVersion): ReadyPlan => this.#plan(request, version)
    return onOneVersion(async () => ({ json: await this.#run(request, { startedMs, plan }) }))
  }

  /**
   * What the query is understood as, what the engine is asked for it, and what takes how long,
   * instead of its answer (CONTRACT 1.4 "Explain"). Rejects as `run`, and with FORBIDDEN.
   */
  async explain(request: GraphRequest): Promise<Explanation> {
    const { acl } = request
    if (!acl.covers('graph', 'explain')) {
      throw lacking('graph:explain')
    }
    const { monotonicMs, filterFields } = this.#options
    const startedMs = monotonicMs()
    return onOneVersion(async () => {
      const explaining = new Explaining(monotonicMs, graphAccess(acl, filterFields))
      const plan = (version: SchemaVersion): ReadyPlan => {
        const notes: PlanNotes = new Map()
        const made = this.#ready(request, version, notes)
        explaining.hasPlan(made.plan, version.schema, notes)
        return { ...made, explains: true }
      }
      return explaining.told(await this.#run(request, { startedMs, plan, explaining }))
    })
  }

  /** From begin to end on one version of the schema; rejects with SchemaMoved where it can't be. */
  async #run(request: GraphRequest, { startedMs, plan: make, explaining }: Run): Promise<string> {
    const { runner, index, monotonicMs, served } = this.#options
    explaining?.begin('consistency')
    if (request.consistency !== '') await this.followed(request)
    const version = served()
    explaining?.begin('planning')
    const plan = make(version)
    explaining?.begin('consistency')
    if (request.consistency !== '') await this.#await(request, plan)
    const generation = (): number => {
      if (served() !== version) throw new SchemaMoved()
      const unready = index.unready()
      if (unready !== null) throw new RequestError('INDEX_BEHIND', unready)
      return index.generation
    }
    generation()
    const leftMs = request.budgetMs - (monotonicMs() - startedMs)
    const deadlineMs = Math.min(leftMs, LIMITS.graph.deadlineMs)
    explaining?.begin('run')
    return runner.run(plan, deadlineMs, generation, request.caller)
  }

  /** What there is to ask for, as far as the entries go (`GET /resources/graph/meta`). */
  meta(acl: Acl): GraphMeta {
    const { served, filterFields } = this.#options
    const meta = graphMeta(served().schema, graphAccess(acl, filterFields))
    const refused = (this.#options.custom?.refused ?? []).filter(({ key }) =>
      acl.covers(`registry/${key}`, 'read'),
    )
    return refused.length === 0 ? meta : { ...meta, refused }
  }

  /** The `dynamic` fields of a node type of which the entries open members at least. */
  openDynamics(acl: Acl, node: string): readonly string[] {
    return openDynamics(acl, this.#options.served().schema.nodes.get(node)!.type)
  }

  /** Whether a live query can be kept of such nodes. */
  follows(node: string): boolean {
    return actorFieldOf(node, this.#options.served().schema) !== null
  }

  /** The number of the schema that answers now: with another one all may be another. */
  get version(): number {
    return this.#options.served().number
  }

  #plan(request: GraphRequest, version: SchemaVersion): ReadyPlan {
    const { text, acl } = request
    this.#plans.follow(version.number)
    const known = text === null ? null : this.#plans.find(acl, text)
    if (known !== null) return known
    const ready = this.#ready(request, version)
    // A page is asked for once.
    const isPage = ready.plan.steps.some(({ after }) => after !== undefined)
    if (text !== null && !isPage) this.#plans.keep(acl, text, ready)
    return ready
  }

  #ready(request: GraphRequest, version: SchemaVersion, notes?: PlanNotes): ReadyPlan {
    const plan = this.#planned(request, version, notes)
    return { plan, json: JSON.stringify(plan), usesHistory: usesHistory(plan) }
  }

  #planned(request: GraphRequest, version: SchemaVersion, notes?: PlanNotes): GraphPlan {
    try {
      return this.#planOn(request, version, notes)
    } catch (error) {
      const newest = this.#options.schema.current
      if (newest === version || !isUnknown(error)) throw error
      this.#planOn(request, newest)
      throw notYetServed()
    }
  }

  /**
   * Waits until what the registry had when the token was made is in the schema that plans are made
   * on. Resolves with what is left of the budget; rejects with RequestError.
   */
  async followed({
    consistency,
    budgetMs,
  }: Pick<GraphRequest, 'consistency' | 'budgetMs'>): Promise<number> {
    const { tokens, index, custom, served, monotonicMs } = this.#options
    if (consistency === '' || custom === undefined) return budgetMs
    const positions = tokens.decode(consistency, (shard) => index.head(shard))
    const offsets = positions.flatMap(({ shard, offset }) => (shard === SYSTEM_SHARD ? offset : []))
    if (offsets.length === 0) return budgetMs
    const startedMs = monotonicMs()
    const waitMs = Math.min(budgetMs, LIMITS.indexing.consistencyWaitMs)
    const isThere = await custom.reached(Math.max(...offsets), served, waitMs)
    if (!isThere) throw notYetServed()
    return budgetMs - (monotonicMs() - startedMs)
  }

  #planOn({ body, acl }: GraphRequest, { schema }: SchemaVersion, notes?: PlanNotes): GraphPlan {
    const { nowMs, filterFields, cursors } = this.#options
    const options = { nowMs: nowMs(), limits: LIMITS.graph, cursors, ...(notes && { notes }) }
    return planNavigations(body, schema, graphAccess(acl, filterFields), options)
  }

  async #await({ consistency, budgetMs }: GraphRequest, plan: ReadyPlan): Promise<void> {
    const { index, tokens, monotonicMs } = this.#options
    const positions = tokens.decode(consistency, (shard) => index.head(shard))
    const waitMs = Math.min(budgetMs, LIMITS.indexing.consistencyWaitMs)
    const startedMs = monotonicMs()
    let isThere = await index.reached(positions, waitMs)
    if (isThere && plan.usesHistory) {
      isThere = await index.recorded(positions, waitMs - (monotonicMs() - startedMs))
    }
    if (isThere) return
    throw new RequestError(
      'INDEX_BEHIND',
      `the graph has not come to the write that X-Consistency names within ${waitMs} ms; ` +
        'the write is safe: ask again, or without the header for what the graph has now',
    )
  }
}

/** One run of a query. */
interface Run {
  readonly startedMs: number
  /** Made on the version of the schema that answers. */
  readonly plan: (version: SchemaVersion) => ReadyPlan
  readonly explaining?: Explaining
}

/** Does it again where the schema has changed meanwhile, a few times. */
async function onOneVersion<T>(act: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await act()
    } catch (error) {
      const isLast = tries >= LIMITS.graph.planTriesMax
      if (isLast || !(error instanceof SchemaMoved)) throw error
    }
  }
}

/** The schema has changed between the planning of a query and its turn. */
class SchemaMoved extends RequestError {
  constructor() {
    super('UNAVAILABLE', 'the fields of the graph have just changed; nothing was done: ask again')
  }
}

/** A name is not known, or is something else: perhaps to this version only. */
function isUnknown(error: unknown): boolean {
  return (
    error instanceof RequestError &&
    ['INVALID_QUERY', 'INVALID_FILTER'].includes(error.errors[0]!.code)
  )
}

/** What is told who asks for what the index is being filled with. */
function notYetServed(): RequestError {
  return new RequestError(
    'INDEX_BEHIND',
    'the query names what the graph has been given just now; it answers when its index has it',
  )
}

function usesHistory(plan: GraphPlan): boolean {
  const reads = (step: Step): boolean =>
    step.storage.kind === 'history' || step.plan.steps.some(reads)
  return plan.steps.some(reads)
}
