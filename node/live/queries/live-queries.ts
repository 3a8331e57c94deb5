// All live queries of one member. A query is read from the index once, at a position of every shard
// that is known, and goes on from the feed of all members; where something on its way was lost it
// is read again, and its client is told the difference. Source: CONTRACT 1.10, PROTOCOL 3.18.
//
//   reading --index--> live --gap, runs low, other plan--> reading; any --end--> ended

import type { Clock } from '../../../cluster/clock.ts'
import type { Covered } from '../../../cluster/feed/watch/coverage.ts'
import type { FeedWatch, WatchedStream } from '../../../cluster/feed/watch/feed-watch.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { Position } from '../../../protocol/ids.ts'
import type { Maybe } from '../../../storage/journal.ts'
import type { IndexWatch, PlanRunner } from '../../graph/graph.ts'
import type { Caller } from '../../graph/plans/plan-queue.ts'
import { type LivePlan, ownSource } from './live-plan.ts'
import type { LiveNode } from './live-window.ts'
import type { NodeChange, NodeChanges } from './node-changes.ts'
import { ReadTurns } from './read-turns.ts'
import { ServedFields } from './served-fields.ts'
import type { ServedFieldsOptions } from './served-fields.ts'
import { type QueryTaker, StandingQuery } from './standing-query.ts'
import { TermIndex } from './term-index.ts'

export interface LiveQueriesOptions {
  readonly watch: Pick<FeedWatch, 'add' | 'want' | 'covered'>
  readonly changes: Pick<NodeChanges, 'matcher'>
  readonly runner: PlanRunner
  readonly index: IndexWatch
  /** Offset up to which the index holds a shard; null: unknown. */
  readonly applied: (shard: number) => Maybe<number | null>
  /** Of the shards that this member has. */
  readonly heads: () => readonly Position[]
  /** How many shards the store has. */
  readonly shards: number
  readonly served: ServedFieldsOptions['served']
  readonly clock: Clock
}

const STREAM = 'nodes'
const NONE: ReadonlySet<StandingQuery> = new Set()

export class LiveQueries implements WatchedStream {
  readonly name = STREAM
  /** Since the start: reads from the index, and how often queries were asked of a change. */
  readonly counts = { reads: 0, changes: 0, asked: 0 }
  readonly #options: LiveQueriesOptions
  readonly #all = new Set<StandingQuery>()
  readonly #byNode = new Map<string, TermIndex<StandingQuery>>()
  readonly #byActor = new Map<string, Set<StandingQuery>>()
  readonly #reading = new Set<StandingQuery>()
  readonly #dirty = new Set<StandingQuery>()
  readonly #held = new Set<StandingQuery>()
  readonly #callers = new WeakMap<StandingQuery, Caller>()
  readonly #heard = new Map<number, number>()
  /** Number of the last interest, and of that from which each type is in it. */
  #number = 0
  readonly #typesFrom = new Map<string, number>()
  /** How many queries have each type. */
  readonly #typeUses = new Map<string, number>()
  #syncing: Promise<void> | null = null
  #nextSync: Promise<void> | null = null
  readonly #turns = new ReadTurns(LIMITS.live.queryReadsAtOnceMax)
  readonly #fields: ServedFields
  #isFlushDue = false
  #cancelTick: () => void

  constructor(options: LiveQueriesOptions) {
    this.#options = options
    const { served, clock } = options
    this.#fields = new ServedFields({ served, clock, all: this.#all })
    options.watch.add(this)
    this.#cancelTick = this.#nextTick()
  }

  get size(): number {
    return this.#all.size
  }

  /** Up to where the feed of each shard is in all windows. */
  get heard(): ReadonlyMap<number, number> {
    return this.#heard
  }

