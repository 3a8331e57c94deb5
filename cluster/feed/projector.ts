// The projector: follows the committed groups of shards from the index's offsets to the given
// heads, folds the actors' states and writes each touched node once per batch with its newest
// content. It only reads the journal. In the index offsets move with the nodes or after them: a
// crash repeats a batch, and a repeat changes nothing. Embedded it follows all shards of its store;
// in a cluster those that its member owns, which come and go. Knows no business word. Source:
// PROTOCOL 3.11, 3.13, ARCHITECTURE 5.

import { placeOfActor, shardOf, SYSTEM_SHARD } from '../../protocol/ids.ts'
import { LIMITS } from '../../config/limits.ts'
import {
  type Fill,
  IndexAway,
  IndexGone,
  type IndexWrite,
  RefusedWrites,
} from '../../storage/search.ts'
import { ActorStates, type FoldedActor } from './actor-states.ts'
import { EntryTaker } from './entry-taker.ts'
import { ParkedActors } from './parked-actors.ts'
import { ProjectionBatch, positionsOf, reasonOf } from './projection-batch.ts'
import { Refill } from './refill.ts'
import {
  type ProjectorLimits,
  PROJECTOR_DEFAULTS,
  type ProjectorOptions,
  type Step,
  nothingDone,
} from './projector-options.ts'

