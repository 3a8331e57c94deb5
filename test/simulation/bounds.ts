// Bounds small enough that a run of half a minute meets them all: windows of marks that overflow,
// logs that roll and are trimmed, snapshots, images and actors that go to rest. It stands between config/limits.ts and every simulated member.

import { LIMITS } from '../../config/limits.ts'

export function useSmallBounds(): void {
  Object.assign(LIMITS, {
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
}
