// Keeps the full-text tables of the embedded index with the nodes, in the same transaction. A
// node's search document is written anew when what it is made of has changed: its own fields, or,
// of an actor's own node, those of nodes that its search has edges to. Source: CONTRACT 1.4.2.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Doc } from '../../protocol/graph/evaluate.ts'
import { type EdgeNodes, searchDocument } from '../../protocol/graph/search/search-document.ts'
import { SEARCH_LIMITS } from '../../protocol/graph/search/search-index.ts'
import type { IndexWrite } from '../search.ts'
import { NODES_PER_ACTOR, type IndexLayoutOfAll, type NodeLayout } from './layout.ts'
import { columnOf, columnText, type SearchLayout } from './search-layout.ts'
import { parseStored } from './stored-json.ts'
import { type ActorRows, NodeCount, type Written } from './table.ts'

/** One node type, as search has to do with it. */
interface Searched {
  readonly layout: NodeLayout
  readonly search: SearchLayout | null
  readonly insert: StatementSync | null
  readonly remove: StatementSync | null
  /** Documents of an actor's nodes, by their keys. */
  readonly read: StatementSync
}

/** What a transaction has done to one actor. */
interface Changed {
  /** By node type, then key: documents that are to be written; null: taken away. */
  readonly due: Map<string, Map<number, Doc | null>>
  /** What its own node's edges lead to is another than before. */
  isRootDue: boolean
  /** All there is of an actor that is new: by node type, then key. */
  readonly docs: Docs | null
}

export class SearchWriter {
  readonly #nodes = new Map<string, Searched>()
  /** Node types whose search has edges, and those that such edges lead to. */
  readonly #roots: readonly string[]
  readonly #ends: ReadonlySet<string>
  readonly #count: NodeCount
  readonly #changed = new Map<ActorRows, Changed>()

  constructor(db: DatabaseSync, layout: IndexLayoutOfAll) {
    for (const [name, own] of layout.nodes) this.#nodes.set(name, searchedOf(db, own))
    this.#count = new NodeCount(db, layout.nodes.values())
    const edges = (of: NodeLayout): readonly string[] =>
      (of.search?.columns.edges ?? []).flatMap(({ node, member }) => (member === null ? node : []))
    const roots = [...layout.nodes].filter(([, own]) => edges(own).length > 0)
    this.#roots = roots.map(([name]) => name)
    this.#ends = new Set(roots.flatMap(([, own]) => edges(own)))
  }

