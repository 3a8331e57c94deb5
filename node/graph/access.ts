// What a caller may see of the graph: their access control entries as the planner asks for them.
// protocol/ace.ts knows no nodes, and protocol/graph no entries. Source: specification "Scopes and
// ACEs", CONTRACT 1.4 "ACL failures".

import { fieldPermission } from '../../protocol/ace-forms.ts'
import { type Acl, type NodeGrant, aclOfLists } from '../../protocol/ace.ts'
import type { Attributes } from '../../protocol/attributes.ts'
import { type Doc, compileCondition } from '../../protocol/graph/evaluate.ts'
import type { FieldDef, NodeType } from '../../protocol/graph/node-type.ts'
import type { Condition, FieldPath, Operand, Scalar, ValueKind } from '../../protocol/graph/plan.ts'
import type { GraphAccess } from '../../protocol/graph/planning.ts'
import { toUuid } from '../../protocol/ids.ts'

/** KONTOR_GRAPH_FILTER_FIELDS: on which fields filters, semi-joins and counts may look. */
export type FilterFields = 'any' | 'granted'

/** The entries of one identity, for the planner and for the meta document. */
export function graphAccess(acl: Acl, filterFields: FilterFields): GraphAccess {
  const mayField = (node: string, path: FieldPath): boolean =>
    acl.covers(`graph/${node}`, fieldPermission(path))
  return {
    sees: (type) => seen(acl, type),
    mayField,
    mayFilter: filterFields === 'any' ? () => true : mayField,
  }
}

/** What one identity sees of one node type: for who has nodes at hand, not a plan. */
export interface Visibility {
  /** True: every node; a condition: those of which it is true; false: none. */
  readonly nodes: boolean | Condition
  sees(doc: Doc): boolean
  mayField(path: FieldPath): boolean
}

export function visibility(acl: Acl, type: NodeType): Visibility {
  const nodes = seen(acl, type)
  return {
    nodes,
    sees: typeof nodes === 'boolean' ? () => nodes : compileCondition(nodes),
    mayField: (path) => acl.covers(`graph/${type.name}`, fieldPermission(path)),
  }
}

/** Fields that hold any JSON of which each list opens the whole, or at least one member. */
export function openDynamics(acl: Acl, type: NodeType): readonly string[] {
  const names = type.fields.flatMap((field) => (field.type === 'dynamic' ? field.name : []))
  const lists = acl.graphLists.map((entries) => ({ entries, alone: aclOfLists([entries]) }))
  return names.filter((name) => {
    const permission = fieldPermission([name])
    return lists.every(
      ({ entries, alone }) =>
        alone.covers(`graph/${type.name}`, permission) ||
        entries.some(
          (entry) =>
            entry.startsWith(`graph:${permission}:`) ||
            entry.startsWith(`graph/${type.name}:${permission}:`),
        ),
    )
  })
}

/** A node is seen when every list opens it; a list opens it by any of its entries. */
function seen(acl: Acl, type: NodeType): boolean | Condition {
  const lists: Condition[] = []
  for (const grant of acl.graphGrants(type.name)) {
    if (grant.all) continue
    const opened = opensOf(grant, type, acl.attributes)
    if (opened.length === 0) return false
    lists.push(opened.length === 1 ? opened[0]! : { kind: 'or', of: opened })
  }
  if (lists.length === 0) return true
  return lists.length === 1 ? lists[0]! : { kind: 'and', of: lists }
}

function opensOf({ ids, attributes }: NodeGrant, type: NodeType, values: Attributes): Condition[] {
  const opened: Condition[] = []
  const id = type.fields.find(({ name }) => name === type.idField)!
  const own = valuesFor(id, ids)
  if (own.length > 0) opened.push(isOneOf([id.name], 'text', own))
  for (const name of new Set(attributes)) {
    if (!Object.hasOwn(values, name)) continue
    const field = fieldOf(type, name.split('.'))
    if (field !== null) opened.push(...hasValue(field.path, field.def, values[name]!))
  }
  return opened
}

interface Attribute {
  readonly path: FieldPath
  /** null: a member of a `dynamic`. */
  readonly def: FieldDef | null
}

/** The field that an attribute names; null: nodes of the type lack it. */
function fieldOf(type: NodeType, path: readonly string[]): Attribute | null {
  let fields = type.fields
  for (const [i, name] of path.entries()) {
    const def = fields.find((field) => field.name === name)
    if (def === undefined) return null
    if (i === path.length - 1) return { path, def }
    if (def.type === 'dynamic') return { path, def: null }
    fields = def.members ?? []
  }
  return null
}

/** Values count as what the field is: a text never equals a number. */
function hasValue(path: FieldPath, def: FieldDef | null, values: readonly Scalar[]): Condition[] {
  if (def === null) {
    return (['text', 'number', 'boolean'] as const).flatMap((as) => {
      const same = values.filter((value) => typeof value === (as === 'text' ? 'string' : as))
      return same.length === 0 ? [] : isOneOf(path, as, same, 'dynamic')
    })
  }
  const own = valuesFor(def, values)
  if (own.length === 0) return []
  switch (def.type) {
    case '[text]':
      return [{ kind: 'array', operator: 'anyof', path, as: 'text', values: own }]
    case 'number':
    case 'boolean':
      return [isOneOf(path, def.type, own)]
    case 'instant':
    case 'date':
      return [isOneOf(path, 'text', own, def.type)]
    default:
      return [isOneOf(path, 'text', own)]
  }
}

/** Those of the values that a field of this type can have; none for what holds no single value. */
function valuesFor({ type }: FieldDef, values: readonly Scalar[]): readonly Scalar[] {
  if (type === 'object' || type === 'dynamic' || type === 'value') return []
  if (type === 'number' || type === 'boolean') return values.filter((one) => typeof one === type)
  const texts = values.filter((value) => typeof value === 'string')
  return type === 'uuid' ? texts.flatMap((text) => toUuid(text) ?? []) : texts
}

type FieldOperand = Extract<Operand, { kind: 'field' }>

function isOneOf(
  path: FieldPath,
  as: ValueKind,
  values: readonly Scalar[],
  type: FieldOperand['type'] = as,
): Condition {
  return { kind: 'in', as, operand: { kind: 'field', path, type }, values: [...new Set(values)] }
}