  stop(): void {
    this.#cancelTick()
    for (const query of this.#all) query.isEnded = true
    this.#all.clear()
    this.#turns.end()
  }

  matcher(interest: unknown): ReturnType<NodeChanges['matcher']> {
    return this.#options.changes.matcher(interest)
  }

  /** Stands from now; `read` fills it. Throws 429 past the member's bound. */
  open(plan: LivePlan, taker: QueryTaker, caller: Caller): StandingQuery {
    if (this.#all.size >= LIMITS.live.queriesOfMemberMax) {
      throw new RequestError('TOO_BUSY', 'this member has too many live queries; nothing was done')
    }
    const query = new StandingQuery(taker, plan, this.#actorKept)
    this.#callers.set(query, caller)
    this.#all.add(query)
    this.#enter(query)
    return query
  }

  end(query: StandingQuery): void {
    if (query.isEnded) return
    query.isEnded = true
    this.#leave(query)
    query.window.clear()
    for (const set of [this.#all, this.#reading, this.#dirty, this.#held]) set.delete(query)
    this.#fields.forget(query)
    if (this.#all.size === 0) void this.#sync()
  }

  /** It asks or shows something else from now on. Nothing is told of the former window. */
  replan(query: StandingQuery, plan: LivePlan): void {
    this.#leave(query)
    query.replan(plan)
    this.#enter(query)
    this.#readAgain(query)
  }

  /** Its client may be told again. */
  wake(query: StandingQuery): void {
    if (query.flush()) this.#held.delete(query)
  }

  // --- from the index ---------------------------------------------------------------------

  /** Fills the window. Rejects with RequestError where it can't be read now. */
  async read(query: StandingQuery, least: ReadonlyMap<number, number>): Promise<void> {
    await this.#turns.enter()
    try {
      const { clock } = this.#options
      const untilMs = clock.monotonicMs() + LIMITS.live.queryReadMs
      for (let tries = 1; !query.isEnded; tries++) {
        this.#reading.add(query)
        if (await this.#readOnce(query, least, untilMs)) return
        if (tries >= LIMITS.live.queryReadsMax) throw behind('the nodes change too quickly')
      }
    } finally {
      query.pending = null
      this.#reading.delete(query)
      this.#turns.leave()
    }
  }

  /** False: it was overtaken by what came meanwhile. */
  async #readOnce(
    query: StandingQuery,
    least: ReadonlyMap<number, number>,
    untilMs: number,
  ): Promise<boolean> {
    const { clock, index, runner } = this.#options
    this.#fields.follow()
    this.#fields.update(query)
    const { plan } = query
    const isOther = (): boolean =>
      this.#fields.isOutdated(query) || query.isEnded || query.plan !== plan
    // All owners tell of these nodes before it is read: what the index lacks comes from the feed.
    while (!(await this.#isCovered(plan))) await this.#pause(untilMs)
    const pending = new Map<string, readonly LiveNode[]>()
    query.pending = pending
    const positions = Array.from(this.#heard, ([shard, offset]) => ({ shard, offset }))
    const leftMs = Math.max(0, untilMs - clock.monotonicMs())
    if (!(await index.reached(positions, leftMs))) throw behind('the index is behind')
    this.counts.reads++
    const generation = (): number => {
      const unready = isOther() ? 'its fields are others now' : index.unready()
      if (unready !== null) throw behind(unready)
      return index.generation
    }
    const caller = this.#callers.get(query)!
    let json: string
    try {
      json = await runner.run(plan.read, LIMITS.graph.deadlineMs, generation, caller)
    } catch (error) {
      if (isOther()) return query.isEnded
      throw error
    }
    // And the feed comes to what the index may have had: the window is of one moment.
    const heads = await this.#indexed(least)
    while (!this.#hasHeard(heads)) {
      await this.#sync()
      if (!this.#hasHeard(heads)) await this.#pause(untilMs)
    }
    // Another read was begun, or too much has changed.
    if (isOther() || query.pending !== pending) return query.isEnded
    const { nodes, more } = plan.nodesOf(json)
    query.window.begin(nodes, more)
    for (const [actorId, matching] of pending) query.apply(actorId, matching)
    return !query.window.lacks
  }

  async #isCovered(plan: LivePlan): Promise<boolean> {
    await this.#sync()
    for (let shard = 0; shard < this.#options.shards; shard++) {
      const covered = this.#options.watch.covered(STREAM, shard)
      if (covered === null || this.#lacks(plan, covered.number)) return false
    }
    return true
  }

  /** The interest of that number has not all types of the plan. */
  #lacks({ types }: LivePlan, number: number): boolean {
    for (const type of types) if (number < (this.#typesFrom.get(type) ?? Infinity)) return true
    return false
  }

  async #indexed(least: ReadonlyMap<number, number>): Promise<ReadonlyMap<number, number>> {
    const { applied, heads, shards } = this.#options
    const indexed = new Map(least)
    const raise = (shard: number, offset: number): void => {
      indexed.set(shard, Math.max(offset, indexed.get(shard) ?? 0))
    }
    for (let shard = 0; shard < shards; shard++) raise(shard, (await applied(shard)) ?? 0)
    for (const { shard, offset } of heads()) if (shard >= 0) raise(shard, offset)
    return indexed
  }

  #hasHeard(positions: ReadonlyMap<number, number>): boolean {
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
    const types = [...this.#typeUses.keys()].sort()
    this.#number++
    for (const type of this.#typesFrom.keys()) {
      if (!this.#typeUses.has(type)) this.#typesFrom.delete(type)
    }
    for (const type of types) {
      if (!this.#typesFrom.has(type)) this.#typesFrom.set(type, this.#number)
    }
    return this.#options.watch.want(STREAM, types.length === 0 ? null : { types })
  }

  #readAgain(query: StandingQuery): void {
    // One that is being read begins anew by itself.
    if (query.pending !== null) {
      query.pending = new Map()
      return
    }
    query.pending = new Map()
    this.#reading.add(query)
    void this.read(query, this.#heard).then(
      () => {
        if (query.isEnded) return
        if (!query.isTold && query.mustReset) query.isTold = true
        this.#soon(query)
      },
      (err: unknown) => {
        if (query.isEnded) return
        // Better ended than behind without a word.
        query.taker.failed(err)
        this.end(query)
      },
    )
  }

  // --- from the feed ----------------------------------------------------------------------

  take({ shard, to, items, gap, number }: Covered): void {
    // Nodes of the system shard don't say whose they are: nothing of it is followed.
    if (shard < 0) return
    this.#fields.follow()
    const isNew = !this.#heard.has(shard)
    // Its owner had not heard yet of what they want: what it says is not all.
    const lacking = this.#lacking(number)
    for (const [, value] of items) this.#changed(value as NodeChange, lacking)
    this.#heard.set(shard, to)
    for (const query of gap || isNew ? this.#all : lacking) {
      if (query.isTold || query.pending !== null) this.#readAgain(query)
    }
  }

  #lacking(number: number): ReadonlySet<StandingQuery> {
    if (Math.max(0, ...this.#typesFrom.values()) <= number) return NONE
    return new Set([...this.#all].filter(({ plan }) => this.#lacks(plan, number)))
  }

  #changed({ actorId, nodes }: NodeChange, lacking: ReadonlySet<StandingQuery>): void {
    this.counts.changes++
    const whole = this.#fields.completed(nodes)
    const source = ownSource(actorId, whole)
    const touched = new Set([...this.#reading, ...(this.#byActor.get(actorId) ?? [])])
    for (const [type, , doc] of whole) {
      for (const query of this.#byNode.get(type)?.candidates(doc) ?? []) touched.add(query)
    }
    for (const query of touched) {
      if (lacking.has(query)) continue
      this.counts.asked++
      try {
        this.#apply(query, actorId, source)
      } catch (error) {
        query.taker.failed(error)
        this.end(query)
      }
    }
  }

  #apply(query: StandingQuery, actorId: string, source: ReturnType<typeof ownSource>): void {
    const { clock } = this.#options
    this.#fields.update(query)
    if (query.isEnded) return
    const matching = query.plan.matching(source, actorId, () => clock.monotonicMs())
    if (query.pending !== null) {
      query.pending.set(actorId, matching)
      if (query.pending.size > LIMITS.live.queryChangesMax) query.pending = new Map()
    }
    if (!query.isTold && query.pending !== null) return
    if (query.apply(actorId, matching)) this.#soon(query)
    if (query.window.runsLow && query.pending === null) this.#readAgain(query)
  }

  #soon(query: StandingQuery): void {
    this.#dirty.add(query)
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    this.#options.clock.defer(() => {
      this.#isFlushDue = false
      for (const one of this.#dirty) {
        this.#fields.update(one)
        if (!one.flush()) this.#held.add(one)
      }
      this.#dirty.clear()
    })
  }

  // --- which queries a change touches -----------------------------------------------------

  #enter(query: StandingQuery): void {
    const { node, step, types } = query.plan
    for (const type of types) this.#typeUses.set(type, 1 + (this.#typeUses.get(type) ?? 0))
    const index = this.#byNode.get(node) ?? new TermIndex<StandingQuery>()
    this.#byNode.set(node, index)
    index.add(query, step.filter)
  }

  #leave(query: StandingQuery): void {
    const { node, types } = query.plan
    this.#byNode.get(node)?.delete(query)
    for (const type of types) {
      const uses = this.#typeUses.get(type)! - 1
      if (uses > 0) this.#typeUses.set(type, uses)
      else this.#typeUses.delete(type)
    }
  }

  readonly #actorKept = (query: StandingQuery, actorId: string, isKept: boolean): void => {
    const queries = this.#byActor.get(actorId) ?? new Set()
    if (isKept) this.#byActor.set(actorId, queries.add(query))
    else if (queries.delete(query) && queries.size === 0) this.#byActor.delete(actorId)
  }

  #nextTick(): () => void {
    return this.#options.clock.after(LIMITS.live.queryRetryMs, () => {
      this.#fields.follow()
      for (const query of this.#held) this.wake(query)
      this.#cancelTick = this.#nextTick()
    })
  }
}

function behind(why: string): RequestError {
  return new RequestError('INDEX_BEHIND', `the live query can't be read now: ${why}; try again`)
}
