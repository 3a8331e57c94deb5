// What placement is given, and what it counts.

import type { Log } from '../../protocol/log.ts'
import type { ControlStore } from '../../storage/control.ts'
import type { World } from '../clock.ts'
import type { BeatSender } from '../membership/beat.ts'
import type { FormerIncarnations } from '../membership/former-incarnations.ts'
import type { Inbox, Wire } from '../wire.ts'
import type { TenureHost } from './ownership.ts'

export interface PlacementOptions {
  readonly control: ControlStore
  readonly wire: Wire
  readonly world: World
  readonly log: Log
  readonly member: string
  readonly address: string
  readonly version: string
  /** Sends the beats from a thread of its own; without it from this one. */
  readonly beat?: BeatSender
  /** What is known of earlier processes of this name; without it each is waited for. */
  readonly former?: FormerIncarnations
  readonly host: TenureHost
  readonly inbox: Inbox
}

/** Counts since the start of the process; times in milliseconds. */
export interface PlacementStats {
  /** Shards that were taken over or taken up. */
  readonly claims: number
  readonly handoffs: number
  /** Times that this process joined. */
  readonly joins: number
  /** Sum of the times from a shard's seal until its next owner serves, and the last of them. */
  readonly pauseMs: number
  readonly pausesMs: readonly number[]
}
