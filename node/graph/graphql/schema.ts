// The GraphQL schema of one caller: made of the graph's metadata as far as that caller may see it.
// What may not be seen has no type, field or argument here, so no introspection, suggestion or
// validation message names it. Each field says what it means to the graph (`meaningOf`). Source:
// CONTRACT 1.4.1.

import {
  GraphQLBoolean,
  GraphQLEnumType,
  type GraphQLFieldConfig,
  type GraphQLFieldConfigMap,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLOutputType,
  GraphQLSchema,
  GraphQLString,
} from 'graphql'
import type { FieldMeta, GraphMeta, NodeMeta } from '../../../protocol/graph/meta.ts'
import { argumentsOf, changesArguments, connectionArguments } from './arguments.ts'
import { changesType } from './changes-type.ts'
import type { Meaning, NodeTypeMeaning } from './meaning.ts'
import { DATE, DECIMAL, INSTANT, JSON_VALUE, UUID } from './scalars.ts'

/** Names beginning with two underscores are GraphQL's own. */
const NAME = /^(?!__)[A-Za-z_][A-Za-z0-9_]*$/

type Fields = GraphQLFieldConfigMap<unknown, unknown>

/** A field of a node with what is below it. */
interface FieldTree {
  readonly path: string
  /** Null: only members of it may be seen. */
  readonly meta: FieldMeta | null
  readonly members: Map<string, FieldTree>
}

export interface SchemaInput {
  readonly meta: GraphMeta
  /** Fields of a node that hold any JSON of which the caller may see single members at least. */
  readonly dynamicFields: (node: string) => readonly string[]
  /** Whether lists of such nodes can be subscribed to. */
  readonly follows: (node: string) => boolean
}

/** Null: the caller may see no node at all, and a schema without a field is none. */
export function schemaOf({ meta, dynamicFields, follows }: SchemaInput): GraphQLSchema | null {
  const builder = new SchemaBuilder(meta, dynamicFields)
  const fields = builder.rootFields()
  if (Object.keys(fields).length === 0) return null
  const query = new GraphQLObjectType({ name: 'Query', fields })
  const changes = builder.changesFields(follows)
  if (Object.keys(changes).length === 0) return new GraphQLSchema({ query })
  const subscription = new GraphQLObjectType({ name: 'Subscription', fields: changes })
  return new GraphQLSchema({ query, subscription })
}

