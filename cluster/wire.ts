// The wire port: envelopes from an edge to the member that owns a shard, the answers back, and
// hints among members. Delivery is not trusted: anything may be lost, doubled or late, the edge
// resends and the owner's dedup makes that harmless. Drivers: memory/ (one process), redis/.
// Source: PROTOCOL 3.6.

import type { Entry } from '../protocol/entry/entry.ts'
import type { Envelope, WireReply } from '../protocol/message.ts'
import type { LogEnd, Maybe } from '../storage/journal.ts'
import type { FedNotice, WatchNotice } from './feed/watch/watch-notices.ts'
import type { LastSnapshot } from './sharding/recovery/shard-snapshot.ts'

/** One copy of an envelope on its way. */
export interface Parcel {
  readonly shard: number
  /** Epoch of the shard as the edge believes it; 0: it doesn't know. */
  readonly epoch: number
  /** Incarnation of the edge. */
  readonly from: string
  readonly envelope: Envelope
}

/** What members tell each other to be quicker; nothing rests on any of it. */
export type Notice = OwnersNotice | WatchNotice | FedNotice

/** About who has which shard, and what every member follows. */
export type OwnersNotice =
  /** This incarnation serves the shard in this epoch. */
  | { readonly kind: 'owns'; readonly shard: number; readonly epoch: number }
  /** This incarnation has stopped: look at its row now. */
  | { readonly kind: 'stopped' }
  /** Rebalancer to owner: hand the shard to that incarnation (PROTOCOL 3.8.1). */
  | {
      readonly kind: 'hand-over'
      readonly shard: number
      readonly epoch: number
      readonly to: string
    }
  /** Owner to target: read ahead, the shard is coming; and back: it is read. */
  | { readonly kind: 'expect'; readonly shard: number; readonly epoch: number }
  | { readonly kind: 'ready'; readonly shard: number; readonly epoch: number }
  /** Owner to target: it is signed over to you. */
  | {
      readonly kind: 'handed'
      readonly shard: number
      readonly epoch: number
      /** Its log is closed, and ends here. */
      readonly end?: LogEnd
      /** What it remembered there; only with `end`. */
      readonly last?: LastSnapshot
    }
  /** Somebody wants actors that the graph can't show to be tried again (PROTOCOL 3.11). */
  | { readonly kind: 'retry-parked' }
  /** Committed entries of the `system` shard, from its owner; `first`: offset of the first. */
  | { readonly kind: 'system'; readonly first: number; readonly entries: readonly Entry[] }

/** What a member does with what arrives. `respond` is called once a parcel, or never. */
export interface Inbox {
  receive(parcel: Parcel, respond: (reply: WireReply) => void): void
  hear(notice: Notice, from: string): void
}

export interface Wire {
  /** True while others can be reached, and reach the incarnations served here. */
  readonly isUp: boolean
  /** Makes this incarnation reachable. */
  serve(incarnation: string, inbox: Inbox): Maybe<void>
  /**
   * Sends one copy. `respond` is called at most once a copy, or never; with `unsent` when it
   * certainly never left.
   */
  send(to: string, parcel: Parcel, respond: (reply: WireReply) => void): void
  /** Best effort. */
  tell(to: readonly string[], notice: Notice, from: string): void
  /** Ends an incarnation's inbox: one's own, or that of an incarnation that is dead. */
  close(incarnation: string): void
}
