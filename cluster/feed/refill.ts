// Fills an empty index with one shard from its actors themselves, when the log no longer reaches
// down to offset 1: below the trim point the derived rows are the truth. It stands between the
// projector and the derived rows. Source: PROTOCOL 3.12, 3.13.5.

import { SYSTEM_SHARD, placeOfActor, shardOf } from '../../protocol/ids.ts'
import { LIMITS } from '../../config/limits.ts'
import type { DerivedReader } from '../../storage/journal.ts'
import type { GraphWriter, IndexWrite } from '../../storage/search.ts'
import { type ActorStates, type FoldedActor, ProjectionError } from './actor-states.ts'
import { type ParkedActor, reasonOf, writeOf } from './projection-batch.ts'

/** Actors whose names one read asks for. */
const ACTORS_PER_READ = 1_000

export interface RefillOptions {
  readonly derived: Pick<DerivedReader, 'actors'>
  readonly index: GraphWriter
  readonly shards: number
}

export interface Refill {
  readonly shard: number
  readonly states: ActorStates
  /** The derived rows hold the shard up to this offset; following the log goes on from here. */
  readonly flushed: number
  readonly park: (parked: ParkedActor) => void
  /** Makes the rows of parked actors durable. */
  readonly save: () => Promise<void>
  /** Lets others have the thread. */
  readonly pause: () => Promise<void>
}

/** Writes all nodes of the shard's actors, then the offset. Answers the number of writes. */
export async function refill(options: RefillOptions, of: Refill): Promise<number> {
  const { index, derived } = options
  let written = 0
  let writes: IndexWrite[] = []
  for (let after: string | null = null; ;) {
    const actorIds: readonly string[] = await derived.actors(after, ACTORS_PER_READ)
    if (actorIds.length === 0) break
    after = actorIds.at(-1)!
    for (const actorId of actorIds) {
      const own = await writesOf(actorId, options.shards, of)
      for (const write of own) writes.push(write)
      if (writes.length < LIMITS.projectorBatchEntries) continue
      await of.save()
      index.apply(writes, [])
      written += writes.length
      writes = []
      of.states.trim()
      await of.pause()
    }
  }
  await of.save()
  index.apply(writes, [{ shard: of.shard, offset: of.flushed }])
  of.states.trim()
  return written + writes.length
}

/** All living nodes of an actor, or none when it is of another shard. */
async function writesOf(actorId: string, shards: number, of: Refill): Promise<IndexWrite[]> {
  // Only the snapshot tells an actor of the system shard from the others: both have UUIDs.
  if (of.shard !== SYSTEM_SHARD && shardOf(placeOfActor(actorId), shards) !== of.shard) return []
  let actor: FoldedActor | null = null
  try {
    actor = await of.states.load(actorId)
    if (actor === null || actor.behaviour.nodeTypes.length === 0) return []
    if ((actor.behaviour.home === 'system') !== (of.shard === SYSTEM_SHARD)) return []
    const { behaviour, state } = actor
    if (state === null || behaviour.isDeleted(state)) return []
    const found = actor
    return behaviour.nodes(state).map((ref) => writeOf(found, ref))
  } catch (error) {
    if (actor === null && !(error instanceof ProjectionError)) throw error
    of.park({
      actorId,
      type: actor?.behaviour.type ?? '',
      shard: of.shard,
      offset: of.flushed,
      version: actor?.version ?? 0,
      nodes: [],
      reason: reasonOf(error),
    })
    return []
  }
}
