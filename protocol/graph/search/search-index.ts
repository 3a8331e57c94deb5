// Which fields of a node a phrase looks into: its own, and those of nodes that its edges lead to.
// Built in for each node type, or configured in the registry. Source: specification "Graph",
// CONTRACT 1.4.2.

export interface SearchIndex {
  readonly fields: readonly SearchField[]
  /** Of the actor's own node (NodeType.root) alone: to nodes of the same actor. */
  readonly edges: readonly SearchEdge[]
}

export interface SearchField {
  /** As FieldPath of plan.ts. */
  readonly path: readonly string[]
  /** Its value is found as a whole, or by its beginning; else by its words. */
  readonly keyword: boolean
}

export interface SearchEdge {
  readonly edge: string
  readonly fields: readonly SearchField[]
}

/** Bounds of search; part of LIMITS.graph. */
export const SEARCH_LIMITS = {
  /** Fields of one search index, those of its edges included. */
  searchFieldsMax: 24,
  /** A phrase, its words, and the parts that they are cut into. */
  phraseCharsMax: 500,
  phraseWordsMax: 16,
  phrasePartsMax: 100,
  /** Of one value that is indexed: its characters, words and characters of each; of a keyword. */
  searchTextCharsMax: 16_384,
  searchWordsMax: 1_000,
  searchWordCharsMax: 64,
  searchKeywordCharsMax: 200,
  /** An actor with more nodes than this is found by what stands in its own node. */
  searchNodesMax: 256,
} as const
