// Statements that find the nodes of one step of a plan in the embedded graph index. reader.ts runs
// the statements. Shapes that matter:
//
// - An edge inside an actor is a range of the table's keys (layout.ts), so nested lists take
//   one statement per level, run for each parent, and no index.
// - A semi-join (`require`) is EXISTS over that range. Where an index serves the child's filter it
//   is turned around: the matching children say which parents qualify.
// - Every 64th actor a scan comes to, it asks whether time is over: asking at every row costs more
//   than the row.

import type { Condition, CursorPlace, Link, Step } from '../../protocol/graph/plan.ts'
import { keyBytes, NODES_PER_ACTOR, type NodeLayout } from './layout.ts'
import { needsContent } from './filter-needs.ts'
import { behindSql, orderSql, orderTerms } from './order.ts'
import { foundSql, hitsSql } from './match.ts'
import {
  conditionSql,
  conjunction,
  exists,
  param,
  sql,
  tick,
  type Relation,
  type Sql,
} from './sql.ts'
import {
  conjuncts,
  findsFew,
  type FilterPart,
  type Masked,
  masking,
  type Ways,
  waysOf,
} from './way.ts'

const LAST_IN_ACTOR = NODES_PER_ACTOR - 1

/** Which hits of a phrase, and how they are found (match.ts). */
interface Rank {
  readonly rank: number
  readonly isWalked: boolean
}

export type Layouts = ReadonlyMap<string, NodeLayout>

/** Makes statements for steps; `aliases` keeps the names of tables apart in one statement. */
export class StepSelect {
  readonly #layouts: Layouts
  readonly #step: Step
  readonly relation: Relation
  #aliases = 0

  constructor(layouts: Layouts, step: Step) {
    this.#layouts = layouts
    this.#step = step
    this.relation = this.#relation(step)
  }

