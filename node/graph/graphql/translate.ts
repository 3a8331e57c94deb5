// An operation as one graph query: each field that leads to nodes is a navigation object, and all
// of them are one plan, however deep they lie. Beside it stands the form of the answer, by which
// the graph's answer is read. Nothing runs here. Source: CONTRACT 1.4, 1.4.1.

import {
  type FieldNode,
  GraphQLError,
  type GraphQLEnumType,
  type GraphQLField,
  type GraphQLObjectType,
  getArgumentValues,
  getNamedType,
  isEnumType,
  isObjectType,
} from 'graphql'
import { LIMITS } from '../../../config/limits.ts'
import type { NavigationBody, NodeBody } from '../../../protocol/graph/navigation-body.ts'
import type { ChangeForm, ChangePart } from './changes.ts'
import type { ConnectionPart, ObjectForm, Part } from './form.ts'
import { type Meaning, meaningOf, nodeTypeMeaning } from './meaning.ts'
import type { Selected, Selecting } from './selecting.ts'

/** Where a field stands in the answer, lists left out. */
export type FieldPathInAnswer = readonly string[]

export interface Translation {
  readonly navigations: readonly NavigationBody[]
  readonly form: ObjectForm
  /** By the alias of a navigation, and its place (`0/node/navigate/1`): the field that it is of. */
  readonly places: ReadonlyMap<string, FieldPathInAnswer>
}

/** Throws GraphQLError where the lists could bring more nodes than an answer may have. */
export function translate(
  type: GraphQLObjectType,
  fields: Selected,
  selecting: Selecting,
): Translation {
  return new Translator(selecting).translate(type, fields)
}

/** A list that is followed, as a live query and the form of its changes. */
export interface ChangesTranslation {
  readonly query: NavigationBody
  readonly resume: string | null
  readonly form: ChangeForm
  readonly places: ReadonlyMap<string, FieldPathInAnswer>
}

/** Of the one field of a subscription. */
export function translateChanges(
  type: GraphQLObjectType,
  key: string,
  { nodes, selecting }: { readonly nodes: readonly FieldNode[]; readonly selecting: Selecting },
): ChangesTranslation {
  const field = type.getFields()[nodes[0]!.name.value]!
  return new Translator(selecting).changes(key, { field, nodes })
}

/** A node object that grows: several selections of one node may meet in it. */
interface Growing {
  readonly fields: Set<string>
  readonly navigate: NavigationBody[]
  readonly place: string
  readonly path: FieldPathInAnswer
  /** At most so many nodes it may be of. */
  readonly nodes: number
}

interface Arguments {
  readonly filter?: string | null
  readonly phrase?: string | null
  readonly orderBy?: string | null
  readonly require?: NavigationBody['require'] | null
  readonly limit?: number | null
  readonly first?: number | null
  readonly after?: string | null
  readonly resume?: string | null
}

class Translator {
  readonly #selecting: Selecting
  readonly #places = new Map<string, FieldPathInAnswer>()
  #aliases = 0
  #cost = 0

  constructor(selecting: Selecting) {
    this.#selecting = selecting
  }

  translate(type: GraphQLObjectType, fields: Selected): Translation {
    const root: Growing = { fields: new Set(), navigate: [], place: '', path: [], nodes: 1 }
    const form = this.#form(type, fields, root)
    return { navigations: root.navigate, form, places: this.#places }
  }

  changes(key: string, of: Asked): ChangesTranslation {
    const { edge } = meaningOf(of.field) as Extract<Meaning, { kind: 'changes' }>
    const args = this.#arguments(of)
    const limit = args.limit ?? this.#limitOf(of.field, 'limit')
    const root: Growing = { fields: new Set(), navigate: [], place: '', path: [], nodes: 1 }
    const below = this.#begin(key, root, { of, limit })
    const type = getNamedType(of.field.type) as GraphQLObjectType
    const node = getNamedType(type.getFields()['node']!.type) as GraphQLObjectType
    const selected = this.#selecting.fieldsOf(type, of.nodes)
    const form = Array.from(selected, ([part, nodes]): ChangePart => {
      const name = nodes[0]!.name.value
      if (name === '__typename') return { kind: 'constant', key: part, value: type.name }
      if (name !== 'node' && name !== 'nodes') return { kind: name as 'index', key: part }
      const own = this.#form(node, this.#selecting.fieldsOf(node, nodes), below)
      return { kind: name, key: part, form: own }
    })
    this.#end(root, below, { edge, ...selection(args), limit })
    // A live query has a name of its own.
    const { alias: _, ...query } = root.navigate[0]!
    return { query, resume: args.resume ?? null, form, places: this.#places }
  }

  #form(type: GraphQLObjectType, selected: Selected, into: Growing): ObjectForm {
    const known = type.getFields()
    return Array.from(selected, ([key, nodes]): Part => {
      const name = nodes[0]!.name.value
      if (name === '__typename') return { kind: 'constant', key, value: type.name }
      return this.#part(key, { field: known[name]!, nodes }, into)
    })
  }

  #part(key: string, of: Asked, into: Growing): Part {
    const meaning = meaningOf(of.field)
    switch (meaning.kind) {
      case 'leaf':
        into.fields.add(meaning.field)
        return { kind: 'leaf', key, member: meaning.member, values: valuesOf(of.field) }
      case 'object':
        return this.#object(key, of, { meaning, into })
      case 'dynamic-member': {
        const member = String(this.#arguments(of)['name' as keyof Arguments])
        into.fields.add(`${meaning.field}->${quoted(member)}`)
        return { kind: 'dynamic-member', key, field: meaning.field, member }
      }
      case 'nodes':
        return this.#nodes(key, of, { meaning, into })
      case 'connection':
        return this.#connection(key, of, { meaning, into })
      case 'changes':
      case 'part':
        throw new Error(`${key} is no part of a node`)
    }
  }

  #object(
    key: string,
    of: Asked,
    { meaning, into }: { meaning: Extract<Meaning, { kind: 'object' }>; into: Growing },
  ): Part {
    const type = getNamedType(of.field.type) as GraphQLObjectType
    const selected = this.#selecting.fieldsOf(type, of.nodes)
    const form = this.#form(type, selected, into)
    if (form.every(({ kind }) => kind === 'constant')) into.fields.add(meaning.any)
    return { kind: 'object', key, member: meaning.member, form }
  }

