// The planner's view of a phrase: what it says, and which fields its caller may search. Source:
// CONTRACT 1.4.2.

import type { NavigationBody } from '../navigation-body.ts'
import { type Planning, type StepSpot, attempt, forbidden, invalid, under } from '../planning.ts'
import type { PhraseSearch } from './phrase-search.ts'
import { parsePhrase } from './phrase.ts'
import { searchColumns } from './search-columns.ts'

/** Null: there is none. Throws RequestError. */
export function planPhrase(
  { phrase: text, orderBy }: NavigationBody,
  { node, place }: StepSpot,
  { schema, access }: Planning,
): PhraseSearch | null {
  if (text === undefined) return null
  const { name } = node.type
  if (orderBy !== undefined) {
    throw invalid(place, 'phrase and orderBy exclude each other: hits of a phrase go by rank')
  }
  const phrase = attempt(under(place, 'phrase'), () => parsePhrase(text))
  const all = searchColumns(node, schema)
  if (all === null) {
    throw invalid(place, `no field of ${name} is indexed for search: use a filter`)
  }
  const fields = all.fields.filter(({ path }) => access.mayFilter(name, path))
  const edges = all.edges.flatMap((edge) => {
    // Who sees some of the nodes only would be told of others: one column has the words of all.
    if (access.sees(schema.nodes.get(edge.node)!.type) !== true) return []
    const own = edge.fields.filter(({ path }) => access.mayFilter(edge.node, path))
    return own.length === 0 ? [] : [{ ...edge, fields: own }]
  })
  const count = [fields, ...edges.map((edge) => edge.fields)].flat().length
  if (count === 0) {
    throw forbidden(node, all.fields[0]?.path ?? [all.edges[0]!.from], `/${under(place, 'phrase')}`)
  }
  return { phrase, fields, edges, isAll: count === all.count }
}