  #relation({ storage, plan, idField }: Step): Relation {
    const n = this.#aliases++
    const embedded = storage.kind === 'embedded'
    const layout = this.#layouts.get(embedded ? storage.node : plan.node)!
    return {
      layout,
      table: `t${n}`,
      element: embedded ? `e${n}` : null,
      slot: embedded ? layout.slots.get(storage.member)! : -1,
      idField,
    }
  }

  /**
   * The nodes: key, content, place in the holder's list, and their actor where the document doesn't
   * name it; sorted as the step says, or in any order. Takes one parameter more: the limit.
   */
  rows(sorted: boolean, masked: Masked | null = null): Sql {
    return masking(this.#rowsWhere([], sorted), masked)
  }

  /** Those behind a cursor's place, sorted: of the second statement behind all of the first. */
  rowsBehind(place: CursorPlace, masked: Masked | null): Sql[] {
    return behindSql(this.#step, place, this.relation).map((behind) =>
      masking(this.#rowsWhere([behind], true), masked),
    )
  }

  /** By which indexes nodes can be found; null: there is nothing to choose. */
  ways(): Ways | null {
    const { plan, phrase } = this.#step
    // Such a semi-join finds them, and so does a phrase.
    const isFound =
      phrase !== null || plan.steps.some((step) => step.require === 'some' && this.#isTurned(step))
    return isFound ? null : waysOf(this.#step, this.relation)
  }

  /** How many rows a part of the filter has, up to a bound, which is a parameter more. */
  probe({ condition }: FilterPart): Sql {
    return sql`SELECT count(*) FROM (SELECT 1 FROM ${from(this.relation)} WHERE ${condition} LIMIT ?)`
  }

  /**
   * How many hits have this rank, up to a bound, which is a parameter more; null: they say nothing
   * of the answer, for something else is asked of them.
   */
  hits(rank: number): Sql | null {
    if (!this.#isPlain()) return null
    return sql`SELECT count(*) FROM (SELECT 1 ${hitsSql(this.#step.phrase!, this.relation, rank)} LIMIT ?)`
  }

  /** Rows of a base set of which nothing is asked but its phrase. */
  #isPlain(): boolean {
    const { source, filter, plan, storage } = this.#step
    const isAll = filter === null && plan.steps.every((step) => step.require === 'any')
    return source.kind === 'set' && storage.kind === 'row' && isAll
  }

  /** Hits of a phrase that have this rank, sorted; of the first statement before the second. */
  ranked(rank: Rank, behind: CursorPlace | null): Sql[] {
    if (behind === null) return [this.#rowsWhere([], true, rank)]
    return behindSql(this.#step, behind, this.relation).map((one) =>
      this.#rowsWhere([one], true, rank),
    )
  }

  #rowsWhere(more: readonly Sql[], sorted: boolean, rank: Rank | null = null): Sql {
    const { table, element, layout } = this.relation
    const content = element === null ? `${table}.doc, 0` : `${element}.value, ${element}.key`
    // Bytes are dear to hand to JavaScript; most documents name their actor as well.
    const actor = element === null && layout.actorMembers.size > 0 ? '' : `, ${table}.actor`
    const order = sorted ? sql`ORDER BY ${this.#order()}` : ''
    return sql`SELECT ${table}.k, ${content}${actor} ${this.#fromWhere(more, rank)} ${order} LIMIT ?`
  }

  count(masked: Masked | null = null): Sql {
    const { phrase } = this.#step
    const { layout } = this.relation
    if (this.#isPlain()) {
      if (phrase !== null) return sql`SELECT count(*) ${hitsSql(phrase, this.relation, null)}`
      // Every row but the removed ones: the smallest index tells.
      return sql`SELECT (SELECT count(*) FROM ${layout.table}) -
        (SELECT count(*) FROM tombstone WHERE node = ${param(layout.type.name)})`
    }
    return masking(sql`SELECT count(*) ${this.#fromWhere()}`, masked)
  }

  #fromWhere(more: readonly Sql[] = [], of: Rank | null = null): Sql {
    const { phrase, source } = this.#step
    const isNear = source.kind === 'edge' && source.sameActor
    const terms = [
      tick(`${this.relation.table}.k`),
      ...more,
      ...this.#parentTerms(),
      ...(phrase === null ? [] : [foundSql(phrase, this.relation, { rank: null, isNear, ...of })]),
      ...this.#terms(this.#step, this.relation),
    ]
    return sql`FROM ${from(this.relation)} WHERE ${conjunction(terms)}`
  }

  /** What a node must be by itself: there, matching, let through by the semi-joins below it. */
  #terms(step: Step, on: Relation): Sql[] {
    const terms: Sql[] = []
    const { filter } = step
    if (filter !== null) {
      terms.push(...actorRange(filter, on))
      for (const part of conjuncts(filter)) terms.push(conditionSql(part, on))
    }
    // json_each makes one row of what is no array.
    if (on.element !== null) terms.push(sql`${on.element}.type = 'object'`)
    // A removed node's row has no content at all, so most filters leave it out by themselves.
    else if (!(filter !== null && needsContent(filter, on))) {
      terms.push(sql`${on.table}.doc IS NOT NULL`)
    }
    for (const semiJoin of step.plan.steps) {
      if (semiJoin.require !== 'any') terms.push(this.#semiJoin(semiJoin, step, on))
    }
    return terms
  }

  /** What the links of a value lead to, for a step that goes over such; NULL is nowhere. */
  links(through: Link): Sql {
    const on = this.#linkRelation(through)
    const { layout, table } = on
    const { from: ours, to } = through
    const value = param({ of: 'value' })
    const terms = [tick(`${table}.k`), ...this.#linkTerms(through, on)]
    if (ours === layout.type.idField) terms.push(sql`${table}.id = ${value}`)
    else if (layout.actorMembers.has(ours)) terms.push(...rangeOfActor(table, value))
    else {
      const column = layout.columnOf.get(ours)
      const own = column ? sql`${table}.${column.name}` : memberValue(ours, on)
      terms.push(sql`${own} = ${value}`)
    }
    return sql`SELECT DISTINCT ${memberValue(to, on)} FROM ${from(on)} WHERE ${conjunction(terms)}`
  }

  #linkRelation({ node, idField }: Link): Relation {
    const layout = this.#layouts.get(node)!
    return { layout, table: `t${this.#aliases++}`, element: null, slot: -1, idField }
  }

  #linkTerms({ filter }: Link, on: Relation): Sql[] {
    const terms = [sql`${on.table}.doc IS NOT NULL`]
    if (filter !== null) terms.push(conditionSql(filter, on))
    return terms
  }

  /** The parent of a nested step, by parameters that are filled in for each parent. */
  #parentTerms(): Sql[] {
    const { source } = this.#step
    if (source.kind === 'set') return []
    const { layout, table, element } = this.relation
    const { to } = source
    const terms: Sql[] = []
    if (source.sameActor) {
      const ofHolder = isHeld(this.#step)
      terms.push(
        ofHolder
          ? sql`${table}.k = ${param({ of: 'key' })}`
          : sql`${table}.k BETWEEN ${param({ of: 'first' })} AND ${param({ of: 'last' })}`,
      )
      if (toldByActor(this.#step, layout)) return terms
    }
    const value = param({ of: 'value' })
    if (element !== null)
      return [...terms, sql`json_extract(${element}.value, ${memberPath(to)}) = ${value}`]
    if (to === layout.type.idField) return [...terms, sql`${table}.id = ${value}`]
    if (layout.actorMembers.has(to)) return [...terms, ...rangeOfActor(table, value)]
    const column = layout.columnOf.get(to)
    if (column?.kind === 'instant') return [...terms, sql`${table}.${column.name} = ${value}`]
    return [...terms, sql`${memberValue(to, this.relation)} = ${value}`]
  }

  #order(): Sql {
    const { orderBy, source, position, phrase } = this.#step
    const { layout, table, element } = this.relation
    if (phrase === null && orderBy.length === 0 && source.kind === 'edge' && source.sameActor) {
      if (element !== null) return sql`${table}.k, ${element}.key`
      // Keys rise in the order in which the actor's nodes came.
      const place = position === null ? undefined : layout.columnOf.get(position)
      return place ? sql`${table}.${place.name} ASC NULLS LAST, ${table}.k` : sql`${table}.k`
    }
    return orderSql(orderTerms(this.#step, this.relation))
  }

  /** The semi-join `step` on nodes of `parentStep`. */
  #semiJoin(step: Step, parentStep: Step, parent: Relation): Sql {
    const own = this.#relation(step)
    const isAtHand = parent.element === null && isHeld(step)
    const child = isAtHand ? { ...own, table: parent.table } : own
    const { source, phrase } = step
    const terms = this.#terms(step, child)
    if (phrase !== null) terms.unshift(foundSql(phrase, child, { rank: null, isNear: false }))
    const through = source.kind === 'edge' ? source.through : undefined
    if (through !== undefined) return this.#overLink(step, through, { parent, child, terms })
    const link = linkSql(step, parent, child)
    const nodes = isAtHand ? elements(child) : from(child)
    if (step.require === 'none') {
      return sql`NOT EXISTS (SELECT 1 FROM ${nodes} WHERE ${conjunction([...terms, ...link])})`
    }
    if (parent.element === null && this.#isTurned(step, child)) {
      const again = this.#relation(parentStep)
      const back = linkSql(step, again, child, 'parent')
      return sql`${parent.table}.k IN (SELECT ${again.table}.k FROM ${from(child)} CROSS JOIN
        ${from(again)} WHERE ${conjunction([tick(`${child.table}.k`), ...terms, ...back])})`
    }
    return exists(nodes, conjunction([...terms, ...link]))
  }

  /** True: the few children that match say which parents do. */
  #isTurned(step: Step, child = this.#relation(step)): boolean {
    const { source, filter, phrase } = step
    if (source.kind !== 'edge' || !source.sameActor) return false
    if (phrase !== null && child.element === null) return true
    return filter !== null && findsFew(filter, child)
  }

  #overLink(
    { source, require }: Step,
    through: Link,
    { parent, child, terms }: { parent: Relation; child: Relation; terms: readonly Sql[] },
  ): Sql {
    const { from: ours, to: theirs } = source as Extract<Step['source'], { kind: 'edge' }>
    const link = this.#linkRelation(through)
    const some = exists(
      `${from(link)}, ${from(child)}`,
      conjunction([
        ...acrossSql([parent, ours], [link, through.from]),
        ...this.#linkTerms(through, link),
        ...acrossSql([link, through.to], [child, theirs]),
        ...terms,
      ]),
    )
    return require === 'none' ? sql`NOT ${some}` : some
  }
}

function from(on: Relation): string {
  const rows = `${on.layout.table} AS ${on.table}`
  return on.element === null ? rows : `${rows}, ${elements(on)}`
}

const elements = ({ table, element, slot }: Relation): string =>
  `json_each(${table}.doc, '$[${slot}]') AS ${element}`

const memberPath = (member: string): Sql => param(`$.${JSON.stringify(member)}`)

/** A member that an edge goes by (ids, mostly), from its column or the document. */
function memberValue(member: string, { layout, table, element }: Relation): Sql {
  if (element !== null) return sql`json_extract(${element}.value, ${memberPath(member)})`
  const column = layout.columnOf.get(member)
  // The column of an instant holds milliseconds, and elements have none.
  if (column !== undefined && column.kind !== 'instant') return sql`${table}.${column.name}`
  return sql`json_extract(${table}.doc, '$[${String(layout.slots.get(member)!)}]')`
}

/** True: its nodes are elements of their parents' own documents. */
export function isHeld({ source, storage }: Step): boolean {
  if (source.kind !== 'edge' || storage.kind !== 'embedded') return false
  return source.sameActor && storage.node === source.parent
}

/** True: the edge says no more than "of the same actor", which the key range says already. */
export function toldByActor(step: Step, layout: NodeLayout): boolean {
  const { source, storage } = step
  return source.kind === 'edge' && storage.kind === 'row' && layout.actorMembers.has(source.to)
}

/**
 * Child and parent belong together: for semi-joins, where both are tables. `find`: the side looked
 * for.
 */
function linkSql(
  step: Step,
  parent: Relation,
  child: Relation,
  find: 'child' | 'parent' = 'child',
): Sql[] {
  const { source } = step
  if (source.kind !== 'edge') return []
  const { from: ours, to: theirs } = source
  const terms: Sql[] = []
  if (source.sameActor) {
    const ofHolder = isHeld(step) && parent.element === null
    const [found, given] = find === 'child' ? [child, parent] : [parent, child]
    const last = `${given.table}.k | ${LAST_IN_ACTOR}`
    terms.push(
      ofHolder
        ? sql`${child.table}.k = ${parent.table}.k`
        : sql`${found.table}.k BETWEEN (${last}) - ${String(LAST_IN_ACTOR)} AND (${last})`,
    )
    const told = parent.element === null && parent.layout.actorMembers.has(ours)
    if (told && toldByActor(step, child.layout)) return terms
  } else return acrossSql([parent, ours], [child, theirs])
  terms.push(sql`${memberValue(theirs, child)} = ${memberValue(ours, parent)}`)
  return terms
}

/** Rows of two tables belong together by a member of each, whatever their actors. */
function acrossSql(
  [given, ours]: readonly [Relation, string],
  [found, theirs]: readonly [Relation, string],
): Sql[] {
  const value = memberValue(ours, given)
  if (found.element === null) {
    const { type, uuidIds, actorMembers } = found.layout
    if (theirs === type.idField) {
      return [sql`${found.table}.id = ${uuidIds ? storedUuid(value) : value}`]
    }
    if (actorMembers.has(theirs)) return rangeOfActor(found.table, storedUuid(value))
  }
  return [sql`${memberValue(theirs, found)} = ${value}`]
}

/** The stored form of a UUID given as text. */
const storedUuid = (text: Sql): Sql => sql`coalesce(unhex(replace(${text}, '-', '')), ${text})`

/** A filter on the actor's UUID confines rows to that actor's range. */
function actorRange(filter: Condition, { layout, table, element }: Relation): Sql[] {
  if (element !== null) return []
  for (const part of conjuncts(filter)) {
    if (part.kind !== 'compare' || part.operator !== '==') continue
    const { left, right } = part
    const [field, value] = left.kind === 'field' ? [left, right] : [right, left]
    if (field.kind !== 'field' || value.kind !== 'value' || field.path.length !== 1) continue
    const member = field.path[0]!
    if (member === layout.type.idField || !layout.actorMembers.has(member)) continue
    const actor = keyBytes(String(value.value))
    if (actor !== null) return rangeOfActor(table, param(actor))
  }
  return []
}

function rangeOfActor(table: string, actor: Sql): Sql[] {
  const number = sql`(SELECT number FROM actor WHERE id = ${actor})`
  const size = String(NODES_PER_ACTOR)
  return [
    sql`${table}.k >= ${number} * ${size}`,
    sql`${table}.k <= ${number} * ${size} + ${String(LAST_IN_ACTOR)}`,
  ]
}
