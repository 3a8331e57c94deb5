// Whether a filter says by itself that rows have content. Source: ARCHITECTURE 5.

import type { Condition, Operand } from '../../protocol/graph/plan.ts'
import type { Relation } from './sql.ts'

/** True when no removed row can match: they have neither columns nor a document. */
export function needsContent(filter: Condition, on: Relation): boolean {
  switch (filter.kind) {
    case 'and':
      return filter.of.some((part) => needsContent(part, on))
    case 'or':
      return filter.of.every((part) => needsContent(part, on))
    case 'compare':
    case 'text':
      return readsContent(filter.left, on) || readsContent(filter.right, on)
    case 'in':
    case 'true':
      return readsContent(filter.operand, on)
    case 'array':
      return true
    default:
      return false
  }
}

function readsContent(operand: Operand, { layout }: Relation): boolean {
  if (operand.kind !== 'field') return false
  const member = operand.path[0]!
  // The id and the actor of a removed node stay in its row.
  return member !== layout.type.idField && !layout.actorMembers.has(member)
}
