// `query` messages: a graph node object evaluated on one actor's own nodes, inside a turn, so that
// it sees what the same request has done before it. The actor runtime has the state, the evaluator
// works in memory. Source: CONTRACT 1.3 "query message".

import type { Behaviour, NodeDoc } from '../../protocol/behaviour.ts'
import { decodeEntry } from '../../protocol/entry/entry.ts'
import { RequestError } from '../../protocol/errors.ts'
import { compileCondition } from '../../protocol/graph/evaluate.ts'
import { completing } from '../../protocol/graph/custom-fields.ts'
import { Budget, type GraphRow } from '../../protocol/graph/execute.ts'
import { type NodeSource, queryNode } from '../../protocol/graph/find-in-memory.ts'
import { type HistorySource, NO_HISTORY } from '../../protocol/graph/history.ts'
import { planNode } from '../../protocol/graph/navigation.ts'
import type { Condition, NodePlan } from '../../protocol/graph/plan.ts'
import { hidden } from '../../protocol/graph/planning.ts'
import { aclOfLists } from '../../protocol/ace.ts'
import type { Attributes } from '../../protocol/attributes.ts'
import type { GraphAces } from '../../protocol/message.ts'
import { LIMITS } from '../../config/limits.ts'
import { type FilterFields, graphAccess, visibility } from './access.ts'
import type { LiveSchema } from './live-schema.ts'
import { historyOfEntry } from './history.ts'

/** An actor as its turn sees it. */
export interface ActorQueryRequest {
  readonly behaviour: Behaviour
  readonly state: unknown
  /**
   * Its state before this request, null before it was made: what the caller doesn't see in there
   * stays hidden, for a preview could show it to whoever may change the field that it is seen by.
   */
  readonly before: unknown
  readonly actorId: string
  /** The `node` object `{fields, navigate}`: the body of the message. */
  readonly node: unknown
  /** What the caller may see of the graph; empty: nothing. */
  readonly aces: GraphAces
  /** What the caller is said to be, as far as the entries go by it. */
  readonly attributes?: Attributes
  /**
   * The actor's entries so far, oldest first, page by page; asked for only when the query shows
   * history.
   */
  readonly entries: () => AsyncIterable<readonly { readonly body: Uint8Array }[]>
}

export interface ActorQueryOptions {
  readonly schema: LiveSchema
  readonly filterFields: FilterFields
  /** Wall clock, milliseconds since 1970. */
  readonly nowMs: () => number
  /** Monotonic milliseconds. */
  readonly monotonicMs: () => number
}

/**
 * Makes the function that answers `query` messages. Its answer (or the promise of it) is the node,
 * null when a semi-join (`require`) keeps it out. It throws, or rejects with, RequestError: 400 as
 * the planner does, 403 where the graph would refuse the same caller, 422 INVALID_STATE for an
 * actor type without graph nodes, 503 UNAVAILABLE when it takes too long.
 */
export function actorQuery(options: ActorQueryOptions): (request: ActorQueryRequest) => unknown {
  const { schema, filterFields, nowMs, monotonicMs } = options
  let known = schema.current.types
  let complete = completing(known)
  const completeBy = (types: typeof known): Complete => {
    if (types !== known) [known, complete] = [types, completing(types)]
    return complete
  }
  return (request) => {
    const { behaviour, node } = request
    const root = rootOf(behaviour)
    const current = schema.current.schema
    const acl = aclOfLists(request.aces, request.attributes)
    const access = graphAccess(acl, filterFields)
    const plan = planNode(node, root, current, { access, nowMs: nowMs(), limits: LIMITS.graph })
    const own = ownNodes(request, completeBy(schema.current.types), (name) =>
      access.sees(current.nodes.get(name)!.type),
    )
    const row = own.rows(root)[0]
    const type = current.nodes.get(root)!
    if (row === undefined || !visibility(acl, type.type).sees(row.doc)) throw hidden(type, '')
    const answer = (history: HistorySource): unknown => {
      const budget = new Budget(monotonicMs, LIMITS.graph.actorQueryMs, LIMITS.graph.resultNodesMax)
      return queryNode(plan, row, own, { history, budget })
    }
    const shown = shownHistory(plan)
    return shown.size === 0 ? answer(NO_HISTORY) : historyOf(request, shown).then(answer)
  }
}

