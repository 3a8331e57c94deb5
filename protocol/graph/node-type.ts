// Node types: what the graph knows of each kind of node: its fields, its edges and where it is
// kept. Declared beside each actor type (commerce/README.md "Graph"), read by the planner, by all
// executions of a plan and by GET /resources/graph/meta.

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
  /** Members of an `object`. */
  readonly members?: readonly FieldDef[]
  /** Kept as an own, indexed column where a driver has such: fields people find nodes by. */
  readonly indexed?: boolean
}

export interface EdgeDef {
  readonly name: string
  /** Name of the node type it leads to. */
  readonly node: string
  readonly cardinality: 'single' | 'many'
  /** This node's doc[from] equals the other's doc[to]. */
  readonly from: string
  readonly to: string
  /** Both ends belong to one actor: matched within the actor only (child ids may clash outside). */
  readonly sameActor: boolean
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
}
