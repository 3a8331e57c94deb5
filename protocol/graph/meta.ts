// What there is to ask for: base sets, node types, their fields and edges, as far as a caller may
// see them. Source: CONTRACT 1.4.

import { followedEdges } from './followed.ts'
import type { FieldDef } from './node-type.ts'
import type { GraphAccess } from './planning.ts'
import type { FieldPath } from './plan.ts'
import type { SearchField } from './search/search-index.ts'
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
  /** Values of an `enum`; of a text: what is offered for it. */
  readonly enum?: readonly string[]
  /** Found by phrase; of a `dynamic`: a member of it is. */
  readonly searchIndexed: boolean
  /** Matched as a whole by phrase; of a `dynamic`: each member that is found is. */
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
        fieldMeta(field, [field.name], {
          mayRead: (path) => access.mayField(type.name, path),
          found: type.search?.fields ?? [],
        }),
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
  of: { readonly mayRead: (path: FieldPath) => boolean; readonly found: readonly SearchField[] },
): FieldMeta[] {
  const members = (field.members ?? []).flatMap((member) =>
    fieldMeta(member, [...path, member.name], of),
  )
  if (!of.mayRead(path)) return members
  const isOf = (one: SearchField): boolean =>
    path.every((name, i) => one.path[i] === name) &&
    (one.path.length === path.length || field.type === 'dynamic')
  const found = of.found.filter((one) => isOf(one) && of.mayRead(one.path))
  const own: FieldMeta = {
    name: path.join('.'),
    type: field.dimensions?.of ?? field.type,
    ...(field.dimensions && { dimensions: field.dimensions.names }),
    ...((field.values ?? field.offered) && { enum: field.values ?? field.offered }),
    searchIndexed: found.length > 0,
    keyword: found.length > 0 && found.every(({ keyword }) => keyword),
    custom: field.custom === true,
  }
  return [own, ...members]
}
