// Fills an index with shards of which it has nothing from their actors themselves, when the log no
// longer reaches down to offset 1: below the trim point the derived rows are the truth. It goes a
// step at a time and keeps its place, so that no failure, restart or change of owner begins it
// again. Source: PROTOCOL 3.12, 3.13.5.

import { SYSTEM_SHARD, placeOfActor, shardOf } from '../../protocol/ids.ts'
import { LIMITS } from '../../config/limits.ts'
import type { DerivedReader, LogReader } from '../../storage/journal.ts'
import {
  type Fill,
  type GraphWriter,
  type IndexWrite,
  RefusedWrites,
} from '../../storage/search.ts'
import { type ActorStates, type FoldedActor, ProjectionError } from './actor-states.ts'
import { type ParkedActor, reasonOf, writesOf } from './projection-batch.ts'

/** Actors whose names one read asks for. */
const ACTORS_PER_READ = 1_000

export interface RefillOptions {
  readonly log: Pick<LogReader, 'read'>
  readonly derived: Pick<DerivedReader, 'actors' | 'consumer'>
  readonly index: GraphWriter
  readonly shards: number
  readonly states: ActorStates
  readonly park: (parked: ParkedActor) => void
  /** Makes the rows of parked actors durable. */
  readonly save: () => Promise<void>
  /** Lets others have the thread, where it has to. */
  readonly breathe: () => Promise<void>
  /** Monotonic milliseconds. */
  readonly clock: () => number
}

/** What a step did. */
export interface FillStep {
  readonly writes: number
  /** Actors that were looked at. */
  readonly actors: number
  /** Shards that are filled now: following the log goes on from these offsets. */
  readonly filled: readonly Fill[]
}

export class Refill {
  readonly #options: RefillOptions
  readonly #fills = new Map<number, Fill>()
  /** Shards whose log may have been trimmed since it was looked at, and when that was. */
  readonly #doubted = new Set<number>()
  #lookedAtMs = Number.NEGATIVE_INFINITY
  #keptAtMs = Number.NEGATIVE_INFINITY

  constructor(options: RefillOptions) {
    this.#options = options
  }

  has(shard: number): boolean {
    return this.#fills.has(shard)
  }

  /** Up to here the log is not needed; null: the shard is not being filled. */
  begunAt(shard: number): number | null {
    return this.#fills.get(shard)?.begun ?? null
  }

  /** Goes on where an earlier attempt has come to. */
  resume(fill: Fill): void {
    this.#fills.set(fill.shard, fill)
    this.#doubted.add(fill.shard)
  }

  /** Begins shards of which the index has nothing; that is durable before anything is written. */
  async begin(fills: readonly Fill[]): Promise<void> {
    await this.#options.index.apply([], [], fills)
    for (const fill of fills) this.#fills.set(fill.shard, fill)
  }

  lost(shard: number): void {
    this.#fills.delete(shard)
    this.#doubted.delete(shard)
  }

  clear(): void {
    this.#fills.clear()
    this.#doubted.clear()
  }

