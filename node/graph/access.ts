// What a caller may see of the graph: their access control entries as the planner asks for them.
// protocol/ace.ts knows no nodes, and protocol/graph no entries. Source: specification "Scopes and
// ACEs", CONTRACT 1.4 "ACL failures".

import type { Acl } from '../../protocol/ace.ts'
import type { GraphAccess } from '../../protocol/graph/planning.ts'
import type { FieldPath } from '../../protocol/graph/plan.ts'

/** KONTOR_GRAPH_FILTER_FIELDS: on which fields filters, semi-joins and counts may look. */
export type FilterFields = 'any' | 'granted'

/** The entries of one identity, for the planner and for the meta document. */
export function graphAccess(acl: Acl, filterFields: FilterFields): GraphAccess {
  const mayField = (node: string, path: FieldPath): boolean =>
    acl.covers(`graph/${node}`, fieldPermission(path))
  return {
    mayQuery(node) {
      return acl.covers(`graph/${node}`, 'query') || idsOf(acl, node)
    },
    mayField,
    mayFilter: filterFields === 'any' ? () => true : mayField,
  }
}

/** Ids named by entries on single nodes (`graph/order/<id>:query`). */
function idsOf(acl: Acl, node: string): readonly string[] {
  const ids: string[] = []
  for (const { attribute, path, permission } of acl.aces) {
    if (attribute !== null || path[0] !== 'graph' || path[1] !== node) continue
    const id = path[2]
    if (id === undefined || (permission !== 'query' && permission !== '*')) continue
    if (acl.covers(`graph/${node}/${id}`, 'query')) ids.push(id)
  }
  return ids
}

/**
 * `field:dynamic:myField`. Entries can't name a member that holds a colon, so such a member, and
 * what is below it, is covered only by an entry on what is above it.
 */
function fieldPermission(path: FieldPath): string {
  let permission = 'field'
  for (const member of path) {
    if (member.includes(':')) break
    permission += `:${member}`
  }
  return permission
}
