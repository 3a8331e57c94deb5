// One node type's table in the embedded graph index, as the writer sees it: finds a node's row,
// adds it, or changes just the columns that differ, since each index that is touched costs as much
// as the row.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { assert, AssertionError } from '../../protocol/errors.ts'
import type { IndexWrite } from '../search.ts'
import { NODES_PER_ACTOR, storedId, storedValue, type NodeLayout } from './layout.ts'
import { digestOf } from './search-digest.ts'
import { storedJson } from './stored-json.ts'

/** An actor within one transaction. */
export interface ActorRows {
  /** Its UUID as stored. */
  readonly key: Uint8Array
  /** Key of its first row in any table. */
  readonly first: number
  /** True: the transaction made it, so no table has rows of it but those in `next`. */
  readonly isNew: boolean
  /** Rows it has in each table, as far as they were looked at. */
  readonly next: Map<NodeTable, NextRow>
}

interface NextRow {
  /** Number within the actor that its next new row gets. */
  number: number
  /**
   * Rows that this transaction made of a new actor: id to key, for a node that is written twice.
   */
  readonly made: Set<string> | null
}

/** What became of a write that was not stale. */
export interface Written {
  /** Key of the node's row. */
  readonly k: number
  /** Key of the removal that the node had before it came again; null: it was there, or is new. */
  readonly removedK: number | null
  /** It came, went, or stayed. */
  readonly became: 'there' | 'gone' | 'same'
  /** True: what phrases find by it is another than before. */
  readonly isOtherwiseFound: boolean
}

/** Combinations of changed columns that have a statement of their own; past it all are set. */
const UPDATES_MAX = 64

type Stored = string | number | Uint8Array | null

export class NodeTable {
  readonly #db: DatabaseSync
  readonly #layout: NodeLayout
  readonly #members: readonly string[]
  readonly #actorMembers: readonly string[]
  readonly #find: StatementSync
  readonly #insert: StatementSync
  readonly #last: StatementSync
  readonly #forget: StatementSync
  readonly #move: StatementSync
  /** UPDATE statements by the columns they set, one bit each. */
  readonly #updates = new Map<string, StatementSync>()
  /** The values of one row, used again and again. */
  readonly #values: Stored[]
  /** How many there are between the document and the columns. */
  readonly #first: number

