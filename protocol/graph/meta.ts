// What there is to ask for: base sets, node types, their fields and edges, as far as a caller may
// see them. Source: CONTRACT 1.4.

import { followedEdges } from './followed.ts'
import type { FieldDef } from './node-type.ts'
import type { GraphAccess } from './planning.ts'
import type { FieldPath } from './plan.ts'
import type { GraphNode, GraphSchema } from './schema.ts'

export interface GraphMeta {
  readonly sets: readonly { readonly name: string; readonly node: string }[]
  readonly nodes: readonly NodeMeta[]
  /** Definitions in the registry that are left out of the graph; absent where there are none. */
  readonly refused?: readonly { readonly key: string; readonly reason: string }[]
}

export interface NodeMeta {
  readonly name: string
  readonly idField: string
  readonly fields: readonly FieldMeta[]
  readonly edges: readonly {
    readonly name: string
    readonly node: string
    readonly cardinality: 'single' | 'many'
  }[]
}

export interface FieldMeta {
  /** As it is written in `fields` and filters: `invoiceAddress.name`. */
  readonly name: string
  readonly type: string
  /** It has a value for each of them, outermost first: `title.sv`; absent: it has one value. */
  readonly dimensions?: readonly string[]
  /** Values of an `enum`. */
  readonly enum?: readonly string[]
  /** Found by phrase; comes with search. */
  readonly searchIndexed: boolean
  /** Matched as a whole by phrase. */
  readonly keyword: boolean
  /** Defined in the registry, not by the platform. */
  readonly custom: boolean
}

/** Nodes the caller may query, with the fields they may read and the edges between such nodes. */
export function metaOf(schema: GraphSchema, access: GraphAccess): GraphMeta {
  const visible = new Map<string, GraphNode>()
  for (const [name, node] of schema.nodes) {
    if (access.sees(node.type) !== false) visible.set(name, node)
  }
  const all = Array.from(visible.values())
  return {
    sets: all.map(({ type }) => ({ name: type.set, node: type.name })),
    nodes: all.map(({ type, ...own }) => ({
      name: type.name,
      idField: type.idField,
      fields: type.fields.flatMap((field) =>
        fieldMeta(field, [field.name], (path) => access.mayField(type.name, path)),
      ),
      edges: followedEdges({ type, ...own }, schema, access).map(({ name, node, cardinality }) => ({
        name,
        node,
        cardinality,
      })),
    })),
  }
}

/** A field and, for an object, its members: each by itself, since each has its own permission. */
function fieldMeta(
  field: FieldDef,
  path: FieldPath,
  mayRead: (path: FieldPath) => boolean,
): FieldMeta[] {
  const members = (field.members ?? []).flatMap((member) =>
    fieldMeta(member, [...path, member.name], mayRead),
  )
  if (!mayRead(path)) return members
  const own: FieldMeta = {
    name: path.join('.'),
    type: field.dimensions?.of ?? field.type,
    ...(field.dimensions && { dimensions: field.dimensions.names }),
    ...(field.values === undefined ? {} : { enum: field.values }),
    searchIndexed: false,
    keyword: false,
    custom: field.custom === true,
  }
  return [own, ...members]
}
