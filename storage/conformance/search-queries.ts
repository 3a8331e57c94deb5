// Random graph queries for the conformance suite, and what they mean: the contract's rules once
// more, node by node, without plan or index. It stands beside the suite, which runs the same
// queries on a driver and here. Slow and simple on purpose. Source: CONTRACT 1.4.

import fc from 'fast-check'
import type { EdgeDef, NodeType } from '../../protocol/graph/node-type.ts'
import { actorIds, MEMBERS, NODE_TYPES, visitsOf, type Doc } from './search-nodes.ts'
import { codePointOrder, isMissing, memberOf } from './search-terms.ts'
import type { Sight } from './search-sight.ts'
import { filtersMeeting, randomFilter, type RandomFilter } from './search-filters.ts'

interface RandomKey {
  readonly text: string
  readonly path: readonly string[]
  readonly descending: boolean
}

/** A navigation, with its filter's meaning beside the text. */
export interface RandomNavigation {
  readonly edge: string
  readonly type: NodeType
  readonly alias: string
  readonly filter: RandomFilter | null
  readonly keys: readonly RandomKey[]
  readonly limit: number | null
  readonly count: boolean
  readonly require: 'any' | 'some' | 'none'
  /** null: no `node` member. */
  readonly node: RandomNode | null
  /** Set for history as a base set: the actors whose history is read. */
  readonly actors: readonly string[] | null
}

interface RandomNode {
  readonly fields: readonly { readonly text: string; readonly path: readonly string[] }[]
  readonly navigate: readonly RandomNavigation[]
}

const typeOf = (name: string): NodeType => NODE_TYPES.find((type) => type.name === name)!

function fieldsOf(type: NodeType): fc.Arbitrary<RandomNode['fields']> {
  const all = type.fields.flatMap(({ name, members, type: kind }) => [
    { text: name, path: [name] },
    ...(members ?? []).map((member) => ({
      text: `${name}.${member.name}`,
      path: [name, member.name],
    })),
    ...(kind === 'dynamic' ? MEMBERS : []).map((member) => ({
      text: `${name}->"${member.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`,
      path: [name, member],
    })),
  ])
  return fc.subarray(all, { maxLength: 4 }).map((fields) => {
    // A field and a part of it: the whole wins, which is not this suite's matter.
    const whole = new Set(fields.filter(({ path }) => path.length === 1).map(({ path }) => path[0]))
    return fields.filter(({ path }) => path.length === 1 || !whole.has(path[0]))
  })
}

const SORTED = new Set(['text', 'uuid', 'enum', 'number', 'boolean', 'instant', 'date'])

function keysOf(type: NodeType): fc.Arbitrary<RandomKey[]> {
  const paths = type.fields.flatMap(({ name, type: kind }) => {
    if (kind === 'dynamic') return [{ text: `${name}->'x'`, path: [name, 'x'] }]
    return SORTED.has(kind) ? [{ text: name, path: [name] }] : []
  })
  const key = fc
    .record({ of: fc.constantFrom(...paths), way: fc.constantFrom('', ' asc', ' desc') })
    .map(({ of, way }) => ({ ...of, text: of.text + way, descending: way === ' desc' }))
  return fc.array(key, { maxLength: 3 })
}

function navigationOf(
  edge: { readonly name: string; readonly type: NodeType; readonly isSet: boolean },
  depth: number,
): fc.Arbitrary<RandomNavigation> {
  const { name, type, isSet } = edge
  const isHistory = type.storage.kind === 'history'
  const semiJoins = isSet || isHistory ? (['any'] as const) : (['any', 'some', 'none'] as const)
  return fc
    .record({
      filter: fc.option(randomFilter(type), { freq: 2 }),
      keys: fc.option(keysOf(type), { nil: [] as RandomKey[] }),
      limit: fc.option(fc.integer({ min: 1, max: 4 }), { freq: 3 }),
      count: fc.boolean(),
      require: fc.constantFrom(...semiJoins),
      node: fc.option(nodeOf(type, depth + 1), { freq: 6 }),
      actors: fc.uniqueArray(fc.constantFrom(...actorIds.slice(0, 9)), {
        minLength: 1,
        maxLength: 3,
      }),
    })
    .map((made) => ({
      ...made,
      edge: name,
      type,
      alias: '',
      actors: isSet && isHistory ? made.actors : null,
    }))
}

