// The search engine as the graph index of a cluster needs it: few words, those of Elasticsearch
// itself, so that its rules (external versions, refresh visibility, soft deletes that have to be
// ours because its own are forgotten) stay visible. The client (client.ts) keeps it, and so does
// its twin (memory/search-engine.ts), which is as nasty as Elasticsearch documents itself to be.
// Source: PROTOCOL 3.13.

/** One document of a bulk request. */
export interface BulkItem {
  /** An alias of exactly one index: with `index` a missing one is an error, never made. */
  readonly index: string
  readonly id: string
  readonly write: BulkWrite
}

export type BulkWrite =
  /** Put if nothing newer is there (`external_gte`); `source` is JSON text. */
  | { readonly kind: 'index'; readonly version: number; readonly source: string }
  /** Deleted for good, if it is still what a search has shown. */
  | { readonly kind: 'purge'; readonly seqNo: number; readonly primaryTerm: number }

export type BulkResult =
  | 'done'
  /** 409: something newer is there. */
  | 'newer'
  /** 429, 503: not now. */
  | 'busy'
  /** 404: there is no such index. */
  | 'gone'
  /** 400: this document never, with the reason. */
  | { readonly refused: string }

/** A query of the engine's own language, of the kinds that this folder makes. */
export type Query =
  | { readonly match_all: Record<string, never> }
  | { readonly match_none: Record<string, never> }
  | { readonly bool: BoolQuery }
  | { readonly term: Readonly<Record<string, { readonly value: Term }>> }
  | { readonly terms: Readonly<Record<string, readonly Term[]>> }
  | { readonly range: Readonly<Record<string, RangeQuery>> }
  | { readonly exists: { readonly field: string } }
  | { readonly prefix: Readonly<Record<string, { readonly value: string }>> }
  | { readonly wildcard: Readonly<Record<string, { readonly value: string }>> }
  /** Words of a text field, one after another. */
  | { readonly match_phrase: Readonly<Record<string, { readonly query: string }>> }
  /** What the filter finds scores so much. */
  | { readonly constant_score: { readonly filter: Query; readonly boost: number } }

export type Term = string | number | boolean

/**
 * All of `filter`, none of `must_not`; one of `should` where that is all there is, or where it is
 * said. What `should` finds adds to the score.
 */
export interface BoolQuery {
  readonly filter?: readonly Query[]
  readonly must_not?: readonly Query[]
  readonly should?: readonly Query[]
  readonly minimum_should_match?: 1
}

export interface RangeQuery {
  readonly gt?: Term
  readonly gte?: Term
  readonly lt?: Term
  readonly lte?: Term
  /** How constants of a date field are written. */
  readonly format?: 'epoch_millis'
}

/** Field, or `_score`, and direction; documents without a value come last. */
export type Sort = Readonly<
  Record<string, { readonly order: 'asc' | 'desc'; readonly missing: '_last' }>
>

export interface SearchRequest {
  readonly index: string
  readonly query: Query
  /** Most documents to return. */
  readonly size: number
  readonly sort: readonly Sort[]
  /** Sort values of the last document of the page before. */
  readonly searchAfter?: readonly unknown[]
  /** Members of the source to return. */
  readonly source: readonly string[]
  /** Also count all that match. */
  readonly counts: boolean
  /** Also return sequence numbers, for `purge`. */
  readonly sequence?: boolean
}

export interface SearchHit {
  readonly id: string
  readonly source: Readonly<Record<string, unknown>>
  readonly sort: readonly unknown[]
  readonly seqNo?: number
  readonly primaryTerm?: number
}

export interface SearchAnswer {
  readonly hits: readonly SearchHit[]
  /** All that match; null when it wasn't asked for. */
  readonly total: number | null
}

/** A field's mapping, of the kinds that this folder makes. */
export type FieldMapping =
  | {
      readonly type: 'keyword' | 'double' | 'long' | 'boolean' | 'date'
      readonly index?: false
      /** Kept with the field, for who finds it later; each text has at most 50 characters. */
      readonly meta?: Readonly<Record<string, string>>
    }
  | { readonly type: 'flattened' }
  /** Words that the engine cuts at spaces, with their places. */
  | { readonly type: 'text'; readonly analyzer: 'whitespace'; readonly norms: false }
  | { readonly type: 'object'; readonly enabled: false }
  /** Members that are not named: refused, or kept without being looked at. */
  | {
      readonly dynamic: 'strict' | false
      readonly properties: Readonly<Record<string, FieldMapping>>
    }

export interface IndexDefinition {
  /** The alias that bulk items name. */
  readonly writeAlias: string
  readonly properties: Readonly<Record<string, FieldMapping>>
  /** Kept with the index, for who finds it later. */
  readonly meta: Readonly<Record<string, string | number>>
}

/** An index as it is. */
export interface IndexInfo {
  readonly name: string
  readonly aliases: readonly string[]
  readonly meta: Readonly<Record<string, unknown>>
}

/** One change of what an alias leads to. */
export type AliasChange =
  | { readonly add: { readonly index: string; readonly alias: string } }
  | { readonly remove: { readonly index: string; readonly alias: string } }

/** 404 of a search: an index is not there. */
export class NoSuchIndex extends Error {}

/** No answer, or one that says "not now" (429, 503): the same request may do later. */
export class EngineAway extends Error {}

/** A bound on a request, milliseconds. Past it it rejects with EngineAway. */
export interface RequestBound {
  readonly timeoutMs: number
}

export interface SearchEngine {
  /**
   * Each item has its own result, in order. Rejects with EngineAway when there is no answer: any of
   * them may be in, now or later.
   */
  bulk(items: readonly BulkItem[], bound: RequestBound): Promise<readonly BulkResult[]>
  /** What was done before this was sent is found by searches after it. */
  refresh(indexes: readonly string[], bound: RequestBound): Promise<void>
  /** Answers in order. Rejects with NoSuchIndex when one of the indexes is missing. */
  search(requests: readonly SearchRequest[], bound: RequestBound): Promise<readonly SearchAnswer[]>
  /** Indexes whose names begin so. */
  indexes(prefix: string, bound: RequestBound): Promise<readonly IndexInfo[]>
  /** One that is there already is left as it is. */
  createIndex(name: string, definition: IndexDefinition, bound: RequestBound): Promise<void>
  /** One that is not there is no failure. */
  deleteIndex(name: string, bound: RequestBound): Promise<void>
  /** All of the changes at once or none; an alias that isn't there to be removed is none. */
  moveAliases(changes: readonly AliasChange[], bound: RequestBound): Promise<void>
  close(): Promise<void>
}