/** Bytes of log rows that one read asks for. */
const READ_BYTES = 1024 * 1024

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
  readonly #taker: EntryTaker
  readonly #refill: Refill
  readonly #offsets = new Map<number, number>()
  readonly #timesMs = new Map<number, number>()
  /** Shards that were gained and not lost; null: all that there are. */
  #own: Set<number> | null = null
  #pausedAtMs = 0
  /** Shards of which the index, emptied in this run, certainly holds nothing yet. */
  #fresh = new Set<number>()
  #generation = ''
  /** Offsets that must be reached before the index is whole. */
  #awaited = new Map<number, number>()
  /** Which shard begins the next batch, so that a busy one can't starve the others. */
  #turn = 0

  constructor(options: ProjectorOptions) {
    this.#options = options
    this.#limits = { ...PROJECTOR_DEFAULTS, ...options.limits }
    this.#states = new ActorStates({
      behaviours: options.behaviours,
      derived: options.derived,
      decodeSnapshot: options.decodeSnapshot,
      actorsMax: this.#limits.actors,
      bytesMax: this.#limits.actorsBytes,
    })
    this.#parked = new ParkedActors(options, this.#states)
    this.#taker = new EntryTaker(options.behaviours, this.#states, this.#parked)
    const { log, derived, index, shards, clock } = options
    this.#refill = new Refill({
      log,
      derived,
      index,
      shards,
      states: this.#states,
      park: (parked) => this.#parked.add(parked),
      save: () => this.#parked.save(),
      breathe: () => this.#breathe(),
      clock,
    })
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

  /** The shard's log may go up to here for all that the index needs of it. */
  doneWith(shard: number): number {
    return this.#refill.begunAt(shard) ?? this.#offsets.get(shard) ?? 0
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
    this.#refill.clear()
    if (kept) {
      for (const [shard, offset] of offsets) this.#offsets.set(shard, offset)
      for (const fill of index.fills().values()) this.#refill.resume(fill)
    } else await this.#reset(heads, generation)
    this.#awaited = new Map(heads)
    await this.#parked.recall(heads.keys(), this.#offsets)
    return kept ? 'kept' : 'reset'
  }

  /**
   * Follows a shard from now on. `offset`: what the index has of it; null: nothing yet, or it was
   * being filled, and how far it came is `fill`.
   */
  async gained(
    shard: number,
    offset: number | null,
    head: number,
    fill: Fill | null = null,
  ): Promise<void> {
    if (offset !== null && offset > head) {
      const why = `it has shard ${shard} up to ${offset}, the log ends at ${head}`
      throw new IndexGone(why, shard)
    }
    this.#own ??= new Set()
    this.#own.add(shard)
    this.#offsets.set(shard, offset ?? 0)
    this.#refill.lost(shard)
    if (offset === null && fill !== null) this.#refill.resume(fill)
    else if (offset === null) this.#fresh.add(shard)
    else this.#fresh.delete(shard)
    await this.#parked.recall([shard], this.#offsets)
  }

  /** Forgets a shard; what is under way for it is harmless (PROTOCOL 3.13.1). */
  lost(shard: number): void {
    this.#own?.delete(shard)
    this.#offsets.delete(shard)
    this.#timesMs.delete(shard)
    this.#fresh.delete(shard)
    this.#refill.lost(shard)
    this.#states.dropAll((actor) => this.#shardOf(actor) === shard)
    this.#parked.lost(shard)
  }

  /** Actors of the `system` shard have UUIDs like all others: their type tells. */
  #shardOf({ actorId, behaviour }: FoldedActor): number {
    if (behaviour.home === 'system') return SYSTEM_SHARD
    return shardOf(placeOfActor(actorId), this.#options.shards)
  }

  #moved(shard: number, offset: number): void {
    if (this.#own === null || this.#own.has(shard)) this.#offsets.set(shard, offset)
  }

  /** Long work gives way now and then, where it has to. */
  async #breathe(): Promise<void> {
    const { sliceMs, clock, pause } = this.#options
    if (sliceMs === undefined || clock() - this.#pausedAtMs < sliceMs) return
    await pause()
    this.#pausedAtMs = clock()
  }

  /** One batch. Rejects when journal or index can't be used now; calling again is always right. */
  async step(heads: ReadonlyMap<number, number>): Promise<Step> {
    const batch = new ProjectionBatch(this.#options.index.placed)
    let next: Step['next'] = 'idle'
    const shards = [...heads.keys()]
    const startedMs = this.#options.clock()
    this.#pausedAtMs = startedMs
    for (let i = 0; i < shards.length; i++) {
      const shard = shards[(this.#turn + i) % shards.length]!
      if (this.#refill.has(shard)) continue
      const reach = await this.#collect(batch, shard, heads.get(shard)!)
      if (typeof reach === 'object') {
        return this.#beginFill(heads, { shard, trimmedTo: reach.trimmedTo })
      }
      if (reach === 'waiting' && next === 'idle') next = 'later'
      const full =
        reach === 'full' || this.#options.clock() - startedMs >= this.#most(this.#limits.ms)
      if (full) {
        this.#turn = (this.#turn + i) % shards.length
        next = 'now'
        break
      }
    }
    this.#turn++
    const writes = await this.#write(batch)
    const fill = (await this.#fill(heads)) ?? nothingDone(next)
    const waiting = await this.#parked.refresh()
    this.#states.trim()
    return {
      entries: batch.entries + fill.entries,
      writes: writes + fill.writes,
      actors: fill.actors,
      next: waiting && fill.next === 'idle' ? 'later' : fill.next,
    }
  }

  /** Tries parked actors again (all of them, or one), with the following steps. */
  retryParked(actorId?: string): void {
    this.#parked.retry(this.#offsets, actorId)
  }

  async #reset(heads: ReadonlyMap<number, number>, generation: string): Promise<void> {
    await this.#options.index.reset(generation)
    this.#refill.clear()
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
        return (await this.#flushed(shard)) >= head ? { trimmedTo: head } : 'waiting'
      }
      for (const row of rows) {
        // Above the head it may be visible without being durable yet.
        if (row.offset > head) return 'waiting'
        const before = row.offset - row.count
        if (before > offset) return { trimmedTo: before }
        const reached = await this.#taker.takeRow(batch, row, offset)
        if (reached < row.offset) return 'waiting'
        offset = reached
        if (this.#isFull(batch)) break
        await this.#breathe()
      }
    }
    return 'head'
  }

  #isFull(batch: ProjectionBatch): boolean {
    const { entries, bytes } = this.#limits
    return batch.entries >= this.#most(entries) || batch.bytes >= this.#most(bytes)
  }

  #most(limit: number): number {
    return this.#options.isAwaited?.() === true ? limit * LIMITS.feed.projectorAwaitedShare : limit
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
      await index.apply(writes, offsets)
    } catch (error) {
      if (error instanceof IndexAway || error instanceof IndexGone) throw error
      if (error instanceof RefusedWrites) await this.#parkRefused(batch, error)
      else await this.#writeApart(batch, writes)
      await index.apply([], offsets)
    }
    for (const { shard, offset } of offsets) this.#moved(shard, offset)
    for (const [shard, timeMs] of batch.timesMs) this.#timesMs.set(shard, timeMs)
    return writes.length
  }

  async #parkRefused(batch: ProjectionBatch, { reasons }: RefusedWrites): Promise<void> {
    for (const [actorId, reason] of reasons) {
      this.#parked.add({ ...batch.parkedOf(actorId), reason })
      this.#states.drop(actorId)
    }
    await this.#parked.save()
  }

  /**
   * After a refused batch: is it the index, or one actor's content? The index must take its own
   * offsets again, then each actor alone; one that is refused is parked.
   */
  async #writeApart(batch: ProjectionBatch, writes: readonly IndexWrite[]): Promise<void> {
    const { index } = this.#options
    await index.apply([], positionsOf(this.#offsets))
    for (const [actorId, own] of Map.groupBy(writes, (write) => write.actorId)) {
      try {
        await index.apply(own, [])
      } catch (error) {
        // Away says nothing of the actor.
        if (error instanceof IndexAway || error instanceof IndexGone) throw error
        this.#parked.add({ ...batch.parkedOf(actorId), reason: reasonOf(error) })
        this.#states.drop(actorId)
      }
    }
    await this.#parked.save()
  }

  /**
   * The log no longer reaches down to the index's offset: shards of which the index has nothing are
   * filled from the actors themselves; for any other it has to be made anew.
   */
  async #beginFill(
    heads: ReadonlyMap<number, number>,
    gap: { readonly shard: number; readonly trimmedTo: number },
  ): Promise<Step> {
    if ((await this.#flushed(gap.shard)) < gap.trimmedTo) return nothingDone('later')
    if (!this.#fresh.has(gap.shard)) await this.#anew(gap.shard, heads)
    const fills: Fill[] = []
    for (const shard of [...this.#fresh]) {
      if (!heads.has(shard)) continue
      fills.push({ shard, begun: await this.#flushed(shard), after: null, step: 1 })
    }
    await this.#refill.begin(fills)
    // One that was lost meanwhile is its next owner's to fill.
    for (const { shard } of fills) if (!this.#fresh.delete(shard)) this.#refill.lost(shard)
    return nothingDone('now')
  }

  /** It is emptied; where many fill it, another one has to be made beside it. */
  async #anew(shard: number, heads: ReadonlyMap<number, number>): Promise<void> {
    const { shared, onReset } = this.#options
    const gone = new IndexGone(`the log of shard ${shard} no longer reaches down to it`, shard)
    if (shared) throw gone
    await this.#reset(heads, this.#generation)
    onReset?.(gone)
  }

  async #flushed(shard: number): Promise<number> {
    return (await this.#options.derived.consumer(shard, 'flush')) ?? 0
  }

  /** Fills some more of the shards that are filled from their actors; null: there are none. */
  async #fill(heads: ReadonlyMap<number, number>): Promise<Step | null> {
    const gap = await this.#refill.gap(heads)
    if (gap !== null) {
      await this.#anew(gap, heads)
      return nothingDone('now')
    }
    const { clock, pause, isAwaited } = this.#options
    const untilMs = clock() + LIMITS.feed.refillStepMs
    let [entries, writes, actors] = [0, 0, 0]
    for (let step = await this.#refill.step(heads); step !== null;) {
      for (const { shard, begun } of step.filled) {
        this.#moved(shard, begun)
        entries += begun
      }
      writes += step.writes
      actors += step.actors
      await pause()
      if (clock() >= untilMs || isAwaited?.() === true) break
      step = await this.#refill.step(heads)
    }
    return actors + entries === 0 ? null : { entries, writes, actors, next: 'now' }
  }
}
