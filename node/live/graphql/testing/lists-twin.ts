// Live queries of a member over a small store in memory, for subscriptions; and a graph that knows
// its nodes and nothing else.

import type { Acl } from '../../../../protocol/ace.ts'
import { metaOf } from '../../../../protocol/graph/meta.ts'
import type { NodeType } from '../../../../protocol/graph/node-type.ts'
import { actorFieldOf } from '../../../../protocol/graph/own-actor.ts'
import { graphAccess, openDynamics } from '../../../graph/access.ts'
import type { Graph } from '../../../graph/graph.ts'
import { LiveSchema } from '../../../graph/live-schema.ts'
import { livePositions } from '../../queries/live-positions.ts'
import { countingChance } from '../../queries/testing/counting-chance.ts'
import { ITEM, type Item, ItemStore, LiveMember } from '../../queries/testing/live-stage.ts'
import type { ListOptions } from '../subscribed-list.ts'

const secret = 'A'.repeat(43)
const CHANCE = countingChance()

export class ListsTwin {
  /** Reads wait for it. */
  gate: Promise<void> = Promise.resolve()
  readonly options: ListOptions
  readonly #schema: LiveSchema
  readonly #store = new ItemStore()
  readonly #member: LiveMember

  constructor(item: NodeType = ITEM) {
    this.#schema = new LiveSchema([item])
    this.#member = new LiveMember(this.#store, () => this.#schema.current)
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
      positions: livePositions({ format: 1, shards: 1, generation: 'g', secret }, CHANCE),
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
    const live = this.#schema
    const graph: Pick<Graph, 'version' | 'meta' | 'openDynamics' | 'follows' | 'followed' | 'run'> =
      {
        get version() {
          return live.current.number
        },
        meta: (acl: Acl) => metaOf(live.current.schema, graphAccess(acl, 'any')),
        openDynamics: (acl, node) => openDynamics(acl, live.current.schema.nodes.get(node)!.type),
        follows: (node) => actorFieldOf(node, live.current.schema) !== null,
        followed: ({ budgetMs }) => Promise.resolve(budgetMs),
        run: answer,
      }
    return graph as Graph
  }

  /** The schema is another from now on. */
  become(item: NodeType): void {
    this.#schema.change([item])
  }

  /** null: it goes. */
  put(n: number, item: Item | null): void {
    this.#store.set(n, item)
    this.#member.tell(false)
  }
}
