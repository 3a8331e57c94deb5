// Bounds small enough that a run meets them all: windows of marks that overflow, logs that roll and
// are trimmed, snapshots, images, actors that go to rest and such that are full. No two of them
// that could be taken for one another are equal, and some differ from seed to seed. Some modules
// reckon with bounds when they are loaded, so this is the first import of whoever makes a world.

import { LIMITS } from '../../config/limits.ts'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import { seeded } from './scheduler/random.ts'

/** What directed schedules run with, and what seeds vary. */
const USUAL = {
  'sharding.marksMax': 8,
  'sharding.marksBytesMax': 4_000,
  'sharding.markAnswerBytesMax': 330,
  'sharding.markKeysBytesMax': 120,
  'sharding.flushStoredEntries': 9,
  'sharding.flushStoredMs': 400,
  'sharding.replayedAtOnceMax': 10,
  'sharding.replayStepBytes': 3_000,
  'sharding.trimEveryMs': 1_000,
  'sharding.feedRetentionMs': 2_500,
  'sharding.activationsMax': 20,
  'sharding.sweepEveryMs': 1_500,
  'sharding.snapshotEntriesMin': 4,
  'sharding.snapshotEntryBytesMin': 600,
  'sharding.unmadeSnapshotEntriesMin': 5,
  'cluster.systemImageEntries': 6,
  'sharding.claimAgeMs': 1_500,
  'storage.segmentRowsMax': 12,
  // Of the real ones a thousandth, in their proportions: an actor's snapshot fits into a mutation.
  'protocol.entryBytesMax': 2_000,
  'sharding.stateBytesMax': 4_000,
  'cassandra.registerMutationBytesMax': 5_500,
  'storage.imageChunkBytes': 5_000,
  'storage.groupBytesMax': 7_000,
  'sharding.flushBatchBytesMax': 14_000,
}

/** A mutation above it is refused for good, as by an engine's `max_mutation_size`. */
export const MUTATION_BYTES_MAX = 9_300

/** The bounds as every module sees them that is loaded from now on. */
export const BOUNDS = LIMITS
overrideLimits(USUAL)

/** What may differ, and from what it is drawn. */
const VARIED = {
  'sharding.marksMax': [5, 8, 21],
  'sharding.flushStoredEntries': [3, 9, 26],
  'sharding.flushStoredMs': [150, 400, 1_900],
  'sharding.feedRetentionMs': [700, 2_500, 24 * 3_600_000],
  'sharding.activationsMax': [10, 20, 300],
  'sharding.snapshotEntriesMin': [3, 4, 11],
  'sharding.snapshotEntryBytesMin': [300, 600, 1_700],
  'cluster.systemImageEntries': [3, 6, 13],
  'sharding.claimAgeMs': [500, 1_500, 61_000],
  'storage.segmentRowsMax': [6, 12, 47],
  'storage.groupEntriesMax': [3, 31, 256],
} as const

/** Bounds of which callers are told (429): not where nothing may fail. */
const TIGHT = {
  'sharding.actorInFlightMax': [3, 100],
  'routing.shardInFlightMax': [7, 1_000],
  'sharding.outboxEntriesMax': [4, 20_000],
  'sharding.sealedHeldMax': [4, 2_000],
} as const

/** Makes the bounds those of a seed. `isTight`: callers may be told that there is no room. */
export function drawBounds(seed: number, isTight: boolean): void {
  const chance = seeded(seed * 7_919 + 17)
  const all: Record<string, number> = { ...USUAL }
  for (const [name, values] of Object.entries(VARIED)) {
    all[name] = values[Math.floor(chance() * values.length)]!
  }
  for (const [name, values] of Object.entries(TIGHT)) {
    const isNarrow = chance() < 0.25
    all[name] = values[isTight && isNarrow ? 0 : 1]
  }
  overrideLimits(all)
}
