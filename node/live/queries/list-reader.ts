// Reads lists of live queries from the index: when every owner tells of their nodes, at a position
// of every shard that is known, and on to what the feed has told since. Source: CONTRACT 1.10,
// PROTOCOL 3.15.

import type { Clock } from '../../../cluster/clock.ts'
import type { FeedWatch } from '../../../cluster/feed/watch/feed-watch.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { Position } from '../../../protocol/ids.ts'
import type { Maybe } from '../../../storage/journal.ts'
import type { IndexWatch, PlanRunner } from '../../graph/graph.ts'
import type { Caller } from '../../graph/plans/plan-queue.ts'
import type { LiveList } from './live-list.ts'
import type { LivePlan } from './live-plan.ts'
import type { LiveNode } from './live-window.ts'
import { ReadTurns } from './read-turns.ts'
import type { ServedFields } from './served-fields.ts'
import type { StandingQuery } from './standing-query.ts'

export interface ListReaderOptions {
  readonly watch: Pick<FeedWatch, 'want' | 'covered'>
  readonly runner: PlanRunner
  readonly index: IndexWatch
  /** Offset up to which the index holds a shard; null: unknown. */
  readonly applied: (shard: number) => Maybe<number | null>
  /** Of the shards that this member has. */
  readonly heads: () => readonly Position[]
  /** How many shards the store has. */
  readonly shards: number
  readonly clock: Clock
}

/** Offsets by shard. */
type Offsets = ReadonlyMap<number, number>

/** Name of the stream of the feed's watch that tells of nodes. */
export const STREAM = 'nodes'

export class ListReader {
  /** Lists that are being read: they are told of every change. */
  readonly reading = new Set<LiveList<StandingQuery>>()
  /** Times a list was read from the index. */
  reads = 0
  readonly #options: ListReaderOptions
  /** Up to where the feed of each shard is in all lists. */
  readonly #heard: Offsets
  /** How many lists have each node type. */
  readonly #types = new Map<string, number>()
  /** Number of the last interest, and of that from which each type is in it. */
  #number = 0
  readonly #typesFrom = new Map<string, number>()
  #syncing: Promise<void> | null = null
  #nextSync: Promise<void> | null = null
  readonly #turns = new ReadTurns(LIMITS.live.queryReadsAtOnceMax)
  readonly #fields: ServedFields

  constructor(
    options: ListReaderOptions,
    { heard, fields }: { readonly heard: Offsets; readonly fields: ServedFields },
  ) {
    this.#options = options
    this.#heard = heard
    this.#fields = fields
  }

  stop(): void {
    this.#turns.end()
  }

  /** The owners are to tell of its nodes, once any of them is asked. */
  wants({ types }: LivePlan): void {
    for (const type of types) this.#types.set(type, 1 + (this.#types.get(type) ?? 0))
  }

