// Edges that a caller may follow: for metadata, and for the names that a refusal suggests. The
// planner refuses the others. Source: CONTRACT 1.4.

import type { EdgeDef } from './node-type.ts'
import type { GraphAccess } from './planning.ts'
import type { GraphNode, GraphSchema } from './schema.ts'

/** Edges of a node type that the caller may follow. */
export function followedEdges(
  { type, edges }: GraphNode,
  schema: GraphSchema,
  access: GraphAccess,
): EdgeDef[] {
  const sees = (node: string): boolean => access.sees(schema.nodes.get(node)!.type) !== false
  return [...edges.values()].filter(({ node, from, to, through, custom }) => {
    if (!sees(node)) return false
    if (!custom && through === undefined) return true
    if (!access.mayFilter(type.name, [from]) || !access.mayFilter(node, [to])) return false
    if (through === undefined) return true
    const mayGoBy = (member: string): boolean => access.mayFilter(through.node, [member])
    return sees(through.node) && mayGoBy(through.from) && mayGoBy(through.to)
  })
}
