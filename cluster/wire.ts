// The wire port: envelopes from an edge to the member that owns a shard, and the answers back.
// Delivery is not trusted: an envelope may be lost, doubled or late, the edge resends and the
// owner's dedup makes that harmless. Source: PROTOCOL 3.6.

import type { Envelope, WireReply } from '../protocol/message.ts'

/** What an owner does with an envelope for one of its shards. */
export type Receive = (
  shard: number,
  envelope: Envelope,
  respond: (reply: WireReply) => void,
) => void

export interface Wire {
  /** Makes this incarnation reachable. */
  serve(incarnation: string, receive: Receive): void
  /** Sends one copy. `respond` is called at most once a copy, or never. */
  send(to: string, shard: number, envelope: Envelope, respond: (reply: WireReply) => void): void
  close(incarnation: string): void
}
