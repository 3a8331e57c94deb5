// A node's document as the search engine gets it, and back: known members only, texts no longer
// than a term may be, members of `dynamic` fields beside. Source: layout.ts.

import { createHash } from 'node:crypto'
import { LIMITS } from '../../config/limits.ts'
import type { NodeDoc } from '../../protocol/behaviour.ts'
import type { SearchColumns } from '../../protocol/graph/search/search-columns.ts'
import { type EdgeNodes, searchDocument } from '../../protocol/graph/search/search-document.ts'
import type { IndexWrite } from '../search.ts'
import type { Member, NodeLayout } from './layout.ts'
import { addMembers, cut } from './members.ts'
import { columnOf, OWN, TERM_CHARS_MAX } from './layout.ts'

type Doc = Readonly<Record<string, unknown>>

/** The engine takes ids of 512 bytes; longer ones are told by their hash. */
const ID_BYTES_MAX = 400

/** `_id` of a node: actor and node id, for callers choose child ids. */
export function documentId(actorId: string, id: string): string {
  if (Buffer.byteLength(id) <= ID_BYTES_MAX) return `${actorId}:${id}`
  return `${actorId}:#${createHash('sha256').update(id).digest('hex')}`
}

/** Members of a document that are the index's own (layout.ts). */
export interface Own {
  actor: string
  id: string
  place?: number
  deleted?: true
  deletedAt?: string
  members?: Record<string, string | string[]>
  long?: string[]
  rest?: Record<string, unknown>
  nodes?: number
  whole?: Record<string, string>
  /** The search document: values of each column, words with spaces between. */
  find?: Record<string, string[]>
}

/** The source of a write, as JSON. A removed node is remembered as such (PROTOCOL 3.13.3). */
export function sourceOf(write: IndexWrite, layout: NodeLayout, nowMs: number): string {
  const { actorId, id, doc, place, whole } = write
  const own: Own = { actor: actorId, id }
  if (doc === null) {
    own.deleted = true
    own.deletedAt = new Date(nowMs).toISOString()
    return JSON.stringify({ [OWN]: own })
  }
  if (place !== undefined) own.place = place
  if (whole !== undefined) keepWhole(whole, own)
  if (layout.search !== null) keepFound(write, layout.search, own)
  const source = picked(doc, layout.members, own)
  source[OWN] = own
  return JSON.stringify(source)
}

/** The actor's other nodes, unless they are too much for one document. */
function keepWhole(nodes: readonly NodeDoc[], own: Own): void {
  const whole: Record<string, string> = {}
  let chars = 0
  for (const [node, some] of Map.groupBy(nodes, (one) => one.node)) {
    const text = JSON.stringify(some.map(({ id, doc }) => [id, doc]))
    chars += text.length
    if (chars > LIMITS.storage.indexWholeCharsMax) return
    whole[node] = text
  }
  own.nodes = nodes.length
  own.whole = whole
}

/** What phrases find the node by; over edges where its actor's nodes are at hand. */
function keepFound({ doc, whole = [] }: IndexWrite, search: SearchColumns, own: Own): void {
  const byNode = Map.groupBy(whole, ({ node }) => node)
  const nodes: EdgeNodes = ({ node }) => (byNode.get(node) ?? []).map((one) => one.doc)
  const cells = searchDocument(doc!, search, nodes)
  if (cells.size === 0) return
  const find: Record<string, string[]> = {}
  for (const [column, cell] of cells) {
    find[columnOf(column)] = cell.map((words) => words.join(' '))
  }
  own.find = find
}

/** The members that the index knows; what they hold too much of goes to `own`. */
function picked(doc: Doc, members: readonly Member[], own: Own): Record<string, unknown> {
  const source: Record<string, unknown> = {}
  for (const member of members) {
    const value = doc[member.name]
    if (value !== undefined && value !== null) source[member.name] = takenOf(value, member, [], own)
  }
  return source
}

/** A record below the document: kept as it is, but for what is too long. */
function inner(
  value: Doc,
  members: readonly Member[],
  path: readonly string[],
  own: Own,
): Record<string, unknown> {
  const source: Record<string, unknown> = { ...value }
  for (const member of members) {
    const held = value[member.name]
    if (held !== undefined && held !== null) source[member.name] = takenOf(held, member, path, own)
  }
  return source
}

function takenOf(value: unknown, member: Member, path: readonly string[], own: Own): unknown {
  switch (member.kind) {
    case 'plain':
      return value
    case 'dynamic':
      addMembers((own.members ??= {}), [...path, member.name], value)
      return value
    case 'text':
      return isLong(value) ? shortened(value, [...path, member.name], own) : value
    case 'texts': {
      const list = value as unknown[]
      if (!Array.isArray(value) || !list.some(isLong)) return value
      keepLong(value, [...path, member.name], own)
      return list.map((one) => (isLong(one) ? cut(one) : one))
    }
    case 'object':
      if (typeof value !== 'object' || Array.isArray(value)) return value
      return inner(value as Doc, member.members, [...path, member.name], own)
    case 'elements':
      return Array.isArray(value) ? elements(value as unknown[], member, own) : undefined
  }
}

/** Elements of a list; they are found by what any of them holds, and read from the source. */
function elements(list: readonly unknown[], member: Member, own: Own): unknown[] {
  const inside: Own = { actor: '', id: '' }
  const taken = list
    .filter((one) => typeof one === 'object' && one !== null)
    .map((one) => inner(one as Doc, member.members, [], inside))
  if (inside.rest !== undefined) keepLong(list, [member.name], own)
  return taken
}

function isLong(value: unknown): value is string {
  return typeof value === 'string' && value.length > TERM_CHARS_MAX
}

function shortened(text: string, path: readonly string[], own: Own): string {
  keepLong(text, path, own)
  return cut(text)
}

function keepLong(value: unknown, path: readonly string[], own: Own): void {
  const name = path.join('.')
  own.long = [...(own.long ?? []), name]
  own.rest = { ...own.rest, [name]: value }
}

/** The node's document out of a source: what was too long for a term is whole again. */
export function docOf(source: Doc): Doc {
  const { [OWN]: own, ...members } = source
  const doc: Record<string, unknown> = members
  const rest = (own as Own).rest
  if (rest === undefined) return doc
  for (const [name, value] of Object.entries(rest)) {
    const path = name.split('.')
    let into = doc
    for (const member of path.slice(0, -1)) {
      into = into[member] = { ...(into[member] as Record<string, unknown>) }
    }
    into[path.at(-1)!] = value
  }
  return doc
}
