// Reading the log: the chain of its files, and the end of a log that nobody closed. In any thread.
// Nothing is read short: what isn't as it was written is JournalDamage.

import type { Disk, DiskFile } from './disk.ts'
import { beginsAt, decodeParts, FRAME_ALIGN, readFrame } from './frame.ts'
import type { FileKey, Frame, Part } from './frame.ts'
import { fileName, firstOf, newestRounds, numberOf, readHeader } from './header.ts'
import { segmentDamage, withFile } from './header.ts'
import type { ChainLink, Header, SegmentEnd } from './header.ts'
import { ShardHeads } from './shard-heads.ts'

/** A place between frames. */
export interface LogPosition {
  readonly file: number
  readonly position: number
}

/** From `position` to `next` of a file nothing can be read, and an operator has accepted it. */
export interface LogGap {
  readonly file: number
  readonly position: number
  /** null: nothing that could be read lies behind it in the file. */
  readonly next: number | null
  /** Shards that have lost something by it, and the head behind which they go on. */
  readonly resumed: readonly (readonly [shard: number, head: number])[]
}

const LOOK_BYTES = 1024 * 1024

interface ChainRange {
  readonly first: number | null
  readonly last: Header
}

/**
 * Headers from `last` back to the one that has `first` (null: to the beginning), oldest first: of
 * each file its newest round.
 */
export function readChain(disk: Disk, generation: string, range: ChainRange): Header[] {
  return [...chainBack(disk, generation, range)].reverse()
}

/** The same for many files: without what every shard is at, which would take the memory. */
export function readLinks(disk: Disk, generation: string, range: ChainRange): ChainLink[] {
  const links: ChainLink[] = []
  for (const { shards: _, ...link } of chainBack(disk, generation, range)) links.push(link)
  return links.reverse()
}

function* chainBack(disk: Disk, generation: string, range: ChainRange): Generator<Header> {
  yield range.last
  const newest = newestRounds(disk)
  const first = range.first === null ? 0 : numberOf(range.first)
  for (let header = range.last; firstOf(header) > first && header.previous !== null;) {
    const before = header.previous
    const file = newest.get(before.file) ?? before.file
    const found = readHeader(disk, file, generation)
    if (found === null || !isFileBefore(found, before)) {
      const what = `is not the file that ${fileName(header.key.file)} goes on from`
      throw segmentDamage(disk, { file, position: 0, what })
    }
    const bytes = withFile(disk, file, (opened) => opened.bytes())
    const end = found.rewritten?.end ?? before.end
    if (bytes < end) {
      const what = `the file ends here and should end at ${end}`
      throw segmentDamage(disk, { file, position: bytes, what })
    }
    yield found
    header = found
  }
}

/** Whether it is what a file names as the one before it, or was made from that. */
function isFileBefore({ salt, sequence, rewritten }: Header, before: SegmentEnd): boolean {
  if (rewritten === undefined) return salt === before.salt && sequence <= before.sequence
  const { of } = rewritten
  const isEnd = of.end === before.end && of.sequence === before.sequence
  return of.file === before.file && of.salt === before.salt && isEnd
}

/**
 * Reads the last file to its end. A frame whose write was cut off is left out where nothing lies
 * behind it and nobody knows of it (`synced`: up to here, at least, everything is whole); anything
 * else that isn't right throws JournalDamage.
 */
export function scanTail(
  disk: Disk,
  header: Header,
  known: {
    readonly synced: number
    readonly gaps: readonly LogGap[]
    /** Its writer has closed it, at `synced` or before it. */
    readonly isClosed: boolean
  },
): { readonly end: SegmentEnd; readonly heads: ShardHeads } {
  const { key } = header
  const heads = new ShardHeads(header.shards)
  return withFile(disk, key.file, (opened) => {
    const { synced, gaps, isClosed } = known
    const bytes = opened.bytes()
    // Where its end is known, nothing is missing that isn't noticed below.
    if (bytes < header.bytes && !isClosed && !endsInGap(gaps, key.file)) {
      throw segmentDamage(disk, { file: key.file, position: bytes, what: endsHere(header) })
    }
    let { end: position, sequence } = header
    for (;;) {
      const gap = gaps.find((one) => one.file === key.file && one.position === position)
      if (gap !== undefined) heads.pass(gap.resumed)
      if (gap?.next === null) {
        return { end: { file: key.file, end: position, sequence, salt: header.salt }, heads }
      }
      if (gap !== undefined) position = gap.next
      const found = readFrame(opened, key, position)
      if (found.is !== 'frame') {
        const behind = frameBehind(opened, key, position)
        if (found.is === 'damaged' || behind !== null || position < synced) {
          const what = found.is === 'damaged' ? found.what : 'a whole frame is missing'
          const lost = lostIn(key.file, heads, behind)
          throw segmentDamage(disk, { file: key.file, position, what, ...lost })
        }
        return { end: { file: key.file, end: position, sequence, salt: header.salt }, heads }
      }
      const { frame } = found
      const isNext = gap !== undefined || frame.sequence === sequence + 1
      if (!isNext || !decodeParts(key.file, frame).every((part) => takes(heads, part))) {
        const what = "a frame doesn't go on from the one before it"
        throw segmentDamage(disk, { file: key.file, position, what })
      }
      sequence = frame.sequence
      position += frame.bytes
    }
  })
}

/** Whether what lay at the end of the file was given up. */
export function endsInGap(gaps: readonly LogGap[], file: number): boolean {
  return gaps.some((gap) => gap.file === file && gap.next === null)
}

/** What is said of a last file that is too short. */
export function endsHere({ bytes }: Header): string {
  return `the file ends here and should end at ${bytes}`
}

/** True for what goes on from the heads, and for what was given up with what was before it. */
export function takes(heads: ShardHeads, part: Part): boolean {
  return heads.take(part) || heads.isGivenUp(part)
}

/** The next frame behind a position; one that begins there and isn't whole: 'begun'. */
export function frameBehind(
  file: DiskFile,
  key: FileKey,
  position: number,
): Frame | 'begun' | null {
  const bytes = file.bytes()
  for (let from = position + FRAME_ALIGN; from < bytes; from += LOOK_BYTES) {
    const piece = file.read(from, LOOK_BYTES)
    for (let at = 0; at < piece.length; at += FRAME_ALIGN) {
      if (!beginsAt(key, from + at, piece.subarray(at, at + FRAME_ALIGN))) continue
      const found = readFrame(file, key, from + at)
      return found.is === 'frame' ? found.frame : 'begun'
    }
  }
  return null
}

/** The first group that is missing, told by what goes on from it. */
function lostIn(
  file: number,
  heads: ShardHeads,
  behind: Frame | 'begun' | null,
): { shard: number; offset: number } | null {
  if (behind === null || behind === 'begun') return null
  for (const part of decodeParts(file, behind)) {
    if (part.kind !== 'group') continue
    const { head } = heads.status(part.shard)
    if (part.head > head) return { shard: part.shard, offset: head + 1 }
  }
  return null
}
