// A member: one life of a process in the cluster, with its shards, its edge and its consumers.
// Embedded it is the only one and has every shard. It stands between the stations, which see it
// as an ActorSystem, and the journal. Source: ARCHITECTURE 2, PROTOCOL 3.5, 3.16.

import type { Behaviour } from '../protocol/behaviour.ts'
import { LIMITS } from '../config/limits.ts'
import type { Log } from '../protocol/log.ts'
import type { Reply } from '../protocol/message.ts'
import type { Entry } from '../protocol/entry.ts'
import { SYSTEM_SHARD, uuidMaker } from '../protocol/ids.ts'
import type { Position } from '../protocol/ids.ts'
import type { Journal, Maybe } from '../storage/journal.ts'
import type { ActorRequest, ActorSystem } from './actor-system.ts'
import type { World } from './clock.ts'
import { Edge } from './edge.ts'
import { targets } from './ring.ts'
import { Committer } from './sharding/committer.ts'
import type { ActorQuery, HookTable, ShardContext } from './sharding/core.ts'
import { entriesOfRow } from './sharding/recovery.ts'
import { Shard } from './sharding/shard.ts'
import { trimStep } from './sharding/trimmer.ts'
import { SystemMaps } from './system-view.ts'
import type { Wire } from './wire.ts'

export interface MemberOptions {
  readonly memberId: string
  readonly journal: Journal
  readonly behaviours: readonly Behaviour[]
  readonly world: World
  readonly wire: Wire
  /** The wire delivers each copy exactly once. */
  readonly wireDeliversOnce: boolean
  readonly log: Log
  readonly hooks: HookTable
  readonly query: ActorQuery
  /** How much acknowledgements should slow down because consumers are behind, milliseconds. */
  readonly throttleMs: () => number
  /** The feed of a shard reaches to here. */
  readonly onCommitted: (shard: number, head: number) => void
  /** Lowest offset of a shard that the consumers outside the runtime (the index) have stored. */
  readonly doneWith: (shard: number) => number
  /** A shard was lost to somebody else: embedded, another process has the store. */
  readonly onLost: (shard: number, why: string) => void
}

export class Member implements ActorSystem {
  readonly behaviours: ReadonlyMap<string, Behaviour>
  readonly system: SystemMaps
  readonly edge: Edge
  readonly committer: Committer
  readonly shards = new Map<number, Shard>()
  readonly incarnation: string
  readonly #options: MemberOptions
  #imageAt = 0
  #imaging = false
  #stopped = false

  constructor(options: MemberOptions) {
    this.#options = options
    const { clock, random } = options.world
    this.behaviours = new Map(options.behaviours.map((b) => [b.type, b]))
    this.system = new SystemMaps(this.behaviours)
    const makeUuid = uuidMaker(random)
    const newUuid = (tail?: number): string => makeUuid(clock.nowMs(), tail)
    this.incarnation = newUuid()
    const { log } = options.journal
    this.committer = new Committer({
      log,
      clock,
      throttleMs: options.throttleMs,
      onError: (error) => options.log.error({ err: error }, 'an append failed'),
    })
    const { shards } = options.journal.identity
    this.edge = new Edge({
      behaviours: this.behaviours,
      shards,
      clock,
      newUuid,
      deliversOnce: options.wireDeliversOnce,
      send: (shard, envelope, respond) => {
        const { epoch } = this.shards.get(shard)!
        const from = this.incarnation
        options.wire.send(from, { shard, epoch, from, envelope }, respond)
        return true
      },
    })
    const context = this.#context(newUuid)
    for (const shard of [SYSTEM_SHARD, ...Array(shards).keys()]) {
      this.shards.set(shard, new Shard(shard, context))
    }
  }

