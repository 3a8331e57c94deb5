// Fills an index with shards of which it has nothing from their actors themselves, when the log no
// longer reaches down to offset 1: below the trim point the derived rows are the truth. It stands
// between the projector and the derived rows. Source: PROTOCOL 3.12, 3.13.5.

import { SYSTEM_SHARD, placeOfActor, shardOf } from '../../protocol/ids.ts'
import { LIMITS } from '../../config/limits.ts'
import type { DerivedReader } from '../../storage/journal.ts'
import { type GraphWriter, type IndexWrite, RefusedWrites } from '../../storage/search.ts'
import { type ActorStates, type FoldedActor, ProjectionError } from './actor-states.ts'
import { type ParkedActor, positionsOf, reasonOf, writesOf } from './projection-batch.ts'

/** Actors whose names one read asks for. */
const ACTORS_PER_READ = 1_000

export interface RefillOptions {
  readonly derived: Pick<DerivedReader, 'actors'>
  readonly index: GraphWriter
  readonly shards: number
}

export interface Refill {
  /**
   * The shards to fill. The derived rows hold each up to its offset at least; following the log
   * goes on from there.
   */
  readonly offsets: ReadonlyMap<number, number>
  readonly states: ActorStates
  readonly park: (parked: ParkedActor) => void
  /** Makes the rows of parked actors durable. */
  readonly save: () => Promise<void>
  /** Lets others have the thread. */
  readonly pause: () => Promise<void>
}

/** Writes all nodes of the shards' actors, then the offsets. Answers the number of writes. */
export async function refill(options: RefillOptions, of: Refill): Promise<number> {
  const { derived } = options
  let written = 0
  let found: Found[] = []
  let pending = 0
  for (let after: string | null = null; ;) {
    const actorIds: readonly string[] = await derived.actors(after, ACTORS_PER_READ)
    if (actorIds.length === 0) break
    after = actorIds.at(-1)!
    for (let at = 0; at < actorIds.length; at += LIMITS.refillReadsTogether) {
      const some = actorIds.slice(at, at + LIMITS.refillReadsTogether)
      for (const own of await Promise.all(some.map((id) => nodesOf(id, options, of)))) {
        if (own === null) continue
        found.push(own)
        pending += own.writes.length
      }
      if (pending < LIMITS.projectorBatchEntries) continue
      written += await write(found, options, of)
      found = []
      pending = 0
      await of.pause()
    }
    await of.pause()
  }
  written += await write(found, options, of)
  await options.index.apply([], positionsOf(of.offsets))
  return written
}

/** All living nodes of an actor. */
interface Found {
  readonly parked: Omit<ParkedActor, 'reason'>
  readonly writes: readonly IndexWrite[]
}

/** Writes what was found; actors that the index refuses are parked. */
async function write(found: readonly Found[], { index }: RefillOptions, of: Refill) {
  const writes = found.flatMap((own) => own.writes)
  await of.save()
  try {
    await index.apply(writes, [])
  } catch (error) {
    if (!(error instanceof RefusedWrites)) throw error
    for (const { parked } of found) {
      const reason = error.reasons.get(parked.actorId)
      if (reason !== undefined) of.park({ ...parked, reason })
    }
    await of.save()
  }
  of.states.trim()
  return writes.length
}

/** Null: the actor is of another shard, or has nothing to show. */
async function nodesOf(
  actorId: string,
  { shards, index }: RefillOptions,
  of: Refill,
): Promise<Found | null> {
  const place = shardOf(placeOfActor(actorId), shards)
  // Only the snapshot tells an actor of the system shard from the others: both have UUIDs.
  if (!of.offsets.has(place) && !of.offsets.has(SYSTEM_SHARD)) return null
  let actor: FoldedActor | null = null
  let shard = place
  try {
    actor = await of.states.load(actorId)
    if (actor === null || actor.behaviour.nodeTypes.length === 0) return null
    if (actor.behaviour.home === 'system') shard = SYSTEM_SHARD
    if (!of.offsets.has(shard)) return null
    const { behaviour, state } = actor
    if (state === null || behaviour.isDeleted(state)) return null
    const writes = writesOf(actor, behaviour.nodes(state), index)
    return { parked: parkedOf(actorId, { actor, shard }, of), writes }
  } catch (error) {
    if (actor === null && !(error instanceof ProjectionError)) throw error
    if (!of.offsets.has(shard)) return null
    of.park({ ...parkedOf(actorId, { actor, shard }, of), reason: reasonOf(error) })
    return null
  }
}

function parkedOf(
  actorId: string,
  { actor, shard }: { readonly actor: FoldedActor | null; readonly shard: number },
  { offsets }: Refill,
): Omit<ParkedActor, 'reason'> {
  return {
    actorId,
    type: actor?.behaviour.type ?? '',
    shard,
    offset: offsets.get(shard) ?? 0,
    version: actor?.version ?? 0,
    nodes: [],
  }
}
