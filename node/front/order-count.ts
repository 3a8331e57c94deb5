// How many orders there are, for the front page. Counting is work: however many look, the graph is
// asked once in a while.

import { LIMITS } from '../../config/limits.ts'
import { OWNER_ACL } from '../../protocol/ace.ts'
import type { Graph } from '../graph/graph.ts'

const NAVIGATIONS = [{ edge: 'orders', count: true }] as const
/** It waits its turn like every caller. */
const CALLER = { group: 'front page', name: '' } as const

export interface OrderCountOptions {
  readonly graph: Pick<Graph, 'run'>
  readonly monotonicMs: () => number
}

export class OrderCount {
  readonly #options: OrderCountOptions
  #asked: Promise<number | null> | null = null
  #askedMs = 0

  constructor(options: OrderCountOptions) {
    this.#options = options
  }

  /** The number a moment ago; null: the graph doesn't say. */
  read(): Promise<number | null> {
    const nowMs = this.#options.monotonicMs()
    if (this.#asked === null || nowMs - this.#askedMs >= LIMITS.front.countMs) {
      this.#askedMs = nowMs
      this.#asked = this.#count().catch(() => null)
    }
    return this.#asked
  }

  async #count(): Promise<number | null> {
    const request = { body: NAVIGATIONS, text: null, acl: OWNER_ACL, consistency: '' }
    const budgetMs = LIMITS.front.countMs
    const { json } = await this.#options.graph.run({ ...request, caller: CALLER, budgetMs })
    return (JSON.parse(json) as { orders: number }).orders
  }
}
