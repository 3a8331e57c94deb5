// Making the graph index anew while reads and writes go on: it is filled beside the one that is
// read, and takes its place when it has all that the other has. A change of the schema does it by
// itself; here it is asked for. Source: PROTOCOL 3.13.5.

import type { Maybe } from '../../storage/journal.ts'

export interface RebuildProgress {
  /** `taking-over`: it has nearly all, and the move to it is under way. */
  readonly state: 'idle' | 'filling' | 'taking-over'
  /**
   * Entries of the log that the new index has, and that the one that is read has, over all shards.
   * A shard that is filled from its actors counts when it is through. 0 of 0 when idle.
   */
  readonly done: number
  readonly total: number
  /** When this process has first seen it, milliseconds since 1970; null when idle. */
  readonly startedAt: number | null
}

export const NO_REBUILD: RebuildProgress = { state: 'idle', done: 0, total: 0, startedAt: null }

export interface IndexRebuild {
  /**
   * Has the index made anew beside the one that is read; without effect while it is being made
   * already. Resolves when that is durable; rejects with RequestError UNAVAILABLE where it can't be
   * asked for now.
   */
  rebuild(): Maybe<void>
  /** Rejects where the numbers can't be read now. */
  rebuildProgress(): Maybe<RebuildProgress>
}
