// Node types: what the graph knows of each kind of node: its fields, its edges and where it is
// kept. Declared beside each actor type (commerce/README.md "Graph"), read by the planner, by all
// executions of a plan and by GET /resources/graph/meta.

import type { SearchIndex } from './search/search-index.ts'

export type FieldType =
  | 'text'
  | 'number'
  | 'boolean'
  | 'instant'
  | 'date'
  | 'uuid'
  | 'enum'
  /** Ordered set of text (`tags`). */
  | '[text]'
  /** A record with known members (`invoiceAddress.name`). */
  | 'object'
  /** Any JSON: the members of `dynamic`. Reached by `dynamic->'name'`. */
  | 'dynamic'
  /** JSON that can be fetched but not filtered or sorted by. */
  | 'value'

export interface FieldDef {
  readonly name: string
  readonly type: FieldType
  readonly values?: readonly string[]
  /**
   * Of a text that holds keys of something: what offers them (`channels`), and those that are
   * offered now. Others may stand there all the same.
   */
  readonly options?: OptionSource
  readonly offered?: readonly string[]
  /** Members of an `object`. */
  readonly members?: readonly FieldDef[]
  /** Kept as an own, indexed column where a driver has such: fields people find nodes by. */
  readonly indexed?: boolean
  /** Defined in the registry, not by the platform. */
  readonly custom?: boolean
  /** Of a custom field: the path in the node's document that its value is taken from. */
  readonly source?: readonly string[]
  /** It has a value for each locale, channel or both; it is kept as a `dynamic`. */
  readonly dimensions?: Dimensions
}

export type OptionSource = 'channels' | 'inventories' | 'currencies' | 'countries'

export interface Dimensions {
  /** Outermost first; at least one. */
  readonly names: readonly ('locale' | 'channel')[]
  /** Type of each value. */
  readonly of: FieldType
}

/**
 * An edge goes by equal values: this node's doc[from] and the other's doc[to], fields of one kind
 * (`linkKind`); a missing value leads nowhere. One that leaves the actor leads to its nodes in
 * the order of their ids; a `single` one that finds several leads to the first of them.
 */
export interface EdgeDef {
  readonly name: string
  /** Name of the node type it leads to. */
  readonly node: string
  readonly cardinality: 'single' | 'many'
  readonly from: string
  readonly to: string
  /** Both ends belong to one actor: matched within the actor only (child ids may clash outside). */
  readonly sameActor: boolean
  /** Many to many: other nodes say what belongs together. Such an edge leaves the actor. */
  readonly through?: LinkDef
  /** Defined in the registry, not by the platform. */
  readonly custom?: boolean
}

/**
 * What stands between the ends of an edge: this node's doc[from] equals a link's
 * doc[through.from], and the link's doc[through.to] the other's doc[to]. A node that several links
 * lead to is found once.
 */
export interface LinkDef {
  /** Name of the node type of the links, which are kept as rows. */
  readonly node: string
  readonly from: string
  readonly to: string
}

/** What fields are compared as when an edge goes by them; null: none goes by such a field. */
export function linkKind(type: FieldType): 'text' | 'number' | 'boolean' | 'instant' | null {
  switch (type) {
    case 'text':
    case 'enum':
    case 'uuid':
    case 'date':
      return 'text'
    case 'number':
    case 'boolean':
    case 'instant':
      return type
    default:
      return null
  }
}

export type Storage =
  /** An own row in the index. */
  | { readonly kind: 'row' }
  /** An element of array member `member` of the parent row `node` (skus of a line). */
  | { readonly kind: 'embedded'; readonly node: string; readonly member: string }
  /**
   * Read from the actor's records, newest first, through the parent or a filter on `parentField`.
   */
  | { readonly kind: 'history'; readonly parent: string; readonly parentField: string }

export interface NodeType {
  readonly name: string
  /** Base set, the plural: `orders`. */
  readonly set: string
  readonly idField: string
  /**
   * The actor's own node: its id is the actor's UUID, and so is doc[from] of every edge of the same
   * actor that leads to its `idField`. Lets drivers key such nodes and edges by the actor alone.
   * The graph schema sets it by itself for parents of history nodes, which are always root nodes.
   */
  readonly root?: boolean
  /**
   * Member of `doc` (a number; need not be a field) that gives a node's place among its siblings:
   * nested lists without `orderBy` go by it (CONTRACT 1.4, "their parent's order"). Without it they
   * are in the order in which the actor has them (Behaviour.nodes).
   */
  readonly position?: string
  readonly fields: readonly FieldDef[]
  readonly edges: readonly EdgeDef[]
  readonly storage: Storage
  /** Where phrases look; absent: they find nothing. */
  readonly search?: SearchIndex
}
