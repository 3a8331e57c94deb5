// Semi-joins (`require some` / `none`): which nodes have, or have not, a matching node behind an
// edge. The engine has no joins. It works from both ends: when few children match, they say which
// parents can pass (one search for the whole step); what is found is then asked a page at a time.
// Source: CONTRACT 1.4 "require", ARCHITECTURE 5.

import { semiJoinProbe, type Found, type GraphRow } from '../../protocol/graph/execute.ts'
import type { NodePlan, Step } from '../../protocol/graph/plan.ts'
import type { GraphSchema } from '../../protocol/graph/schema.ts'
import type { Query, SearchAnswer, SearchRequest, Term } from './engine.ts'
import type { FoundRow } from './found-row.ts'
import { ACTOR, OWN, type Layout } from './layout.ts'
import type { Links } from './links.ts'
import { phraseQueryOf } from './phrase.ts'
import {
  ALL,
  allOf,
  EVERYTHING,
  conditionQueryOf,
  type ConditionQuery,
  type Place,
} from './query.ts'
import { BY_ID, livingOf, placeOfStep } from './selection.ts'

export interface SemiJoinsOptions {
  readonly layout: Layout
  readonly schema: GraphSchema
  readonly indexOf: (node: string) => string
  readonly bounds: { readonly semiJoinChildren: number }
}

/** What semi-joins need of the finder that they serve. */
export interface SemiJoinFinder {
  find(step: Step, parents: readonly GraphRow[]): Promise<readonly Found[]>
  search(request: SearchRequest): Promise<SearchAnswer>
  /** What the node's own document says; null: nothing. */
  inside(step: Step, parent: GraphRow): Found | null
  readonly links: Links
}

type Edge = Extract<Step['source'], { kind: 'edge' }>

export class SemiJoins {
  readonly #options: SemiJoinsOptions
  readonly #finder: SemiJoinFinder
  readonly #probes = new Map<Step, Step>()

  constructor(options: SemiJoinsOptions, finder: SemiJoinFinder) {
    this.#options = options
    this.#finder = finder
  }

  /** Rows that every semi-join below them lets through. */
  async pass(plan: NodePlan, rows: readonly FoundRow[]): Promise<readonly FoundRow[]> {
    let passed = rows
    for (const step of plan.steps) {
      if (step.require === 'any' || passed.length === 0) continue
      const founds = await this.#finder.find(this.#probeOf(step), passed)
      passed = passed.filter((_, i) => isOpen(step, founds[i]!))
    }
    return passed
  }

  /**
   * After a search has asked the semi-joins: false when the document that was found says otherwise.
   * Its actor has changed since the children were looked at, or before they came into sight.
   */
  stillOpen({ steps }: NodePlan, row: FoundRow): boolean {
    return steps.every((step) => {
      if (step.require === 'any') return true
      const found = this.#finder.inside(this.#probeOf(step), row)
      return found === null || isOpen(step, found)
    })
  }

  #probeOf(step: Step): Step {
    const known = this.#probes.get(step)
    if (known !== undefined) return known
    const probe = semiJoinProbe(step)
    this.#probes.set(step, probe)
    return probe
  }

  /** What the semi-joins below a step say of the documents that can pass them. */
  async compiled(step: Step, parent: Place): Promise<ConditionQuery> {
    const parts: ConditionQuery[] = []
    for (const semiJoin of step.plan.steps) {
      if (semiJoin.require !== 'any') parts.push(await this.#queryOf(semiJoin, step, parent))
    }
    return allOf(parts)
  }

  async #queryOf(semiJoin: Step, step: Step, parent: Place): Promise<ConditionQuery> {
    const { source, filter, phrase, storage } = semiJoin
    const open: ConditionQuery = { query: ALL, exact: false }
    if (source.kind === 'set' || (filter === null && phrase === null)) return open
    const { layout, ...place } = placeOfStep(semiJoin, this.#options.layout, this.#options.schema)
    const filtered = filter === null ? EVERYTHING : conditionQueryOf(filter, place)
    const compiled =
      phrase === null || place.within !== null ? filtered : allOf([filtered, phraseQueryOf(phrase)])
    if (storage.kind === 'embedded') {
      // Elements of the parent's own document.
      const isHeld = storage.node === step.plan.node && source.sameActor && parent.within === null
      return isHeld && semiJoin.require === 'some' ? { query: compiled.query, exact: false } : open
    }
    const told = this.#isTold(semiJoin, step, parent) && layout.actorMembers.has(source.to)
    const isExact =
      told && compiled.exact && semiJoin.plan.steps.every(({ require }) => require === 'any')
    if (semiJoin.require === 'none' && !isExact) return open
    const links = await this.#linksOf(semiJoin, source, compiled)
    if (links === null) return open
    const field = source.sameActor ? ACTOR : fieldName(source.from, parent)
    const query: Query = { terms: { [field]: links } }
    if (semiJoin.require === 'some') return { query, exact: isExact }
    return { query: { bool: { must_not: [query] } }, exact: true }
  }

  /** True: the edge leads to nodes of the actor, to all of a type, and says no more. */
  #isTold(semiJoin: Step, step: Step, parent: Place): boolean {
    const { source } = semiJoin
    if (source.kind === 'set' || !source.sameActor || parent.within !== null) return false
    const layout = this.#options.layout.nodes.get(step.plan.node)
    return layout?.actorMembers.has(source.from) === true
  }

  /** Where the matching children lead back to; null: there are too many of them. */
  async #linksOf(
    semiJoin: Step,
    source: Edge,
    compiled: ConditionQuery,
  ): Promise<readonly Term[] | null> {
    const childrenMax = this.#options.bounds.semiJoinChildren
    const { hits } = await this.#finder.search({
      index: this.#options.indexOf(semiJoin.plan.node),
      query: livingOf([compiled]),
      size: childrenMax + 1,
      sort: BY_ID,
      source: source.sameActor ? [ACTOR] : [source.to],
      counts: false,
    })
    if (hits.length > childrenMax) return null
    const links = new Set<Term>()
    for (const { source: doc } of hits) {
      const own = doc[OWN] as { actor: string } | undefined
      const value = source.sameActor ? own!.actor : doc[source.to]
      if (value !== undefined && value !== null) links.add(value as Term)
    }
    const { through } = source
    if (through === undefined) return [...links]
    return this.#finder.links.startsOf(through, [...links], childrenMax)
  }
}

const isOpen = ({ require }: Step, { rows }: Found): boolean =>
  rows.length > 0 === (require === 'some')

const fieldName = (member: string, { within }: Place): string =>
  within === null ? member : `${within}.${member}`