function nodeOf(type: NodeType, depth: number): fc.Arbitrary<RandomNode> {
  const edges = type.edges.filter(({ node }) => NODE_TYPES.some((other) => other.name === node))
  const navigate: fc.Arbitrary<RandomNavigation[]> =
    depth > 3 || edges.length === 0
      ? fc.constant([])
      : fc.array(
          fc
            .constantFrom(...edges)
            .chain((edge) =>
              navigationOf({ name: edge.name, type: typeOf(edge.node), isSet: false }, depth),
            ),
          { maxLength: 2 },
        )
  return fc.record({ fields: fieldsOf(type), navigate: navigate.map(named) })
}

/** Gives each navigation of one node a name of its own. */
function named(list: RandomNavigation[]): RandomNavigation[] {
  return list.map((navigation, i) => ({ ...navigation, alias: `${navigation.edge}_${i}` }))
}

export const randomQuery: fc.Arbitrary<RandomNavigation[]> = fc
  .array(
    fc
      .constantFrom(...NODE_TYPES)
      .chain((type) => navigationOf({ name: type.set, type, isSet: true }, 0)),
    { minLength: 1, maxLength: 2 },
  )
  .map(named)

/** A node of the world, and a member of it, that a query asks for; null: none. */
export const randomAim = fc.option(fc.record({ node: fc.nat(), member: fc.nat() }), { freq: 2 })

/** The query with its first filter aimed at a value that a node has. */
export function aimed(
  [first, ...more]: readonly RandomNavigation[],
  nodes: readonly ReferenceNode[],
  aim: { readonly node: number; readonly member: number },
): readonly RandomNavigation[] {
  const { type, actors } = first!
  const own = nodes.filter(({ node }) => node === type.name)
  const filters = own.length === 0 ? [] : filtersMeeting(type, own[aim.node % own.length]!.doc)
  if (filters.length === 0 || actors !== null) return [first!, ...more]
  return [{ ...first!, filter: filters[aim.member % filters.length]! }, ...more]
}

/** The query as a caller would send it. */
export function bodyOf(query: readonly RandomNavigation[]): unknown[] {
  return query.map((navigation) => {
    const { edge, alias, keys, limit, count, require, node } = navigation
    const filter = filterOf(navigation)
    return {
      edge,
      alias,
      ...(filter !== null && { filter: filter.text }),
      ...(keys.length > 0 && { orderBy: keys.map(({ text }) => text).join(', ') }),
      ...(limit !== null && { limit }),
      ...(count && { count }),
      ...(require !== 'any' && { require }),
      ...(node !== null && {
        node: { fields: node.fields.map(({ text }) => text), navigate: bodyOf(node.navigate) },
      }),
    }
  })
}

function filterOf({ filter, actors }: RandomNavigation): RandomFilter | null {
  if (actors === null) return filter
  const own = `libraryId in [${actors.map((id) => `'${id}'`).join(', ')}]`
  const holds = (doc: Doc): boolean => actors.includes(String(doc['libraryId']))
  if (filter === null) return { text: own, holds }
  return {
    text: `${own} and (${filter.text})`,
    holds: (doc) => holds(doc) && filter.holds(doc),
  }
}

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
  readonly #sets = new WeakMap<RandomNavigation, readonly ReferenceNode[]>()
  readonly #byType = new Map<string, readonly ReferenceNode[]>()
  readonly #byValue = new Map<string, Map<unknown, readonly ReferenceNode[]>>()

  constructor(nodes: readonly ReferenceNode[], sight: Sight = new Map()) {
    this.#nodes = nodes
    this.#sight = sight
  }

  /** `skip`: so many nodes of the first base set were on the pages before. */
  answer(query: readonly RandomNavigation[], skip = 0): Record<string, unknown> {
    const answer: Record<string, unknown> = {}
    for (const [i, navigation] of query.entries()) {
      this.#show(navigation, { parent: null, edge: null, skip: i === 0 ? skip : 0 }, answer)
    }
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
    const sorted = matching.toSorted((a, b) => order(navigation, a, b, edge))
    if (parent === null) this.#sets.set(navigation, sorted)
    return sorted
  }

  #matching(navigation: RandomNavigation, parent: ReferenceNode | null, edge: EdgeDef | null) {
    const filter = filterOf(navigation)
    const all =
      parent === null || edge === null ? this.#all(navigation.type) : this.#linked(parent, edge)
    return all.filter((one) => {
      if (filter !== null && !filter.holds(one.doc)) return false
      return this.#passes(navigation.node, navigation.type, one)
    })
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
  { keys, type }: RandomNavigation,
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
  if (type.storage.kind === 'history') return keys.length > 0 ? byAge(a, b) : 0
  if (keys.length > 0 || edge === null || !edge.sameActor) {
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
