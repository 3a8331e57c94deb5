// Finding the nodes of one step in the embedded graph index: the statements of select.ts are run
// for each parent, and their rows are read as nodes. Source: ARCHITECTURE 5, CONTRACT 1.4.

import { LIMITS } from '../../config/limits.ts'
import { rankAt } from '../../protocol/graph/cursor.ts'
import { compareDocs, compareText, placeOf } from '../../protocol/graph/evaluate.ts'
import type { Found, GraphRow } from '../../protocol/graph/execute.ts'
import type { CursorPlace, Link, Step } from '../../protocol/graph/plan.ts'
import { ranksOf } from '../../protocol/graph/search/phrase-rank.ts'
import { formatUuid } from '../../protocol/ids.ts'
import { keyBytes, NODES_PER_ACTOR, storedId, type NodeLayout } from './layout.ts'
import { isHeld, StepSelect, toldByActor } from './select.ts'
import type { Param, Relation, Sql } from './sql.ts'
import type { Statements, Stored } from './statements.ts'
import { type Masked, maskedOf } from './way.ts'
import { parseStored } from './stored-json.ts'

type Cells = [k: number, content: string, place: number, actor?: Uint8Array | string]

/** A node out of the index. */
export class SqlRow implements GraphRow {
  readonly k: number
  /** Place in its holder's list, for embedded nodes. */
  readonly place: number
  readonly doc: Readonly<Record<string, unknown>>
  rank?: number
  readonly #actor: Uint8Array | string
  readonly #idField: string

  constructor(
    [k, , place, actor]: Cells,
    doc: Readonly<Record<string, unknown>>,
    members: { readonly id: string; readonly actor: string | null },
  ) {
    this.k = k
    this.place = place
    this.doc = doc
    this.#actor = actor ?? String(doc[members.actor!])
    this.#idField = members.id
  }

  get actorId(): string {
    return typeof this.#actor === 'string' ? this.#actor : formatUuid(this.#actor)
  }

  get id(): string {
    return String(this.doc[this.#idField])
  }
}

type Edge = Extract<Step['source'], { kind: 'edge' }>

/** What a parent gives to the statement of a nested step. */
interface Given {
  readonly first: number
  readonly last: number
  readonly key: number
  readonly value: Stored
}

export const NO_PARENT: Given = { first: 0, last: 0, key: 0, value: null }

/** Runs one step for any number of parents: its statements are made and prepared once. */
export class StepFind {
  readonly #step: Step
  readonly #select: StepSelect
  readonly #relation: Relation
  readonly #statements: Statements
  /** Members that tell a node's id and, for rows, its actor. */
  readonly #members: { readonly id: string; readonly actor: string | null }
  readonly #needed: readonly (readonly [member: string, slot: number])[]
  readonly #layouts: ReadonlyMap<string, NodeLayout>
  #links: Sql | null = null
  #rows: Sql | null = null
  #sortedRows: Sql | null = null
  /** Of a phrase, by rank: those behind the cursor's place, or all of one. */
  readonly #ranked = new Map<number, readonly Sql[]>()
  #count: Sql | null = null

  constructor(step: Step, layouts: ReadonlyMap<string, NodeLayout>, statements: Statements) {
    this.#step = step
    this.#layouts = layouts
    this.#select = new StepSelect(layouts, step)
    this.#relation = this.#select.relation
    this.#statements = statements
    const { layout, element, idField } = this.#relation
    const [actor = null] = element === null ? layout.actorMembers : []
    this.#members = { id: idField, actor }
    this.#needed = neededMembers(step, layout, this.#members)
  }

  /** Parameters of a parent, one for each value that the edge goes by; none: it leads nowhere. */
  givenBy(parent: GraphRow, numberOf: (actorId: string) => number | null): readonly Given[] {
    const { source } = this.#step
    if (source.kind === 'set') return [NO_PARENT]
    const value = parent.doc[source.from]
    if (value === undefined || value === null) return []
    if (source.through !== undefined) return this.#linked(source, source.through, value)
    const given = this.#given(parent, source, { value, numberOf })
    return given === null ? [] : [given]
  }

  #linked(source: Edge, through: Link, value: unknown): Given[] {
    const stored = storedLink(through.from, value, this.#layouts.get(through.node)!)
    if (stored === null) return []
    this.#links ??= this.#select.links(through)
    const { text, params } = this.#links
    const given = { ...NO_PARENT, value: stored }
    const ends = this.#statements.all(text, fill(params, given)) as [Stored][]
    return ends.flatMap(([end]) => {
      const own = end === null ? null : this.#storedEnd(source.to, end)
      return own === null ? [] : [{ ...NO_PARENT, value: own }]
    })
  }

  #storedEnd(to: string, value: unknown): Stored {
    const { layout, element } = this.#relation
    return element === null ? storedLink(to, value, layout) : plain(value)
  }

  #given(
    parent: GraphRow,
    source: Edge,
    { value, numberOf }: { value: unknown; numberOf: (actorId: string) => number | null },
  ): Given | null {
    const { layout } = this.#relation
    // Else the range of the actor's keys is all there is to say.
    const told = source.sameActor && toldByActor(this.#step, layout)
    if (told && value !== parent.actorId) return null
    const key = parent instanceof SqlRow ? parent.k : 0
    let first = key - (key % NODES_PER_ACTOR)
    if (source.sameActor && !(parent instanceof SqlRow)) {
      const number = numberOf(parent.actorId)
      if (number === null) return null
      first = number * NODES_PER_ACTOR
    }
    const stored = this.#storedEnd(source.to, value)
    return stored === null ? null : { first, last: first + NODES_PER_ACTOR - 1, key, value: stored }
  }

  run(given: Given): Found {
    const { returns, limit } = this.#step
    const counts = returns === 'count' || returns === 'both'
    const count = counts ? this.#runCount(given) : 0
    if (returns === 'count') return { rows: [], more: false, count }
    const rows = this.#runRows(given, limit + 1)
    const more = rows.length > limit
    if (more) rows.length = limit
    return { rows, more, count }
  }

  #runCount(given: Given): number {
    this.#count ??= this.#select.count(this.#masked(null))
    const { text, params } = this.#count
    const [row] = this.#statements.all(text, fill(params, given)) as [[number]]
    return row[0]
  }

