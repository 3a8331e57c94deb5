// Live queries of a member over a small store in memory, for subscriptions; and a graph that knows
// its nodes and nothing else.

import type { Acl } from '../../../../protocol/ace.ts'
import { metaOf } from '../../../../protocol/graph/meta.ts'
import { actorFieldOf } from '../../../../protocol/graph/own-actor.ts'
import { graphAccess, openDynamics } from '../../../graph/access.ts'
import type { Graph } from '../../../graph/graph.ts'
import { LiveSchema } from '../../../graph/live-schema.ts'
import { livePositions } from '../../queries/live-positions.ts'
import { ITEM, type Item, ItemStore, LiveMember } from '../../queries/testing/live-stage.ts'
import type { ListOptions } from '../subscribed-list.ts'

const secret = 'A'.repeat(43)

export class ListsTwin {
  /** Reads wait for it. */
  gate: Promise<void> = Promise.resolve()
  readonly options: ListOptions
  readonly #schema = new LiveSchema([ITEM])
  readonly #store = new ItemStore()
  readonly #member = new LiveMember(this.#store)

  constructor() {
    const { queries } = this.#member
    this.options = {
      queries: {
        heard: queries.heard,
        open: (...all) => queries.open(...all),
        read: async (...all) => {
          await this.gate
          await queries.read(...all)
        },
        replan: (...all) => queries.replan(...all),
        wake: (query) => queries.wake(query),
        end: (query) => queries.end(query),
      },
      positions: livePositions({ format: 1, shards: 1, generation: 'g', secret }),
      served: () => this.#schema.current,
      filterFields: 'any',
    }
  }

  /** Lists that stand. */
  get standing(): number {
    return this.#member.queries.size
  }

  /** What GraphQL asks of a graph; a query is answered by `answer`. */
  graph(answer: () => Promise<{ json: string }>): Graph {
    const { number, schema } = this.#schema.current
    const graph: Pick<Graph, 'version' | 'meta' | 'openDynamics' | 'follows' | 'followed' | 'run'> =
      {
        version: number,
        meta: (acl: Acl) => metaOf(schema, graphAccess(acl, 'any')),
        openDynamics: (acl, node) => openDynamics(acl, schema.nodes.get(node)!.type),
        follows: (node) => actorFieldOf(node, schema) !== null,
        followed: ({ budgetMs }) => Promise.resolve(budgetMs),
        run: answer,
      }
    return graph as Graph
  }

  /** null: it goes. */
  put(n: number, item: Item | null): void {
    this.#store.set(n, item)
    this.#member.tell(false)
  }
}