  #context(newUuid: () => string): ShardContext {
    const { journal, world, hooks, query, log } = this.#options
    return {
      behaviours: this.behaviours,
      journal,
      shards: journal.identity.shards,
      clock: world.clock,
      newUuid,
      committer: this.committer,
      hooks,
      query,
      log,
      send: (envelope, respond) => this.edge.send(envelope, respond),
      mayRead: (shard, epoch) => this.#mayRead(shard, epoch),
      mayServe: () => true,
      onCommitted: (shard, entries, first) => this.#committed(shard, entries, first),
      onStepDown: (shard, why) => {
        log.error({ shard, why }, 'stepped down from a shard')
        this.#options.onLost(shard, why)
      },
    }
  }

  /** Embedded the store says whose a shard is: an epoch that isn't ours ends our tenure. */
  #mayRead(shard: number, epoch: number): Maybe<boolean> {
    const judge = (now: number): boolean => {
      if (now !== epoch) this.shards.get(shard)!.stepDown('another owner has this shard')
      return now === epoch
    }
    const now = this.#options.journal.log.epochNow(shard)
    return now instanceof Promise ? now.then(judge) : judge(now)
  }

  /** Claims the shards that the ring gives this member, follows the system maps, then serves. */
  async start(): Promise<void> {
    const { wire, memberId } = this.#options
    const mine = targets([...this.shards.keys()], [memberId])
    // A shard that is not claimed yet answers `moved`: relays of one that is find it a bit later.
    await wire.serve(this.incarnation, {
      receive: ({ shard, envelope }, respond) => this.shards.get(shard)!.receive(envelope, respond),
      hear: () => undefined,
    })
    await this.#followFromStore()
    await Promise.all([...mine.keys()].map((shard) => this.shards.get(shard)!.claim()))
    await this.#followFromStore()
    this.#every(LIMITS.trimEveryMs, () => this.#trim())
    this.#every(LIMITS.sweepEveryMs, async () => {
      for (const shard of this.shards.values()) shard.sweep(true)
    })
  }

  async #followFromStore(): Promise<void> {
    const { log, derived } = this.#options.journal
    if (this.system.offset === 0) {
      const image = await derived.image()
      if (image) this.system.load(image.offset, image.parts)
      this.#imageAt = this.system.offset
    }
    for (;;) {
      const rows = await log.read(SYSTEM_SHARD, this.system.offset, 1024 * 1024)
      if (rows.length === 0) return
      for (const row of rows) {
        for (const { entry, offset } of entriesOfRow(row, this.system.offset)) {
          this.system.follow(entry, offset)
        }
      }
    }
  }

  #committed(shard: number, entries: readonly Entry[], first: number): void {
    if (shard !== SYSTEM_SHARD) {
      this.#options.onCommitted(shard, first + entries.length - 1)
      return
    }
    for (let i = 0; i < entries.length; i++) this.system.follow(entries[i]!, first + i)
    if (this.system.offset - this.#imageAt >= LIMITS.systemImageEntries) void this.#writeImage()
  }

  /** An image of the maps now and then, so that their log can be trimmed (PROTOCOL 3.0). */
  async #writeImage(): Promise<void> {
    if (this.#imaging) return
    this.#imaging = true
    const { derived } = this.#options.journal
    const { epoch } = this.shards.get(SYSTEM_SHARD)!
    const { offset } = this.system
    const rows = this.system
      .image()
      .map((body, part) => ({ kind: 'image' as const, offset, part, body }))
    try {
      const written = await derived.write(SYSTEM_SHARD, epoch, [
        ...rows,
        { kind: 'consumer', consumer: 'image', offset },
      ])
      if (written !== 'committed') return
      this.#imageAt = offset
      await derived.trimImages()
    } catch (error) {
      this.#options.log.error({ err: error }, 'an image of the system maps was not written')
    } finally {
      this.#imaging = false
    }
  }

  #every(ms: number, run: () => Promise<void>): void {
    const { clock } = this.#options.world
    clock.after(ms, () => {
      if (this.#stopped) return
      run()
        .catch((error: unknown) => this.#options.log.error({ err: error }, 'upkeep failed'))
        .finally(() => this.#every(ms, run))
    })
  }

  async #trim(): Promise<void> {
    for (const [number, shard] of this.shards) {
      const outside = this.#options.doneWith(number)
      const doneWith = number === SYSTEM_SHARD ? Math.min(outside, this.#imageAt) : outside
      while (!this.#stopped && (await trimStep(shard, doneWith)));
    }
  }

  ask(request: ActorRequest): Promise<Reply> {
    return this.edge.ask(request)
  }

  heads(): readonly Position[] {
    return [...this.shards].map(([shard, { gate }]) => ({ shard, offset: gate.head }))
  }

  /** Ends what was begun: everything decided is committed and its derived rows are written. */
  async stop(deadlineMs: number): Promise<void> {
    const { clock } = this.#options.world
    const until = clock.monotonicMs() + deadlineMs
    const busy = (): boolean =>
      this.edge.pending > 0 ||
      [...this.shards.values()].some((s) => s.state === 'serving' && !s.quiet)
    while (busy() && clock.monotonicMs() < until) {
      await new Promise<void>((resolve) => void clock.after(5, resolve))
    }
    this.#stopped = true
    this.#options.wire.close(this.incarnation)
    for (const shard of this.shards.values()) {
      shard.flusher.stop()
      shard.outbox.stop()
    }
  }
}