function rootOf(behaviour: Behaviour): string {
  const rows = behaviour.nodeTypes.filter(({ storage }) => storage.kind === 'row')
  const root = rows.find((type) => type.root === true) ?? rows[0]
  if (root !== undefined) return root.name
  throw new RequestError(
    'INVALID_STATE',
    `actors of type ${behaviour.type} have no graph node that could be queried`,
  )
}

/** Types of history nodes that a plan shows. */
function shownHistory(plan: NodePlan, into = new Set<string>()): ReadonlySet<string> {
  for (const step of plan.steps) {
    if (step.storage.kind === 'history') into.add(step.plan.node)
    shownHistory(step.plan, into)
  }
  return into
}

/** Adds custom fields. */
type Complete = ReturnType<typeof completing>

interface OwnNodes extends NodeSource {
  rows(node: string): readonly GraphRow[]
}

/** The actor's nodes by type, projected when they are first asked for. */
function ownNodes(
  { behaviour, state, before, actorId }: ActorQueryRequest,
  complete: Complete,
  sees: (node: string) => boolean | Condition,
): OwnNodes {
  const now = projected({ behaviour, state, actorId, complete })
  if (before === null || before === state) return now
  const then = projected({ behaviour, state: before, actorId, complete })
  const rows = new Map<string, readonly GraphRow[]>()
  return {
    rows(node) {
      let known = rows.get(node)
      if (known === undefined) {
        const unseen = unseenIds(then.rows(node), sees(node))
        known = now.rows(node).filter(({ id }) => !unseen.has(id))
        rows.set(node, known)
      }
      return known
    },
    count: (of) => now.count(of),
  }
}

function unseenIds(rows: readonly GraphRow[], sees: boolean | Condition): ReadonlySet<string> {
  if (typeof sees === 'boolean') return new Set()
  const test = compileCondition(sees)
  return new Set(rows.flatMap(({ id, doc }) => (test(doc) ? [] : id)))
}

function projected({
  behaviour,
  state,
  actorId,
  complete,
}: Pick<ActorQueryRequest, 'behaviour' | 'state' | 'actorId'> & {
  readonly complete: Complete
}): OwnNodes {
  const refs = Map.groupBy(behaviour.nodes(state), (ref) => ref.node)
  const rows = new Map<string, readonly GraphRow[]>()
  return {
    rows(node) {
      let known = rows.get(node)
      if (known === undefined) {
        known = (refs.get(node) ?? []).flatMap((ref) => {
          const found = behaviour.project(state, ref)
          return found === null ? [] : [{ actorId, id: ref.id, doc: complete(found).doc }]
        })
        rows.set(node, known)
      }
      return known
    },
    count: () => behaviour.nodes(state).length,
  }
}

/**
 * The history nodes of these types out of the actor's entries, of which nothing else is kept.
 * Rejects with 503 when they are too many to be looked through.
 */
async function historyOf(
  { behaviour, entries }: ActorQueryRequest,
  types: ReadonlySet<string>,
): Promise<HistorySource> {
  /** By type, a list for each entry that shows one, the oldest entry first. */
  const shown = new Map<string, (readonly NodeDoc[])[]>(Array.from(types, (type) => [type, []]))
  let bytes = 0
  for await (const page of entries()) {
    for (const { body } of page) {
      const entry = decodeEntry(body)
      for (const [type, lists] of shown) {
        const nodes = [...historyOfEntry(behaviour, entry, type)]
        if (nodes.length === 0) continue
        bytes += JSON.stringify(nodes).length
        lists.push(nodes)
      }
      if (bytes > LIMITS.graph.actorHistoryBytesMax) throw tooLong()
    }
  }
  return {
    *read(_actorId, type) {
      const lists = shown.get(type) ?? []
      for (let i = lists.length - 1; i >= 0; i--) yield* lists[i]!
    },
  }
}

function tooLong(): RequestError {
  return new RequestError(
    'UNAVAILABLE',
    'the history of this actor is too long for a query message; ask the graph for it, with a limit',
  )
}