class SchemaBuilder {
  readonly #meta: GraphMeta
  readonly #dynamicFields: (node: string) => readonly string[]
  readonly #types = new Map<string, GraphQLObjectType>()
  /** Names of types, which are of one list with GraphQL's own and ours. */
  readonly #names = new Set([
    ...['Query', 'Mutation', 'Subscription', 'PageInfo', 'Require', 'ChangeKind'],
    ...['String', 'Int', 'Float', 'Boolean', 'ID', 'Decimal', 'Instant', 'Date', 'UUID', 'JSON'],
  ])

  constructor(meta: GraphMeta, dynamicFields: (node: string) => readonly string[]) {
    this.#meta = meta
    this.#dynamicFields = dynamicFields
    const shown = this.#shownNodes()
    for (const node of shown.values()) this.#types.set(node.name, this.#nodeType(node, shown))
  }

  rootFields(): Fields {
    const fields: Fields = {}
    for (const { name, node } of this.#meta.sets) {
      if (!NAME.test(name)) continue
      const type = this.#types.get(node)
      if (type !== undefined)
        fields[name] = nodesField(type, { edge: name, isMany: true, isRoot: true })
    }
    for (const { name, node } of this.#meta.sets) {
      const page = `${name}Connection`
      if (NAME.test(name) && !Object.hasOwn(fields, page)) {
        fields[page] = this.#connectionField(name, node)
      }
    }
    return fields
  }

  /** Of the root of subscriptions: sets of which nodes can be shown, and followed. */
  changesFields(follows: (node: string) => boolean): Fields {
    const fields: Fields = {}
    for (const { name, node } of this.#meta.sets) {
      const type = this.#types.get(node)
      if (type === undefined || !NAME.test(name) || !follows(node)) continue
      const changes = changesType(type, this.#unique(`${type.name} change`))
      fields[name] = {
        type: new GraphQLNonNull(changes),
        args: changesArguments(),
        extensions: { graph: { kind: 'changes', edge: name } satisfies Meaning },
      }
    }
    return fields
  }

  /**
   * Nodes of which something can be selected: a field, or an edge to such a node. Others can only
   * be counted.
   */
  #shownNodes(): Map<string, NodeMeta> {
    const shown = new Map<string, NodeMeta>()
    for (;;) {
      const before = shown.size
      for (const node of this.#meta.nodes) {
        const hasField =
          node.fields.some(({ name }) => name.split('.').every((one) => NAME.test(one))) ||
          this.#dynamicFields(node.name).length > 0
        const leadsOn = node.edges.some((edge) => NAME.test(edge.name) && shown.has(edge.node))
        if (hasField || leadsOn) shown.set(node.name, node)
      }
      if (shown.size === before) return shown
    }
  }

  #nodeType(node: NodeMeta, shown: ReadonlyMap<string, NodeMeta>): GraphQLObjectType {
    const name = this.#unique(node.name)
    const trees = treesOf(node.fields)
    const leaf = trees.get(node.idField) ?? trees.values().next().value
    const someField = leaf === undefined ? null : anyBelow(leaf)
    const meaning: NodeTypeMeaning = { someField }
    return new GraphQLObjectType({
      name,
      extensions: { graph: meaning },
      fields: () => {
        const fields = this.#dataFields(name, trees)
        for (const field of this.#dynamicFields(node.name)) {
          fields[`${field}Field`] ??= dynamicMember(field)
        }
        for (const { name: edge, node: target, cardinality } of node.edges) {
          if (!NAME.test(edge) || !shown.has(target)) continue
          const isMany = cardinality === 'many'
          fields[edge] = nodesField(this.#types.get(target)!, { edge, isMany, isRoot: false })
        }
        return fields
      },
    })
  }

  #dataFields(owner: string, trees: ReadonlyMap<string, FieldTree>): Fields {
    const fields: Fields = {}
    for (const [member, tree] of trees) fields[member] = this.#dataField(owner, member, tree)
    return fields
  }

  #dataField(owner: string, member: string, tree: FieldTree): GraphQLFieldConfig<unknown, unknown> {
    if (tree.members.size === 0) {
      const type = this.#leafType(owner, member, tree.meta!)
      return leafField(type, { kind: 'leaf', field: tree.path, member })
    }
    const name = this.#unique(partName(owner, member))
    const type = new GraphQLObjectType({ name, fields: this.#dataFields(name, tree.members) })
    return leafField(type, { kind: 'object', member, any: anyBelow(tree) })
  }

  #leafType(
    owner: string,
    member: string,
    { type, enum: values = [], custom, dimensions }: FieldMeta,
  ): GraphQLOutputType {
    if (dimensions !== undefined) return JSON_VALUE
    switch (type) {
      case 'text':
        return GraphQLString
      case 'number':
        return DECIMAL
      case 'boolean':
        return GraphQLBoolean
      case 'instant':
        return INSTANT
      case 'date':
        return DATE
      case 'uuid':
        return UUID
      case '[text]':
        return new GraphQLList(new GraphQLNonNull(GraphQLString))
      case 'enum':
        // A custom one may hold what is not offered any more.
        return this.#enumType(owner, member, custom ? [] : values)
      default:
        return JSON_VALUE
    }
  }

  /** Values that aren't names in GraphQL stay text. */
  #enumType(owner: string, member: string, values: readonly string[]): GraphQLOutputType {
    const areNames = values.every((value) => NAME.test(value) && !NO_VALUES.has(value))
    if (!areNames || values.length === 0) return GraphQLString
    return new GraphQLEnumType({
      name: this.#unique(partName(owner, member)),
      values: Object.fromEntries(values.map((value) => [value, { value }])),
    })
  }

  #connectionField(set: string, node: string): GraphQLFieldConfig<unknown, unknown> {
    const type = this.#types.get(node)
    const base = type?.name ?? this.#unique(node)
    const fields: Fields = { totalCount: part(new GraphQLNonNull(GraphQLInt)) }
    if (type !== undefined) {
      const edge = new GraphQLObjectType({
        name: this.#unique(`${base} edge`),
        fields: {
          cursor: part(new GraphQLNonNull(GraphQLString)),
          node: part(new GraphQLNonNull(type)),
        },
      })
      fields['edges'] = part(listOf(edge))
      fields['pageInfo'] = part(new GraphQLNonNull(PAGE_INFO))
    }
    const connection = new GraphQLObjectType({ name: this.#unique(`${base} connection`), fields })
    return {
      type: new GraphQLNonNull(connection),
      args: connectionArguments(type !== undefined),
      extensions: { graph: { kind: 'connection', edge: set } satisfies Meaning },
    }
  }

  /** `ticket.claim` is `TicketClaim`; a name that is taken gets a number. */
  #unique(name: string): string {
    const parts = name.split(/[^A-Za-z0-9]+/).filter((one) => one !== '')
    const pascal = parts.map((one) => one[0]!.toUpperCase() + one.slice(1)).join('')
    const base = /^[A-Za-z]/.test(pascal) ? pascal : `Node${pascal}`
    let unique = base
    for (let n = 2; this.#names.has(unique); n++) unique = `${base}${n}`
    this.#names.add(unique)
    return unique
  }
}

