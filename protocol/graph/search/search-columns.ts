// The columns of a node's search document, in force for everybody who writes or reads it: made of
// the search index and the schema. Source: CONTRACT 1.4.2.

import type { GraphNode, GraphSchema } from '../schema.ts'
import type { SearchedEdge, SearchedField } from './phrase-search.ts'
import type { SearchField } from './search-index.ts'

export interface SearchColumns {
  readonly fields: readonly SearchedField[]
  readonly edges: readonly SearchedEdge[]
  readonly count: number
}

/** Null: nothing of the node is found by phrases. An edge whose node type is not there has none. */
export function searchColumns(
  { type, edges }: GraphNode,
  schema: GraphSchema,
): SearchColumns | null {
  const { search } = type
  if (search === undefined) return null
  let count = 0
  const numbered = (fields: readonly SearchField[]): SearchedField[] =>
    fields.map(({ path, keyword }) => ({ path, keyword, column: count++ }))
  const fields = numbered(search.fields)
  const searched: SearchedEdge[] = []
  for (const of of search.edges) {
    const edge = edges.get(of.edge)
    if (edge === undefined) continue
    const { node, from, to } = edge
    const { storage } = schema.nodes.get(node)!.type
    const member = storage.kind === 'embedded' ? storage.member : null
    searched.push({ node, from, to, member, fields: numbered(of.fields) })
  }
  return count === 0 ? null : { fields, edges: searched, count }
}