  #nodes(
    key: string,
    of: Asked,
    { meaning, into }: { meaning: Extract<Meaning, { kind: 'nodes' }>; into: Growing },
  ): Part {
    const args = this.#arguments(of)
    const type = getNamedType(of.field.type) as GraphQLObjectType
    const limit = meaning.isMany ? (args.limit ?? this.#limitOf(of.field, 'limit')) : 1
    const below = this.#begin(key, into, { of, limit })
    const form = this.#form(type, this.#selecting.fieldsOf(type, of.nodes), below)
    const require = args.require ?? 'any'
    if (require !== 'any') this.#askSomething(type, below, of)
    const alias = this.#end(into, below, {
      edge: meaning.edge,
      ...selection(args),
      ...(meaning.isMany ? { limit } : {}),
      ...(require === 'any' ? {} : { require }),
    })
    return { kind: meaning.isMany ? 'list' : 'node', key, alias, form }
  }

  #connection(
    key: string,
    of: Asked,
    { meaning, into }: { meaning: Extract<Meaning, { kind: 'connection' }>; into: Growing },
  ): Part {
    const args = this.#arguments(of)
    const type = getNamedType(of.field.type) as GraphQLObjectType
    const limit = args.first ?? this.#limitOf(of.field, 'first')
    const needs: PageNeeds = { count: false, nodes: false, cursors: false }
    const selected = this.#selecting.fieldsOf(type, of.nodes)
    const isPage = Array.from(selected.values()).some((same) => PAGE_PARTS.has(same[0]!.name.value))
    const below = this.#begin(key, into, { of, limit: isPage ? limit : 0 })
    const form = this.#page(type, selected, { below, needs, of })
    if (needs.nodes && needs.count) this.#askSomething(nodeTypeOf(type), below, of)
    const alias = this.#end(into, below, {
      edge: meaning.edge,
      ...selection(args),
      ...(needs.nodes ? { limit } : {}),
      ...(typeof args.after === 'string' ? { after: args.after } : {}),
      ...(needs.cursors ? { cursor: 'each' as const } : {}),
      ...(needs.count || !needs.nodes ? { count: true } : {}),
    })
    const isBehind = typeof args.after === 'string'
    return { kind: 'connection', key, alias, form, isBehind }
  }

  #page(
    type: GraphQLObjectType,
    selected: Selected,
    page: { readonly below: Growing; readonly needs: PageNeeds; readonly of: Asked },
  ): ConnectionPart[] {
    const { needs } = page
    const known = type.getFields()
    return Array.from(selected, ([key, nodes]): ConnectionPart => {
      const name = nodes[0]!.name.value
      switch (name) {
        case '__typename':
          return { kind: 'constant', key, value: type.name }
        case 'totalCount':
          needs.count = true
          return { kind: 'totalCount', key }
        case 'pageInfo':
          needs.nodes = true
          return { kind: 'pageInfo', key, form: this.#pageInfo(known[name]!, nodes, needs) }
        default:
          needs.nodes = true
          return { kind: 'edges', key, form: this.#edges(known[name]!, nodes, page) }
      }
    })
  }

  #pageInfo(field: Field, nodes: readonly FieldNode[], needs: PageNeeds): ConnectionPart[] {
    const type = getNamedType(field.type) as GraphQLObjectType
    return Array.from(this.#selecting.fieldsOf(type, nodes), ([key, same]): ConnectionPart => {
      const name = same[0]!.name.value
      if (name === '__typename') return { kind: 'constant', key, value: type.name }
      if (name === 'startCursor' || name === 'endCursor') needs.cursors = true
      return { kind: name as 'endCursor', key }
    })
  }

  #edges(
    field: Field,
    nodes: readonly FieldNode[],
    { below, needs }: { readonly below: Growing; readonly needs: PageNeeds },
  ): ConnectionPart[] {
    const type = getNamedType(field.type) as GraphQLObjectType
    return Array.from(this.#selecting.fieldsOf(type, nodes), ([key, same]): ConnectionPart => {
      const name = same[0]!.name.value
      if (name === '__typename') return { kind: 'constant', key, value: type.name }
      if (name === 'cursor') {
        needs.cursors = true
        return { kind: 'cursor', key }
      }
      const node = getNamedType(type.getFields()['node']!.type) as GraphQLObjectType
      const form = this.#form(node, this.#selecting.fieldsOf(node, same), below)
      return { kind: 'node', key, form }
    })
  }

  /** A navigation: its node object grows until `#end`. */
  #begin(key: string, into: Growing, { of, limit }: { of: Asked; limit: number }): Growing {
    const { graphqlCostMax, limitMax } = LIMITS.graph
    const place =
      into.place === ''
        ? `${into.navigate.length}`
        : `${into.place}/node/navigate/${into.navigate.length}`
    const path = [...into.path, key]
    this.#places.set(place, path)
    const nodes = into.nodes * Math.min(Math.max(limit, 0), limitMax)
    this.#cost += nodes
    if (this.#cost > graphqlCostMax) {
      throw new GraphQLError(
        `By its limits the query may bring ${this.#cost} nodes and more, at most ${graphqlCostMax} ` +
          `are allowed: set lower ones, here or above`,
        { nodes: of.nodes, path },
      )
    }
    // Its place is taken now: navigations below it are numbered by it.
    into.navigate.push({ edge: '' })
    return { fields: new Set(), navigate: [], place, path, nodes }
  }

  #end(into: Growing, below: Growing, body: Omit<NavigationBody, 'alias' | 'node'>): string {
    const alias = `__e${this.#aliases++}`
    this.#places.set(alias, below.path)
    const index = Number(below.place.slice(below.place.lastIndexOf('/') + 1))
    const fields = Array.from(below.fields)
    const navigate = below.navigate
    const node: NodeBody = navigate.length === 0 ? { fields } : { fields, navigate }
    const isCount = body.count === true && body.limit === undefined
    into.navigate[index] = isCount ? { ...body, alias } : { ...body, alias, node }
    return alias
  }

  /** The graph leaves out nodes of which nothing is shown, where it has other things to tell. */
  #askSomething(type: GraphQLObjectType, below: Growing, { nodes }: Asked): void {
    if (below.fields.size > 0 || below.navigate.length > 0) return
    const { someField } = nodeTypeMeaning(type)
    if (someField !== null) below.fields.add(someField)
    else
      throw new GraphQLError(`Select something of ${type.name} here`, { nodes, path: below.path })
  }

  #arguments({ field, nodes }: Asked): Arguments {
    return getArgumentValues(field, nodes[0]!, this.#selecting.variables)
  }

  /** None has what can only be counted. */
  #limitOf(field: Field, name: string): number {
    return (field.args.find((arg) => arg.name === name)?.defaultValue as number | undefined) ?? 0
  }
}

