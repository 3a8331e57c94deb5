// Bounds small enough that a run of half a minute meets them all: windows of marks that overflow,
// logs that roll and are trimmed, snapshots, images and actors that go to rest. Some modules
// reckon with bounds when they are loaded, so this is the first import of whoever makes a world. It
// stands between config/limits.ts and every simulated member.

import { LIMITS } from '../../config/limits.ts'

/** The bounds as every module sees them that is loaded from now on. */
export const BOUNDS = Object.assign(LIMITS, {
  marksMax: 8,
  marksBytesMax: 8 * 1024,
  flushStoredEntries: 8,
  flushStoredMs: 400,
  trimEveryMs: 1_000,
  feedRetentionMs: 2_500,
  activationsMax: 20,
  sweepEveryMs: 1_500,
  snapshotEntriesMin: 4,
  snapshotEntryBytesMin: 600,
  systemImageEntries: 6,
  claimAgeMs: 1_500,
  segmentRowsMax: 12,
})
