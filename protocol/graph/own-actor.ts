// Whose a node is, as its own fields say: what changes of one actor do to a list of such nodes can
// be followed. Source: CONTRACT 1.10.

import type { GraphSchema } from './schema.ts'

/** The field that holds the UUID of the node's actor; null: its nodes don't say whose they are. */
export function actorFieldOf(node: string, schema: GraphSchema): string | null {
  const { type, edges } = schema.nodes.get(node)!
  if (type.root === true) return type.idField
  if (type.storage.kind !== 'row') return null
  for (const { from, to, cardinality, sameActor, node: target } of edges.values()) {
    const root = schema.nodes.get(target)!.type
    const leads = root.root === true && to === root.idField && cardinality === 'single'
    if (leads && sameActor) return from
  }
  return null
}
