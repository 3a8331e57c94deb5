// What random graph queries mean: the contract's rules once more, node by node, without plan or
// index. It stands beside the suite, which asks a driver the same. Slow and simple on purpose.
// Source: CONTRACT 1.4.

import type { EdgeDef, NodeType } from '../../protocol/graph/node-type.ts'
import { actorIds, type Doc, visitsOf } from './search-nodes.ts'
import type { Sight } from './search-sight.ts'
import { heldBy, type RandomPhrase, rankOf, searchedEdges } from './phrases/random-phrase.ts'
import { codePointOrder, isMissing, memberOf } from './search-terms.ts'
import { filterOf, type RandomNavigation, type RandomNode, typeOf } from './search-queries.ts'

/** A node as the reference keeps it. */
export interface ReferenceNode {
  readonly node: string
  readonly actorId: string
  readonly id: string
  readonly doc: Doc
}

/** Where a navigation is shown. */
interface Shown {
  /** null: a base set. */
  readonly parent: ReferenceNode | null
  readonly edge: EdgeDef | null
  readonly skip: number
}

/**
 * Answers queries by looking at every node; nodes are in the order in which they were first made.
 */
export class Reference {
  readonly #nodes: readonly ReferenceNode[]
  readonly #sight: Sight
  readonly #answers = new WeakMap<object, Map<number, Record<string, unknown>>>()
  readonly #sets = new WeakMap<RandomNavigation, readonly ReferenceNode[]>()
  readonly #ranks = new WeakMap<RandomPhrase, Map<ReferenceNode, number | null>>()
  readonly #byType = new Map<string, readonly ReferenceNode[]>()
  readonly #byValue = new Map<string, Map<unknown, readonly ReferenceNode[]>>()

  constructor(nodes: readonly ReferenceNode[], sight: Sight = new Map()) {
    this.#nodes = nodes
    this.#sight = sight
  }

  /** `skip`: so many nodes of the first base set were on the pages before. */
  answer(query: readonly RandomNavigation[], skip = 0): Record<string, unknown> {
    const known = this.#answers.get(query)?.get(skip)
    if (known !== undefined) return known
    const answer: Record<string, unknown> = {}
    for (const [i, navigation] of query.entries()) {
      this.#show(navigation, { parent: null, edge: null, skip: i === 0 ? skip : 0 }, answer)
    }
    this.#answers.set(query, (this.#answers.get(query) ?? new Map()).set(skip, answer))
    return answer
  }

