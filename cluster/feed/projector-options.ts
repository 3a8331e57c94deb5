// What a projector is given, its bounds, and what it says of a step. Source: PROTOCOL 3.11, 3.13.

import type { Behaviour } from '../../protocol/behaviour.ts'
import { LIMITS } from '../../config/limits.ts'
import type { DerivedReader, LogReader } from '../../storage/journal.ts'
import type { GraphWriter, IndexGone } from '../../storage/search.ts'
import type { DecodeSnapshot } from './actor-states.ts'
import type { ParkedActor } from './projection-batch.ts'

/** Bounds of a batch and of the states kept. */
export interface ProjectorLimits {
  readonly entries: number
  readonly bytes: number
  readonly ms: number
  readonly actors: number
  readonly actorsBytes: number
}

export const PROJECTOR_DEFAULTS: ProjectorLimits = {
  entries: LIMITS.feed.projectorBatchEntries,
  bytes: LIMITS.feed.projectorBatchBytes,
  ms: LIMITS.feed.projectorBatchMs,
  actors: LIMITS.feed.projectorActorsMax,
  actorsBytes: LIMITS.feed.projectorActorsBytesMax,
}

export interface ProjectorOptions {
  readonly behaviours: ReadonlyMap<string, Behaviour>
  readonly log: Pick<LogReader, 'read'>
  readonly derived: Pick<DerivedReader, 'snapshot' | 'entries' | 'consumer' | 'parked' | 'actors'>
  readonly index: GraphWriter
  readonly decodeSnapshot: DecodeSnapshot
  /** Number of shards beside `system`. */
  readonly shards: number
  /** Makes the row of a parked actor durable: before the offset moves on (PROTOCOL 3.11). */
  readonly park: (parked: ParkedActor) => Promise<void>
  /** The actor is projected again: its row may be cleared. */
  readonly unpark: (parked: ParkedActor) => Promise<void>
  /** Lets others have the thread, between the parts of a long rebuild. */
  readonly pause: () => Promise<void>
  /** It has the thread for so long at a time, milliseconds; as long as a batch takes by default. */
  readonly sliceMs?: number
  /** Consumer under whose name parked rows are kept; INDEX_CONSUMER by default. */
  readonly consumer?: string
  /**
   * Where many members fill one index none of them may empty it: what can't go on from where the
   * index is has to be filled beside it (IndexGone). By default this projector has it alone.
   */
  readonly shared?: boolean
  /** The index, which it has alone, was emptied to be filled anew, and why. */
  readonly onReset?: (why: IndexGone) => void
  /** Somebody waits for the index: its batches are smaller then. Never by default. */
  readonly isAwaited?: () => boolean
  /** Monotonic milliseconds. */
  readonly clock: () => number
  readonly limits?: Partial<ProjectorLimits>
}

/** What a step did, and when the next one makes sense. */
export interface Step {
  /** Entries that the index now holds and did not before. */
  readonly entries: number
  readonly writes: number
  /** From which shards were filled. */
  readonly actors: number
  /** `now`: there is more; `later`: something is still under way; `idle`: all done. */
  readonly next: 'now' | 'later' | 'idle'
}

export function nothingDone(next: Step['next']): Step {
  return { entries: 0, writes: 0, actors: 0, next }
}
