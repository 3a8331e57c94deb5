// The copy port: everything that a store holds, row by row, for a move into another one. Below the
// trim point of a log the derived rows are the truth, so a copy takes them all, with their offsets,
// and the log above. Embedded stores are read, Cassandra is filled. Source: PROTOCOL 3.12, last
// lines.

import type { DerivedRow, LogRow, StoreIdentity } from './journal.ts'

/** What a shard's log is made of when it is copied. */
export interface ShardExtent {
  readonly shard: number
  readonly epoch: number
  /** Rows begin behind this offset. */
  readonly floor: number
  readonly head: number
}

export interface DerivedOf {
  readonly shard: number
  readonly row: DerivedRow
}

/** A store whose node is stopped. Iterators throw for what is damaged. */
export interface StoreSource {
  readonly identity: StoreIdentity
  /** Every shard, `system` among them. */
  readonly extents: readonly ShardExtent[]
  log(shard: number): Iterable<LogRow>
  derived(): Iterable<DerivedOf>
  /** Throws when the store was written to since it was opened: the copy isn't whole. */
  assertUnchanged(): void
  close(): Promise<void>
}
