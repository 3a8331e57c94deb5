// Finds the nodes of a plan's steps in the search engine. The shared walk of a plan asks for all
// parents of a level at once. What matters:
//
// - Where the engine can say the whole condition, a step is one search of as many nodes as it
//   shows. Else candidates come page by page and are looked at here, in the step's order, until
//   there are enough.
// - Edges inside an actor are followed for many parents in one search: by their actors. Edges that
//   leave the actor may lead to very many: few at first together, else one search each.
// - Steps that stay in an actor whose own node was found are answered from that node's document, so
//   that they show the state of the actor that the node shows (whole.ts).
// - A semi-join (`require`) is asked for a page of nodes at once (semi-joins.ts).
//
// Source: ARCHITECTURE 5, CONTRACT 1.4.

import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import {
  NOTHING_FOUND,
  type Budget,
  type Found,
  type GraphRow,
  type RemoteFinder,
} from '../../protocol/graph/execute.ts'
import { Merged } from '../../protocol/graph/merged.ts'
import { behindTest, rankAt } from '../../protocol/graph/cursor.ts'
import { ranksOf } from '../../protocol/graph/search/phrase-rank.ts'
import type { CursorPlace, Step } from '../../protocol/graph/plan.ts'
import type { Trace } from '../../protocol/graph/explain/trace.ts'
import type { GraphSchema } from '../../protocol/graph/schema.ts'
import type { Query, SearchAnswer, SearchEngine, SearchHit, SearchRequest } from './engine.ts'
import { elementsOf, Kept, rowOf, type FoundRow } from './found-row.ts'
import { Links } from './links.ts'
import { SemiJoins } from './semi-joins.ts'
import type { Own } from './document.ts'
import { type Group, groupKey, linkQuery } from './groups.ts'
import { behindQuery } from './behind.ts'
import { OWN, type Layout } from './layout.ts'
import { ranked, scored } from './phrase.ts'
import type { ConditionQuery } from './query.ts'
import { tellSearches } from './told-search.ts'
import { BY_ID, livingOf, selectionOf, type Selection } from './selection.ts'
import { Wholes } from './whole.ts'

/** How much goes together; small ones in tests. */
export interface FinderBounds {
  /** Documents of a page of candidates. */
  readonly page: number
  /** The same of documents that hold all of an actor. */
  readonly wholes: number
  /** Parents whose edges one search follows. */
  readonly links: number
  /** Searches of one request. */
  readonly searches: number
  /** Children that a semi-join is turned around for. */
  readonly semiJoinChildren: number
}

export const FINDER_BOUNDS: FinderBounds = {
  page: LIMITS.elastic.pageNodes,
  wholes: LIMITS.elastic.pageWholes,
  links: LIMITS.elastic.linksTogether,
  searches: LIMITS.elastic.searchesTogether,
  semiJoinChildren: LIMITS.elastic.gateChildrenMax,
}

export interface FinderOptions {
  readonly engine: SearchEngine
  readonly layout: Layout
  readonly schema: GraphSchema
  /** Index of a node type. */
  readonly indexOf: (node: string) => string
  readonly budget: Budget
  readonly bounds: FinderBounds
  /** Its search documents have other columns: a phrase finds nothing in them. */
  readonly isForeign: boolean
  /** Hears of each search, where somebody asks. */
  readonly trace?: Trace
}

/** Candidates of a first page for each node that is shown, and of each page for one before. */
const PAGE_GROWTH = 4

/** Some of a step's nodes: those that the query finds and `keep` lets through. */
interface Target {
  readonly query: Query | null
  readonly keep: ((row: FoundRow) => boolean) | null
  /** Sort values of what lies before. */
  readonly searchAfter?: readonly unknown[]
}

const WHOLE_SET: Target = { query: null, keep: null }

type Edge = Extract<Step['source'], { kind: 'edge' }>

export class ElasticFinder implements RemoteFinder {
  readonly #options: FinderOptions
  readonly #semiJoins: SemiJoins
  readonly #links: Links
  readonly #wholes: Wholes
  readonly #selections = new Map<Step, Selection>()