  /**
   * At most `room` nodes in order. Nested lists are short: they are fetched as they lie and sorted
   * here, which saves SQLite a sorter for each parent; only a list that is cut is sorted there.
   */
  #runRows(given: Given, room: number): SqlRow[] {
    const { after, phrase } = this.#step
    if (phrase !== null) return this.#runRanks(given, room)
    if (after !== undefined) {
      const rows: SqlRow[] = []
      for (const behind of this.#select.rowsBehind(after, this.#masked())) {
        if (rows.length < room) rows.push(...this.#fetch(behind, given, room - rows.length))
      }
      return rows
    }
    if (this.#step.source.kind === 'edge') {
      this.#rows ??= this.#select.rows(false)
      const rows = this.#fetch(this.#rows, given, room)
      if (rows.length < room) return rows.length < 2 ? rows : rows.sort((a, b) => this.#order(a, b))
    }
    this.#sortedRows ??= this.#select.rows(true, this.#masked())
    return this.#fetch(this.#sortedRows, given, room)
  }

  /** Which indexes are not to be used; `order`: another than the step's, null: there is none. */
  #masked(order?: null): Masked | null {
    const ways = this.#select.ways()
    if (ways === null) return null
    const bound = LIMITS.sqlite.partRowsMax
    return maskedOf(order === null ? { ...ways, order } : ways, bound, (part) => {
      const { text, params } = this.#select.probe(part)
      const [row] = this.#statements.all(text, [...fill(params, NO_PARENT), bound]) as [[number]]
      return row[0]
    })
  }

