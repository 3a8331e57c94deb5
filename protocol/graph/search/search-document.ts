// The search document of a node: for each column the values that its field has, cut into words. All
// executions index, or look into, the same. Source: CONTRACT 1.4.2.

import { type Doc, readPath } from '../evaluate.ts'
import type { SearchedEdge, SearchedField } from './phrase-search.ts'
import { keywordOf, wordsOf } from './words.ts'

/** Values of one column, each as its words; a keyword is one word. */
export type Cell = readonly (readonly string[])[]

/** Nodes that an edge leads to; none where the actor has more than searchNodesMax. */
export type EdgeNodes = (edge: SearchedEdge) => Iterable<Doc>

export const NO_NODES: EdgeNodes = () => []

export interface Searched {
  readonly fields: readonly SearchedField[]
  readonly edges: readonly SearchedEdge[]
}

/** Cells of a node by their columns, those that are not empty. */
export function searchDocument(
  doc: Doc,
  { fields, edges }: Searched,
  nodes: EdgeNodes,
): Map<number, Cell> {
  const cells = new Map<number, Cell>()
  for (const field of fields) {
    const cell = cellOf([doc], field)
    if (cell.length > 0) cells.set(field.column, cell)
  }
  for (const edge of edges) {
    const found = edgeDocs(doc, edge, nodes)
    if (found.length === 0) continue
    for (const field of edge.fields) {
      const cell = cellOf(found, field)
      if (cell.length > 0) cells.set(field.column, cell)
    }
  }
  return cells
}

function edgeDocs(doc: Doc, edge: SearchedEdge, nodes: EdgeNodes): Doc[] {
  const value = doc[edge.from]
  if (value === undefined || value === null) return []
  const all = edge.member === null ? nodes(edge) : elements(doc[edge.member])
  return [...all].filter((one) => one[edge.to] === value)
}

function elements(list: unknown): readonly Doc[] {
  return Array.isArray(list) ? list.filter((one) => typeof one === 'object' && one !== null) : []
}

function cellOf(docs: readonly Doc[], { path, keyword }: SearchedField): Cell {
  const cell: string[][] = []
  for (const doc of docs) {
    const value = path.length === 1 ? doc[path[0]!] : readPath(doc, path)
    if (typeof value === 'string') add(value, keyword, cell)
    else if (typeof value === 'number') add(String(value), keyword, cell)
    else if (Array.isArray(value)) {
      for (const one of value) if (typeof one === 'string') add(one, keyword, cell)
    }
  }
  return cell
}

function add(text: string, keyword: boolean, cell: string[][]): void {
  if (!keyword) {
    const words = wordsOf(text)
    if (words.length > 0) cell.push(words)
    return
  }
  const word = keywordOf(text)
  if (word !== null) cell.push([word])
}