type Field = GraphQLField<unknown, unknown>

interface Asked {
  readonly field: Field
  readonly nodes: readonly FieldNode[]
}

/** What the parts of a page need of the graph. */
interface PageNeeds {
  count: boolean
  nodes: boolean
  cursors: boolean
}

const PAGE_PARTS: ReadonlySet<string> = new Set(['edges', 'pageInfo'])

/** Values that a field of an enum may have; null: any. */
function valuesOf(field: Field): ReadonlySet<unknown> | null {
  const type = getNamedType(field.type)
  if (!isEnumType(type)) return null
  const known = VALUES.get(type)
  if (known !== undefined) return known
  const values = new Set<unknown>(type.getValues().map(({ value }) => value as unknown))
  VALUES.set(type, values)
  return values
}

const VALUES = new WeakMap<GraphQLEnumType, ReadonlySet<unknown>>()

function nodeTypeOf(connection: GraphQLObjectType): GraphQLObjectType {
  const edge = getNamedType(connection.getFields()['edges']!.type)
  const node = isObjectType(edge) ? getNamedType(edge.getFields()['node']!.type) : null
  return node as GraphQLObjectType
}

type Selection = Pick<NavigationBody, 'filter' | 'phrase' | 'orderBy'>

function selection({ filter, phrase, orderBy }: Arguments): Selection {
  return {
    ...(typeof filter === 'string' ? { filter } : {}),
    ...(typeof phrase === 'string' ? { phrase } : {}),
    ...(typeof orderBy === 'string' ? { orderBy } : {}),
  }
}

/** As the filter grammar quotes text. */
function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
