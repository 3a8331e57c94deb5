// Opening the log for writing. Nobody ever appends to a file that somebody else began.
//
// The order is the protocol:
//   1. The next file is taken by a link that fails if it exists. From here on a writer before this
//      one, which looks for that name after each sync and before it says that anything is in, is
//      fenced: whatever it still appends, nobody is told so, and nobody reads it.
//   2. Only then the last file is read to its end. A frame that was cut off is left out.
//   3. The header of the new file is written, naming that end, then the manifest, naming the file.
//      Only then commits go into it: a file without a header that no manifest names was never used.
//
// What is promised of the last file after a crash: every frame that was acknowledged is there, or
// the opening is refused with JournalDamage. One exception: when the very last frame is damaged,
// holds 512 zeros of a sector in a body, and neither a clean close nor the caller (`synced`) says
// that it was there, it can't be told from one whose write was cut off, and is left out as that.

import type { Disk } from './disk.ts'
import { encodeHeader, fileName, fileOfName, listFiles, numberOf } from './header.ts'
import { readHeader, roundOf, segmentDamage } from './header.ts'
import type { Header, SegmentEnd } from './header.ts'
import { missingManifest, readManifest, writeManifest } from './manifest.ts'
import type { Manifest } from './manifest.ts'
import { readLinks, scanTail, type LogGap, type LogPosition } from './scan.ts'
import { ShardHeads } from './shard-heads.ts'
import { fillSpare, removeSpares, type Spare } from './spare.ts'

/** The file that a writer appends to. */
export interface OpenSegment {
  readonly file: number
  readonly spare: Spare
  /** Where the next frame goes, and the sequence number of the last. */
  end: number
  sequence: number
}

export interface Opened {
  readonly segment: OpenSegment
  readonly heads: ShardHeads
}

export interface OpeningOptions {
  /** Of the store: a file of another one is refused. */
  readonly generation: string
  /** Bytes of the first file; a larger header makes it larger. */
  readonly bytes: number
  /** Up to here the caller knows that frames were synced: nothing before it is left out. */
  readonly synced: LogPosition | null
  /** What was given up, and is passed over. */
  readonly gaps: readonly LogGap[]
}

/** Throws JournalDamage, and the disk's errors: EEXIST when another one is opening the log too. */
export async function openForWriting(disk: Disk, options: OpeningOptions): Promise<Opened> {
  const { generation, bytes } = options
  // In this order: the files are then at least those that the manifest knows.
  let manifest = readManifest(disk, generation)
  const files = listFiles(disk)
  if (manifest === null) {
    if (files.length > 0) throw missingManifest(disk)
    manifest = { generation, last: 0, end: null }
    await writeManifest(disk, manifest)
  }
  removeSpares(disk)
  const spare = await fillSpare(disk, bytes)
  const file = Math.max(files.at(-1) ?? 0, manifest.last) + 1
  let isUnused = false
  try {
    await disk.link(spare.name, fileName(file))
    isUnused = true
    disk.remove(spare.name)
    const before = readBefore(disk, files, manifest, options)
    // Not those that have passed a gap: of a writer's own groups every epoch is known.
    const heads = new ShardHeads(before?.heads.entries())
    const from = { generation, previous: before?.end ?? null, heads }
    removeAhead(disk, before?.end.file ?? 0)
    isUnused = false
    const segment = await beginSegment({ file, spare }, from)
    await writeManifest(disk, { generation, last: file, end: null })
    giveBack(disk, files, before?.end ?? null)
    return { segment, heads }
  } catch (error) {
    spare.file.close()
    disk.remove(spare.name)
    if (isUnused) disk.remove(fileName(file))
    throw error
  }
}

/** Writes the header of a file that was linked. Before it is used the manifest must name it. */
export async function beginSegment(
  at: { readonly file: number; readonly spare: Spare },
  from: { generation: string; previous: SegmentEnd | null; heads: ShardHeads },
): Promise<OpenSegment> {
  const { file, spare } = at
  const { generation, previous } = from
  const salt = spare.salt.toString('hex')
  const shards = from.heads.entries()
  const { bytes } = spare
  const header = encodeHeader(file, { generation, salt, bytes, previous, shards })
  await spare.file.writeSynced(0, header)
  const end = header.reduce((sum, chunk) => sum + chunk.length, 0)
  return { file, spare, end, sequence: (previous?.sequence ?? 0) + 1 }
}

/** The end of the last file that is in use; null in a new store. */
function readBefore(
  disk: Disk,
  files: readonly number[],
  manifest: Manifest,
  { synced, gaps }: Pick<OpeningOptions, 'synced' | 'gaps'>,
): ReturnType<typeof scanTail> | null {
  const last = newestHeader(disk, files, manifest)
  const leastFile = Math.max(manifest.last, numberOf(synced?.file ?? 0))
  if (last === null || last.key.file < leastFile) {
    if (leastFile === 0) return null
    const what = 'the file is missing, or its header is'
    throw segmentDamage(disk, { file: leastFile, position: 0, what })
  }
  readLinks(disk, manifest.generation, { first: null, last })
  const { file } = last.key
  const ended = manifest.last === file ? manifest.end : null
  const least = Math.max(ended ?? 0, synced?.file === file ? synced.position : 0)
  return scanTail(disk, last, { synced: least, gaps, isClosed: ended !== null })
}

function newestHeader(disk: Disk, files: readonly number[], manifest: Manifest): Header | null {
  for (const file of files.toReversed()) {
    const header = readHeader(disk, file, manifest.generation)
    if (header !== null) return header
  }
  return null
}

/**
 * Files that stand for others, of the last one or behind it: a copy had brought them, and got no
 * further. Only what has a file in use behind it is ever written anew.
 */
function removeAhead(disk: Disk, last: number): void {
  for (const name of disk.list()) {
    const file = fileOfName(name)
    if (file !== null && roundOf(file) > 0 && numberOf(file) >= last) disk.remove(name)
  }
}

/**
 * The room behind the end, and of files that were never used. Their names stay: an older writer
 * may still look for one of them, and finding none would take itself for the newest.
 */
function giveBack(disk: Disk, files: readonly number[], end: SegmentEnd | null): void {
  for (const file of files) {
    if (file === end?.file) disk.truncate(fileName(file), end.end)
    else if (file > (end?.file ?? 0)) disk.truncate(fileName(file), 0)
  }
}
