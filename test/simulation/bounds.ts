// Bounds small enough that a run meets them all: windows of marks that overflow, logs that roll and
// are trimmed, snapshots, images, actors that go to rest and such that are full. No two of them
// that could be taken for one another are equal, and some differ from seed to seed. Some modules
// reckon with bounds when they are loaded, so this is the first import of whoever makes a world.

import { LIMITS } from '../../config/limits.ts'
import { seeded } from './random.ts'

/** What directed schedules run with, and what seeds vary. */
const USUAL = {
  marksMax: 8,
  marksBytesMax: 4_000,
  markAnswerBytesMax: 330,
  markKeysBytesMax: 120,
  flushStoredEntries: 9,
  flushStoredMs: 400,
  replayedAtOnceMax: 10,
  replayStepBytes: 3_000,
  trimEveryMs: 1_000,
  feedRetentionMs: 2_500,
  activationsMax: 20,
  sweepEveryMs: 1_500,
  snapshotEntriesMin: 4,
  snapshotEntryBytesMin: 600,
  unmadeSnapshotEntriesMin: 5,
  systemImageEntries: 6,
  claimAgeMs: 1_500,
  segmentRowsMax: 12,
  // Of the real ones a thousandth, in their proportions: an actor's snapshot fits into a mutation.
  entryBytesMax: 2_000,
  stateBytesMax: 4_000,
  registerMutationBytesMax: 5_500,
  imageChunkBytes: 5_000,
  groupBytesMax: 7_000,
  flushBatchBytesMax: 14_000,
}

/** A mutation above it is refused for good, as by an engine's `max_mutation_size`. */
export const MUTATION_BYTES_MAX = 9_300

/** The bounds as every module sees them that is loaded from now on. */
export const BOUNDS = Object.assign(LIMITS, USUAL)

/** What may differ, and from what it is drawn. */
const VARIED = {
  marksMax: [5, 8, 21],
  flushStoredEntries: [3, 9, 26],
  flushStoredMs: [150, 400, 1_900],
  feedRetentionMs: [700, 2_500, 24 * 3_600_000],
  activationsMax: [10, 20, 300],
  snapshotEntriesMin: [3, 4, 11],
  snapshotEntryBytesMin: [300, 600, 1_700],
  systemImageEntries: [3, 6, 13],
  claimAgeMs: [500, 1_500, 61_000],
  segmentRowsMax: [6, 12, 47],
  groupEntriesMax: [3, 31, 256],
} as const

/** Bounds of which callers are told (429): not where nothing may fail. */
const TIGHT = {
  actorInFlightMax: [3, 100],
  shardInFlightMax: [7, 1_000],
  outboxEntriesMax: [4, 20_000],
  sealedHeldMax: [4, 2_000],
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
  Object.assign(BOUNDS, all)
}
