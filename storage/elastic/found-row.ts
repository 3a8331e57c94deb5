// Graph nodes as they come out of the search engine, and the order in which a step shows them.
// Source: CONTRACT 1.4 "orderBy".

import {
  compareDocs,
  compareRanks,
  compareText,
  placeOf,
  type Doc,
} from '../../protocol/graph/evaluate.ts'
import type { Found, GraphRow } from '../../protocol/graph/execute.ts'
import type { Step } from '../../protocol/graph/plan.ts'
import type { SearchHit } from './engine.ts'
import { docOf } from './document.ts'
import { OWN } from './layout.ts'

export interface FoundRow extends GraphRow {
  /** Place of its document among the actor's of that type. */
  readonly place: number
  /** Place in the document's list, of nodes that are elements of one. */
  readonly index: number
}

export function rowOf({ source }: SearchHit): FoundRow {
  const own = source[OWN] as { actor: string; id: string; place?: number }
  const { actor: actorId, id, place = 0 } = own
  return { actorId, id, doc: docOf(source), place, index: 0 }
}

/** Nodes that a node's document holds as elements of a list. */
export function elementsOf(holder: GraphRow, member: string, idField: string): FoundRow[] {
  const list = holder.doc[member]
  if (!Array.isArray(list)) return []
  const { place = 0 } = holder as Partial<FoundRow>
  return (list as readonly Doc[]).map((doc, index) => ({
    actorId: holder.actorId,
    id: String(doc[idField]),
    doc,
    place,
    index,
  }))
}

/**
 * Order of a step's nodes: its keys, then by id. Without keys nested lists inside an actor are in
 * its own order: by position where the node type names one, else as they came.
 */
export function compareRows(step: Step, a: FoundRow, b: FoundRow): number {
  const { orderBy, source, storage, position, phrase } = step
  if (phrase !== null) return compareRanks(a, b) || byId(a, b)
  if (orderBy.length > 0) return compareDocs(orderBy, a.doc, b.doc) || byId(a, b)
  if (source.kind === 'set' || !source.sameActor) return byId(a, b)
  if (storage.kind === 'embedded') return a.place - b.place || a.index - b.index
  return placeOf(a.doc, position) - placeOf(b.doc, position) || a.place - b.place || byId(a, b)
}

const byId = (a: GraphRow, b: GraphRow): number =>
  compareText(a.id, b.id) || compareText(a.actorId, b.actorId)

/** Takes a step's nodes in any order and keeps as many as it shows, so that few are held. */
export class Kept {
  count = 0
  readonly #step: Step
  #rows: FoundRow[] = []
  /** A document that changed its place between two pages comes twice. */
  readonly #seen = new Set<string>()

  constructor(step: Step) {
    this.#step = step
  }

  get size(): number {
    return Math.min(this.#rows.length, this.#step.limit)
  }

  add(row: FoundRow): void {
    const key = `${row.actorId} ${row.index} ${row.id}`
    if (this.#seen.has(key)) return
    this.#seen.add(key)
    this.count++
    if (this.#step.returns === 'count') return
    this.#rows.push(row)
    const room = this.#step.limit + 1
    if (this.#rows.length >= 4 * room) this.#rows = this.#sorted().slice(0, room)
  }

  /** True: nodes that come in the step's order can change the answer no more. */
  get isFull(): boolean {
    const { returns, limit } = this.#step
    return (returns === 'nodes' || returns === 'nothing') && this.count > limit
  }

  found(): Found {
    const { limit } = this.#step
    const rows = this.#sorted()
    return { rows: rows.slice(0, limit), more: rows.length > limit, count: this.count }
  }

  #sorted(): FoundRow[] {
    return this.#rows.toSorted((a, b) => compareRows(this.#step, a, b))
  }
}
