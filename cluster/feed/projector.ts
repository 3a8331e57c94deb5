// The projector: follows the committed groups of every shard from the index's offsets to the given
// heads, folds the actors' states and writes each touched node once per batch with its newest
// content. It stands between the journal, which it only reads, and the graph index, where nodes and
// offsets move in one transaction: a crash anywhere repeats a batch, and a repeat changes nothing.
// Knows no business word. Source: PROTOCOL 3.11, 3.13, ARCHITECTURE 5.

import type { Behaviour } from '../../protocol/behaviour.ts'
import { type Entry, decodeEntry, splitEntries } from '../../protocol/entry.ts'
import { LIMITS } from '../../config/limits.ts'
import type { DerivedReader, LogReader, LogRow } from '../../storage/journal.ts'
import type { GraphWriter, IndexWrite } from '../../storage/search.ts'
import {
  ActorStates,
  type DecodeSnapshot,
  type FoldedActor,
  ProjectionError,
} from './actor-states.ts'
import { ParkedActors } from './parked-actors.ts'
import {
  type ParkedActor,
  type Place,
  ProjectionBatch,
  positionsOf,
  reasonOf,
} from './projection-batch.ts'
import { refill } from './refill.ts'

/** Bounds of a batch and of the states kept. */
export interface ProjectorLimits {
  readonly entries: number
  readonly bytes: number
  readonly ms: number
  readonly actors: number
  readonly actorsBytes: number
}

const DEFAULTS: ProjectorLimits = {
  entries: LIMITS.projectorBatchEntries,
  bytes: LIMITS.projectorBatchBytes,
  ms: LIMITS.projectorBatchMs,
  actors: LIMITS.projectorActorsMax,
  actorsBytes: LIMITS.projectorActorsBytesMax,
}

/** Bytes of log rows that one read asks for. */
const READ_BYTES = 1024 * 1024

export interface ProjectorOptions {
  readonly behaviours: ReadonlyMap<string, Behaviour>
  readonly log: Pick<LogReader, 'read'>
  readonly derived: Pick<DerivedReader, 'snapshot' | 'entries' | 'consumer' | 'parked' | 'actors'>
  readonly index: GraphWriter
  readonly decodeSnapshot: DecodeSnapshot
  /** Number of shards beside `system`. */
  readonly shards: number
  /** Makes the row of a parked actor durable: before the offset moves on (PROTOCOL 3.11). */
  readonly park: (parked: ParkedActor) => Promise<void>
  /** The actor is projected again: its row may be cleared. */
  readonly unpark: (parked: ParkedActor) => Promise<void>
  /** Lets others have the thread, between the parts of a long rebuild. */
  readonly pause: () => Promise<void>
  /** Monotonic milliseconds. */
  readonly clock: () => number
  readonly limits?: Partial<ProjectorLimits>
}

/** What a step did, and when the next one makes sense. */
export interface Step {
  /** Entries that the index now holds and did not before. */
  readonly entries: number
  readonly writes: number
  /** `now`: there is more; `later`: something is still under way; `idle`: all done. */
  readonly next: 'now' | 'later' | 'idle'
}

interface PlacedAt {
  readonly entry: Entry
  readonly at: Place
}

/** How far a shard could be collected. */
type Reach =
  | 'head'
  | 'full'
  /** Rows are still under way. */
  | 'waiting'
  /** The log begins above the index's offset: what is at or below this offset is not in it. */
  | { readonly trimmedTo: number }

export class Projector {
  readonly #options: ProjectorOptions
  readonly #limits: ProjectorLimits
  readonly #states: ActorStates
  readonly #parked: ParkedActors
  readonly #offsets = new Map<number, number>()
  readonly #timesMs = new Map<number, number>()
  /** Shards of which the index, emptied in this run, certainly holds nothing yet. */
  #fresh = new Set<number>()
  #generation = ''
  /** Offsets that must be reached before the index is whole. */
  #awaited = new Map<number, number>()
  /** Which shard begins the next batch, so that a busy one can't starve the others. */
  #turn = 0