  wantsNoMore({ types }: LivePlan): void {
    for (const type of types) {
      const uses = this.#types.get(type)! - 1
      if (uses > 0) this.#types.set(type, uses)
      else this.#types.delete(type)
    }
    if (this.#types.size === 0) void this.#sync()
  }

  /** The interest of that number has not all types of the plan. */
  lacks({ types }: LivePlan, number: number): boolean {
    for (const type of types) if (number < (this.#typesFrom.get(type) ?? Infinity)) return true
    return false
  }

  /** Whether the interest of that number has all types of all plans. */
  hasAll(number: number): boolean {
    return Math.max(0, ...this.#typesFrom.values()) <= number
  }

  /** Rejects with RequestError where it can't be read now. */
  async fill(list: LiveList<StandingQuery>, caller: () => Caller): Promise<void> {
    await this.#turns.enter(caller())
    try {
      const { clock } = this.#options
      const { queryReadMs, queryReadAgainMs } = LIMITS.live
      const untilMs = clock.monotonicMs() + (list.isFilled ? queryReadAgainMs : queryReadMs)
      for (let tries = 1; !list.isOver; tries++) {
        this.reading.add(list)
        if (await this.#fillOnce(list, caller, untilMs)) {
          list.isFilled = true
          return
        }
        if (tries >= LIMITS.live.queryReadsMax) throw behind('the nodes change too quickly')
      }
    } finally {
      list.pending = null
      list.filling = null
      this.reading.delete(list)
      this.#turns.leave()
    }
  }

  /** The feed comes to what the index may have had, to what own shards have, and to `least`. */
  async catchUp(least: Offsets, untilMs = this.#untilMs): Promise<void> {
    const heads = await this.#indexed(least)
    while (!this.#hasHeard(heads)) {
      await this.#sync()
      if (!this.#hasHeard(heads)) await this.#pause(untilMs)
    }
  }

  get #untilMs(): number {
    return this.#options.clock.monotonicMs() + LIMITS.live.queryReadMs
  }

  /** False: it was overtaken by what came meanwhile. */
  async #fillOnce(
    list: LiveList<StandingQuery>,
    caller: () => Caller,
    untilMs: number,
  ): Promise<boolean> {
    const { clock, index, runner } = this.#options
    this.#fields.follow()
    this.#fields.update(list.queries)
    if (list.isOver) return true
    const { plan } = list
    const isOther = (): boolean => list.isOver || this.#fields.areOutdated(list.queries)
    // All owners tell of these nodes before it is read: what the index lacks comes from the feed.
    while (!(await this.#isCovered(plan))) await this.#pause(untilMs)
    const pending = new Map<string, readonly LiveNode[]>()
    list.pending = pending
    const positions = Array.from(this.#heard, ([shard, offset]) => ({ shard, offset }))
    const leftMs = Math.max(0, untilMs - clock.monotonicMs())
    if (!(await index.reached(positions, leftMs))) throw behind('the index is behind')
    if (isOther()) return list.isOver
    this.reads++
    const generation = (): number => {
      const unready = isOther() ? 'its fields are others now' : index.unready()
      if (unready !== null) throw behind(unready)
      return index.generation
    }
    let json: string
    try {
      json = await runner.run(plan.read, LIMITS.graph.deadlineMs, generation, caller())
    } catch (error) {
      if (isOther()) return list.isOver
      throw error
    }
    // The window is of one moment: of what the index had, and what the feed has told since.
    await this.catchUp(new Map(), untilMs)
    // Another read was begun, or too much has changed.
    if (isOther() || list.pending !== pending) return list.isOver
    const { nodes, more } = plan.nodesOf(json)
    list.begin(nodes, more)
    for (const [actorId, matching] of pending) list.apply(actorId, matching)
    return !list.lacks
  }

  async #isCovered(plan: LivePlan): Promise<boolean> {
    await this.#sync()
    for (let shard = 0; shard < this.#options.shards; shard++) {
      const covered = this.#options.watch.covered(STREAM, shard)
      if (covered === null || this.lacks(plan, covered.number)) return false
    }
    return true
  }

  async #indexed(least: Offsets): Promise<Offsets> {
    const { applied, heads, shards } = this.#options
    const indexed = new Map(least)
    const raise = (shard: number, offset: number): void => {
      indexed.set(shard, Math.max(offset, indexed.get(shard) ?? 0))
    }
    for (let shard = 0; shard < shards; shard++) raise(shard, (await applied(shard)) ?? 0)
    for (const { shard, offset } of heads()) if (shard >= 0) raise(shard, offset)
    return indexed
  }

  #hasHeard(positions: Offsets): boolean {
    for (const [shard, offset] of positions) {
      if ((this.#heard.get(shard) ?? 0) < offset) return false
    }
    return true
  }

  async #pause(untilMs: number): Promise<void> {
    const { clock } = this.#options
    if (clock.monotonicMs() >= untilMs) throw behind('not all shards can be followed')
    await new Promise<void>((resolve) => void clock.after(LIMITS.live.queryRowsMs, resolve))
  }

  /**
   * Has the owners say how far they are, and what is wanted of them. Whoever comes while they are
   * asked shares the next time: what is said then is of a moment after it came.
   */
  #sync(): Promise<void> {
    if (this.#syncing === null) {
      this.#syncing = this.#ask().finally(() => (this.#syncing = null))
      return this.#syncing
    }
    this.#nextSync ??= this.#syncing.then(() => {
      this.#nextSync = null
      return this.#sync()
    })
    return this.#nextSync
  }

  #ask(): Promise<void> {
    const types = [...this.#types.keys()].sort()
    this.#number++
    for (const type of this.#typesFrom.keys()) {
      if (!this.#types.has(type)) this.#typesFrom.delete(type)
    }
    for (const type of types) {
      if (!this.#typesFrom.has(type)) this.#typesFrom.set(type, this.#number)
    }
    return this.#options.watch.want(STREAM, types.length === 0 ? null : { types })
  }
}

function behind(why: string): RequestError {
  return new RequestError('INDEX_BEHIND', `the live query can't be read now: ${why}; try again`)
}
