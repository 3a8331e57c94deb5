// Which nodes a caller sees, as parts of a plan: a condition on every step, and for history the
// look at the parents that its pieces belong to. Source: specification "Scopes and ACEs", CONTRACT
// 1.4.

import { assert } from '../errors.ts'
import { fieldsOf } from './filter/filter-fields.ts'
import type { Condition, Step } from './plan.ts'
import { type Place, type Planning, type StepSpot, hidden } from './planning.ts'
import type { GraphNode } from './schema.ts'

/** What a node must be to be seen; null: any is. Throws 403 where the caller sees none. */
export function seenNodes(node: GraphNode, place: Place, { access }: Planning): Condition | null {
  const seen = access.sees(node.type)
  if (seen === false) throw hidden(node, place)
  return seen === true ? null : seen
}

interface SeenParents {
  /** What a history node must be, as far as it tells by itself. */
  readonly condition: Condition | null
  /** Its parents that are seen, where it doesn't tell. */
  readonly lookUp: Step | null
}

const ALL: SeenParents = { condition: null, lookUp: null }

/** A history node is a piece of its parent: who may see some parents only sees theirs only. */
export function seenParents({ node, place, parent }: StepSpot, planning: Planning): SeenParents {
  const { storage } = node.type
  if (storage.kind !== 'history') return ALL
  const owner = planning.schema.nodes.get(storage.parent)!
  const seen = seenNodes(owner, place, planning)
  // The walk comes from a parent that it was let see.
  if (seen === null || parent?.node === owner) return ALL
  const { idField } = owner.type
  if ([...fieldsOf(seen)].every((path) => path.length === 1 && path[0] === idField)) {
    return { condition: onField(seen, storage.parentField), lookUp: null }
  }
  return { condition: null, lookUp: lookUpOf(owner, seen) }
}

/** The same condition on the field by which history names its parent. */
function onField(condition: Condition, field: string): Condition {
  if (condition.kind === 'and' || condition.kind === 'or') {
    return { ...condition, of: condition.of.map((part) => onField(part, field)) }
  }
  assert(condition.kind === 'in', 'ids are told by lists')
  return { ...condition, operand: { kind: 'field', path: [field], type: 'text' } }
}

function lookUpOf({ type }: GraphNode, filter: Condition): Step {
  const { name, storage, idField, position = null } = type
  return {
    ...{ name, storage, idField, position, filter },
    source: { kind: 'set' },
    cardinality: 'many',
    plan: { node: name, fields: [], steps: [] },
    phrase: null,
    orderBy: [],
    limit: 0,
    returns: 'nodes',
    require: 'any',
    historyOf: null,
    historySeen: null,
  }
}

/** A look-up for these parents alone. */
export function lookUpFor(step: Step, ids: readonly string[]): Step {
  const operand = { kind: 'field', path: [step.idField], type: 'text' } as const
  const these = { kind: 'in', as: 'text', operand, values: ids } as const
  return { ...step, filter: both(these, step.filter), limit: ids.length }
}

export function both(a: Condition | null, b: Condition | null): Condition | null {
  if (a === null || b === null) return a ?? b
  return { kind: 'and', of: [a, b] }
}