  constructor(options: ProjectorOptions) {
    this.#options = options
    this.#limits = { ...DEFAULTS, ...options.limits }
    this.#states = new ActorStates({
      behaviours: options.behaviours,
      derived: options.derived,
      decodeSnapshot: options.decodeSnapshot,
      actorsMax: this.#limits.actors,
      bytesMax: this.#limits.actorsBytes,
    })
    this.#parked = new ParkedActors(options, this.#states)
  }

  /** Done up to and including, by shard. */
  get offsets(): ReadonlyMap<number, number> {
    return this.#offsets
  }

  /** Time of the newest entry that the index holds, milliseconds since 1970, by shard. */
  get timesMs(): ReadonlyMap<number, number> {
    return this.#timesMs
  }

  /**
   * False until the index has had what was committed when it was opened or emptied: before that its
   * answers would have holes.
   */
  get whole(): boolean {
    for (const [shard, head] of this.#awaited) {
      if ((this.#offsets.get(shard) ?? 0) >= head) this.#awaited.delete(shard)
    }
    return this.#awaited.size === 0
  }

  get parkedCount(): number {
    return this.#parked.size
  }

  /**
   * Ties the projector to the store. An index of another store generation, or one that is ahead of
   * the log, is emptied and filled anew (PROTOCOL 3.13.5).
   */
  async start(heads: ReadonlyMap<number, number>, generation: string): Promise<'kept' | 'reset'> {
    const { index } = this.#options
    const offsets = index.offsets()
    this.#generation = generation
    let kept = index.generation() === generation
    for (const [shard, offset] of offsets) if (offset > (heads.get(shard) ?? 0)) kept = false
    this.#offsets.clear()
    this.#states.clear()
    if (kept) for (const [shard, offset] of offsets) this.#offsets.set(shard, offset)
    else this.#reset(heads, generation)
    this.#awaited = new Map(heads)
    await this.#parked.recall(heads.keys(), this.#offsets)
    return kept ? 'kept' : 'reset'
  }

  /** One batch. Rejects when journal or index can't be used now; calling again is always right. */
  async step(heads: ReadonlyMap<number, number>): Promise<Step> {
    const batch = new ProjectionBatch()
    let next: Step['next'] = 'idle'
    const shards = [...heads.keys()]
    const startedMs = this.#options.clock()
    for (let i = 0; i < shards.length; i++) {
      const shard = shards[(this.#turn + i) % shards.length]!
      const reach = await this.#collect(batch, shard, heads.get(shard)!)
      if (typeof reach === 'object') {
        return this.#refill(heads, { shard, trimmedTo: reach.trimmedTo })
      }
      if (reach === 'waiting' && next === 'idle') next = 'later'
      const full = reach === 'full' || this.#options.clock() - startedMs >= this.#limits.ms
      if (full) {
        this.#turn = (this.#turn + i) % shards.length
        next = 'now'
        break
      }
    }
    this.#turn++
    const writes = await this.#write(batch)
    const waiting = await this.#parked.refresh()
    this.#states.trim()
    return {
      entries: batch.entries,
      writes,
      next: waiting && next === 'idle' ? 'later' : next,
    }
  }

  /** Tries parked actors again (all of them, or one), with the following steps. */
  retryParked(actorId?: string): void {
    this.#parked.retry(this.#offsets, actorId)
  }

  #reset(heads: ReadonlyMap<number, number>, generation: string): void {
    this.#options.index.reset(generation)
    this.#offsets.clear()
    this.#timesMs.clear()
    this.#fresh = new Set(heads.keys())
    this.#awaited = new Map(heads)
  }

  async #collect(batch: ProjectionBatch, shard: number, head: number): Promise<Reach> {
    let offset = this.#offsets.get(shard) ?? 0
    while (offset < head) {
      if (this.#isFull(batch)) return 'full'
      const rows = await this.#options.log.read(shard, offset, READ_BYTES)
      if (rows.length === 0) {
        // Trimmed whole, or not visible yet: a view of the store that has the head's derived rows
        // would have its log row too.
        const flushed = (await this.#options.derived.consumer(shard, 'flush')) ?? 0
        return flushed >= head ? { trimmedTo: head } : 'waiting'
      }
      for (const row of rows) {
        // Above the head it may be visible without being durable yet.
        if (row.offset > head) return 'waiting'
        const before = row.offset - row.count
        if (before > offset) return { trimmedTo: before }
        const reached = await this.#takeRow(batch, row, offset)
        if (reached < row.offset) return 'waiting'
        offset = reached
        if (this.#isFull(batch)) break
      }
    }
    return 'head'
  }

  #isFull(batch: ProjectionBatch): boolean {
    return batch.entries >= this.#limits.entries || batch.bytes >= this.#limits.bytes
  }

  /** Takes the row's entries above `after`; answers the offset that was reached. */
  async #takeRow(batch: ProjectionBatch, row: LogRow, after: number): Promise<number> {
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
      timeMs = entry.t
    }
    if (reached > after) batch.pass({ shard, offset: reached }, timeMs)
    return reached
  }

  /** False: entries before this one have not arrived in the derived rows yet. */
  #take(batch: ProjectionBatch, entry: Entry, at: Place): boolean | Promise<boolean> {
    if (entry.r.length === 0 || this.#parked.has(entry.p)) return true
    if (this.#options.behaviours.get(entry.y)?.nodeTypes.length === 0) return true
    const actor = this.#states.find(entry.p)
    if ((actor === null || actor.version < entry.v) && entry.v > 0) {
      return this.#loadAndTake(batch, entry, at)
    }
    this.#foldOrPark(batch, actor, { entry, at })
    return true
  }

  async #loadAndTake(batch: ProjectionBatch, entry: Entry, at: Place): Promise<boolean> {
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
      // A state that was loaded, or folded by a batch that failed, may have this entry already.
      if (actor.version === entry.v) this.#states.fold(actor, entry, at.bytes)
      if (found !== null) this.#states.touch(found)
      batch.touch(actor, entry, at)
    } catch (error) {
      this.#setAside(batch, entry, { at, error })
    }
  }

  #setAside(batch: ProjectionBatch, entry: Entry, of: { at: Place; error: unknown }): void {
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

  /** Parked rows first, then nodes and offsets in one step; answers the number of writes. */
  async #write(batch: ProjectionBatch): Promise<number> {
    const { index } = this.#options
    const writes = batch.writes((parked) => this.#parked.add(parked))
    await this.#parked.save()
    const { offsets } = batch
    if (offsets.length === 0) return 0
    // Before it is tried: a refused transaction may be in all the same.
    for (const { shard } of offsets) this.#fresh.delete(shard)
    try {
      index.apply(writes, offsets)
    } catch {
      await this.#writeApart(batch, writes)
      index.apply([], offsets)
    }
    for (const { shard, offset } of offsets) this.#offsets.set(shard, offset)
    for (const [shard, timeMs] of batch.timesMs) this.#timesMs.set(shard, timeMs)
    return writes.length
  }

  /**
   * After a refused batch: is it the index, or one actor's content? The index must take its own
   * offsets again, then each actor alone; one that is refused is parked.
   */
  async #writeApart(batch: ProjectionBatch, writes: readonly IndexWrite[]): Promise<void> {
    const { index } = this.#options
    index.apply([], positionsOf(this.#offsets))
    for (const [actorId, own] of Map.groupBy(writes, (write) => write.actorId)) {
      try {
        index.apply(own, [])
      } catch (error) {
        this.#parked.add({ ...batch.parkedOf(actorId), reason: reasonOf(error) })
        this.#states.drop(actorId)
      }
    }
    await this.#parked.save()
  }

  /**
   * The log no longer reaches down to the index's offset: the index is emptied, unless this run
   * did so already, and the shards whose log was trimmed are filled from the actors themselves.
   */
  async #refill(
    heads: ReadonlyMap<number, number>,
    gap: { readonly shard: number; readonly trimmedTo: number },
  ): Promise<Step> {
    const { shard } = gap
    const flushed = (await this.#options.derived.consumer(shard, 'flush')) ?? 0
    if (flushed < gap.trimmedTo) return { entries: 0, writes: 0, next: 'later' }
    if (!this.#fresh.has(shard)) this.#reset(heads, this.#generation)
    // From here on a failure leaves part of the shard behind: then it is emptied again.
    this.#fresh.delete(shard)
    const writes = await refill(this.#options, {
      shard,
      states: this.#states,
      flushed,
      park: (parked) => this.#parked.add(parked),
      save: () => this.#parked.save(),
      pause: this.#options.pause,
    })
    this.#offsets.set(shard, flushed)
    return { entries: flushed, writes, next: 'now' }
  }
}
