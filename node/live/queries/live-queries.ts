// All live queries of one member. Those that ask and show the same stand on one list, which is read
// from the index once, at a position of every shard that is known, and goes on from the feed of all
// members; where something on its way was lost it is read again, and clients are told the
// difference. Source: CONTRACT 1.10, PROTOCOL 3.15, 3.18.
//
//   a list: reading --index--> live --gap, runs low--> reading; nobody stands on it: over
//   a query: on a list --other plan--> on another; any --end--> ended

import type { Covered } from '../../../cluster/feed/watch/coverage.ts'
import type { FeedWatch, WatchedStream } from '../../../cluster/feed/watch/feed-watch.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { Caller } from '../../graph/plans/plan-queue.ts'
import { BeginTurns } from './begin-turns.ts'
import { ListReader, type ListReaderOptions, STREAM } from './list-reader.ts'
import { ListRoom } from './list-room.ts'
import { LiveList } from './live-list.ts'
import type { LivePlan } from './live-plan.ts'
import type { NodeChange, NodeChanges } from './node-changes.ts'
import { OwnNodes } from './own-nodes.ts'
import { QueryPlaces } from './query-places.ts'
import { ServedFields } from './served-fields.ts'
import type { ServedFieldsOptions } from './served-fields.ts'
import { type QueryTaker, StandingQuery } from './standing-query.ts'
import { TermIndex } from './term-index.ts'

export interface LiveQueriesOptions extends ListReaderOptions {
  readonly watch: Pick<FeedWatch, 'add' | 'want' | 'covered'>
  readonly changes: Pick<NodeChanges, 'matcher'>
  readonly served: ServedFieldsOptions['served']
}

type List = LiveList<StandingQuery>

const NONE: ReadonlySet<List> = new Set()

export class LiveQueries implements WatchedStream {
  readonly name = STREAM
  readonly #options: LiveQueriesOptions
  readonly #reader: ListReader
  readonly #fields: ServedFields
  readonly #all = new Set<StandingQuery>()
  /** By what they ask and show. */
  readonly #lists = new Map<string, List>()
  readonly #byNode = new Map<string, TermIndex<List>>()
  readonly #byActor = new Map<string, Set<List>>()
  readonly #dirty = new Set<List>()
  readonly #held = new Set<StandingQuery>()
  readonly #callers = new WeakMap<StandingQuery, Caller>()
  readonly #places = new QueryPlaces()
  readonly #room = new ListRoom()
  readonly #begins: BeginTurns
  readonly #heard = new Map<number, number>()
  #heardCopy: ReadonlyMap<number, number> | null = null
  #changes = 0
  #asked = 0
  #isFlushDue = false
  #cancelTick: () => void

  constructor(options: LiveQueriesOptions) {
    this.#options = options
    const { served, clock } = options
    this.#fields = new ServedFields({ served, clock, all: this.#all })
    this.#reader = new ListReader(options, { heard: this.#heard, fields: this.#fields })
    this.#begins = new BeginTurns(clock)
    options.watch.add(this)
    this.#cancelTick = this.#nextTick()
  }

  get size(): number {
    return this.#all.size
  }

  /** How many different ones there are. */
  get lists(): number {
    return this.#lists.size
  }

  /** Characters that they and their lists hold. */
  get heldChars(): number {
    return this.#room.chars
  }