  /**
   * Hits of a phrase: rank by rank, until there are enough. Few are found and sorted; where they
   * are many the nodes are looked at in their order until enough are hits.
   */
  #runRanks(given: Given, room: number): SqlRow[] {
    const { after, phrase } = this.#step
    const rows: SqlRow[] = []
    for (const rank of ranksOf(phrase!)) {
      if (after !== undefined && rank > rankAt(after)) continue
      for (const of of this.#ofRank(rank, after)) {
        if (rows.length === room) return rows
        for (const row of this.#fetch(of, given, room - rows.length)) {
          row.rank = rank
          rows.push(row)
        }
      }
    }
    return rows
  }

  #ofRank(rank: number, after: CursorPlace | undefined): readonly Sql[] {
    let known = this.#ranked.get(rank)
    if (known === undefined) {
      const isCut = after !== undefined && rank === rankAt(after)
      const isWalked = this.#hasManyHits(rank)
      known = this.#select.ranked({ rank, isWalked }, isCut ? after : null)
      this.#ranked.set(rank, known)
    }
    return known
  }

  #hasManyHits(rank: number): boolean {
    const hits = this.#select.hits(rank)
    if (hits === null) return false
    const bound = LIMITS.sqlite.partRowsMax
    const [row] = this.#statements.all(hits.text, [...fill(hits.params, NO_PARENT), bound]) as [
      [number],
    ]
    return row[0] === bound
  }

  #fetch(of: Sql, given: Given, room: number): SqlRow[] {
    const found = this.#statements.all(of.text, [...fill(of.params, given), room]) as Cells[]
    const isRow = this.#relation.element === null
    return found.map((cells) => {
      const doc = isRow
        ? this.#document(cells[1])
        : (parseStored(cells[1]) as Record<string, unknown>)
      return new SqlRow(cells, doc, this.#members)
    })
  }

  /** The members of a stored document that this step asks for. */
  #document(text: string): Record<string, unknown> {
    const slots = parseStored(text) as unknown[]
    const doc: Record<string, unknown> = {}
    for (const [member, slot] of this.#needed) {
      const value = slots[slot]
      if (value !== null && value !== undefined) doc[member] = value
    }
    return doc
  }

  #order(a: SqlRow, b: SqlRow): number {
    const { orderBy, position, source } = this.#step
    if (orderBy.length === 0 && source.kind === 'edge' && source.sameActor) {
      const places = this.#relation.element === null ? placeOf(a.doc, position) : 0
      const others = this.#relation.element === null ? placeOf(b.doc, position) : 0
      return places - others || a.k - b.k || a.place - b.place
    }
    return compareDocs(orderBy, a.doc, b.doc) || compareText(a.id, b.id) || compareActors(a, b)
  }
}

const compareActors = (a: SqlRow, b: SqlRow): number => compareText(a.actorId, b.actorId)

/** Members whose values the answer, the order or the next level needs. */
function neededMembers(
  step: Step,
  layout: NodeLayout,
  { id, actor }: { readonly id: string; readonly actor: string | null },
): (readonly [string, number])[] {
  const members = new Set(step.plan.fields.map((path) => path[0]!))
  members.add(id)
  if (actor !== null) members.add(actor)
  for (const { path } of step.orderBy) members.add(path[0]!)
  for (const below of step.plan.steps) {
    if (below.source.kind === 'edge') members.add(below.source.from)
    if (below.storage.kind === 'embedded' && isHeld(below)) members.add(below.storage.member)
  }
  if (step.position !== null) members.add(step.position)
  return Array.from(members, (member) => [member, layout.slots.get(member) ?? -1] as const)
}

/** The value an edge goes by, as the column it is compared with holds it; null: no match. */
function storedLink(to: string, value: unknown, layout: NodeLayout): Stored {
  const kind = layout.columnOf.get(to)?.kind
  if (typeof value !== 'string') return kind === 'text' || kind === 'instant' ? null : plain(value)
  if (to === layout.type.idField) return storedId(layout, value)
  if (layout.actorMembers.has(to)) return keyBytes(value)
  if (kind === 'number' || kind === 'boolean') return null
  return kind === 'instant' ? storedInstant(value) : value
}

function storedInstant(value: string): number | null {
  const ms = Date.parse(value)
  return Number.isNaN(ms) ? null : ms
}

function plain(value: unknown): Stored {
  if (typeof value === 'boolean') return Number(value)
  return typeof value === 'string' || typeof value === 'number' ? value : null
}

function fill(params: readonly Param[], given: Given): Stored[] {
  return params.map((value) =>
    value === null || typeof value !== 'object' || value instanceof Uint8Array
      ? value
      : given[value.of],
  )
}
