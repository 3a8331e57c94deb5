// Phrases as queries of SQLite's full-text tables. Source: CONTRACT 1.4.2; search-layout.ts.

import { NO_RANK } from '../../protocol/graph/search/phrase-rank.ts'
import type { PhraseSearch, SearchedField } from '../../protocol/graph/search/phrase-search.ts'
import type { PhraseTerm } from '../../protocol/graph/search/phrase.ts'
import { columnOf } from './search-layout.ts'
import { param, sql, tick, type Relation, type Sql } from './sql.ts'

/** Name of the SQL function that says how well a phrase (as JSON) finds an element (as JSON). */
export const RANK = 'phrase_rank'

export interface Found {
  /** null: whatever its rank. */
  readonly rank: number | null
  /** Only nodes of the parent's actor are looked at. */
  readonly isNear: boolean
  /** Nodes come in their order, and each is looked for among the hits. */
  readonly isWalked?: boolean
}

/** A node is found by the phrase. */
export function foundSql(search: PhraseSearch, on: Relation, of: Found): Sql {
  const { rank, isNear, isWalked = false } = of
  const { table, element } = on
  if (element !== null) {
    const found = sql`${RANK}(${param(JSON.stringify(search))}, ${element}.value)`
    return rank === null ? sql`${found} > ${String(NO_RANK)}` : sql`${found} = ${String(rank)}`
  }
  const range = isNear
    ? sql` AND rowid BETWEEN ${param({ of: 'first' })} AND ${param({ of: 'last' })}`
    : ''
  // SQLite finds no rows by what is no bare column.
  const key = `${isWalked ? '+' : ''}${table}.k`
  return sql`${key} IN (SELECT rowid ${hitsSql(search, on, rank)}${range})`
}

/** Keys of what a phrase finds: a search document is there as long as its node. */
export function hitsSql(search: PhraseSearch, on: Relation, rank: number | null): Sql {
  const { table: words } = on.layout.search!
  return sql`FROM ${words} WHERE ${words} MATCH ${param(matchOf(search, rank))} AND ${tick('rowid')}`
}

/** All that a phrase finds, or what has this rank and no better one. */
export function matchOf(search: PhraseSearch, rank: number | null): string {
  if (rank === null) return all(search)
  const best = bestOf(search)
  if (rank >= 2) return best!
  const own = ownOf(search)
  if (rank === 1) return best === null ? own : `(${own}) NOT (${best})`
  return search.fields.length === 0 ? all(search) : `(${all(search)}) NOT (${own})`
}

function all(search: PhraseSearch): string {
  const { fields, edges, isAll } = search
  const columns = [fields, ...edges.map((edge) => edge.fields)].flat()
  return within(isAll ? null : columns, termsOf(search))
}

function ownOf(search: PhraseSearch): string {
  return within(ownColumns(search), termsOf(search))
}

/** What has the best rank that hits of this phrase can have; null: none is better than 1. */
function bestOf(search: PhraseSearch): string | null {
  const { sequence, whole } = search.phrase
  if (sequence !== null) return within(ownColumns(search), termOf(sequence))
  return whole === null ? null : within(ownColumns(search), quoted([whole]))
}

/** Null: all that the table has. */
function ownColumns({ fields, edges, isAll }: PhraseSearch): readonly SearchedField[] | null {
  return isAll && edges.length === 0 ? null : fields
}

const within = (columns: readonly SearchedField[] | null, query: string): string =>
  columns === null
    ? query
    : `{${columns.map(({ column }) => columnOf(column)).join(' ')}} : (${query})`

function termsOf({ phrase }: PhraseSearch): string {
  return phrase.terms.map((term) => `(${termOf(term)})`).join(' AND ')
}

function termOf({ words, keyword, prefix }: PhraseTerm): string {
  const star = prefix ? ' *' : ''
  const ways: string[] = []
  if (words.length > 0) ways.push(quoted(words) + star)
  if (keyword !== null) ways.push(quoted([keyword]) + star)
  return ways.join(' OR ')
}

/** Words hold no quotes (words.ts). */
const quoted = (words: readonly string[]): string => `"${words.join(' ')}"`
