// Where the last file of a log ends, seen from beside its writer: another process may append to it
// while it is read.
//
// One commit is in flight at a time. So what lies behind a frame was written after that frame was
// whole: where something does, the frame is read again, and only one that still isn't whole is
// damaged. (scanTail, which reads a log that nobody writes to, needs no second look.)

import type { Disk } from './disk.ts'
import { readFrame } from './frame.ts'
import { segmentDamage, withFile, type Header } from './header.ts'
import { endsHere, endsInGap, frameBehind, type LogGap } from './scan.ts'

export interface KnownOfEnd {
  /** Where its writer has closed it. */
  readonly closedAt: number | null
  /** What was given up, and is passed over. */
  readonly gaps: readonly LogGap[]
}

/**
 * Position behind the last whole frame: all that was acknowledged before the call lies before it.
 * Throws JournalDamage for what isn't as it was written. While the log is written to that may be a
 * frame of which only a part was to be seen, or a file that its next writer has just cut: then it
 * is another answer a moment later.
 */
export function liveEnd(disk: Disk, header: Header, { closedAt, gaps }: KnownOfEnd): number {
  const { key } = header
  const { file } = key
  return withFile(disk, file, (opened) => {
    const bytes = opened.bytes()
    if (bytes < header.bytes && closedAt === null && !endsInGap(gaps, file)) {
      throw segmentDamage(disk, { file, position: bytes, what: endsHere(header) })
    }
    let position = header.end
    let readAgainAt: number | null = null
    while (position !== closedAt) {
      const gap = gaps.find((one) => one.file === file && one.position === position)
      if (gap?.next === null) return position
      if (gap !== undefined) position = gap.next
      const found = readFrame(opened, key, position)
      if (found.is === 'frame') {
        position += found.frame.bytes
        continue
      }
      const isBehind = frameBehind(opened, key, position) !== null
      if (isBehind && readAgainAt !== position) {
        readAgainAt = position
        continue
      }
      if (found.is !== 'damaged' && !isBehind && closedAt === null) return position
      const what = found.is === 'damaged' ? found.what : 'a whole frame is missing'
      throw segmentDamage(disk, { file, position, what })
    }
    return position
  })
}
