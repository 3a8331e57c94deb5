// How well a phrase finds nodes that are elements of a document, for SQL to ask: they have no
// search documents, for they are few beside each other. Source: CONTRACT 1.4.2.

import type { Doc } from '../../protocol/graph/evaluate.ts'
import { NO_RANK, rankOf } from '../../protocol/graph/search/phrase-rank.ts'
import type { PhraseSearch } from '../../protocol/graph/search/phrase-search.ts'
import { NO_NODES } from '../../protocol/graph/search/search-document.ts'
import { parseStored } from './stored-json.ts'

/** The function behind RANK (match.ts). */
export function elementRank(): (search: unknown, element: unknown) => number {
  let text: unknown = null
  let parsed: PhraseSearch | null = null
  return (search, element) => {
    if (search !== text) {
      parsed = JSON.parse(String(search)) as PhraseSearch
      text = search
    }
    // What is no list makes one row of what it is.
    if (typeof element !== 'string' || !element.startsWith('{')) return NO_RANK
    return rankOf(parsed!, parseStored(element) as Doc, NO_NODES)
  }
}
