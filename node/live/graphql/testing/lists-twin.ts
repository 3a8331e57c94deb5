// Live queries over nodes that a test puts there, without a feed: each change is told at once, by
// the standing queries themselves. And a graph that knows such nodes and nothing else.

import type { Acl } from '../../../../protocol/ace.ts'
import { metaOf } from '../../../../protocol/graph/meta.ts'
import type { NodeType } from '../../../../protocol/graph/node-type.ts'
import { actorFieldOf } from '../../../../protocol/graph/own-actor.ts'
import { graphAccess, openDynamics } from '../../../graph/access.ts'
import type { Graph } from '../../../graph/graph.ts'
import { LiveSchema } from '../../../graph/live-schema.ts'
import { LiveList } from '../../queries/live-list.ts'
import type { LivePlan } from '../../queries/live-plan.ts'
import { livePositions } from '../../queries/live-positions.ts'
import { OwnNodes } from '../../queries/own-nodes.ts'
import { type QueryTaker, StandingQuery } from '../../queries/standing-query.ts'
import type { ListOptions } from '../subscribed-list.ts'

const THING: NodeType = {
  name: 'thing',
  set: 'things',
  idField: 'thingId',
  root: true,
  fields: [
    { name: 'thingId', type: 'uuid' },
    { name: 'name', type: 'text' },
    { name: 'colour', type: 'text' },
  ],
  edges: [],
  storage: { kind: 'row' },
}

const secret = 'A'.repeat(43)

function listOf(plan: LivePlan): LiveList<StandingQuery> {
  return new LiveList(plan, () => undefined)
}

export class ListsTwin {
  readonly schema = new LiveSchema([THING])
  readonly standing = new Set<StandingQuery>()
  /** Held back until it is called; null: reads are done at once. */
  gate: Promise<void> | null = null
  readonly #things = new Map<string, Record<string, unknown>>()

  readonly options: ListOptions = {
    queries: {
      heard: new Map(),
      open: (plan: LivePlan, taker: QueryTaker) => {
        const query = new StandingQuery(taker, listOf(plan))
        this.standing.add(query)
        return query
      },
      read: async (query) => {
        await this.gate
        this.#fill(query)
      },
      replan: (query, plan) => {
        query.list = listOf(plan)
        query.forget()
        this.#fill(query)
        query.isTold = true
        query.flush()
      },
      wake: (query) => void query.flush(),
      end: (query) => {
        query.isEnded = true
        this.standing.delete(query)
      },
    },
    positions: livePositions({ format: 1, shards: 1, generation: 'g', secret }),
    served: () => this.schema.current,
    filterFields: 'any',
  }

  /** What GraphQL asks of a graph; a query is answered by `answer`. */
  graph(answer: () => Promise<{ json: string }>): Graph {
    const { current } = this.schema
    const graph: Pick<Graph, 'version' | 'meta' | 'openDynamics' | 'follows' | 'followed' | 'run'> =
      {
        version: current.number,
        meta: (acl: Acl) => metaOf(current.schema, graphAccess(acl, 'any')),
        openDynamics: (acl, node) => openDynamics(acl, current.schema.nodes.get(node)!.type),
        follows: (node) => actorFieldOf(node, current.schema) !== null,
        followed: ({ budgetMs }) => Promise.resolve(budgetMs),
        run: answer,
      }
    return graph as Graph
  }

  /** null: it goes. */
  put(thingId: string, thing: { readonly name: string; readonly colour?: string } | null): void {
    if (thing === null) this.#things.delete(thingId)
    else this.#things.set(thingId, { thingId, ...thing })
    for (const query of this.standing) {
      query.list.apply(thingId, this.#matching(query, thingId))
      query.flush()
    }
  }

  #fill(query: StandingQuery): void {
    const nodes = [...this.#things.keys()].flatMap((id) => this.#matching(query, id))
    query.list.begin(nodes, false)
    query.list.isFilled = true
  }

  #matching(query: StandingQuery, id: string) {
    const doc = this.#things.get(id)
    const nodes = doc === undefined ? [] : [['thing', id, doc] as const]
    return query.plan.matching(new OwnNodes({ actorId: id, nodes }), () => 0)
  }
}