/** `OrderInvoiceAddress`, and of `orderState` simply `OrderState`. */
function partName(owner: string, member: string): string {
  const isOwn = member.toLowerCase().startsWith(owner.toLowerCase()) && member.length > owner.length
  return isOwn ? member : `${owner} ${member}`
}

/** What the grammar keeps from being a value of an enum. */
const NO_VALUES: ReadonlySet<string> = new Set(['true', 'false', 'null'])

const PAGE_INFO = new GraphQLObjectType({
  name: 'PageInfo',
  fields: {
    hasNextPage: part(new GraphQLNonNull(GraphQLBoolean)),
    hasPreviousPage: part(new GraphQLNonNull(GraphQLBoolean)),
    startCursor: part(GraphQLString),
    endCursor: part(GraphQLString),
  },
})

function part(type: GraphQLOutputType): GraphQLFieldConfig<unknown, unknown> {
  return { type, extensions: { graph: { kind: 'part' } satisfies Meaning } }
}

function leafField(type: GraphQLOutputType, graph: Meaning): GraphQLFieldConfig<unknown, unknown> {
  return { type, extensions: { graph } }
}

function dynamicMember(field: string): GraphQLFieldConfig<unknown, unknown> {
  return {
    type: JSON_VALUE,
    description: `The member of ${field} that has this name.`,
    args: { name: { type: new GraphQLNonNull(GraphQLString) } },
    extensions: { graph: { kind: 'dynamic-member', field } satisfies Meaning },
  }
}

function nodesField(
  type: GraphQLObjectType,
  of: { readonly edge: string; readonly isMany: boolean; readonly isRoot: boolean },
): GraphQLFieldConfig<unknown, unknown> {
  const { edge, isMany } = of
  return {
    type: isMany ? listOf(type) : type,
    args: argumentsOf(of),
    extensions: { graph: { kind: 'nodes', edge, isMany } satisfies Meaning },
  }
}

function listOf(type: GraphQLObjectType): GraphQLOutputType {
  return new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(type)))
}

/** Fields by their first name, with the members of each (`invoiceAddress.name`) below it. */
function treesOf(fields: readonly FieldMeta[]): Map<string, FieldTree> {
  const roots = new Map<string, FieldTree>()
  for (const meta of fields) {
    const names = meta.name.split('.')
    if (!names.every((name) => NAME.test(name))) continue
    let level = roots
    for (const [i, name] of names.entries()) {
      const isLast = i === names.length - 1
      const path = names.slice(0, i + 1).join('.')
      const known = level.get(name)
      const tree = known ?? { path, meta: isLast ? meta : null, members: new Map() }
      if (known === undefined) level.set(name, tree)
      level = tree.members
    }
  }
  return roots
}

function anyBelow(tree: FieldTree): string {
  const [first] = tree.members.values()
  return tree.meta !== null || first === undefined ? tree.path : anyBelow(first)
}
