// Finding nodes that are elements of their parents' documents: those were read with the level
// above, so no statement is needed for them. Source: ARCHITECTURE 5, CONTRACT 1.4.

import {
  compareDocs,
  compareRanks,
  compareText,
  compileCondition,
  type Doc,
  type Test,
} from '../../protocol/graph/evaluate.ts'
import type { Found, GraphRow } from '../../protocol/graph/execute.ts'
import type { Step } from '../../protocol/graph/plan.ts'
import { NO_RANK, rankOf } from '../../protocol/graph/search/phrase-rank.ts'
import { NO_NODES } from '../../protocol/graph/search/search-document.ts'
import { SqlRow } from './step-find.ts'
import { isHeld } from './select.ts'

/** Finds a step's nodes in their parents; null: they have to be asked for. */
export function heldFind(step: Step): ((parent: GraphRow) => Found | null) | null {
  const { source, storage, plan, filter, phrase } = step
  const isAlone = plan.steps.every(({ require }) => require === 'any')
  if (!isHeld(step) || !isAlone || source.kind !== 'edge' || storage.kind !== 'embedded')
    return null
  const test: Test = filter === null ? () => true : compileCondition(filter)
  const { member } = storage
  const { from, to } = source
  return (parent) => {
    if (!(parent instanceof SqlRow)) return null
    const [value, list] = [parent.doc[from], parent.doc[member]]
    const isThere = value !== undefined && value !== null && Array.isArray(list)
    const rows: SqlRow[] = []
    const { k, actorId } = parent
    for (const [place, doc] of (isThere ? (list as readonly (Doc | null)[]) : []).entries()) {
      if (typeof doc !== 'object' || doc === null || doc[to] !== value || !test(doc)) continue
      const members = { id: step.idField, actor: null }
      const rank = phrase === null ? 0 : rankOf(phrase, doc, NO_NODES)
      if (rank === NO_RANK) continue
      const row = new SqlRow([k, '', place, actorId], doc, members)
      if (phrase !== null) row.rank = rank
      rows.push(row)
    }
    return foundOf(step, rows)
  }
}

function foundOf({ returns, orderBy, limit, phrase }: Step, rows: SqlRow[]): Found {
  const count = rows.length
  if (returns === 'count') return { rows: [], more: false, count }
  // Else they stand as the parent has them.
  if (orderBy.length > 0 || phrase !== null) {
    rows.sort(
      (a, b) => compareRanks(a, b) || compareDocs(orderBy, a.doc, b.doc) || compareText(a.id, b.id),
    )
  }
  if (count > limit) rows.length = limit
  return { rows, more: count > limit, count }
}
