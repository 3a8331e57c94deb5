// Actors whose projection failed: set aside with their reason, so that the others go on, and
// projected anew from their newest state when they are tried again. The shard's owner keeps a row
// of each. Source: PROTOCOL 3.11.

import type { NodeRef } from '../../protocol/behaviour.ts'
import { decodeEntry, recordsOf } from '../../protocol/entry/entry.ts'
import { assert } from '../../protocol/errors.ts'
import { LIMITS } from '../../config/limits.ts'
import type { DerivedReader } from '../../storage/journal.ts'
import { type GraphWriter, IndexAway, IndexGone, RefusedWrites } from '../../storage/search.ts'
import { type ActorStates, type FoldedActor, ProjectionError } from './actor-states.ts'
import {
  type ParkedActor,
  decodeParked,
  positionsOf,
  reasonOf,
  refKey,
  writesOf,
} from './projection-batch.ts'

/** Name under which the projector's parked rows are kept. */
export const INDEX_CONSUMER = 'index'

/** Actors projected anew in one step, and bytes of entries in one read of them. */
const REFRESHES_PER_STEP = 16
const READ_BYTES = 1024 * 1024

export interface ParkedActorsOptions {
  readonly derived: Pick<DerivedReader, 'entries' | 'consumer' | 'parked'>
  readonly index: GraphWriter
  /** Name under which their rows are kept; INDEX_CONSUMER by default. */
  readonly consumer?: string
  readonly park: (parked: ParkedActor) => Promise<void>
  readonly unpark: (parked: ParkedActor) => Promise<void>
}

/** An actor on its way back: its entries are followed again, its past is written once. */
interface Returning {
  readonly parked: ParkedActor
  /** The derived rows must have reached this offset of the shard: it was skipped up to here. */
  readonly target: number
}

export class ParkedActors {
  readonly #options: ParkedActorsOptions
  readonly #states: ActorStates
  readonly #parked = new Map<string, ParkedActor>()
  readonly #unsaved = new Set<string>()
  readonly #returning = new Map<string, Returning>()

  constructor(options: ParkedActorsOptions, states: ActorStates) {
    this.#options = options
    this.#states = states
  }

  get size(): number {
    return this.#parked.size + this.#returning.size
  }

  has(actorId: string): boolean {
    return this.#parked.has(actorId)
  }

  /** Sets an actor aside. Its row is written by `save`, before any offset moves over it. */
  add(parked: ParkedActor): void {
    assert(
      this.#parked.size < LIMITS.feed.projectorParkedMax,
      `${LIMITS.feed.projectorParkedMax} actors can't be projected; the newest: ${parked.reason}`,
    )
    this.#states.drop(parked.actorId)
    this.#returning.delete(parked.actorId)
    this.#parked.set(parked.actorId, parked)
    this.#unsaved.add(parked.actorId)
  }

  /** Makes the rows of all actors set aside since the last call durable. */
  async save(): Promise<void> {
    for (const actorId of this.#unsaved) {
      const parked = this.#parked.get(actorId)
      if (parked !== undefined) await this.#options.park(parked)
      this.#unsaved.delete(actorId)
    }
  }

  /** Reads what was parked before this process and lets all of it return. */
  async recall(shards: Iterable<number>, offsets: ReadonlyMap<number, number>): Promise<void> {
    const { derived, consumer } = this.#options
    for (const shard of shards) {
      for (const { body } of await derived.parked(shard, consumer ?? INDEX_CONSUMER)) {
        const parked = decodeParked(body)
        this.#parked.set(parked.actorId, parked)
      }
    }
    this.retry(offsets)
  }

  /** The shard is followed by another now, who finds the rows. */
  lost(shard: number): void {
    for (const [actorId, parked] of this.#parked) {
      if (parked.shard !== shard) continue
      this.#parked.delete(actorId)
      this.#unsaved.delete(actorId)
    }
    for (const [actorId, { parked }] of this.#returning) {
      if (parked.shard === shard) this.#returning.delete(actorId)
    }
  }

  /** Lets all parked actors return, or one. */
  retry(offsets: ReadonlyMap<number, number>, actorId?: string): void {
    for (const parked of [...this.#parked.values()]) {
      if (actorId !== undefined && parked.actorId !== actorId) continue
      if (this.#unsaved.has(parked.actorId)) continue
      this.#parked.delete(parked.actorId)
      const target = offsets.get(parked.shard) ?? 0
      this.#returning.set(parked.actorId, { parked, target })
    }
  }

  /** Projects returning actors from their newest state. True: some must wait for derived rows. */
  async refresh(): Promise<boolean> {
    let waiting = false
    let count = 0
    for (const { parked, target } of [...this.#returning.values()]) {
      const flushed = (await this.#options.derived.consumer(parked.shard, 'flush')) ?? 0
      if (flushed < target || count >= REFRESHES_PER_STEP) {
        waiting = true
        continue
      }
      count++
      await this.#project(parked)
    }
    await this.save()
    return waiting
  }

  async #project(parked: ParkedActor): Promise<void> {
    const { index } = this.#options
    const actor = await this.#load(parked)
    if (actor === null) return
    const bodies = await this.#entriesOf(parked.actorId)
    try {
      const writes = writesOf(actor, refsOf(actor, parked, bodies), index)
      await index.apply(writes, [])
    } catch (error) {
      if (error instanceof IndexAway || error instanceof IndexGone) throw error
      // If the index takes nothing at all, it is not this actor's fault.
      if (!(error instanceof RefusedWrites)) await index.apply([], positionsOf(index.offsets()))
      this.add({ ...parked, reason: reasonOf(error) })
      return
    }
    this.#returning.delete(parked.actorId)
    await this.#options.unpark(parked)
  }

  /** Null: it failed again and is parked again. */
  async #load(parked: ParkedActor): Promise<FoldedActor | null> {
    try {
      const actor = await this.#states.load(parked.actorId)
      if (actor !== null) return actor
      this.add({ ...parked, reason: 'there is nothing of it in the derived rows' })
    } catch (error) {
      if (!(error instanceof ProjectionError)) throw error
      this.add({ ...parked, reason: reasonOf(error) })
    }
    return null
  }

  async #entriesOf(actorId: string): Promise<Uint8Array[]> {
    const bodies: Uint8Array[] = []
    for (let after = 0; ;) {
      const range = { order: 'ascending', after, bytesMax: READ_BYTES } as const
      const rows = await this.#options.derived.entries(actorId, range)
      if (rows.length === 0) return bodies
      for (const { n, body } of rows) {
        after = n
        bodies.push(body)
      }
    }
  }
}

/** Every node that the actor ever had: those that are gone are to be removed. */
function refsOf(
  { actorId, behaviour, state }: FoldedActor,
  parked: ParkedActor,
  bodies: readonly Uint8Array[],
): Iterable<NodeRef> {
  const refs = new Map<string, NodeRef>()
  const add = (ref: NodeRef): unknown => refs.set(refKey(ref), ref)
  parked.nodes.forEach(add)
  for (const body of bodies) {
    for (const record of recordsOf(decodeEntry(body), behaviour)) {
      behaviour.touched(record, actorId).forEach(add)
    }
  }
  if (state !== null) behaviour.nodes(state).forEach(add)
  return refs.values()
}
