// What a member is made of: its store, its wire, its world, and who is told of what it does.

import type { Behaviour } from '../protocol/behaviour.ts'
import type { Log } from '../protocol/log.ts'
import type { ControlStore } from '../storage/control.ts'
import type { Journal } from '../storage/journal.ts'
import type { World } from './clock.ts'
import type { BeatSender } from './membership/beat.ts'
import type { FormerIncarnations } from './membership/former-incarnations.ts'
import type { ActorQuery, HookTable, OnCommitted } from './sharding/core.ts'
import type { Wire } from './wire.ts'

/** What a member of a cluster has beside its journal. */
export interface ClusterOptions {
  readonly control: ControlStore
  /** Sends the beats from a thread of its own; without it from this one. */
  readonly beat?: BeatSender
  /** What is known of earlier processes of this name; without it each is waited for. */
  readonly former?: FormerIncarnations
}

export interface MemberOptions {
  readonly memberId: string
  /** Address of this member's HTTP service, for people and tools. */
  readonly address: string
  /** Version of the program. */
  readonly version: string
  readonly journal: Journal
  /** null: embedded, this member is the only one. */
  readonly cluster: ClusterOptions | null
  readonly behaviours: readonly Behaviour[]
  readonly world: World
  /** Most that the heap may grow to; none is said: actors have the least of memory. */
  readonly heapBytes?: number
  readonly wire: Wire
  /** A copy to a member itself is delivered exactly once. */
  readonly wireDeliversOnce: boolean
  readonly log: Log
  readonly hooks: HookTable
  readonly query: ActorQuery
  /** How much acknowledgements should slow down because consumers are behind, milliseconds. */
  readonly throttleMs: () => number
  /** The feed of a shard goes on with these entries. */
  readonly onCommitted: OnCommitted
  /** This member serves the shard from now on, or no longer. */
  readonly onGained?: (shard: number, tenure: { epoch: number; head: number }) => void
  readonly onReleased?: (shard: number) => void
  /** Actors that the graph can't show are to be projected again. */
  readonly onRetryParked?: () => void
  /** Offset of a shard up to which the graph index is done with the log (PROTOCOL 3.12). */
  readonly doneWith: (shard: number) => number
  /** Embedded: another process has taken a shard, and so the store. */
  readonly onLost: (shard: number, why: string) => void
}
