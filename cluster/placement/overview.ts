// What a view of the cluster says to people: its members, who owns which shard, and what moves.

import type { ClusterView } from '../membership/view.ts'
import { movesDue } from './moves.ts'
import type { Overview } from './ownership.ts'

/** All of it is empty before the first view. `isUnderWay`: whether the shard's move has begun. */
export function overviewOf(
  view: ClusterView | null,
  isUnderWay: (shard: number) => boolean,
): Overview {
  if (!view) return { members: [], shards: [], moves: [] }
  const names = new Map([...view.members.values()].map((row) => [row.incarnation, row.member]))
  const shards = [...view.shards.values()].map(({ shard, epoch, incarnation }) => {
    return { shard, epoch, owner: view.isDead(incarnation) ? null : names.get(incarnation)! }
  })
  const moves = movesDue(view).map(({ shard, from, to }) => {
    const state = isUnderWay(shard) ? ('moving' as const) : ('due' as const)
    return { shard, from: names.get(from)!, to: names.get(to)!, state }
  })
  return { members: [...view.members.values()], shards, moves }
}
