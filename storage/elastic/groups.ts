// Nodes that parents of a level lead to, by what their edges go by: one search finds those of many.
// Source: ARCHITECTURE 5.

import type { Step } from '../../protocol/graph/plan.ts'
import type { Query, Term } from './engine.ts'
import type { Kept } from './found-row.ts'
import type { Found } from '../../protocol/graph/execute.ts'
import { ACTOR } from './layout.ts'
import type { Selection } from './selection.ts'

type Edge = Extract<Step['source'], { kind: 'edge' }>

/** Nodes that some parents lead to. */
export interface Group {
  /** Empty for edges that leave the actor. */
  readonly actorId: string
  readonly value: Term
  readonly kept: Kept
  found: Found | null
}

export const groupKey = (actorId: string, value: unknown): string =>
  `${actorId} ${typeof value} ${String(value)}`

/** Documents that hold what the groups lead to; more than those where a child id is shared. */
export function linkQuery(
  edge: Edge,
  groups: readonly Group[],
  { layout, within }: Selection,
): Query {
  const field = within === null ? edge.to : `${within}.${edge.to}`
  const values: Query = { terms: { [field]: [...new Set(groups.map(({ value }) => value))] } }
  if (!edge.sameActor) return values
  const actorIds = [...new Set(groups.map(({ actorId }) => actorId))]
  const ofActors: Query = { terms: { [ACTOR]: actorIds } }
  // A member that is the actor's UUID says no more than the actor does.
  if (within === null && layout.actorMembers.has(edge.to)) return ofActors
  return { bool: { filter: [ofActors, values] } }
}
