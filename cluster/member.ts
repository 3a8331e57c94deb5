// A member: one process of the cluster, with its tenures of shards, its edge and the system maps.
// Embedded it is the only one and has every shard; in a cluster the control rows say which.
// Stations see it as an ActorSystem. Source: ARCHITECTURE 2, PROTOCOL 3.5, 3.6, 3.16.

import type { Behaviour } from '../protocol/behaviour.ts'
import { LIMITS } from '../config/limits.ts'
import { errorItem } from '../protocol/errors.ts'
import { SYSTEM_SHARD, uuidMaker } from '../protocol/ids.ts'
import type { Position } from '../protocol/ids.ts'
import { Outage } from '../protocol/outage.ts'
import type { Envelope, Reply, WireReply } from '../protocol/message.ts'
import type { ActorRequest, ActorSystem } from './actor-system.ts'
import type { FedNotice, WatchNotice } from './feed/watch/watch-notices.ts'
import type { Ownership, TenureHost } from './placement/ownership.ts'
import { Placement } from './placement/placement.ts'
import { SoleOwnership } from './placement/sole.ts'
import { Edge } from './routing/edge.ts'
import { CreateBatching } from './routing/create-batching.ts'
import type { Route } from './routing/routes.ts'
import { Committer } from './sharding/commit/committer.ts'
import type { OnCommitted, ShardContext } from './sharding/core.ts'
import { Shard } from './sharding/shard.ts'
import { ActivationMemory } from './sharding/turn/activation-memory.ts'
import { trimStep } from './sharding/commit/trimmer.ts'
import { SystemFollower } from './system-follower.ts'
import { SystemMaps } from './system-view.ts'
import type { Notice, Parcel, Wire } from './wire.ts'
import type { MemberOptions } from './member-options.ts'

export class Member implements ActorSystem {
  readonly behaviours: ReadonlyMap<string, Behaviour>
  readonly system: SystemMaps
  readonly edge: Edge
  readonly committer: Committer
  /** Present tenures, claimed or about to be. */
  readonly shards = new Map<number, Shard>()
  readonly ownership: Ownership
  /** Told what other members say of watching the feed (PROTOCOL 3.18). */
  onWatch: ((notice: WatchNotice | FedNotice, from: string) => void) | null = null
  readonly #options: MemberOptions
  readonly #follower: SystemFollower
  readonly #context: ShardContext
  #followed = 0
  #stopped = false

