// Takes the entries of log rows into a batch: folds each into its actor's state, reads actors that
// are not in memory, and sets aside those that can't be folded. Source: PROTOCOL 3.11, 3.13.

import type { Behaviour } from '../../protocol/behaviour.ts'
import { type AnyEntry, decodeEntry, splitEntries } from '../../protocol/entry/entry.ts'
import type { LogRow } from '../../storage/journal.ts'
import { type ActorStates, type FoldedActor, ProjectionError } from './actor-states.ts'
import type { ParkedActors } from './parked-actors.ts'
import { type Place, type ProjectionBatch, reasonOf } from './projection-batch.ts'

interface PlacedAt {
  readonly entry: AnyEntry
  readonly at: Place
}

export class EntryTaker {
  readonly #behaviours: ReadonlyMap<string, Behaviour>
  readonly #states: ActorStates
  readonly #parked: ParkedActors

  constructor(
    behaviours: ReadonlyMap<string, Behaviour>,
    states: ActorStates,
    parked: ParkedActors,
  ) {
    this.#behaviours = behaviours
    this.#states = states
    this.#parked = parked
  }

  /** Takes the row's entries above `after`; answers the offset that was reached. */
  async takeRow(batch: ProjectionBatch, row: LogRow, after: number): Promise<number> {
    const bodies = splitEntries(row.body)
    const { shard } = row
    const first = row.offset - row.count + 1
    let reached = after
    let timeMs = 0
    for (let offset = Math.max(first, after + 1); offset <= row.offset; offset++) {
      const body = bodies[offset - first]!
      const entry = decodeEntry(body)
      const taken = this.#take(batch, entry, { shard, offset, bytes: body.length })
      // Almost always at once: only an actor that is not in memory has to be read.
      const isIn = typeof taken === 'boolean' ? taken : await taken
      if (!isIn) break
      batch.entries++
      batch.bytes += body.length
      reached = offset
      timeMs = Math.max(timeMs, entry.t)
    }
    if (reached > after) batch.pass({ shard, offset: reached }, timeMs)
    return reached
  }

  /** False: entries before this one have not arrived in the derived rows yet. */
  #take(batch: ProjectionBatch, entry: AnyEntry, at: Place): boolean | Promise<boolean> {
    if (entry.r.length === 0 || this.#parked.has(entry.p)) return true
    if (this.#behaviours.get(entry.y)?.nodeTypes.length === 0) return true
    const actor = this.#states.find(entry.p)
    if ((actor === null || actor.version < entry.v) && entry.v > 0) {
      return this.#loadAndTake(batch, entry, at)
    }
    this.#foldOrPark(batch, actor, { entry, at })
    return true
  }

  async #loadAndTake(batch: ProjectionBatch, entry: AnyEntry, at: Place): Promise<boolean> {
    let actor: FoldedActor | null
    try {
      actor = await this.#states.load(entry.p)
    } catch (error) {
      if (!(error instanceof ProjectionError)) throw error
      this.#setAside(batch, entry, { at, error })
      return true
    }
    // Guessing is never right: the rows are on their way (PROTOCOL 3.12).
    if (actor === null || actor.version < entry.v) return false
    this.#foldOrPark(batch, actor, { entry, at })
    return true
  }

  #foldOrPark(batch: ProjectionBatch, found: FoldedActor | null, of: PlacedAt): void {
    const { entry, at } = of
    try {
      const actor = found ?? this.#states.begin(entry.p, entry.y)
      const places = batch.before(actor, entry)
      // A state that was loaded, or folded by a batch that failed, may have this entry already.
      if (actor.version === entry.v) this.#states.fold(actor, entry, at.bytes)
      if (found !== null) this.#states.touch(found)
      batch.touch(actor, entry, at, places)
    } catch (error) {
      this.#setAside(batch, entry, { at, error })
    }
  }

  #setAside(batch: ProjectionBatch, entry: AnyEntry, of: { at: Place; error: unknown }): void {
    this.#states.drop(entry.p)
    this.#parked.add({
      actorId: entry.p,
      type: entry.y,
      shard: of.at.shard,
      offset: of.at.offset,
      version: entry.v,
      nodes: batch.remove(entry.p),
      reason: reasonOf(of.error),
    })
  }
}
