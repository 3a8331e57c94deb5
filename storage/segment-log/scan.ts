// Reading the log: the chain of its files, whole frames in order, bodies by place, and the end of
// a log that nobody closed. It stands between the segment files and whoever opens, follows or
// checks them, in any thread. Nothing is read short: what isn't as it was written is JournalDamage.

import { crc32 } from 'node:zlib'
import type { Disk, DiskFile } from './disk.ts'
import { beginsAt, decodeParts, FRAME_ALIGN, readFrame } from './frame.ts'
import type { FileKey, Frame, Part, Place } from './frame.ts'
import { fileName, openSegment, readHeader, segmentDamage, withFile } from './header.ts'
import type { Header, SegmentEnd } from './header.ts'
import { ShardHeads } from './shard-heads.ts'

/** A place between frames. */
export interface LogPosition {
  readonly file: number
  readonly position: number
}

/** One frame's parts; `next` is the position behind it. */
export interface FrameParts {
  readonly parts: readonly Part[]
  readonly next: LogPosition
}

const LOOK_BYTES = 1024 * 1024

/** Headers from `last` back to `first` (null: to the beginning), oldest first. */
export function readChain(
  disk: Disk,
  generation: string,
  range: { readonly first: number | null; readonly last: Header },
): Header[] {
  const chain = [range.last]
  for (let header = range.last; header.key.file !== range.first && header.previous !== null;) {
    const before = header.previous
    const { file } = before
    const found = readHeader(disk, file, generation)
    if (found === null || found.salt !== before.salt || found.sequence > before.sequence) {
      const what = `is not the file that ${fileName(header.key.file)} goes on from`
      throw segmentDamage(disk, { file, position: 0, what })
    }
    const bytes = withFile(disk, file, (opened) => opened.bytes())
    if (bytes < before.end) {
      const what = `the file ends here and should end at ${before.end}`
      throw segmentDamage(disk, { file, position: bytes, what })
    }
    chain.push(found)
    header = found
  }
  return chain.reverse()
}

/**
 * Whole frames from a position on, up to `until`: a position that is known to be synced, as the
 * writer gives it (`SegmentLog.end`). `from` null: from the beginning. Throws JournalDamage.
 */
export function* followLog(
  disk: Disk,
  generation: string,
  range: { readonly from: LogPosition | null; readonly until: LogPosition },
): Generator<FrameParts> {
  const { from, until } = range
  const last = readHeader(disk, until.file, generation)
  if (last === null) {
    throw segmentDamage(disk, { file: until.file, position: 0, what: 'the header is missing' })
  }
  const chain = readChain(disk, generation, { first: from?.file ?? null, last })
  for (const [i, header] of chain.entries()) {
    const next = chain[i + 1]?.previous ?? null
    const isFirst = header.key.file === from?.file
    yield* followFile(disk, header, {
      position: isFirst ? Math.max(from.position, header.end) : header.end,
      end: next?.end ?? until.position,
      sequence: next?.sequence ?? null,
    })
  }
}

/** `sequence`: that of the last frame, where it is known. */
function* followFile(
  disk: Disk,
  header: Header,
  range: { position: number; end: number; sequence: number | null },
): Generator<FrameParts> {
  const { file } = header.key
  const opened = openSegment(disk, file)
  try {
    let sequence = range.position === header.end ? header.sequence : null
    for (let { position } = range; position < range.end;) {
      const found = readFrame(opened, header.key, position)
      if (found.is !== 'frame') {
        const what = found.is === 'damaged' ? found.what : 'a whole frame is missing'
        throw segmentDamage(disk, { file, position, what })
      }
      const { frame } = found
      if (sequence !== null && frame.sequence !== sequence + 1) {
        throw segmentDamage(disk, { file, position, what: 'a frame is out of sequence' })
      }
      sequence = frame.sequence
      position += frame.bytes
      yield { parts: decodeParts(file, frame), next: { file, position } }
    }
    if (sequence !== null && range.sequence !== null && sequence !== range.sequence) {
      throw segmentDamage(disk, { file, position: range.end, what: 'frames are missing' })
    }
  } finally {
    opened.close()
  }
}

/** The body at a place. Throws JournalDamage when it isn't what was written. */
export function readPlace(disk: Disk, place: Place): Buffer {
  const { file, position, length, crc } = place
  const body = withFile(disk, file, (opened) => opened.read(position, length))
  if (body.length === length && crc32(body) === crc) return body
  throw segmentDamage(disk, { file, position, what: 'a body has the wrong checksum' })
}

/**
 * Reads the last file to its end. A frame whose write was cut off is left out where nothing lies
 * behind it and nobody knows of it (`synced`: up to here, at least, everything is whole); anything
 * else that isn't right throws JournalDamage.
 */
export function scanTail(
  disk: Disk,
  header: Header,
  synced: number,
): { readonly end: SegmentEnd; readonly heads: ShardHeads } {
  const { key } = header
  const heads = new ShardHeads(header.shards)
  return withFile(disk, key.file, (opened) => {
    const bytes = opened.bytes()
    if (bytes < header.bytes) {
      const what = `the file ends here and should end at ${header.bytes}`
      throw segmentDamage(disk, { file: key.file, position: bytes, what })
    }
    let { end: position, sequence } = header
    while (true) {
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
      const isNext = frame.sequence === sequence + 1
      if (!isNext || !decodeParts(key.file, frame).every((part) => heads.take(part))) {
        const what = "a frame doesn't go on from the one before it"
        throw segmentDamage(disk, { file: key.file, position, what })
      }
      sequence = frame.sequence
      position += frame.bytes
    }
  })
}

/** The next frame behind a position; one that begins there and isn't whole: 'begun'. */
function frameBehind(file: DiskFile, key: FileKey, position: number): Frame | 'begun' | null {
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
