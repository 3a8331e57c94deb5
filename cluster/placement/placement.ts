// Placement: keeps this member's shards as the control rows say. Each new view of the cluster is
// held against what is served here: shards of the dead are claimed, rows that carry this
// incarnation are served, tenures that somebody newer has ended are dropped, and the rebalancer
// moves shards to their targets. Source: PROTOCOL 3.3-3.5, 3.8.

import { LIMITS } from '../../config/limits.ts'
import { Outage } from '../../protocol/outage.ts'
import type { ShardRow } from '../../storage/control.ts'
import type { Maybe, Tenure } from '../../storage/journal.ts'
import { Membership } from '../membership/membership.ts'
import type { ClusterView } from '../membership/view.ts'
import { Routes } from '../routing/routes.ts'
import type { Route } from '../routing/routes.ts'
import type { Notice, OwnersNotice, Parcel } from '../wire.ts'
import { Announced } from './announced.ts'
import { Claimer } from './claimer.ts'
import { Drain } from './drain.ts'
import { Handoff } from './handoff.ts'
import { claimAfterMs, isRebalancer } from './moves.ts'
import type { Move } from './moves.ts'
import type { Overview, Ownership } from './ownership.ts'
import { overviewOf } from './overview.ts'
import { Rebalancer } from './rebalancer.ts'
import type { PlacementOptions, PlacementStats } from './placement-options.ts'

interface Unowned {
  readonly incarnation: string
  readonly sinceMs: number
}

export class Placement implements Ownership {
  readonly membership: Membership
  readonly handoff: Handoff
  incarnation = ''
  readonly #options: PlacementOptions
  readonly #claimer: Claimer
  readonly #announced: Announced
  readonly #drain: Drain
  readonly #outage: Outage
  readonly #rebalancer: Rebalancer
  readonly #routes = new Routes()
  /** Steps that wait or run, one a shard. */
  readonly #wanted = new Map<number, () => Promise<void>>()
  readonly #running = new Set<number>()
  readonly #unowned = new Map<number, Unowned>()
  /** Incarnations that were seen up or leaving. */
  #seen = new Set<string>()
  #joins = 0
  #stopped = false

