// Ownership: how a member comes to have shards and knows who has the others. Embedded it has them
// all (sole.ts); in a cluster the control rows say so (placement.ts). The member routes and answers
// by it. Source: PROTOCOL 3.3-3.5, 3.8, 3.16.

import type { MemberRow } from '../../storage/control.ts'
import type { Maybe, Tenure } from '../../storage/journal.ts'
import type { Route } from '../routing/routes.ts'
import type { Shard } from '../sharding/shard.ts'
import type { Notice, OwnersNotice, Parcel } from '../wire.ts'

export interface Ownership {
  /** This incarnation of the member. */
  readonly incarnation: string
  /** Joins. Resolves once requests can be routed. */
  start(): Promise<void>
  /** Returns the owner of a shard as far as is known, or null when none is alive. */
  route(shard: number): Route | null
  /** True when its owner is alive and nobody can reach it (PROTOCOL 3.4). */
  isCutOff(shard: number): boolean
  learn(shard: number, route: Route): void
  /** Whether an answer that commits nothing may leave now (PROTOCOL 3.6 Owner 5). */
  mayRead(shard: number, epoch: number): Maybe<boolean>
  /** Whether turns may begin now. */
  mayServe(): boolean
  /** Milliseconds for which turns might begin; by these the clocks of shards go. Never falls. */
  servedMs(): number
  /** Whether a parcel may be taken: its edge is alive (PROTOCOL 3.6 Owner 1). */
  admits(parcel: Parcel): Maybe<boolean>
  hear(notice: OwnersNotice, from: string): void
  /** Incarnations of other members that were seen up or leaving. */
  others(): readonly string[]
  /** Called when a shard that was served has stepped down. */
  steppedDown(shard: number, why: string): void
  /** A new epoch for a shard of ours, so that what was sent in the old one is false (3.2.5). */
  reclaim(shard: number): Promise<Tenure | null>
  /** Gives the shards up, as far as the time allows; edges may still ask meanwhile. */
  leave(deadlineMs: number): Promise<void>
  stop(): void
  overview(): Overview
}

/** The cluster as one member sees it, for people and tools (CONTRACT 0 "Operations"). */
export interface Overview {
  readonly members: readonly MemberRow[]
  /** Who has which shard; an owner that is dead, or nobody, is `null`. */
  readonly shards: readonly {
    readonly shard: number
    readonly epoch: number
    readonly owner: string | null
  }[]
  /** Planned moves that are under way or still to come. */
  readonly moves: readonly {
    readonly shard: number
    readonly from: string
    readonly to: string
    readonly state: 'due' | 'moving'
  }[]
}

/** What ownership has from its member. */
export interface TenureHost {
  /** Makes a shard's new tenure: nothing of an older one survives in it. */
  open(shard: number): Shard
  tenure(shard: number): Shard | null
  tenures(): Iterable<Shard>
  /** Forgets a tenure that is over, if it is still the present one. */
  forget(shard: Shard): void
  /** Called when the shard serves. */
  serving(shard: Shard): void
  /** That incarnation will never answer again. */
  died(incarnation: string): void
  /** This incarnation is over: what is held for callers is answered, everything is dropped. */
  abandon(): void
  /** Requests of this member's edge that have no answer yet. */
  pending(): number
  /** The actors that the graph can't show are to be tried again. */
  retryParked(): void
  /** Rows of the `system` shard as its owner has pushed them. */
  pushed(notice: Extract<Notice, { kind: 'system' }>): void
}
