// Whether one segment file is as it was written, frame by frame: checksums, the sequence, and each
// shard's groups behind one another. For whoever has to rely on a file, such as a copy.

import type { Disk } from './disk.ts'
import { LogFollower } from './follower.ts'
import { readHeader, segmentDamage } from './header.ts'
import { takes, type LogGap } from './scan.ts'
import { ShardHeads } from './shard-heads.ts'

export interface SegmentCheck {
  readonly generation: string
  readonly file: number
  /** Position at which it ends. */
  readonly end: number
  readonly gaps: readonly LogGap[]
}

export interface SegmentCounts {
  readonly groups: number
  readonly entries: number
}

/** Reads it from its header to its end. Throws JournalDamage. */
export function checkSegment(disk: Disk, check: SegmentCheck): SegmentCounts {
  const { generation, file, end, gaps } = check
  const header = readHeader(disk, file, generation)
  if (header === null) {
    throw segmentDamage(disk, { file, position: 0, what: 'the header is missing' })
  }
  const counts = { groups: 0, entries: 0 }
  const heads = new ShardHeads(header.shards)
  const follower = new LogFollower(disk, { generation, from: { file, position: 0 }, gaps })
  let at = header.end
  try {
    for (const { parts, passed, next } of follower.to({ file, position: end })) {
      for (const { resumed } of passed) heads.pass(resumed)
      for (const part of parts) {
        if (!takes(heads, part)) {
          const what = "a frame doesn't go on from the one before it"
          throw segmentDamage(disk, { file, position: at, what })
        }
        if (part.kind !== 'group') continue
        counts.groups++
        counts.entries += part.count
      }
      at = next.position
    }
  } finally {
    follower.close()
  }
  return counts
}