  /** All nodes of a type that are seen, whatever their storage. */
  #all(type: NodeType): readonly ReferenceNode[] {
    const known =
      this.#byType.get(type.name) ?? this.#kept(type).filter((one) => this.#isSeen(type, one))
    this.#byType.set(type.name, known)
    return known
  }

  #isSeen({ name, storage }: NodeType, one: ReferenceNode): boolean {
    if (this.#sight.get(name)?.opens(one.doc) === false) return false
    if (storage.kind !== 'history') return true
    // A piece of its parent, which need not be there where its id alone tells.
    const owner = this.#sight.get(storage.parent)
    const parent = this.#nodes.find(({ node, id }) => node === storage.parent && id === one.actorId)
    if (owner === undefined) return true
    if (owner.isById) return owner.opens(one.doc)
    return parent !== undefined && owner.opens(parent.doc)
  }

  #kept(type: NodeType): readonly ReferenceNode[] {
    const { storage, name, idField } = type
    if (storage.kind === 'row') return this.#nodes.filter((one) => one.node === name)
    if (storage.kind === 'history') {
      return actorIds.toSorted().flatMap((actorId) =>
        visitsOf(actorId)
          .toReversed()
          .map((doc) => ({ node: name, actorId, id: String(doc[idField]), doc })),
      )
    }
    return this.#kept(typeOf(storage.node)).flatMap(({ actorId, doc }) =>
      ((doc[storage.member] ?? []) as Doc[]).map((element) => ({
        node: name,
        actorId,
        id: String(element[idField]),
        doc: element,
      })),
    )
  }

  /** All that match, in order; those of a base set are the same on all its pages. */
  #sorted(navigation: RandomNavigation, parent: ReferenceNode | null, edge: EdgeDef | null) {
    const known = parent === null ? this.#sets.get(navigation) : undefined
    if (known !== undefined) return known
    const matching = this.#matching(navigation, parent, edge)
    const rank = (one: ReferenceNode): number => this.#rank(navigation, one) ?? 0
    const sorted = matching.toSorted((a, b) => rank(b) - rank(a) || order(navigation, a, b, edge))
    if (parent === null) this.#sets.set(navigation, sorted)
    return sorted
  }

  #matching(navigation: RandomNavigation, parent: ReferenceNode | null, edge: EdgeDef | null) {
    const filter = filterOf(navigation)
    const all =
      parent === null || edge === null ? this.#all(navigation.type) : this.#linked(parent, edge)
    return all.filter((one) => {
      if (filter !== null && !filter.holds(one.doc)) return false
      if (this.#rank(navigation, one) === null) return false
      return this.#passes(navigation.node, navigation.type, one)
    })
  }

  /** How well the phrase finds a node; null: not at all. */
  #rank({ phrase, type }: RandomNavigation, one: ReferenceNode): number | null {
    if (phrase === null) return 0
    const known = this.#ranks.get(phrase) ?? new Map<ReferenceNode, number | null>()
    this.#ranks.set(phrase, known)
    const rank = known.get(one)
    if (rank !== undefined) return rank
    const own = heldBy([one.doc], type.search!.fields)
    // Who sees some of the nodes of an edge is told by none of them.
    const edges = searchedEdges(type).filter(({ edge }) => !this.#sight.has(edge.node))
    const others = edges.flatMap(({ edge, fields }) => {
      const linked = this.#linked(one, edge).map(({ doc }) => doc)
      return heldBy(linked, fields)
    })
    const found = rankOf(phrase, { own, others })
    known.set(one, found)
    return found
  }

  /** Nodes that an edge leads to, in the order in which they were made. */
  #linked(parent: ReferenceNode, edge: EdgeDef): readonly ReferenceNode[] {
    const from = parent.doc[edge.from]
    if (isMissing(from)) return []
    const { through } = edge
    if (through === undefined) {
      const found = this.#having(typeOf(edge.node), edge.to, from)
      return edge.sameActor ? found.filter(({ actorId }) => actorId === parent.actorId) : found
    }
    const links = this.#having(typeOf(through.node), through.from, from)
    const ends = new Set(links.map(({ doc }) => doc[through.to]).filter((end) => !isMissing(end)))
    return [...ends].flatMap((end) => this.#having(typeOf(edge.node), edge.to, end))
  }

  #having(type: NodeType, member: string, value: unknown): readonly ReferenceNode[] {
    const key = `${type.name} ${member}`
    let known = this.#byValue.get(key)
    if (known === undefined) {
      known = Map.groupBy(this.#all(type), ({ doc }) => doc[member])
      this.#byValue.set(key, known)
    }
    return known.get(value) ?? []
  }

  #passes(node: RandomNode | null, type: NodeType, one: ReferenceNode): boolean {
    return (node?.navigate ?? []).every((semiJoin) => {
      if (semiJoin.require === 'any') return true
      const edge = type.edges.find(({ name }) => name === semiJoin.edge)!
      const some = this.#matching(semiJoin, one, edge).length > 0
      return some === (semiJoin.require === 'some')
    })
  }

  #show(
    navigation: RandomNavigation,
    { parent, edge, skip }: Shown,
    answer: Record<string, unknown>,
  ): void {
    if (isMereSemiJoin(navigation)) return
    const { alias, type, count, node } = navigation
    const sorted = this.#sorted(navigation, parent, edge)
    if (count && (node === null || isBare(node))) {
      answer[alias] = sorted.length
      return
    }
    const limit = navigation.limit ?? (edge === null ? 100 : 1_000)
    const nodes = sorted.slice(skip, skip + limit).map((one) => this.#node(node, type, one))
    const isSingle = edge?.cardinality === 'single'
    if (count) answer[alias] = { count: sorted.length, nodes }
    else answer[alias] = isSingle ? (nodes[0] ?? null) : nodes
    const hasMore = sorted.length > skip + limit
    if (hasMore && (count || !isSingle)) answer[`${alias}HasMore`] = true
  }

  #node(node: RandomNode | null, type: NodeType, one: ReferenceNode): Record<string, unknown> {
    const shown: Record<string, unknown> = {}
    if (node === null) return { [type.idField]: one.doc[type.idField] }
    for (const { path } of node.fields) {
      const value = memberOf(one.doc, path) ?? null
      if (path.length === 1) shown[path[0]!] = value
      else {
        const nested = (shown[path[0]!] ??= {}) as Record<string, unknown>
        nested[path[1]!] = value
      }
    }
    for (const navigation of node.navigate) {
      const edge = type.edges.find(({ name }) => name === navigation.edge)!
      this.#show(navigation, { parent: one, edge, skip: 0 }, shown)
    }
    return shown
  }
}

/** A semi-join that asks for nothing shows nothing. */
function isMereSemiJoin({ require, count, node }: RandomNavigation): boolean {
  if (require === 'any' || count) return false
  return node === null || isBare(node)
}

/** Shows nothing but what semi-joins let through. */
function isBare({ fields, navigate }: RandomNode): boolean {
  return fields.length === 0 && navigate.every(isMereSemiJoin)
}

function order(
  { keys, type, phrase }: RandomNavigation,
  a: ReferenceNode,
  b: ReferenceNode,
  edge: EdgeDef | null,
): number {
  for (const { path, descending } of keys) {
    const [x, y] = [sortable(memberOf(a.doc, path)), sortable(memberOf(b.doc, path))]
    if (x === null || y === null) {
      if (x !== y) return x === null ? 1 : -1
      continue
    }
    const way = sortOrder(x, y)
    if (way !== 0) return descending ? -way : way
  }
  // History is found newest first, and sorting keeps what it finds.
  const isSorted = keys.length > 0 || phrase !== null
  if (type.storage.kind === 'history') return isSorted ? byAge(a, b) : 0
  if (isSorted || edge === null || !edge.sameActor) {
    return codePointOrder(a.id, b.id) || codePointOrder(a.actorId, b.actorId)
  }
  if (type.position === undefined) return 0
  const [x, y] = [a.doc[type.position], b.doc[type.position]]
  if (isMissing(x) || isMissing(y)) return Number(isMissing(x)) - Number(isMissing(y))
  return (x as number) - (y as number)
}

/** The earlier place in the journal first, actor by actor. */
function byAge(a: ReferenceNode, b: ReferenceNode): number {
  return codePointOrder(a.actorId, b.actorId) || Number(a.id.slice(1)) - Number(b.id.slice(1))
}

type Sortable = string | number | boolean

function sortable(value: unknown): Sortable | null {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? value
    : null
}

function sortOrder(a: Sortable, b: Sortable): number {
  const kinds = ['boolean', 'number', 'string']
  if (typeof a !== typeof b) return kinds.indexOf(typeof a) - kinds.indexOf(typeof b)
  return typeof a === 'string' ? codePointOrder(a, b as string) : Number(a) - Number(b)
}