  constructor(options: PlacementOptions) {
    this.#options = options
    const { control, world, log, member, address, version, beat, former, host } = options
    const { clock } = world
    this.membership = new Membership({
      control,
      member,
      address,
      version,
      world,
      log,
      isWireUp: () => options.wire.isUp,
      ...(beat ? { beat } : null),
      ...(former ? { former } : null),
      onLost: (why) => this.#lost(why),
    })
    const incarnation = (): string => this.incarnation
    const mayServe = (): boolean => this.mayServe()
    this.#outage = new Outage({
      log,
      now: () => clock.monotonicMs(),
      failing: 'shards could not be taken over; they are tried again',
      back: 'no shard is left to be taken over',
    })
    const own = { member, incarnation, mayServe, outage: this.#outage }
    const claimer = new Claimer({ control, clock, log, host, ...own })
    this.#claimer = claimer
    const isBeating = (other: string): boolean => this.membership.isBeating(other)
    const requestMove = (move: Move): void => this.#requestMove(move)
    this.#rebalancer = new Rebalancer({ clock, member, isBeating, requestMove })
    const tell = (to: string, notice: Notice): void =>
      options.wire.tell([to], notice, this.incarnation)
    this.#announced = new Announced({ control, clock, host, claimer, incarnation, tell })
    this.handoff = new Handoff({
      control,
      clock,
      log,
      host,
      member,
      incarnation,
      tell,
      isWireUp: () => options.wire.isUp,
      isUp: (other) => this.#isUp(other),
      isBeating,
      learn: (shard, route) => this.learn(shard, route),
    })
    const { membership, handoff } = this
    this.#drain = new Drain({ clock, log, host, membership, handoff })
  }

  async start(): Promise<void> {
    this.membership.onView((view) => this.#look(view))
    await this.#live()
  }

  /** Begins an incarnation: its row first, then its inbox. */
  async #live(): Promise<void> {
    const { wire, inbox, log, member } = this.#options
    const incarnation = await this.membership.join()
    this.incarnation = incarnation
    this.#joins++
    await wire.serve(incarnation, inbox)
    if (this.incarnation !== incarnation) return wire.close(incarnation)
    log.info({ member, incarnation }, 'this member has joined the cluster')
    // If the control rows can't be read now, the death watch tells, and reads them again.
    await this.membership.refresh().catch(() => null)
  }

  // --- what the member asks ---------------------------------------------------------------

  route(shard: number): Route | null {
    const route = this.#routes.of(shard)
    if (route === null || this.membership.view?.isDead(route.incarnation)) return null
    return this.isCutOff(shard) ? null : route
  }

  /**
   * The owner of the shard can't be asked: it is cut off, while this member's wire is up. What is
   * asked of it waits for its next owner.
   */
  isCutOff(shard: number): boolean {
    const owner = this.#routes.of(shard)?.incarnation
    if (owner === undefined || owner === this.incarnation) return false
    return this.#options.wire.isUp && this.membership.view?.isCutOff(owner) === true
  }

  /** Why requests should go to other members, if they should: its wire is down, and not theirs. */
  wireFault(): string | null {
    const { view, wire } = this.membership
    if (!view || wire.said === 'up' || !this.#isApart(view)) return null
    return !wire.wasUp || view.isCutOff(this.incarnation)
      ? 'the wire of this member is down (Redis), while that of others is up'
      : null
  }

  #isApart(view: ClusterView): boolean {
    const { membership } = this
    return membership.wire.said === 'down' && view.hasOtherWired(this.#options.member)
  }

  learn(shard: number, route: Route): void {
    if (!this.#routes.learn(shard, route)) return
    const tenure = this.#options.host.tenure(shard)
    // Somebody newer serves it: the row is looked at, and it decides.
    if (tenure && tenure.epoch < route.epoch) this.#refresh()
  }

  mayRead(): boolean {
    return this.mayServe()
  }

  servedMs(): number {
    return this.membership.leasedMs()
  }

  mayServe(): boolean {
    return this.incarnation !== '' && this.membership.mayServe()
  }

  admits({ from }: Parcel): Maybe<boolean> {
    if (from === this.incarnation || this.#isFreshlyUp(from)) return true
    return this.membership.refresh().then(
      () => this.#isFreshlyUp(from),
      () => false,
    )
  }

  /** Seen alive in a view read lately: who slept for longer may hold what marks have forgotten. */
  #isFreshlyUp(incarnation: string): boolean {
    const { view } = this.membership
    if (!view) return false
    const ageMs = this.#options.world.clock.monotonicMs() - view.readAtMs
    return ageMs <= LIMITS.membership.leaseMs && this.#seen.has(incarnation)
  }

  #isUp(incarnation: string): boolean {
    const live = this.membership.view?.live() ?? []
    return live.some((row) => row.incarnation === incarnation)
  }

  others(): readonly string[] {
    return [...this.#seen].filter((incarnation) => incarnation !== this.incarnation)
  }

  steppedDown(shard: number, why: string): void {
    this.#options.log.warn({ shard, why }, 'stepped down from a shard')
    // The row says whose it is now: another's, or ours to claim again.
    this.#refresh()
  }

  async reclaim(shard: number): Promise<Tenure | null> {
    const row = await this.#options.control.shard(shard)
    const tenure = await this.#claimer.raise(row)
    if (tenure) this.#claimer.used(shard, tenure.epoch)
    return tenure
  }

  hear(notice: OwnersNotice, from: string): void {
    const { host } = this.#options
    switch (notice.kind) {
      case 'owns':
        this.#rebalancer.moved(notice.shard)
        this.handoff.served(notice.shard, notice.epoch)
        this.learn(notice.shard, { incarnation: from, epoch: notice.epoch })
        if (this.#isRebalancer()) this.#refresh()
        return
      case 'stopped':
        this.#refresh()
        return
      case 'hand-over':
        void this.#handOver(notice.shard, notice.epoch, notice.to)
        return
      case 'expect':
        this.#expect(notice.shard, notice.epoch, from)
        return
      case 'ready':
        this.handoff.ready(notice.shard, notice.epoch)
        return
      case 'handed':
        this.#want(notice.shard, () => this.#announced.serve(notice.shard, notice))
        return
      case 'retry-parked':
        host.retryParked()
        return
      case 'system':
        host.pushed(notice)
    }
  }

  // --- views ------------------------------------------------------------------------------

  #refresh(): void {
    if (this.#stopped) return
    this.membership.refresh().catch(() => {
      // The next look comes by itself.
    })
  }

  #look(view: ClusterView): void {
    if (this.#stopped || this.incarnation === '') return
    this.#noticeDeaths(view)
    for (const row of view.shards.values()) {
      if (!view.isDead(row.incarnation)) this.#routes.learn(row.shard, row)
      this.#judge(view, row)
    }
    if (this.#wanted.size === 0 && this.#running.size === 0) this.#outage.answered()
    // Without a wire nobody hears what is asked.
    if (this.membership.wire.said === 'up') this.#rebalancer.look(view)
    const incarnation = this.incarnation
    const isCutOff = (): boolean => {
      const isOver = this.#stopped || incarnation !== this.incarnation
      return !isOver && this.membership.view?.isCutOff(incarnation) === true
    }
    if (isCutOff()) void this.#drain.giveBack(isCutOff)
  }

  #noticeDeaths(view: ClusterView): void {
    const { wire, host } = this.#options
    const living = new Set<string>()
    for (const { incarnation, state } of view.members.values()) {
      if (state === 'up' || state === 'leaving') living.add(incarnation)
    }
    const gone = [...this.#seen].filter((incarnation) => !living.has(incarnation))
    this.#seen = living
    this.#rebalancer.living(living)
    for (const incarnation of gone) {
      if (incarnation === this.incarnation) continue
      wire.close(incarnation)
      host.died(incarnation)
    }
  }

  #judge(view: ClusterView, row: ShardRow): void {
    const { host, world } = this.#options
    const { shard, epoch, incarnation } = row
    const tenure = host.tenure(shard)
    if (incarnation === this.incarnation) {
      this.#unowned.delete(shard)
      // A view may be older than what is served, or than what is under way.
      if (tenure && tenure.state !== 'stopped' && tenure.epoch >= epoch) return
      if (this.#announced.awaits(shard, epoch)) return
      this.#want(shard, () => this.#announced.serve(shard))
      return
    }
    if (
      tenure &&
      (tenure.state === 'serving' || tenure.state === 'sealed') &&
      epoch > tenure.epoch
    ) {
      if (!this.handoff.underWay.has(shard)) tenure.stepDown('another member owns this shard')
    }
    if (!view.isDead(incarnation)) {
      this.#unowned.delete(shard)
      return
    }
    const nowMs = world.clock.monotonicMs()
    const known = this.#unowned.get(shard)
    const sinceMs = known?.incarnation === incarnation ? known.sinceMs : nowMs
    this.#unowned.set(shard, { incarnation, sinceMs })
    const afterMs = claimAfterMs(view, shard, this.#options.member)
    if (afterMs === null || nowMs - sinceMs < afterMs || this.#isApart(view)) return
    this.#want(shard, () => this.#claimer.force(shard))
  }

  /** One step a shard at a time, few shards at once; a step looks at the rows itself first. */
  #want(shard: number, step: () => Promise<void>): void {
    this.#wanted.set(shard, step)
    this.#pump()
  }

  #pump(): void {
    for (const [shard, step] of this.#wanted) {
      if (this.#stopped || this.#running.size >= LIMITS.placement.claimsInFlightMax) return
      if (this.#running.has(shard)) continue
      this.#wanted.delete(shard)
      if (this.handoff.underWay.has(shard)) continue
      this.#running.add(shard)
      step()
        .catch((error: unknown) => this.#outage.failed({ err: error, shard }))
        .finally(() => {
          this.#running.delete(shard)
          this.#pump()
        })
    }
  }

  // --- planned moves ----------------------------------------------------------------------

  #isRebalancer(): boolean {
    const { view } = this.membership
    return view !== null && isRebalancer(view, this.#options.member)
  }

  #requestMove({ shard, epoch, from, to }: Move): void {
    if (from === this.incarnation) void this.#handOver(shard, epoch, to)
    else this.#options.wire.tell([from], { kind: 'hand-over', shard, epoch, to }, this.incarnation)
  }

  async #handOver(shard: number, epoch: number, to: string): Promise<void> {
    // The rebalancer may have seen the target first: it asks again only when a move has failed.
    if (!this.#isUp(to)) await this.membership.refresh().catch(() => null)
    const tenure = this.#options.host.tenure(shard)
    if (tenure?.epoch !== epoch || to === this.incarnation || !this.mayServe()) return
    const target = this.membership.view?.live().find((row) => row.incarnation === to)
    if (target) await this.handoff.handOver(shard, target)
  }

  /** The target's side: holds what comes for the shard and reads ahead. */
  #expect(shard: number, epoch: number, from: string): void {
    if (this.#options.host.tenure(shard) || this.#running.has(shard) || this.#stopped) return
    this.#announced.expect(shard, epoch, from)
  }

  // --- the end of an incarnation -----------------------------------------------------------

  /** Declared dead: nothing of this incarnation counts any more; another begins at once. */
  #lost(why: string): void {
    const { log, host, wire } = this.#options
    const old = this.incarnation
    if (this.#stopped || old === '') return
    log.error({ why, incarnation: old }, 'this member was given up; it starts again')
    this.incarnation = ''
    this.#wanted.clear()
    this.#announced.reset()
    this.#unowned.clear()
    this.#rebalancer.reset()
    this.handoff.reset()
    this.#claimer.reset()
    host.abandon()
    wire.close(old)
    this.#live().catch((error: unknown) => log.error({ err: error }, 'joining again has failed'))
  }

  async leave(deadlineMs: number): Promise<void> {
    const { world, host, wire, log } = this.#options
    const until = world.clock.monotonicMs() + deadlineMs
    await this.membership.startLeaving()
    await this.membership.refresh().catch(() => null)
    while (world.clock.monotonicMs() < until && (await this.#drain.some()));
    // Whoever got them says that they are served; that may be lost on the way.
    const servedBy = Math.min(until, world.clock.monotonicMs() + LIMITS.placement.moveServedMs)
    while (world.clock.monotonicMs() < servedBy && this.handoff.awaited > 0) await this.#pause()
    // Once it has left nobody takes an envelope of this incarnation any more.
    while (world.clock.monotonicMs() < until && host.pending() > 0) await this.#pause()
    for (const tenure of host.tenures()) await tenure.seal()
    await this.membership.left()
    wire.tell(this.others(), { kind: 'stopped' }, this.incarnation)
    log.info({}, 'this member has left')
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#options.world.clock.after(LIMITS.membership.beatRetryMs, resolve)
    })
  }

  stop(): void {
    this.#stopped = true
    this.#wanted.clear()
    this.membership.close()
    this.#options.wire.close(this.incarnation)
  }

  get stats(): PlacementStats {
    const { pauseMs, pausesMs, count: handoffs } = this.handoff
    return { claims: this.#claimer.served, handoffs, joins: this.#joins, pauseMs, pausesMs }
  }

  overview(): Overview {
    return overviewOf(this.membership.view, (shard) => {
      return this.handoff.underWay.has(shard) || this.#rebalancer.isMoving(shard)
    })
  }
}
