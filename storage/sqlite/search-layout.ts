// How what phrases find lies in SQLite: beside each node type's table a full-text table of the
// same row keys, with a column for each field of the search index. It holds no text, only which
// words stand where; words come ready (protocol/graph/search), so that the tokenizer does no more
// than cut at spaces: of ASCII they hold letters and digits alone, which `ascii` keeps as they
// are, and all else is a part of a word to it. Source: CONTRACT 1.4.2.

import type { FieldPath } from '../../protocol/graph/plan.ts'
import type { GraphNode, GraphSchema } from '../../protocol/graph/schema.ts'
import { type SearchColumns, searchColumns } from '../../protocol/graph/search/search-columns.ts'
import type { Cell } from '../../protocol/graph/search/search-document.ts'

export interface SearchLayout {
  /** Quoted, ready for SQL. */
  readonly table: string
  readonly columns: SearchColumns
}

export function searchLayoutOf(node: GraphNode, schema: GraphSchema): SearchLayout | null {
  const columns = searchColumns(node, schema)
  return columns === null ? null : { table: `"find_${node.type.name}"`, columns }
}

/**
 * What of a node's document search documents are made of, its own and its actor's: where none of it
 * changes none of them does.
 */
export function searchedPaths(node: GraphNode, schema: GraphSchema): FieldPath[] {
  const paths = new Map<string, FieldPath>()
  const add = (path: FieldPath): unknown => paths.set(JSON.stringify(path), path)
  const own = searchColumns(node, schema)
  for (const { path } of own?.fields ?? []) add(path)
  for (const { from, member } of own?.edges ?? []) {
    add([from])
    if (member !== null) add([member])
  }
  for (const other of schema.nodes.values()) {
    for (const { node: name, to, member, fields } of searchColumns(other, schema)?.edges ?? []) {
      if (name !== node.type.name || member !== null) continue
      add([to])
      for (const { path } of fields) add(path)
    }
  }
  return [...paths.values()]
}

export const columnOf = (column: number): string => `c${column}`

/** `detail`: words one after another are told by their places. */
export function searchDdl({ table, columns }: SearchLayout): string {
  const names = Array.from({ length: columns.count }, (_, i) => columnOf(i)).join(', ')
  return (
    `CREATE VIRTUAL TABLE ${table} USING fts5(${names}, content='', contentless_delete=1, ` +
    `detail=full, tokenize='ascii')`
  )
}

/** Stands between two values of a column: no words stand one after another over it. */
const GAP = ' \u0081 '

/** A column's text. */
export function columnText(cell: Cell | undefined): string | null {
  if (cell === undefined) return null
  return cell.length === 1 ? cell[0]!.join(' ') : cell.map((words) => words.join(' ')).join(GAP)
}