  /** A node was written. */
  wrote({ node, doc }: IndexWrite, actor: ActorRows, written: Written): void {
    const { search } = this.#nodes.get(node)!
    const { became, isOtherwiseFound, k } = written
    const counts = became !== 'same' && this.#roots.length > 0
    if (!isOtherwiseFound && !counts && !actor.isNew) return
    const changed = this.#of(actor)
    if (counts) changed.isRootDue = true
    if (changed.docs !== null) keep(changed.docs, node, k, doc)
    if (!isOtherwiseFound) return
    if (search !== null) dueOf(changed, node).set(k, doc)
    if (this.#ends.has(node)) changed.isRootDue = true
  }

  /** Rows have got other keys. */
  moved(node: string, actor: ActorRows, keys: readonly (readonly [number, number])[]): void {
    const { search } = this.#nodes.get(node)!
    if (search === null || keys.length === 0) return
    const due = dueOf(this.#of(actor), node)
    const docs = new Map(this.#read(node, actor))
    // Each key that a row has left another has got.
    for (const [, to] of keys) due.set(to, docs.get(to) ?? null)
  }

  #of(actor: ActorRows): Changed {
    let changed = this.#changed.get(actor)
    if (changed === undefined) {
      const docs: Docs | null = actor.isNew && this.#roots.length > 0 ? new Map() : null
      changed = { due: new Map(), isRootDue: false, docs }
      this.#changed.set(actor, changed)
    }
    return changed
  }

  /** Forgets what a transaction did that is not to be. */
  forget(): void {
    this.#changed.clear()
  }

  /** Writes what is due; all nodes of the transaction are in. */
  flush(): void {
    for (const [actor, changed] of this.#changed) {
      if (changed.isRootDue) this.#addRoots(actor, changed)
      for (const [node, docs] of changed.due) this.#write(node, docs, { actor, changed })
    }
    this.#changed.clear()
  }

  /** The actor's own node is due, whatever became of it. */
  #addRoots(actor: ActorRows, changed: Changed): void {
    for (const node of this.#roots) {
      const due = dueOf(changed, node)
      if (due.size > 0) continue
      for (const [k, doc] of this.#read(node, actor)) due.set(k, doc)
    }
  }

  #write(
    node: string,
    docs: ReadonlyMap<number, Doc | null>,
    of: { readonly actor: ActorRows; readonly changed: Changed },
  ): void {
    const { search, insert, remove } = this.#nodes.get(node)!
    const { columns } = search!
    const nodes = this.#edgeNodes(of.actor, of.changed)
    for (const [k, doc] of docs) {
      if (!of.actor.isNew) remove!.run(k)
      if (doc === null) continue
      const cells = searchDocument(doc, columns, nodes)
      if (cells.size === 0) continue
      const texts = Array.from({ length: columns.count }, (_, i) => columnText(cells.get(i)))
      // `get` makes no result object, which `run` does for every row.
      insert!.get(k, ...texts)
    }
  }

  #edgeNodes(actor: ActorRows, { docs }: Changed): EdgeNodes {
    const { searchNodesMax } = SEARCH_LIMITS
    let known: number | null = null
    return ({ node }) => {
      known ??= docs === null ? this.#count.upTo(searchNodesMax + 1, actor.first) : sizeOf(docs)
      if (known > searchNodesMax) return []
      if (docs !== null) return docs.get(node)?.values() ?? []
      return this.#read(node, actor).map(([, doc]) => doc)
    }
  }

  #read(node: string, { first }: ActorRows): [k: number, doc: Doc][] {
    const { read, layout } = this.#nodes.get(node)!
    const rows = read.all(first, first + NODES_PER_ACTOR - 1) as unknown as {
      readonly k: number
      readonly doc: string
    }[]
    const members = [...layout.slots]
    return rows.map(({ k, doc }) => {
      const slots = parseStored(doc) as unknown[]
      return [k, Object.fromEntries(members.map(([name, slot]) => [name, slots[slot]]))]
    })
  }

  /** Takes all away. */
  reset(db: DatabaseSync): void {
    for (const { search } of this.#nodes.values()) {
      if (search === null) continue
      const { table } = search
      db.exec(`INSERT INTO ${table}(${table}) VALUES ('delete-all')`)
    }
  }
}

type Docs = Map<string, Map<number, Doc>>

function keep(docs: Docs, node: string, k: number, doc: Doc | null): void {
  const own = docs.get(node) ?? new Map<number, Doc>()
  docs.set(node, own)
  if (doc === null) own.delete(k)
  else own.set(k, doc)
}

function sizeOf(docs: Docs): number {
  let size = 0
  for (const own of docs.values()) size += own.size
  return size
}

function dueOf({ due }: Changed, node: string): Map<number, Doc | null> {
  const known = due.get(node) ?? new Map<number, Doc | null>()
  due.set(node, known)
  return known
}

function searchedOf(db: DatabaseSync, layout: NodeLayout): Searched {
  const { search, table } = layout
  const read = db.prepare(`SELECT k, doc FROM ${table} WHERE k BETWEEN ? AND ? AND doc IS NOT NULL`)
  if (search === null) return { layout, search, insert: null, remove: null, read }
  const names = Array.from({ length: search.columns.count }, (_, i) => columnOf(i))
  const values = ['rowid', ...names]
  const insert = db.prepare(
    `INSERT INTO ${search.table} (${values.join(', ')}) VALUES (${values.map(() => '?').join(', ')})`,
  )
  const remove = db.prepare(`DELETE FROM ${search.table} WHERE rowid = ?`)
  return { layout, search, insert, remove, read }
}
