// The graph schema: all node types by name and by base set, with their fields and edges ready to be
// looked up. Actor types declare node types; who plans, keeps or describes graph nodes goes by the
// schema. Source: CONTRACT 1.4, commerce/README.md "Graph".

import { assert } from '../errors.ts'
import { type EdgeDef, type FieldDef, linkKind, type NodeType } from './node-type.ts'

/** A node type with its members by name. */
export interface GraphNode {
  readonly type: NodeType
  readonly fields: ReadonlyMap<string, FieldDef>
  readonly edges: ReadonlyMap<string, EdgeDef>
}

export interface GraphSchema {
  /** By node type name: `order`. */
  readonly nodes: ReadonlyMap<string, GraphNode>
  /** By base set: `orders`. */
  readonly sets: ReadonlyMap<string, GraphNode>
}

/**
 * Builds the schema. Edges to node types that are not here are left out, and so are embedded and
 * history nodes whose parent is not here: a node type may name others that join later. Anything
 * else that doesn't fit together is our own mistake and throws AssertionError.
 */
export function graphSchema(types: readonly NodeType[]): GraphSchema {
  const roots = historyParents(types)
  const declared = new Map(
    types.map((type) => [type.name, roots.has(type.name) ? { ...type, root: true } : type]),
  )
  assert(declared.size === types.length, 'two node types have the same name')
  const nodes = new Map<string, GraphNode>()
  const sets = new Map<string, GraphNode>()
  for (const type of declared.values()) {
    const parent = parentOf(type)
    if (parent !== null && !declared.has(parent)) continue
    const node = graphNode(type, declared)
    assert(!sets.has(type.set), `two node types have the set ${type.set}`)
    nodes.set(type.name, node)
    sets.set(type.set, node)
  }
  for (const { type } of nodes.values()) checkStorage(type, nodes)
  return { nodes, sets }
}

/** History belongs to an actor, so it is read through the actor's own node. */
function historyParents(types: readonly NodeType[]): ReadonlySet<string> {
  const parents = new Set<string>()
  for (const { storage } of types) if (storage.kind === 'history') parents.add(storage.parent)
  return parents
}

function parentOf(type: NodeType): string | null {
  if (type.storage.kind === 'embedded') return type.storage.node
  return type.storage.kind === 'history' ? type.storage.parent : null
}

function graphNode(type: NodeType, declared: ReadonlyMap<string, NodeType>): GraphNode {
  const fields = new Map(type.fields.map((field) => [field.name, field]))
  assert(fields.size === type.fields.length, `node ${type.name} has a field twice`)
  assert(fields.has(type.idField), `node ${type.name} has no field ${type.idField}, its id`)
  const edges = new Map<string, EdgeDef>()
  for (const edge of type.edges) {
    assert(!edges.has(edge.name), `node ${type.name} has the edge ${edge.name} twice`)
    assert(!fields.has(edge.name), `node ${type.name} has ${edge.name} as a field and as an edge`)
    const target = declared.get(edge.node)
    if (!target) continue
    const parent = parentOf(target)
    if (parent !== null && !declared.has(parent)) continue
    const link = edge.through && declared.get(edge.through.node)
    if (edge.through !== undefined && link === undefined) continue
    const mistake = edgeMistake(edge, { from: type, to: target, link })
    assert(mistake === null, `the edge ${edge.name} of ${type.name}: ${mistake}`)
    edges.set(edge.name, edge)
  }
  return { type, fields, edges }
}

/** The node types that an edge has to do with. */
export interface EdgeTypes {
  readonly from: NodeType
  readonly to: NodeType
  readonly link?: NodeType | undefined
}

/** Why an edge can't be; null: it can. */
export function edgeMistake(edge: EdgeDef, { from, to, link }: EdgeTypes): string | null {
  const ends: [NodeType, string, NodeType, string][] = []
  const { through } = edge
  if (through === undefined || link === undefined) ends.push([from, edge.from, to, edge.to])
  else {
    if (edge.sameActor) return 'an edge over a link leaves the actor'
    if (link.storage.kind !== 'row') return `${link.name} has no rows of its own to be links`
    if (to.storage.kind === 'history') return `${to.name} is read from records, no link leads there`
    ends.push([from, edge.from, link, through.from], [link, through.to, to, edge.to])
  }
  for (const [one, a, other, b] of ends) {
    const [kind, otherKind] = [kindOf(one, a), kindOf(other, b)]
    if (kind === null) return `no edge goes by ${one.name}.${a}`
    if (otherKind === null) return `no edge goes by ${other.name}.${b}`
    if (kind !== otherKind) return `${one.name}.${a} is never equal to ${other.name}.${b}`
  }
  return null
}

/** Members that are no fields hold ids: text. */
function kindOf(type: NodeType, member: string): ReturnType<typeof linkKind> {
  const field = type.fields.find(({ name }) => name === member)
  return field === undefined ? 'text' : linkKind(field.type)
}

function checkStorage(type: NodeType, nodes: ReadonlyMap<string, GraphNode>): void {
  const parent = parentOf(type)
  if (parent === null) return
  const kept = nodes.get(parent)!.type.storage.kind
  assert(kept === 'row', `node ${type.name} is kept in ${parent}, which has no row of its own`)
}

/**
 * Fields of a node type by which the actor's UUID is told: its own id when it is the root, and what
 * its edges to the root's id go by (NodeType.root).
 */
export function actorFields(schema: GraphSchema, type: NodeType): ReadonlySet<string> {
  const fields = new Set<string>()
  if (type.root) fields.add(type.idField)
  for (const edge of type.edges) {
    const target = schema.nodes.get(edge.node)?.type
    if (edge.sameActor && target?.root && edge.to === target.idField) fields.add(edge.from)
  }
  return fields
}
