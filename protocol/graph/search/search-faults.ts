// Whether a node can have a search index: its fields are there and hold text, its edges stay inside
// the actor, whose own node is written with each of its others. Source: CONTRACT 1.4.2.

import { resolveField, FieldMistake } from '../filter/fields.ts'
import type { FieldPath } from '../plan.ts'
import type { GraphNode, GraphSchema } from '../schema.ts'
import { SEARCH_LIMITS, type SearchField, type SearchIndex } from './search-index.ts'

/** What is wrong with a search index, and where: `edges/0/fields/1`. */
export interface SearchFault {
  readonly place: string
  readonly message: string
}

/** Why a node can't have this search index in this schema; null: it can. */
export function searchFault(
  index: SearchIndex,
  node: GraphNode,
  schema: GraphSchema,
): SearchFault | null {
  const all = [index, ...index.edges].flatMap(({ fields }) => fields)
  if (all.length > SEARCH_LIMITS.searchFieldsMax) {
    const message = `a search index has at most ${SEARCH_LIMITS.searchFieldsMax} fields, found ${all.length}`
    return { place: 'fields', message }
  }
  const own = fieldsFault(index.fields, node, '')
  if (own !== null) return own
  const named = new Set<string>()
  for (const [i, { edge, fields }] of index.edges.entries()) {
    const place = `edges/${i}`
    const message = named.has(edge)
      ? `the edge ${edge} is named twice`
      : edgeFault(edge, node, schema)
    if (message !== null) return { place: `${place}/edge`, message }
    named.add(edge)
    const target = schema.nodes.get(node.edges.get(edge)!.node)!
    const fault = fieldsFault(fields, target, `${place}/`)
    if (fault !== null) return fault
  }
  return null
}

function fieldsFault(
  fields: readonly SearchField[],
  node: GraphNode,
  under: string,
): SearchFault | null {
  const named = new Set<string>()
  for (const [i, { path }] of fields.entries()) {
    const place = `${under}fields/${i}`
    const text = path.join('.')
    const message = named.has(text) ? `the field ${text} is named twice` : fieldFault(path, node)
    if (message !== null) return { place, message }
    named.add(text)
  }
  return null
}

const SEARCHED: readonly string[] = ['text', 'enum', 'uuid', 'date', '[text]', 'member']

function fieldFault(path: FieldPath, node: GraphNode): string | null {
  const dynamic = path.findIndex((name, i) => i === 0 && node.fields.get(name)?.type === 'dynamic')
  const names = dynamic < 0 ? path : path.slice(0, 1)
  const members = dynamic < 0 ? [] : path.slice(1)
  try {
    const { type } = resolveField({ kind: 'path', names, members, position: 0 }, node, () => true)
    if (SEARCHED.includes(type)) return null
    return `${path.join('.')} holds no text to be found by; name a field of text, or a member`
  } catch (mistake) {
    if (mistake instanceof FieldMistake) return mistake.message
    throw mistake
  }
}

function edgeFault(name: string, node: GraphNode, schema: GraphSchema): string | null {
  const { type } = node
  const edge = node.edges.get(name)
  if (edge === undefined) return `${type.name} has no edge ${name}`
  if (!type.root) {
    return `edges are for an actor's own node: a ${type.name} is found by its own fields alone`
  }
  if (!edge.sameActor || edge.through !== undefined) {
    return `${name} leads to other actors, whose changes ${type.name} is not told; name an edge inside the actor`
  }
  const { storage } = schema.nodes.get(edge.node)!.type
  const isHere =
    storage.kind === 'row' || (storage.kind === 'embedded' && storage.node === type.name)
  return isHere ? null : `${name} leads to nodes that have no place in the index; name another edge`
}
