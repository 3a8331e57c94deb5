// Which shards should move now: the rebalancing, as a pure function of what one member
// sees. Source: PROTOCOL 3.4.

import { LIMITS } from '../../config/limits.ts'
import type { MemberRow, ShardRow } from '../../storage/control.ts'
import { places, ranked } from '../ring.ts'
import type { Place } from '../ring.ts'

/** What rebalancing looks at: `ClusterView` of membership has it. */
export interface Placing {
  readonly shards: ReadonlyMap<number, ShardRow>
  live(): readonly MemberRow[]
  isDead(incarnation: string): boolean
}

export interface Move {
  readonly shard: number
  readonly epoch: number
  /** Incarnation of the present owner, and of the next. */
  readonly from: string
  readonly to: string
}

/** How many shards may move at once. */
export function movesAtOnce(shards: number): number {
  return Math.max(
    1,
    Math.min(LIMITS.placement.movesMax, Math.floor(shards * LIMITS.placement.movesShare)),
  )
}

const RECKONED = new WeakMap<Placing, ReadonlyMap<number, Place>>()

/**
 * Where every shard belongs among the members that are up. Reckoned once a view, which never
 * changes: a look asks for each shard without an owner. Empty when nobody is up.
 */
export function placesOf(view: Placing): ReadonlyMap<number, Place> {
  const known = RECKONED.get(view)
  if (known) return known
  const names = view.live().map((row) => row.member)
  const found = places([...view.shards.keys()], names)
  RECKONED.set(view, found)
  return found
}

/** The target of every shard among the members that are up. */
export function targetsOf(view: Placing): Map<number, MemberRow> {
  const byName = new Map(view.live().map((row) => [row.member, row]))
  return new Map([...placesOf(view)].map(([shard, { target }]) => [shard, byName.get(target)!]))
}

/**
 * Whether this member rebalances: the live one that ranks first. Members of all versions rank by
 * the same key: with another one there would be two rebalancers.
 */
export function isRebalancer(view: Placing, member: string): boolean {
  const names = view.live().map((row) => row.member)
  return ranked('pacer', names)[0] === member
}

/**
 * Moves that are due, in the order of their shards: of shards whose owner is up but not the target.
 * None while a shard has no living owner: claims come first.
 */
export function movesDue(view: Placing): readonly Move[] {
  const up = new Set(view.live().map((row) => row.incarnation))
  const next = targetsOf(view)
  const moves: Move[] = []
  for (const row of view.shards.values()) {
    if (view.isDead(row.incarnation)) return []
    const to = next.get(row.shard)
    // One that leaves signs its shards over by itself.
    if (!to || to.incarnation === row.incarnation || !up.has(row.incarnation)) continue
    const { shard, epoch, incarnation } = row
    moves.push({ shard, epoch, from: incarnation, to: to.incarnation })
  }
  return moves.toSorted((a, b) => a.shard - b.shard)
}

/**
 * Milliseconds after which this member claims a shard whose owner is dead: at once as its target,
 * else the later the lower it ranks. Null: it isn't up.
 */
export function claimAfterMs(view: Placing, shard: number, member: string): number | null {
  const place = placesOf(view).get(shard)
  if (!place?.ranked.includes(member)) return null
  const { target, ranked: names } = place
  if (member === target) return 0
  // The target comes first wherever it ranks: it may have got what nobody above had room for.
  const ahead = names.slice(0, names.indexOf(member)).filter((name) => name !== target)
  return (ahead.length + 1) * LIMITS.placement.nextInRankMs
}