  /** Since the start: reads from the index, and how often lists were asked of a change. */
  get counts(): { readonly reads: number; readonly changes: number; readonly asked: number } {
    return { reads: this.#reader.reads, changes: this.#changes, asked: this.#asked }
  }

  /** Up to where the feed of each shard is in all lists; another object when it is further. */
  get heard(): ReadonlyMap<number, number> {
    return (this.#heardCopy ??= new Map(this.#heard))
  }

  stop(): void {
    this.#cancelTick()
    for (const query of this.#all) {
      query.isEnded = true
      query.list.queries.clear()
    }
    this.#all.clear()
    this.#reader.stop()
  }

  matcher(interest: unknown): ReturnType<NodeChanges['matcher']> {
    return this.#options.changes.matcher(interest)
  }

  /** Resolves when one more may begin. */
  turn(caller: Caller): Promise<void> {
    return this.#begins.enter(caller)
  }

  /**
   * Stands from now; `read` fills its list. Throws 429 past the bounds of the member and a session.
   */
  open(plan: LivePlan, taker: QueryTaker, caller: Caller): StandingQuery {
    this.#places.enter(caller)
    let chars: number
    try {
      chars = this.#room.enter(caller, plan)
    } catch (error) {
      this.#places.leave(caller)
      throw error
    }
    const query = new StandingQuery(taker, this.#listOf(plan, caller), chars)
    this.#callers.set(query, caller)
    this.#all.add(query)
    query.list.queries.add(query)
    return query
  }

  end(query: StandingQuery): void {
    if (query.isEnded) return
    query.isEnded = true
    this.#all.delete(query)
    this.#held.delete(query)
    const caller = this.#callers.get(query)!
    this.#places.leave(caller)
    this.#room.leave(caller, query.chars)
    this.#fields.forget(query)
    this.#leave(query, query.list)
  }

  /** It asks or shows something else from now on. Nothing is told of the former list. */
  replan(query: StandingQuery, plan: LivePlan): void {
    const former = query.list
    query.list = this.#listOf(plan, this.#callers.get(query)!)
    query.list.queries.add(query)
    this.#leave(query, former)
    query.forget()
    // One that is read for the first time goes on with the other list.
    if (!query.isBegun) return
    void this.read(query, this.heard).then(
      () => this.#readAnew(query),
      (error: unknown) => this.#fail(query, error),
    )
  }

  /** Its client may be told again. */
  wake(query: StandingQuery): void {
    if (query.flush()) this.#held.delete(query)
  }

  // --- from the index ---------------------------------------------------------------------

  /**
   * The list of the query is live, with what is at these offsets. Rejects with RequestError where
   * it can't be read now.
   */
  async read(query: StandingQuery, least: ReadonlyMap<number, number>): Promise<void> {
    const caller = this.#callers.get(query)!
    for (let tries = 1; !query.isEnded; tries++) {
      const { list } = query
      if (!list.isLive) await (list.filling ?? this.#fill(list))
      await this.turn(caller)
      await this.#reader.catchUp(least)
      await this.turn(caller)
      if (list === query.list && list.isLive) return
      if (tries >= LIMITS.live.queryReadsMax) {
        throw new RequestError('INDEX_BEHIND', 'the live query changes too quickly; try again')
      }
    }
  }

  #fill(list: List): Promise<void> {
    const filled = this.#reader.fill(list, () => {
      const [first] = list.queries
      return this.#callers.get(first!)!
    })
    list.filling = filled.then(() => this.#count(list))
    return list.filling
  }

  /** Those that stand on a list that holds too much end. */
  #count(list: List): void {
    const refused = this.#room.count(list)
    if (refused !== null) for (const query of [...list.queries]) this.#fail(query, refused)
  }

  #readAgain(list: List): void {
    // One that is being read begins anew by itself.
    if (list.filling !== null) {
      if (list.pending !== null) list.pending = new Map()
      return
    }
    list.pending = new Map()
    void this.#fill(list).then(
      () => {
        for (const query of list.queries) this.#readAnew(query)
        this.#soon(list)
      },
      (error: unknown) => {
        for (const query of [...list.queries]) this.#fail(query, error)
      },
    )
  }

  #readAnew(query: StandingQuery): void {
    if (query.isEnded || query.isTold || !query.isBegun) return
    query.isTold = true
    this.#soon(query.list)
  }

  /** Better ended than behind without a word. */
  #fail(query: StandingQuery, error: unknown): void {
    if (query.isEnded) return
    query.taker.failed(error)
    this.end(query)
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
    this.#heardCopy = null
    for (const list of gap || isNew ? this.#lists.values() : lacking) {
      if (list.isFilled || list.pending !== null) this.#readAgain(list)
    }
  }

  #lacking(number: number): ReadonlySet<List> {
    if (this.#reader.hasAll(number)) return NONE
    return new Set([...this.#lists.values()].filter(({ plan }) => this.#reader.lacks(plan, number)))
  }

  #changed(change: NodeChange, lacking: ReadonlySet<List>): void {
    this.#changes++
    const { actorId } = change
    const nodes = this.#fields.completed(change.nodes)
    const source = new OwnNodes({ actorId, nodes })
    const touched = new Set([...this.#reader.reading, ...(this.#byActor.get(actorId) ?? [])])
    for (const [type, , doc] of nodes) this.#byNode.get(type)?.collect(doc, touched)
    for (const list of touched) {
      if (lacking.has(list)) continue
      this.#asked++
      try {
        this.#apply(list, source)
      } catch (error) {
        for (const query of [...list.queries]) this.#fail(query, error)
      }
    }
  }

  #apply(list: List, source: OwnNodes): void {
    const { clock } = this.#options
    const { actorId } = source
    this.#fields.update(list.queries)
    if (list.isOver) return
    const matching = list.plan.matching(source, () => clock.monotonicMs())
    if (list.pending !== null) {
      list.pending.set(actorId, matching)
      if (list.pending.size > LIMITS.live.queryChangesMax) list.pending = new Map()
    }
    if (!list.isFilled) return
    if (list.apply(actorId, matching)) this.#soon(list)
    this.#count(list)
    if (list.runsLow && list.isLive) this.#readAgain(list)
  }

  #soon(list: List): void {
    this.#dirty.add(list)
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    this.#options.clock.defer(this.#flushSome)
  }

  /** Thousands of lists that one change has made others keep nobody else waiting. */
  readonly #flushSome = (): void => {
    const { clock } = this.#options
    const endMs = clock.monotonicMs() + LIMITS.live.flushTurnMs
    for (const list of this.#dirty) {
      this.#dirty.delete(list)
      const { queries } = list
      this.#fields.update(queries)
      for (const query of queries) if (!query.flush()) this.#held.add(query)
      if (clock.monotonicMs() >= endMs) break
    }
    this.#isFlushDue = this.#dirty.size > 0
    if (this.#isFlushDue) clock.defer(this.#flushSome)
  }

  // --- which lists a change touches -------------------------------------------------------

  #listOf(plan: LivePlan, { group: owner }: Caller): List {
    const known = this.#lists.get(plan.text)
    if (known !== undefined) return known
    const list: List = new LiveList({ plan, owner }, this.#actorKept)
    this.#lists.set(plan.text, list)
    const index = this.#byNode.get(plan.node) ?? new TermIndex<List>()
    this.#byNode.set(plan.node, index.add(list, plan.step.filter))
    this.#reader.wants(plan)
    return list
  }

  #leave(query: StandingQuery, list: List): void {
    list.queries.delete(query)
    if (!list.isOver) return
    const { plan } = list
    this.#lists.delete(plan.text)
    this.#byNode.get(plan.node)?.delete(list)
    for (const set of [this.#reader.reading, this.#dirty]) set.delete(list)
    list.clear()
    this.#room.count(list)
    this.#reader.wantsNoMore(plan)
  }

  readonly #actorKept = (list: List, actorId: string, isKept: boolean): void => {
    const lists = this.#byActor.get(actorId) ?? new Set()
    if (isKept) this.#byActor.set(actorId, lists.add(list))
    else if (lists.delete(list) && lists.size === 0) this.#byActor.delete(actorId)
  }

  #nextTick(): () => void {
    return this.#options.clock.after(LIMITS.live.queryRetryMs, () => {
      this.#fields.follow()
      for (const query of this.#held) this.wake(query)
      this.#cancelTick = this.#nextTick()
    })
  }
}
