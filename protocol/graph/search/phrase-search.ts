// A phrase together with where it looks: what a step of a plan has. A node's search document has a
// column for each field of its search index, its own and then those of its edges; a caller's search
// looks into those that they may. Source: CONTRACT 1.4.2.

import type { Phrase } from './phrase.ts'

export interface PhraseSearch {
  readonly phrase: Phrase
  /** The node's own. */
  readonly fields: readonly SearchedField[]
  readonly edges: readonly SearchedEdge[]
  /** These are all that the index has. */
  readonly isAll: boolean
}

export interface SearchedField {
  readonly path: readonly string[]
  readonly keyword: boolean
  /** Its number in the search document. */
  readonly column: number
}

/** Nodes of the same actor, whose values count as the node's. */
export interface SearchedEdge {
  readonly node: string
  readonly from: string
  readonly to: string
  /** They are elements of this member of the node; null: rows. */
  readonly member: string | null
  readonly fields: readonly SearchedField[]
}
