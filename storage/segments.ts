// The segments port: a shard's log as a chain of partitions, each guarded by its statics (epoch,
// base, head, last commit, sealed). cluster/log keeps the protocol's order of steps. Drivers:
// memory/, cassandra/. The embedded store has one LogStore instead. Every driver passes
// conformance/segments.ts. Source: PROTOCOL 3.0 `log`, 3.1, 3.5.

import type { Outcome } from './control.ts'
import type { Group, LogRow } from './journal.ts'

/** What guards one segment; never deleted. Segments of a shard are numbered from 1. */
export interface SegmentStatics {
  readonly epoch: number
  /** Head of the segment before: the first row here begins behind it. */
  readonly base: number
  readonly head: number
  readonly lastCommit: string | null
  readonly sealed: boolean
}

/** Names one segment of a shard. */
export interface SegmentId {
  readonly shard: number
  readonly segment: number
}

export interface SegmentStore {
  /** Appends that a member keeps in flight over all its shards. */
  readonly appendsMax: number
  /** The statics at the serial level; null: this segment was never opened. */
  statics(of: SegmentId): Promise<SegmentStatics | null>
  /** Opens a segment with base = head, not sealed. Applied when it had no statics. */
  open(of: SegmentId, first: { readonly epoch: number; readonly head: number }): Promise<Outcome>
  /** Raises the epoch; applied when it was lower. */
  fence(of: SegmentId, epoch: number): Promise<Outcome>
  /** Applied while epoch and head are these and it is not sealed. */
  seal(of: SegmentId, where: { readonly epoch: number; readonly head: number }): Promise<Outcome>
  /**
   * One group as one row, and the head moved to head + count: both or neither. Applied while the
   * segment has the group's epoch and head and is not sealed. The same bytes may be sent again.
   */
  append(segment: number, group: Group): Promise<Outcome>
  /**
   * Rows with offset > after, in order, at most about `bytesMax` (at least one), at quorum;
   * `serial` reads at the serial level first, when a row that must be there is missing.
   */
  rows(
    of: SegmentId,
    range: { readonly after: number; readonly bytesMax: number; readonly serial?: boolean },
  ): Promise<readonly LogRow[]>
  /** Deletes the rows of a sealed segment with offset <= upTo; never its statics. */
  dropRows(of: SegmentId, upTo: number): Promise<void>
}