  /**
   * A shard whose log was trimmed above where its fill began: what was removed in between would
   * stay in the index for ever. Null: none.
   */
  async gap(own: ReadonlyMap<number, number>): Promise<number | null> {
    if (this.#doubted.size === 0) return null
    this.#lookedAtMs = this.#options.clock()
    for (const shard of this.#doubted) {
      const head = own.get(shard)
      if (head === undefined) continue
      if (await this.#isTrimmed(this.#fills.get(shard)!, head)) return shard
      this.#doubted.delete(shard)
    }
    return null
  }

  async #isTrimmed({ shard, begun }: Fill, head: number): Promise<boolean> {
    const { log, derived } = this.#options
    const [first] = await log.read(shard, begun, 1)
    if (first !== undefined) return first.offset - first.count > begun
    // Trimmed whole, or not visible yet.
    return head > begun && ((await derived.consumer(shard, 'flush')) ?? 0) >= head
  }

  /** Writes the nodes of some more actors of own shards; null: none is to be filled. */
  async step(own: ReadonlyMap<number, number>): Promise<FillStep | null> {
    const group = this.#group(own)
    if (group.length === 0) return null
    try {
      return await this.#step(group)
    } catch (error) {
      // However long it lasts: the log may be gone by then.
      if (this.#options.clock() >= this.#lookedAtMs + LIMITS.sharding.trimEveryMs) {
        for (const shard of this.#fills.keys()) this.#doubted.add(shard)
      }
      throw error
    }
  }

  /** Shards that are at the same actor go together; first those that have just begun. */
  #group(own: ReadonlyMap<number, number>): readonly Fill[] {
    const fills = [...this.#fills.values()].filter(({ shard }) => own.has(shard))
    const first = fills.find(({ after }) => after === null) ?? fills[0]
    return fills.filter(({ after }) => after === first!.after)
  }

  async #step(group: readonly Fill[]): Promise<FillStep> {
    const { derived, index, clock } = this.#options
    const { after } = group[0]!
    const names = await derived.actors(after, ACTORS_PER_READ)
    // Where others are already they are gone along with.
    const met = names.findIndex((id) => this.#isPlace(id))
    const { found, count } = await this.#find(group, met < 0 ? names : names.slice(0, met + 1))
    const writes = await this.#write(found)
    // One that was lost meanwhile goes on elsewhere.
    const own = group.filter((fill) => this.#fills.get(fill.shard) === fill)
    const actors = { writes, actors: count }
    if (count === names.length && names.length < ACTORS_PER_READ) {
      await index.apply(
        [],
        own.map(({ shard, begun }) => ({ shard, offset: begun })),
      )
      for (const { shard } of own) this.lost(shard)
      return { ...actors, filled: own }
    }
    const further = own.map((fill) => ({
      ...fill,
      after: names[count - 1]!,
      step: fill.step + 1,
    }))
    if (clock() >= this.#keptAtMs + LIMITS.feed.refillKeptMs) {
      await index.apply([], [], further)
      this.#keptAtMs = clock()
    }
    for (const fill of further) if (this.has(fill.shard)) this.#fills.set(fill.shard, fill)
    return { ...actors, filled: [] }
  }

  #isPlace(actorId: string): boolean {
    for (const { after } of this.#fills.values()) if (after === actorId) return true
    return false
  }

  /** Nodes of as many of the actors as make a batch, and how many actors these were. */
  async #find(
    group: readonly Fill[],
    names: readonly string[],
  ): Promise<{ readonly found: readonly Found[]; readonly count: number }> {
    const offsets = new Map(group.map(({ shard, begun }) => [shard, begun]))
    const found: Found[] = []
    let [count, pending] = [0, 0]
    while (count < names.length && pending < LIMITS.feed.projectorBatchEntries) {
      const some = names.slice(count, count + LIMITS.feed.refillReadsTogether)
      count += some.length
      for (const own of await Promise.all(some.map((id) => this.#nodesOf(id, offsets)))) {
        if (own === null) continue
        found.push(own)
        pending += own.writes.length
      }
      await this.#options.breathe()
    }
    return { found, count }
  }

  /** Writes what was found; actors that the index refuses are parked. */
  async #write(found: readonly Found[]): Promise<number> {
    const { index, states, park, save } = this.#options
    const writes = found.flatMap((own) => own.writes)
    await save()
    try {
      if (writes.length > 0) await index.apply(writes, [])
    } catch (error) {
      if (!(error instanceof RefusedWrites)) throw error
      for (const { parked } of found) {
        const reason = error.reasons.get(parked.actorId)
        if (reason !== undefined) park({ ...parked, reason })
      }
      await save()
    }
    states.trim()
    return writes.length
  }

  /** Null: the actor is of another shard, or has nothing to show. */
  async #nodesOf(actorId: string, offsets: ReadonlyMap<number, number>): Promise<Found | null> {
    const { shards, index, states, park } = this.#options
    const place = shardOf(placeOfActor(actorId), shards)
    // Only the snapshot tells an actor of the system shard from the others: both have UUIDs.
    if (!offsets.has(place) && !offsets.has(SYSTEM_SHARD)) return null
    let actor: FoldedActor | null = null
    let shard = place
    try {
      actor = await states.load(actorId)
      if (actor === null || actor.behaviour.nodeTypes.length === 0) return null
      if (actor.behaviour.home === 'system') shard = SYSTEM_SHARD
      if (!offsets.has(shard)) return null
      const { behaviour, state } = actor
      if (state === null || behaviour.isDeleted(state)) return null
      const writes = writesOf(actor, behaviour.nodes(state), index)
      return { parked: parkedOf(actorId, actor, { shard, offsets }), writes }
    } catch (error) {
      if (actor === null && !(error instanceof ProjectionError)) throw error
      if (!offsets.has(shard)) return null
      park({ ...parkedOf(actorId, actor, { shard, offsets }), reason: reasonOf(error) })
      return null
    }
  }
}

/** All living nodes of an actor. */
interface Found {
  readonly parked: Omit<ParkedActor, 'reason'>
  readonly writes: readonly IndexWrite[]
}

function parkedOf(
  actorId: string,
  actor: FoldedActor | null,
  { shard, offsets }: { readonly shard: number; readonly offsets: ReadonlyMap<number, number> },
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
