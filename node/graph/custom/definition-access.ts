// Who may define a custom field or edge. It is read under an entry of its own, so its definition
// gives whoever holds that what it leads to: it is written by who sees that themselves. That is the
// field it is made of, or both fields of an edge, of all nodes, for attribute entries may go by it.
// Pure. Source: CONTRACT 1.1 "Custom fields", PROTOCOL 3.0 "Who may change configuration".

import { fieldPermission } from '../../../protocol/ace-forms.ts'
import type { Acl } from '../../../protocol/ace.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { ErrorItem } from '../../../protocol/errors.ts'
import { SyntaxMistake } from '../../../protocol/graph/filter/lexer.ts'
import { parsePath } from '../../../protocol/graph/filter/parser.ts'
import type { NodeType } from '../../../protocol/graph/node-type.ts'
import { type Definition, placeOf } from './definitions.ts'

/** A node type by its set, as far as an edge needs it. */
type Related = Pick<NodeType, 'name' | 'set' | 'idField'>

/** A field that a definition leads to. */
interface End {
  /** `graph/<node>`; `graph` where nobody knows which node it is. */
  readonly resource: string
  /** `field:<field>`; `field` where nobody knows which field it is. */
  readonly permission: string
  /** Of the definition's value. */
  readonly member: string
}

/**
 * Why this caller may not write the definition, with all that they lack; null: they may, or the key
 * is of no definition. One that can't be read, or is sealed, might be any field of its node.
 */
export function refusalToDefine(
  caller: Acl,
  { key, value }: Definition,
  nodes: readonly Related[],
): ErrorItem | null {
  const place = placeOf(key)
  if (place === null || caller.everything) return null
  const given = (typeof value === 'object' && value !== null ? value : {}) as Value
  const ends =
    place.kind === 'fields'
      ? [endOf(place.node, 'source', given)]
      : endsOf(place.node, given, nodes)
  const lacks = ends.flatMap(({ resource, permission, member }) =>
    ['query', permission]
      .filter((one) => !caller.covers(resource, one))
      .map((one) => ({ needs: `${resource}:${one}`, isField: one !== 'query', member })),
  )
  if (lacks.length === 0) return null
  const first = lacks.find(({ isField }) => isField) ?? lacks[0]!
  const needs = [...new Set(lacks.map((one) => one.needs))].join(' ')
  const what = place.kind === 'fields' ? 'a custom field' : 'a custom edge'
  return errorItem(
    first.isField ? 'FORBIDDEN_FIELD' : 'FORBIDDEN_NODE',
    `who defines ${what} must see all that it leads to; this needs ${needs.replaceAll(' ', ' and ')}`,
    { member: first.member, needs },
  )
}

type Value = Readonly<Record<string, unknown>>

function endOf(node: string, member: string, { [member]: path }: Value): End {
  return { resource: `graph/${node}`, permission: permissionOf(path), member }
}

function endsOf(node: string, value: Value, nodes: readonly Related[]): readonly End[] {
  const related = nodes.find(({ set }) => set === value['relatedSet'])
  const own = endOf(node, 'field', value)
  if (related === undefined) {
    return [own, { resource: 'graph', permission: 'field', member: 'relatedSet' }]
  }
  const { relatedField = related.idField } = value
  return [own, endOf(related.name, 'relatedField', { relatedField })]
}

function permissionOf(path: unknown): string {
  if (typeof path !== 'string') return fieldPermission([])
  try {
    const { names, members } = parsePath(path)
    return fieldPermission([...names, ...members])
  } catch (mistake) {
    if (mistake instanceof SyntaxMistake) return fieldPermission([])
    throw mistake
  }
}
