// Routes: which incarnation has a shard, as far as this member knows: from the shard rows that it
// reads, from answers and from hints. The highest epoch wins, whoever said it; a wrong route costs
// a round trip, never more. Source: PROTOCOL 3.5, 3.6 "Edge".

/** An owner as somebody has told it. */
export interface Route {
  readonly incarnation: string
  readonly epoch: number
}

export class Routes {
  readonly #routes = new Map<number, Route>()

  /** Takes what is said of a shard, unless something newer is known. True: it was news. */
  learn(shard: number, route: Route): boolean {
    const known = this.#routes.get(shard)
    if (known && known.epoch >= route.epoch) return false
    this.#routes.set(shard, route)
    return true
  }

  of(shard: number): Route | null {
    return this.#routes.get(shard) ?? null
  }
}
