// Whether a phrase finds a node, and how well: the reference for the queries of all engines, and
// what memory does. Ranks, the best first: 3 a keyword of the node is all that was asked for; 2 all
// words stand one after another in one of its fields; 1 every word is in its own fields; 0 some are
// found over an edge alone. Nodes of one rank go by their ids. Source: CONTRACT 1.4.2.

import type { Doc } from '../evaluate.ts'
import type { PhraseSearch } from './phrase-search.ts'
import type { PhraseTerm } from './phrase.ts'
import { type Cell, type EdgeNodes, searchDocument } from './search-document.ts'

/** The ranks that hits of a phrase can have, the best first. */
export function ranksOf({ phrase, fields, edges }: PhraseSearch): readonly number[] {
  const best = phrase.sequence !== null ? [2] : phrase.whole !== null ? [3] : []
  const ranks = fields.length === 0 ? [] : [...best, 1]
  return edges.length === 0 ? ranks : [...ranks, 0]
}

/** Not found. */
export const NO_RANK = -1

/** The rank of a node by its document, and by nodes that its edges lead to. */
export function rankOf(search: PhraseSearch, doc: Doc, nodes: EdgeNodes): number {
  return rankOfCells(search, searchDocument(doc, search, nodes))
}

/** The same by the cells of its search document. */
export function rankOfCells(
  { phrase, fields, edges }: PhraseSearch,
  cells: ReadonlyMap<number, Cell>,
): number {
  const own = fields.flatMap(({ column }) => [...(cells.get(column) ?? [])])
  const others = edges.flatMap((edge) =>
    edge.fields.flatMap(({ column }) => [...(cells.get(column) ?? [])]),
  )
  const { terms, sequence, whole } = phrase
  if (!terms.every((term) => isIn(own, term))) {
    return terms.every((term) => isIn(own, term) || isIn(others, term)) ? 0 : NO_RANK
  }
  if (sequence !== null) return isIn(own, sequence) ? 2 : 1
  return whole !== null && own.some(([word]) => word === whole) ? 3 : 1
}

function isIn(values: Cell, { words, keyword, prefix }: PhraseTerm): boolean {
  return values.some((value) => {
    if (keyword !== null && begins(value[0]!, keyword, prefix)) return true
    return words.length > 0 && standsIn(value, words, prefix)
  })
}

function begins(word: string, begin: string, prefix: boolean): boolean {
  return prefix ? word.startsWith(begin) : word === begin
}

function standsIn(value: readonly string[], words: readonly string[], prefix: boolean): boolean {
  const last = words.length - 1
  for (let at = 0; at + last < value.length; at++) {
    let i = 0
    while (i < last && value[at + i] === words[i]) i++
    if (i === last && begins(value[at + last]!, words[last]!, prefix)) return true
  }
  return false
}