  constructor(options: MemberOptions) {
    this.#options = options
    const { journal, log } = options
    const { clock, random } = options.world
    this.behaviours = new Map(options.behaviours.map((b) => [b.type, b]))
    this.system = new SystemMaps(this.behaviours)
    this.#follower = new SystemFollower({
      journal,
      maps: this.system,
      clock,
      log,
      onTail: ({ epoch }) => this.#epochSeen(epoch),
    })
    const makeUuid = uuidMaker(random)
    const newUuid = (tail?: number, mask?: number): string => makeUuid(clock.nowMs(), tail, mask)
    this.committer = new Committer({
      log: journal.log,
      clock,
      throttleMs: options.throttleMs,
      onError: (error) => log.error({ err: error }, 'an append failed'),
    })
    this.ownership = this.#ownership(newUuid)
    const gathering = new CreateBatching({ clock, shards: this.shards })
    this.edge = new Edge({
      behaviours: this.behaviours,
      shards: journal.identity.shards,
      clock,
      newUuid,
      gather: () => gathering.next(),
      deliversOnce: (to) => options.wireDeliversOnce && to === this.ownership.incarnation,
      route: (shard) => this.ownership.route(shard),
      isCutOff: (shard) => this.ownership.isCutOff(shard),
      learn: (shard, route) => this.ownership.learn(shard, route),
      send: (to, shard, envelope, respond) => this.#send(to, shard, envelope, respond),
    })
    this.#context = this.#makeContext(newUuid)
  }

  #ownership(newUuid: () => string): Ownership {
    const { cluster, journal, wire, world, log, onLost } = this.#options
    const { memberId: member, address, version } = this.#options
    const host = this.#host()
    const named = { member, address, version }
    if (cluster === null) {
      const { shards } = journal.identity
      const incarnation = newUuid()
      const { clock } = world
      const store = { shards, log: journal.log, clock, onLost }
      return new SoleOwnership({ ...named, incarnation, ...store }, host)
    }
    return new Placement({ ...cluster, ...named, wire, world, log, host, inbox: this.#inbox() })
  }

  #host(): TenureHost {
    return {
      open: (number) => {
        const shard = new Shard(number, this.#context)
        this.shards.get(number)?.stepDown('a new tenure begins')
        this.shards.set(number, shard)
        return shard
      },
      tenure: (number) => this.shards.get(number) ?? null,
      tenures: () => this.shards.values(),
      forget: (shard) => this.#forget(shard),
      serving: (shard) => this.#serving(shard),
      died: (incarnation) => this.edge.died(incarnation),
      abandon: () => this.#abandon(),
      pending: () => this.pending,
      retryParked: () => this.#options.onRetryParked?.(),
      pushed: ({ entries, first }) => this.#follower.take(entries, first),
    }
  }

  #inbox() {
    return {
      receive: (parcel: Parcel, respond: (reply: WireReply) => void) =>
        this.#receive(parcel, respond),
      hear: this.#hear,
    }
  }

  readonly #hear = (notice: Notice, from: string): void => {
    if (notice.kind === 'watch' || notice.kind === 'fed') this.onWatch?.(notice, from)
    else this.ownership.hear(notice, from)
  }

  #makeContext(newUuid: () => string): ShardContext {
    const { journal, world, hooks, query, log, cluster } = this.#options
    return {
      behaviours: this.behaviours,
      journal,
      shards: journal.identity.shards,
      edgeMarkMs: cluster === null ? LIMITS.storage.soleEdgeMarkMs : LIMITS.storage.edgeMarkMs,
      activationMemory: new ActivationMemory(this.#options.heapBytes ?? 0),
      clock: world.clock,
      newUuid,
      committer: this.committer,
      hooks,
      query,
      log,
      send: (envelope, respond) => this.edge.send(envelope, respond),
      mayRead: (shard, epoch) => this.ownership.mayRead(shard, epoch),
      sendsOnByKey: cluster !== null,
      configuration: () => this.#follower.upTo(this.shards.get(SYSTEM_SHARD)?.gate.head ?? 0),
      mayServe: () => this.ownership.mayServe(),
      servedMs: () => this.ownership.servedMs(),
      reclaim: (shard) => this.ownership.reclaim(shard),
      onCommitted: (...group) => this.#committed(...group),
      onStepDown: (number, why) => {
        const shard = this.shards.get(number)
        if (shard?.state === 'stopped') this.#forget(shard)
        this.ownership.steppedDown(number, why)
      },
    }
  }

  /** Follows the system maps, takes part, serves what it is given; waits for its engines. */
  async start(): Promise<void> {
    const { cluster, wire } = this.#options
    await this.#follower.start()
    if (cluster === null) await wire.serve(this.ownership.incarnation, this.#inbox())
    await this.ownership.start()
    await this.#follower.start()
    this.#every(LIMITS.sharding.trimEveryMs, () => this.#trim())
    this.#every(LIMITS.sharding.sweepEveryMs, async () => {
      for (const shard of this.shards.values()) shard.sweep(true)
    })
    const { derived } = this.#options.journal
    if (derived.expire) {
      const clockOf = (shard: number): number | null => this.shards.get(shard)?.clockMs() ?? null
      this.#every(LIMITS.storage.expireEveryMs, async () => derived.expire!(clockOf))
    }
    // What fails of it the follower tells.
    const follow = (): Promise<void> => this.#follower.read().catch(() => undefined)
    this.#every(LIMITS.cluster.systemReadEveryMs, follow)
  }

  // --- tenures ----------------------------------------------------------------------------

  #serving(shard: Shard): void {
    const { number, epoch } = shard
    if (this.shards.get(number) !== shard || shard.state !== 'serving') return
    this.ownership.learn(number, { incarnation: this.ownership.incarnation, epoch })
    this.#options.onGained?.(number, { epoch, head: shard.gate.head })
    this.#tellOthers({ kind: 'owns', shard: number, epoch })
  }

  #forget(shard: Shard): void {
    if (this.shards.get(shard.number) !== shard) return
    this.shards.delete(shard.number)
    this.#options.onReleased?.(shard.number)
  }

  /** This incarnation is over: shards go without a word, callers are told that nobody knows. */
  #abandon(): void {
    const tenures = [...this.shards.values()]
    this.shards.clear()
    for (const shard of tenures) {
      shard.stepDown('this member was declared dead')
      this.#options.onReleased?.(shard.number)
    }
    this.edge.abandon()
  }

  /** Lets every member try again what it could not show in the graph (PROTOCOL 3.11). */
  retryParked(): void {
    this.#options.onRetryParked?.()
    this.#tellOthers({ kind: 'retry-parked' })
  }

  /** Tells some of the others; best effort. */
  tell(to: readonly string[], notice: WatchNotice | FedNotice): void {
    this.#options.wire.tell(to, notice, this.ownership.incarnation)
  }

  #tellOthers(notice: Parameters<Wire['tell']>[1]): void {
    const others = this.ownership.others()
    if (others.length > 0) this.#options.wire.tell(others, notice, this.ownership.incarnation)
  }

  // --- envelopes --------------------------------------------------------------------------

  #send(to: Route, shard: number, envelope: Envelope, respond: (reply: WireReply) => void): void {
    const from = this.ownership.incarnation
    const { incarnation, epoch } = to
    this.#options.wire.send(incarnation, { shard, epoch, from, envelope }, respond)
  }

  #receive(parcel: Parcel, respond: (reply: WireReply) => void): void {
    const admitted = this.ownership.admits(parcel)
    // One whose edge is dead, or not seen alive, is dropped: nobody waits for it any more.
    if (admitted === true) this.#dispatch(parcel, respond)
    else if (admitted) void admitted.then((is) => (is ? this.#dispatch(parcel, respond) : null))
  }

  #dispatch({ shard: number, epoch, envelope }: Parcel, respond: (reply: WireReply) => void): void {
    const shard = this.shards.get(number)
    if (shard && (shard.epoch >= epoch || shard.state === 'claiming')) {
      shard.receive(envelope, respond)
      return
    }
    const owner = this.ownership.route(number)
    const isOther = owner !== null && owner.incarnation !== this.ownership.incarnation
    respond({ outcome: 'moved', shard: number, ...(isOther ? { owner } : null) })
  }

  ask(request: ActorRequest): Promise<Reply> {
    return this.#options.cluster === null ? this.edge.ask(request) : this.#askCluster(request)
  }

  async #askCluster(request: ActorRequest): Promise<Reply> {
    if (!this.knowsConfiguration && !(await this.#following(this.#follower.stands()))) {
      const text = 'this member has not read the configuration for a while; nothing was done'
      return { outcome: 'refused', error: errorItem('UNAVAILABLE', text) }
    }
    const reply = await this.edge.ask(request)
    // Who has changed configuration here finds it changed here.
    if (reply.outcome === 'answered' && reply.position?.shard === SYSTEM_SHARD) {
      await this.#following(this.#follower.reached(reply.position.offset))
    }
    return reply
  }

  /** Requests of this member that have no answer yet: at its edge, or waiting for the maps. */
  get pending(): number {
    return this.edge.pending + this.#followed
  }

  /** Who leaves waits for what waits here, as for what is under way: it has no answer yet. */
  async #following<T>(wait: Promise<T> | null): Promise<T | null> {
    this.#followed++
    try {
      return await wait
    } finally {
      this.#followed--
    }
  }

  /**
   * Whether an answer may go by the system maps now: their log was read not long ago, or it is this
   * member's own under its lease, and they have all of it. Two comparisons, no read; asked before
   * every cache of what the maps say. The store alone knows whether an embedded log is still ours.
   */
  get knowsConfiguration(): boolean {
    const tenure = this.shards.get(SYSTEM_SHARD)
    if (this.#options.cluster === null) return this.#follower.isFresh && tenure?.state === 'serving'
    if (this.#follower.isFresh) return true
    return this.serves(SYSTEM_SHARD) && this.system.offset >= tenure!.gate.head
  }

  /** Reads until `knowsConfiguration`; false when that takes too long, or too many wait for it. */
  async learnConfiguration(): Promise<boolean> {
    return (await this.#follower.freshens()) && this.knowsConfiguration
  }

  /** Embedded, nothing else tells a member that is not written to of another process. */
  #epochSeen(epoch: number): void {
    const tenure = this.shards.get(SYSTEM_SHARD)
    if (this.#options.cluster !== null || tenure?.state !== 'serving') return
    if (tenure.epoch !== epoch) tenure.stepDown('another process has this store')
  }

  #committed(...[shard, group, first, body]: Parameters<OnCommitted>): void {
    this.#options.onCommitted(shard, group, first, body)
    if (shard !== SYSTEM_SHARD) return
    const told = group.map(({ entry }) => entry)
    this.#follower.take(told, first)
    this.#tellOthers({ kind: 'system', first, entries: told })
    const tenure = this.shards.get(SYSTEM_SHARD)
    if (tenure) void this.#follower.writeImage(tenure.epoch)
  }

  // --- upkeep -----------------------------------------------------------------------------

  #every(ms: number, run: () => Promise<void>, outage = this.#upkeep()): void {
    this.#options.world.clock.after(ms, () => {
      if (this.#stopped) return
      run()
        .then(
          () => outage.answered(),
          (error: unknown) => outage.failed({ err: error }),
        )
        .finally(() => this.#every(ms, run, outage))
    })
  }

  #upkeep(): Outage {
    const { log, world } = this.#options
    const now = (): number => world.clock.monotonicMs()
    return new Outage({ log, now, failing: 'upkeep failed', back: 'upkeep goes on' })
  }

  async #trim(): Promise<void> {
    for (const [number, shard] of this.shards) {
      const needed = number === SYSTEM_SHARD ? this.#follower.trimmable : Infinity
      const wanted = this.#options.doneWith(number)
      while (!this.#stopped && (await trimStep(shard, needed, wanted)));
    }
  }

  /** It serves the shard and its lease stands: nobody else can have committed in it. */
  serves(shard: number): boolean {
    return this.ownership.mayServe() && this.shards.get(shard)?.state === 'serving'
  }

  heads(): readonly Position[] {
    return [...this.shards].map(([shard, { gate }]) => ({ shard, offset: gate.head }))
  }

  /** Ends what was begun: everything decided is committed and its derived rows are written. */
  async stop(deadlineMs: number): Promise<void> {
    const { clock } = this.#options.world
    const until = clock.monotonicMs() + deadlineMs
    const leftMs = (): number => until - clock.monotonicMs()
    if (this.#options.cluster !== null) await this.ownership.leave(leftMs() * 0.8)
    const busy = (): boolean =>
      this.pending > 0 || [...this.shards.values()].some((s) => s.state === 'serving' && !s.quiet)
    while (busy() && leftMs() > 0) {
      await new Promise<void>((resolve) => void clock.after(5, resolve))
    }
    this.#stopped = true
    this.ownership.stop()
    this.#options.wire.close(this.ownership.incarnation)
    for (const shard of this.shards.values()) {
      shard.flusher.stop()
      shard.outbox.stop()
    }
  }
}
