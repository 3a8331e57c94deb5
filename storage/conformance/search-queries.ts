// Random graph queries for the conformance suite; what they mean says search-reference.ts. It
// stands beside the suite. Source: CONTRACT 1.4.

import fc from 'fast-check'
import type { NodeType } from '../../protocol/graph/node-type.ts'
import { actorIds, MEMBERS, NODE_TYPES, type Doc } from './search-nodes.ts'
import { filtersMeeting, randomFilter, type RandomFilter } from './search-filters.ts'
import { heldBy, phraseMeeting, randomPhrase, type RandomPhrase } from './phrases/random-phrase.ts'

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
  /** With one there are no keys. */
  readonly phrase: RandomPhrase | null
  readonly keys: readonly RandomKey[]
  readonly limit: number | null
  readonly count: boolean
  readonly require: 'any' | 'some' | 'none'
  /** null: no `node` member. */
  readonly node: RandomNode | null
  /** Set for history as a base set: the actors whose history is read. */
  readonly actors: readonly string[] | null
}

export interface RandomNode {
  readonly fields: readonly { readonly text: string; readonly path: readonly string[] }[]
  readonly navigate: readonly RandomNavigation[]
}

export const typeOf = (name: string): NodeType => NODE_TYPES.find((type) => type.name === name)!

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
      phrase: fc.option(randomPhrase, { freq: 2 }),
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
      ...phraseOf(type, made),
      edge: name,
      type,
      alias: '',
      actors: isSet && isHistory ? made.actors : null,
    }))
}

/** A phrase for every few navigations, and where there is one no keys; few filters besides. */
function phraseOf(
  { search }: NodeType,
  { phrase, filter, keys, limit }: Pick<RandomNavigation, 'phrase' | 'filter' | 'keys' | 'limit'>,
) {
  if (search === undefined || phrase === null) return { phrase: null, filter, keys }
  return { phrase, filter: limit === null ? null : filter, keys: [] }
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
  nodes: readonly { readonly node: string; readonly doc: Doc }[],
  aim: { readonly node: number; readonly member: number },
): readonly RandomNavigation[] {
  const { type, actors } = first!
  const own = nodes.filter(({ node }) => node === type.name)
  if (first!.phrase !== null && own.length > 0) {
    const { doc } = own[aim.node % own.length]!
    const phrase = phraseMeeting(heldBy([doc], type.search!.fields), aim.member)
    return [{ ...first!, phrase: phrase ?? first!.phrase, filter: null }, ...more]
  }
  const filters = own.length === 0 ? [] : filtersMeeting(type, own[aim.node % own.length]!.doc)
  if (filters.length === 0 || actors !== null) return [first!, ...more]
  return [{ ...first!, filter: filters[aim.member % filters.length]! }, ...more]
}

/** The query as a caller would send it. */
export function bodyOf(query: readonly RandomNavigation[]): unknown[] {
  return query.map((navigation) => {
    const { edge, alias, phrase, keys, limit, count, require, node } = navigation
    const filter = filterOf(navigation)
    return {
      edge,
      alias,
      ...(filter !== null && { filter: filter.text }),
      ...(phrase !== null && { phrase: phrase.text }),
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

export function filterOf({ filter, actors }: RandomNavigation): RandomFilter | null {
  if (actors === null) return filter
  const own = `libraryId in [${actors.map((id) => `'${id}'`).join(', ')}]`
  const holds = (doc: Doc): boolean => actors.includes(String(doc['libraryId']))
  if (filter === null) return { text: own, holds }
  return {
    text: `${own} and (${filter.text})`,
    holds: (doc) => holds(doc) && filter.holds(doc),
  }
}