  constructor(db: DatabaseSync, layout: NodeLayout) {
    this.#db = db
    this.#layout = layout
    this.#members = [...layout.slots.keys()]
    this.#actorMembers = [...layout.actorMembers]
    const { table, columns } = layout
    const own = layout.searched.length === 0 ? [] : ['words']
    const names = [...own, ...columns.map((column) => column.name)]
    this.#first = own.length
    const inside = 'k BETWEEN ? AND ?'
    this.#find = db.prepare(
      `SELECT ${['k', 'version', 'doc IS NULL', ...names].join(', ')} FROM ${table} ` +
        `WHERE id = ? AND ${inside}`,
    )
    this.#find.setReturnArrays(true)
    const all = ['k', 'actor', 'id', 'version', 'doc', ...names]
    this.#insert = db.prepare(
      `INSERT INTO ${table} (${all.join(', ')}) VALUES (${all.map(() => '?').join(', ')})`,
    )
    this.#last = db.prepare(`SELECT max(k) AS k FROM ${table} WHERE ${inside}`)
    this.#forget = db.prepare(`DELETE FROM ${table} WHERE k = ? AND doc IS NULL`)
    this.#move = db.prepare(`UPDATE ${table} SET k = ? WHERE k = ?`)
    this.#values = Array.from({ length: all.length }, () => null)
  }

  /** Writes a node unless something newer is there. */
  write(write: IndexWrite, actor: ActorRows): Written | 'stale' {
    this.#check(write)
    const next = actor.next.get(this) ?? this.#begin(actor)
    const { searched } = this.#layout
    const isRoot = this.#layout.type.root && this.#layout.uuidIds
    const id = isRoot ? actor.key : storedId(this.#layout, write.id)
    // A new actor's nodes are not there yet: nothing has to be looked up.
    const words = this.#first === 0 || write.doc === null ? null : digestOf(write.doc, searched)
    if (next.made !== null && !next.made.has(write.id)) {
      next.made.add(write.id)
      return this.#add(write, actor, { id, words })
    }
    const last = actor.first + NODES_PER_ACTOR - 1
    const row = this.#find.get(id, actor.first, last) as unknown as Stored[] | undefined
    if (row === undefined) return this.#add(write, actor, { id, words })
    if ((row[1] as number) > write.version) return 'stale'
    const k = row[0] as number
    if (row[2] === 1 && write.doc !== null) {
      // Keys rise as nodes come: what comes again comes behind the others.
      this.forget(k)
      return { ...this.#add(write, actor, { id, words }), removedK: k }
    }
    this.#change(write, row, words)
    const became = write.doc !== null || row[2] === 1 ? 'same' : 'gone'
    const isOtherwiseFound = this.#first === 1 && (became === 'gone' || row[3] !== words)
    return { k, removedK: null, became, isOtherwiseFound }
  }

  /**
   * Puts rows, given by their keys, into this order, among the keys that they have. Answers which
   * have got another.
   */
  arrange(keys: readonly number[]): readonly (readonly [from: number, to: number])[] {
    const targets = keys.toSorted((a, b) => a - b)
    const moved = keys.map((k, i) => [k, targets[i]!] as const).filter(([k, to]) => k !== to)
    // Aside first: two rows never have one key.
    for (const [k] of moved) this.#move.run(-k, k)
    for (const [k, to] of moved) this.#move.run(to, -k)
    return moved
  }

  /** The layout trusts what a root node promises; a node type that breaks it must not go unseen. */
  #check({ actorId, id, doc, node }: IndexWrite): void {
    if (this.#layout.type.root && id !== actorId) {
      throw new AssertionError(`a ${node} is a root node, its id must be its actor's`)
    }
    if (doc === null) return
    for (const member of this.#actorMembers) {
      if (doc[member] === actorId) continue
      throw new AssertionError(`${member} of a ${node} must be its actor's UUID`)
    }
  }

  #begin(actor: ActorRows): NextRow {
    const next: NextRow = { number: 0, made: actor.isNew ? new Set() : null }
    if (!actor.isNew) {
      const row = this.#last.get(actor.first, actor.first + NODES_PER_ACTOR - 1)
      const k = row?.['k']
      if (typeof k === 'number') next.number = k - actor.first + 1
    }
    actor.next.set(this, next)
    return next
  }

  #add(
    write: IndexWrite,
    actor: ActorRows,
    { id, words }: { readonly id: Uint8Array | string; readonly words: number | null },
  ): Written {
    const next = actor.next.get(this)!
    assert(next.number < NODES_PER_ACTOR, 'an actor has had too many nodes of one type')
    const k = actor.first + next.number++
    const values = this.#values
    values[0] = k
    values[1] = actor.key
    values[2] = id
    values[3] = write.version
    values[4] = this.#document(write.doc)
    const { columns } = this.#layout
    const at = 5 + this.#first
    if (this.#first === 1) values[5] = words
    for (let i = 0; i < columns.length; i++) {
      const column = columns[i]!
      values[at + i] = write.doc === null ? null : storedValue(column, write.doc[column.member])
    }
    // `get` makes no result object, which `run` does for every row.
    this.#insert.get(...values)
    const isThere = write.doc !== null
    return {
      k,
      removedK: null,
      became: isThere ? 'there' : 'same',
      isOtherwiseFound: isThere && this.#first === 1,
    }
  }

  /** Sets version and document, and of the columns only those whose value differs. */
  #change(write: IndexWrite, row: readonly Stored[], words: number | null): void {
    const { columns } = this.#layout
    const first = this.#first
    const values: Stored[] = [write.version, this.#document(write.doc)]
    if (first === 1) values.push(words)
    const all = this.#updates.size >= UPDATES_MAX
    let changed = ''
    for (let i = 0; i < columns.length; i++) {
      const column = columns[i]!
      const value = write.doc === null ? null : storedValue(column, write.doc[column.member])
      const differs = all || value !== row[3 + first + i]
      changed += differs ? '1' : '0'
      if (differs) values.push(value)
    }
    values.push(row[0]!)
    this.#update(changed).get(...values)
  }

  #update(changed: string): StatementSync {
    const known = this.#updates.get(changed)
    if (known !== undefined) return known
    const { table, columns } = this.#layout
    const names = columns.filter((_, i) => changed[i] === '1').map((column) => column.name)
    const own = this.#first === 1 ? ['words'] : []
    const sets = ['version', 'doc', ...own, ...names].map((name) => `${name} = ?`)
    const statement = this.#db.prepare(`UPDATE ${table} SET ${sets.join(', ')} WHERE k = ?`)
    this.#updates.set(changed, statement)
    return statement
  }

  /** The document as it is stored: a JSON array with a slot for each member of the layout. */
  #document(doc: IndexWrite['doc']): string | null {
    if (doc === null) return null
    return storedJson(this.#members.map((member) => doc[member]))
  }

  /** Deletes a removed node's row for good. */
  forget(k: number): void {
    this.#forget.run(k)
  }
}

/**
 * How many nodes an actor has, as far as anybody asks: one that grows is counted with each write,
 * so rows past the bound are not looked at.
 */
export class NodeCount {
  readonly #statements: readonly StatementSync[]

  constructor(db: DatabaseSync, layouts: Iterable<NodeLayout>) {
    this.#statements = Array.from(layouts, ({ table }) =>
      db.prepare(
        `SELECT count(*) AS n FROM (SELECT 1 FROM ${table} ` +
          'WHERE k BETWEEN ? AND ? AND doc IS NOT NULL LIMIT ?)',
      ),
    )
  }

  /** Nodes of the actor whose rows begin at this key, of all types; `most` where there are more. */
  upTo(most: number, first: number): number {
    let sum = 0
    for (const statement of this.#statements) {
      if (sum === most) break
      sum += Number(statement.get(first, first + NODES_PER_ACTOR - 1, most - sum)!['n'])
    }
    return sum
  }
}
