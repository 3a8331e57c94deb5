// GraphQL of one graph, loaded with the first who asks for it: who doesn't use it doesn't wait for
// its library. Source: CONTRACT 1.4.1.

import type { Graph } from '../graph.ts'
import type { GraphQlService } from './service.ts'

export class GraphQl {
  readonly #graph: Graph
  #service: Promise<GraphQlService> | null = null

  constructor(graph: Graph) {
    this.#graph = graph
  }

  service(): Promise<GraphQlService> {
    return (this.#service ??= this.#load())
  }

  async #load(): Promise<GraphQlService> {
    const { GraphQlService } = await import('./service.ts')
    return new GraphQlService(
      this.#graph,
      () => new Promise((resolve) => void setImmediate(resolve)),
    )
  }
}