  constructor(options: FinderOptions) {
    this.#options = options
    this.#wholes = new Wholes(options.budget)
    const search = async (request: SearchRequest): Promise<SearchAnswer> =>
      (await this.#search([request]))[0]!
    this.#links = new Links(options, search)
    this.#semiJoins = new SemiJoins(options, {
      find: (step, parents) => this.find(step, parents),
      inside: (step, parent) => this.#wholes.find(step, parent),
      search,
      links: this.#links,
    })
  }

  async find(step: Step, parents: readonly GraphRow[] | null): Promise<readonly Found[]> {
    if (parents === null) {
      const { after } = step
      return after === undefined ? this.#select(step, [WHOLE_SET]) : this.#behind(step, after)
    }
    const inside = parents.map((parent) => this.#wholes.find(step, parent))
    const apart = parents.filter((_, i) => inside[i] === null)
    if (apart.length === 0) return inside as readonly Found[]
    const founds = (await this.#below(step, apart)).values()
    return inside.map((found) => found ?? founds.next().value!)
  }

  /** Nodes that have to be searched for, or are elements of what is at hand. */
  async #below(step: Step, parents: readonly GraphRow[]): Promise<readonly Found[]> {
    const { source, storage } = step
    if (source.kind === 'set') return parents.map(() => NOTHING_FOUND)
    const isHolder = storage.kind === 'embedded' && storage.node === source.parent
    if (isHolder && source.sameActor) return this.#ownElements(step, source, parents)
    return this.#linked(step, source, parents)
  }

  #selection(step: Step): Selection {
    const known = this.#selections.get(step)
    if (known !== undefined) return known
    const { layout, schema, isForeign } = this.#options
    const made = selectionOf(step, layout, schema)
    if (isForeign && step.phrase !== null && made.within === null) {
      const text = `what phrases find of ${step.plan.node} is being made anew; ask again soon`
      throw new RequestError('INDEX_BEHIND', text)
    }
    this.#selections.set(step, made)
    return made
  }

  async #search(requests: readonly SearchRequest[]): Promise<readonly SearchAnswer[]> {
    const { engine, budget, trace } = this.#options
    budget.check()
    const startedMs = trace?.now() ?? 0
    const answers = await engine.search(requests, { timeoutMs: budget.leftMs })
    budget.check()
    if (trace !== undefined) tellSearches(trace, { requests, answers, startedMs })
    return answers
  }

  /** Nodes of a base set behind a cursor's place; all that match are counted. */
  async #behind(step: Step, place: CursorPlace): Promise<readonly Found[]> {
    const { place: lies, within, isRanked } = this.#selection(step)
    const goesByKeys = within === null && step.phrase === null
    const query = goesByKeys ? behindQuery(step.orderBy, place, lies) : null
    const keep = behindTest(step, place)
    const after = isRanked && { searchAfter: [rankAt(place), place.id, place.actorId] }
    const founds = await this.#select({ ...step, returns: 'nodes' }, [{ query, keep, ...after }])
    if (step.returns !== 'both') return founds
    const [all] = await this.#select({ ...step, returns: 'count' }, [WHOLE_SET])
    return [{ ...founds[0]!, count: all!.count }]
  }

  // --- base sets, and edges one by one ----------------------------------------------------

  async #select(step: Step, targets: readonly Target[]): Promise<Found[]> {
    const selection = this.#selection(step)
    const semiJoin = await this.#semiJoins.compiled(step, selection.place)
    const isExact = selection.compiled.exact && semiJoin.exact && selection.within === null
    const founds: Found[] = []
    if (!isExact) {
      for (const target of targets) founds.push(await this.#scan(step, target, semiJoin))
      return founds
    }
    const { returns, limit } = step
    const size = returns === 'count' ? 0 : limit + 1
    const requests = targets.map((target) => ({
      ...this.#request(step, [semiJoin], target),
      size: selection.isWhole ? Math.min(size, this.#options.bounds.wholes) : size,
      counts: returns === 'count' || returns === 'both',
    }))
    const together = this.#options.bounds.searches
    for (let at = 0; at < requests.length; at += together) {
      const some = requests.slice(at, at + together)
      for (const [i, answer] of (await this.#search(some)).entries()) {
        const hits = await this.#upTo(size, some[i]!, answer)
        const rows = hits.slice(0, limit).flatMap((hit) => this.#rowsOf(hit, step))
        founds.push({
          rows: rows.filter((row) => this.#semiJoins.stillOpen(step.plan, row)),
          more: hits.length > limit,
          count: answer.total ?? 0,
        })
      }
    }
    return founds
  }

  /** The hits of a search that took smaller pages, as many as were wanted. */
  async #upTo(
    size: number,
    request: SearchRequest,
    { hits }: SearchAnswer,
  ): Promise<readonly SearchHit[]> {
    if (hits.length === size || hits.length < request.size) return hits
    const all = [...hits]
    const searchAfter = hits.at(-1)!.sort
    for await (const page of this.#pages({ ...request, counts: false, searchAfter })) {
      all.push(...page.hits)
      if (all.length >= size) break
    }
    return all.slice(0, size)
  }

  /** The row of a hit; none where the step's phrase doesn't find it after all. */
  #rowsOf(hit: SearchHit, step: Step): FoundRow[] {
    const { isWhole, layout, within } = this.#selection(step)
    const { phrase } = step
    const own = hit.source[OWN] as Own
    const bare = rowOf(hit)
    const row = phrase === null || within !== null ? bare : ranked(phrase, bare, own)
    if (row === null) return []
    if (isWhole) this.#wholes.add(row, own, layout.type.name)
    return [row]
  }

  #request(
    step: Step,
    compiled: readonly ConditionQuery[],
    { query, searchAfter }: Target,
  ): SearchRequest {
    const selection = this.#selection(step)
    const { isRanked } = selection
    const parts = [selection.compiled, ...compiled]
    if (query !== null) parts.push({ query, exact: true })
    return {
      index: this.#options.indexOf(selection.layout.type.name),
      query: isRanked ? scored(livingOf(parts), step.phrase!) : livingOf(parts),
      size: selection.isWhole ? this.#options.bounds.wholes : this.#options.bounds.page,
      sort: selection.sort,
      source: selection.source,
      counts: false,
      ...(searchAfter !== undefined && { searchAfter }),
    }
  }

  /** Candidates page by page, until what the step shows is known. */
  async #scan(step: Step, target: Target, semiJoin: ConditionQuery): Promise<Found> {
    const { within, isRanked } = this.#selection(step)
    // Where there is one rank its hits come by their ids.
    const isOrdered = step.phrase === null || isRanked || ranksOf(step.phrase).length === 1
    const isSorted = within === null && isOrdered
    const kept = new Kept(step)
    const request = this.#request(step, [semiJoin], target)
    const { returns, limit } = step
    // Who counts takes all pages, and so do hits and elements that come in no order.
    const isShort = isSorted && (returns === 'nodes' || returns === 'nothing')
    const first = isShort ? PAGE_GROWTH * (limit + 1) : request.size
    for await (const page of this.#pages(request, first)) {
      const some = this.#candidates(page, step)
      const rows = some.filter((row) => target.keep?.(row) ?? true)
      for (const row of await this.#matching(step, rows)) kept.add(row)
      // Elements come in their documents' order, some hits of more than one rank by their ids.
      if (kept.isFull && isSorted) break
    }
    return kept.found()
  }

  /** The first page has `first` documents, later ones more and more, up to what is asked for. */
  async *#pages(request: SearchRequest, first = request.size): AsyncGenerator<SearchAnswer> {
    let size = Math.min(first, request.size)
    for (let next = { ...request, size }; ;) {
      const [page] = await this.#search([next])
      yield page!
      if (page!.hits.length < size) return
      size = Math.min(size * PAGE_GROWTH, request.size)
      next = { ...request, size, searchAfter: page!.hits.at(-1)!.sort }
    }
  }

  /** Nodes that a page's documents are or hold. */
  #candidates(page: SearchAnswer, step: Step): FoundRow[] {
    const { within } = this.#selection(step)
    const rows = page.hits.flatMap((hit) => this.#rowsOf(hit, step))
    if (within === null) return rows
    return rows.flatMap((row) => this.#elements(row, within, step))
  }

  #elements(holder: GraphRow, within: string, { idField, phrase }: Step): FoundRow[] {
    const all = elementsOf(holder, within, idField)
    return phrase === null ? all : all.flatMap((row) => ranked(phrase, row, null) ?? [])
  }

  /** Those that the step's filter and the semi-joins below it let through. */
  async #matching(step: Step, rows: readonly FoundRow[]): Promise<readonly FoundRow[]> {
    const { test } = this.#selection(step)
    const some = test === null ? rows : rows.filter((row) => test(row.doc))
    return this.#semiJoins.pass(step.plan, some)
  }

  // --- edges, for many parents at once ----------------------------------------------------

  /** Nodes that the parents' documents hold themselves. */
  async #ownElements(step: Step, edge: Edge, parents: readonly GraphRow[]): Promise<Found[]> {
    const member = this.#selection(step).within!
    const lists = parents.map((parent) => {
      const value = parent.doc[edge.from]
      if (value === undefined || value === null) return []
      return this.#elements(parent, member, step).filter((row) => row.doc[edge.to] === value)
    })
    const matching = new Set(await this.#matching(step, lists.flat()))
    return lists.map((list) => {
      const kept = new Kept(step)
      for (const row of list) if (matching.has(row)) kept.add(row)
      return kept.found()
    })
  }

  async #linked(step: Step, edge: Edge, parents: readonly GraphRow[]): Promise<Found[]> {
    const groups = new Map<string, Group>()
    const ends = await this.#links.endsOf(edge, parents)
    const keys = parents.map((parent, i) =>
      ends[i]!.map((value) => {
        const actorId = edge.sameActor ? parent.actorId : ''
        const key = groupKey(actorId, value)
        if (!groups.has(key)) groups.set(key, { actorId, value, kept: new Kept(step), found: null })
        return key
      }),
    )
    const all = [...groups.values()]
    const together = this.#options.bounds.links
    for (let at = 0; at < all.length; at += together) {
      await this.#fill(step, edge, all.slice(at, at + together))
    }
    return keys.map((own) => {
      const merged = new Merged(step)
      for (const key of own) {
        const group = groups.get(key)!
        merged.add((group.found ??= group.kept.found()))
      }
      return merged.found()
    })
  }

  /** Finds the nodes of some groups in one search; where they are too many, of each alone. */
  async #fill(step: Step, edge: Edge, groups: readonly Group[]): Promise<void> {
    const selection = this.#selection(step)
    const query = linkQuery(edge, groups, selection)
    const byKey = new Map(groups.map((group) => [groupKey(group.actorId, group.value), group]))
    // In no order but the pages': each group sorts what it keeps.
    const request = { ...this.#request(step, [], { query, keep: null }), sort: BY_ID }
    let isFirst = true
    for await (const page of this.#pages(request)) {
      if (isFirst && !edge.sameActor && page.hits.length === request.size) {
        return this.#fillAlone(step, edge, groups)
      }
      isFirst = false
      const rows = this.#candidates(page, step).filter((row) =>
        byKey.has(groupKey(edge.sameActor ? row.actorId : '', row.doc[edge.to])),
      )
      for (const row of await this.#matching(step, rows)) {
        byKey.get(groupKey(edge.sameActor ? row.actorId : '', row.doc[edge.to]))!.kept.add(row)
      }
      this.#checkSize(groups)
    }
  }

  async #fillAlone(step: Step, edge: Edge, groups: readonly Group[]): Promise<void> {
    const selection = this.#selection(step)
    const targets = groups.map((group) => ({
      query: linkQuery(edge, [group], selection),
      keep: (row: FoundRow) => row.doc[edge.to] === group.value,
    }))
    const founds = await this.#select(step, targets)
    for (const [i, group] of groups.entries()) group.found = founds[i]!
  }

  /** What no answer may have is not kept either. */
  #checkSize(groups: readonly Group[]): void {
    const { budget } = this.#options
    const kept = groups.reduce((sum, group) => sum + group.kept.size, 0)
    if (kept > budget.nodesMax) budget.add(kept)
  }
}
