// Phrases as queries of the search engine. A search document's columns are text fields of words
// that are ready (protocol/graph/search), which the engine cuts at spaces; a rank is what a
// document scores: one for being found by its own fields, more for the best rank. Words one after
// another, of which the last only begins so, can't be asked in full: what has both is looked at
// afterwards. Source: CONTRACT 1.4.2.

import { NO_RANK, rankOf, rankOfCells } from '../../protocol/graph/search/phrase-rank.ts'
import type { PhraseSearch, SearchedField } from '../../protocol/graph/search/phrase-search.ts'
import type { PhraseTerm } from '../../protocol/graph/search/phrase.ts'
import { type Cell, NO_NODES } from '../../protocol/graph/search/search-document.ts'
import type { Own } from './document.ts'
import type { Query } from './engine.ts'
import type { FoundRow } from './found-row.ts'
import { columnOf, FIND } from './layout.ts'
import { allOf, anyOf, type ConditionQuery, prefix, term } from './query.ts'

/** What a phrase finds. */
export function phraseQueryOf(search: PhraseSearch): ConditionQuery {
  const { fields, edges, phrase } = search
  const all = [fields, ...edges.map((edge) => edge.fields)].flat()
  return allOf(phrase.terms.map((one) => termQueryOf(one, all)))
}

/** The same with each document's rank as its score, where the query finds nothing else. */
export function scored(found: Query, search: PhraseSearch): Query {
  const { fields, phrase } = search
  const own = allOf(phrase.terms.map((one) => termQueryOf(one, fields)))
  const should = [{ constant_score: { filter: own.query, boost: 1 } }, ...bestOf(search)]
  return { bool: { filter: [found], should } }
}

function bestOf({ phrase, fields }: PhraseSearch): Query[] {
  const { sequence, whole } = phrase
  if (sequence !== null) {
    return [{ constant_score: { filter: termQueryOf(sequence, fields).query, boost: 1 } }]
  }
  if (whole === null) return []
  const { query } = termQueryOf({ words: [], keyword: whole, prefix: false }, fields)
  return [{ constant_score: { filter: query, boost: 2 } }]
}

/** A term in any of these columns. */
function termQueryOf(
  { words, keyword, prefix: isPrefix }: PhraseTerm,
  fields: readonly SearchedField[],
): ConditionQuery {
  const exactly = (query: Query): ConditionQuery => ({ query, exact: true })
  return anyOf(
    fields.flatMap((field): ConditionQuery[] => {
      const name = `${FIND}.${columnOf(field.column)}`
      if (field.keyword) {
        if (keyword === null) return []
        return [exactly(isPrefix ? prefix(name, keyword) : term(name, keyword))]
      }
      const [first, ...more] = words
      if (first === undefined) return []
      if (more.length === 0) return [exactly(isPrefix ? prefix(name, first) : term(name, first))]
      if (!isPrefix) return [exactly({ match_phrase: { [name]: { query: words.join(' ') } } })]
      const whole = words.slice(0, -1).join(' ')
      const begun = [{ match_phrase: { [name]: { query: whole } } }, prefix(name, words.at(-1)!)]
      return [{ query: { bool: { filter: begun } }, exact: false }]
    }),
  )
}

/** A search document's cells as they are kept. */
export function cellsOf(own: Own): ReadonlyMap<number, Cell> {
  const cells = new Map<number, Cell>()
  for (const [name, values] of Object.entries(own.find ?? {})) {
    const cell = values.map((value) => value.split(' '))
    cells.set(Number(name.slice(1)), cell)
  }
  return cells
}

/** The row with its rank; null: it isn't found. Elements have no search documents. */
export function ranked(search: PhraseSearch, row: FoundRow, own: Own | null): FoundRow | null {
  const rank = own === null ? rankOf(search, row.doc, NO_NODES) : rankOfCells(search, cellsOf(own))
  return rank === NO_RANK ? null : { ...row, rank }
}
