// Edges over a link, as the search engine is asked for them: to which values the links of some
// nodes lead, and from which values links lead to some. Source: CONTRACT 1.4, ARCHITECTURE 5.

import { compileCondition } from '../../protocol/graph/evaluate.ts'
import type { Budget, GraphRow } from '../../protocol/graph/execute.ts'
import type { Link, Step } from '../../protocol/graph/plan.ts'
import type { GraphSchema } from '../../protocol/graph/schema.ts'
import { docOf } from './document.ts'
import type { Query, SearchAnswer, SearchRequest, Term } from './engine.ts'
import { ACTOR, ID, REST, type Layout } from './layout.ts'
import { ALL, conditionQueryOf } from './query.ts'
import { BY_ID, livingOf, membersRead, placeOfStep } from './selection.ts'

export interface LinksOptions {
  readonly layout: Layout
  readonly schema: GraphSchema
  readonly indexOf: (node: string) => string
  readonly budget: Budget
  /** `page`: links of one search; `links`: values that one search goes by. */
  readonly bounds: { readonly page: number; readonly links: number }
}

type Edge = Extract<Step['source'], { kind: 'edge' }>
type Search = (request: SearchRequest) => Promise<SearchAnswer>

export class Links {
  readonly #options: LinksOptions
  readonly #search: Search

  constructor(options: LinksOptions, search: Search) {
    this.#options = options
    this.#search = search
  }

  /** For each parent the values by which the edge's other end is found; none: it leads nowhere. */
  async endsOf(edge: Edge, parents: readonly GraphRow[]): Promise<readonly (readonly Term[])[]> {
    const starts = parents.map(({ doc }) => doc[edge.from])
    const { through } = edge
    if (through === undefined) return starts.map((value) => (isTerm(value) ? [value] : []))
    const ends = new Map<unknown, Set<Term>>()
    const all = [...new Set(starts.filter(isTerm))]
    const together = this.#options.bounds.links
    for (let at = 0; at < all.length; at += together) {
      const some: Query = { terms: { [through.from]: all.slice(at, at + together) } }
      let found = 0
      for await (const [start, end] of this.#follow(through, some)) {
        const own = ends.get(start) ?? new Set()
        ends.set(start, own.add(end))
        // What no answer may have is not kept either.
        if (++found > this.#options.budget.nodesMax) this.#options.budget.add(found)
      }
    }
    return starts.map((value) => [...(ends.get(value) ?? [])])
  }

  /** Values from which links lead to one of these; null: there are more than `max` links. */
  async startsOf(through: Link, ends: readonly Term[], max: number): Promise<Term[] | null> {
    const starts = new Set<Term>()
    let found = 0
    for await (const [start] of this.#follow(through, { terms: { [through.to]: ends } })) {
      if (++found > max) return null
      starts.add(start)
    }
    return [...starts]
  }

  /** The ends of all links that the query finds and the plan lets count. */
  async *#follow(through: Link, some: Query): AsyncGenerator<readonly [Term, Term]> {
    const { layout, schema, indexOf, bounds } = this.#options
    const { node, filter, from, to } = through
    const { layout: own, ...place } = placeOfStep(
      { storage: { kind: 'row' }, plan: { node, fields: [], steps: [] } },
      layout,
      schema,
    )
    const compiled = filter === null ? { query: ALL, exact: true } : conditionQueryOf(filter, place)
    const test = filter === null || compiled.exact ? null : compileCondition(filter)
    const read = test === null || filter === null ? [] : membersRead(filter)
    let request: SearchRequest = {
      index: indexOf(own.type.name),
      query: livingOf([compiled, { query: some, exact: true }]),
      size: bounds.page,
      sort: BY_ID,
      source: [...new Set([ACTOR, ID, REST, from, to, ...read])],
      counts: false,
    }
    for (;;) {
      const { hits } = await this.#search(request)
      for (const { source } of hits) {
        const doc = docOf(source)
        const [start, end] = [doc[from], doc[to]]
        if (isTerm(start) && isTerm(end) && (test === null || test(doc))) yield [start, end]
      }
      if (hits.length < request.size) return
      request = { ...request, searchAfter: hits.at(-1)!.sort }
    }
  }
}

function isTerm(value: unknown): value is Term {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}
