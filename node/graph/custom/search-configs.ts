// Search indexes as the registry configures them: the value under a node's key as a search index,
// checked against the node types that are there, and the node types with it. Pure. Source:
// specification "Graph", CONTRACT 1.1 "Search indexes".

import { SyntaxMistake } from '../../../protocol/graph/filter/lexer.ts'
import { parsePath } from '../../../protocol/graph/filter/parser.ts'
import type { NodeType } from '../../../protocol/graph/node-type.ts'
import { type GraphSchema, graphSchema } from '../../../protocol/graph/schema.ts'
import { type SearchFault, searchFault } from '../../../protocol/graph/search/search-faults.ts'
import type { SearchField, SearchIndex } from '../../../protocol/graph/search/search-index.ts'
import { suggestion } from '../../../protocol/near-names.ts'
import type { CustomTypes, Definition, DefinitionFault } from './definitions.ts'

/** Under which all configurations are. */
export const SEARCHES = 'system/graph/'

const KEY = /^system\/graph\/([^/]+)\/search$/

interface FieldValue {
  readonly field: string
  readonly keyword?: boolean
}

/** The form that well-known.ts checks. */
interface SearchValue {
  readonly fields: readonly FieldValue[]
  readonly edges?: readonly { readonly edge: string; readonly fields: readonly FieldValue[] }[]
}

/** The node that the key configures search for; null: the key is of something else. */
export function searchedNode(key: string): string | null {
  return KEY.exec(key)?.[1] ?? null
}

/** Why the configuration can't be in this schema; null: it can. */
export function searchConfigFault(
  { key, value }: Definition,
  schema: GraphSchema,
): DefinitionFault | null {
  const name = searchedNode(key)
  if (name === null) return null
  const node = schema.nodes.get(name)
  if (node === undefined) return { member: 'key', message: unknownNode(name, schema) }
  const index = indexOf(value)
  if ('message' in index) return { member: memberOf(index.place), message: index.message }
  const fault = searchFault(index, node, schema)
  return fault === null ? null : { member: memberOf(fault.place), message: fault.message }
}

/**
 * The node types, where there is a configuration with that instead of the search index that is
 * built in. What of one can't be any more (a custom field that was taken away) is left out of it,
 * and told; one that can't be at all leaves the built-in.
 */
export function withSearches(
  types: readonly NodeType[],
  configs: Iterable<Definition>,
): CustomTypes {
  const refused: { key: string; reason: string }[] = []
  const found = new Map<string, SearchIndex>()
  let schema: GraphSchema | null = null
  for (const { key, value } of configs) {
    const name = searchedNode(key)
    if (name === null) continue
    schema ??= graphSchema(types)
    const node = schema.nodes.get(name)
    const index = node === undefined ? null : indexOf(value)
    if (node === undefined || index === null) {
      refused.push({ key, reason: unknownNode(name, schema) })
    } else if ('message' in index) {
      refused.push({ key, reason: index.message })
    } else {
      const { rest, reasons } = thatCanBe(index, (some) => searchFault(some, node, schema!))
      if (rest !== null) found.set(name, rest)
      for (const reason of reasons) refused.push({ key, reason })
    }
  }
  if (found.size === 0) return { types, refused }
  const configured = types.map((type) => {
    const search = found.get(type.name)
    return search === undefined ? type : { ...type, search }
  })
  return { types: configured, refused }
}

function unknownNode(name: string, { nodes }: GraphSchema): string {
  return `there is no node "${name}"${suggestion(name, [...nodes.keys()])}`
}

/** `edges/0/fields/1` of an index stands as `edges.0.fields.1` in the value. */
const memberOf = (place: string): string => place.replaceAll('/', '.')

function indexOf(value: unknown): SearchIndex | SearchFault {
  if (typeof value !== 'object' || value === null) {
    return { place: '', message: 'a search index is an object that everybody may read, no secret' }
  }
  const { fields, edges = [] } = value as SearchValue
  const own = fieldsOf(fields, '')
  if ('message' in own) return own
  const all: SearchIndex['edges'][number][] = []
  for (const [i, { edge, fields: theirs }] of edges.entries()) {
    const read = fieldsOf(theirs, `edges/${i}/`)
    if ('message' in read) return read
    all.push({ edge, fields: read })
  }
  return { fields: own, edges: all }
}

function fieldsOf(values: readonly FieldValue[], under: string): SearchField[] | SearchFault {
  const fields: SearchField[] = []
  for (const [i, { field, keyword = false }] of values.entries()) {
    try {
      const { names, members } = parsePath(field)
      fields.push({ path: [...names, ...members], keyword })
    } catch (mistake) {
      if (!(mistake instanceof SyntaxMistake)) throw mistake
      return { place: `${under}fields/${i}`, message: mistake.message }
    }
  }
  return fields
}

interface Rest {
  /** Null: nothing is wrong with one part of it, but with the whole. */
  readonly rest: SearchIndex | null
  readonly reasons: readonly string[]
}

/** What is left of an index without what is wrong in it, one field or edge after the other. */
function thatCanBe(index: SearchIndex, faultOf: (index: SearchIndex) => SearchFault | null): Rest {
  const reasons: string[] = []
  let rest = index
  for (;;) {
    const fault = faultOf(rest)
    if (fault === null) return { rest, reasons }
    reasons.push(fault.message)
    const left = withoutPart(rest, fault.place.split('/'))
    if (left === null) return { rest: null, reasons }
    rest = left
  }
}

/** Null: the place is of no single part. */
function withoutPart(index: SearchIndex, place: readonly string[]): SearchIndex | null {
  const [list, at, ...inside] = place
  if (at === undefined) return null
  const number = Number(at)
  if (list === 'fields') return { ...index, fields: index.fields.toSpliced(number, 1) }
  if (inside[0] !== 'fields') return { ...index, edges: index.edges.toSpliced(number, 1) }
  const { edge, fields } = index.edges[number]!
  const left = { edge, fields: fields.toSpliced(Number(inside[1]), 1) }
  return { ...index, edges: index.edges.with(number, left) }
}
