// The header of a segment file, its first frame. It names the file before with its end, so the
// files are a chain in which none can be missing, swapped or cut short. It holds what every shard
// is at, so that a start reads the last file only.

import { JournalDamage } from '../damage.ts'
import type { ShardStatus } from '../journal.ts'
import type { Disk, DiskFile } from './disk.ts'
import {
  encodeFrame,
  frameBytes,
  HEADER_KIND,
  headerKey,
  readFrame,
  type FileKey,
} from './frame.ts'

const FORMAT = 1

/** Files are told by their numbers; what one was rewritten to, by this much more a round. */
const ROUND = 2 ** 32
export const ROUNDS_MAX = 0xffff

/** The end of a file, and the frame before it. */
export interface SegmentEnd {
  readonly file: number
  readonly end: number
  readonly sequence: number
  /** Hexadecimal: a file of the same number from another generation of it has another one. */
  readonly salt: string
}

export interface HeaderText {
  readonly format: number
  readonly generation: string
  readonly salt: string
  /** Of the file as it was filled; it is this long for as long as it is the last one. */
  readonly bytes: number
  readonly previous: SegmentEnd | null
  readonly shards: readonly (readonly [number, ShardStatus])[]
  /** Of a file that stands for others, from which what nobody needs is gone (rewrite.ts). */
  readonly rewritten?: Rewritten
}

export interface Rewritten {
  /** Number of the first of the files that it stands for; the last has its own. */
  readonly first: number
  /** The files that it was made from, oldest first, and where each of them ends. */
  readonly sources: readonly { readonly file: number; readonly position: number }[]
  /** The end of the last of them as it was written first: what the file behind it names. */
  readonly of: SegmentEnd
  /** Its own end, and its last frame. */
  readonly end: number
  readonly sequence: number
}

export interface Header extends HeaderText {
  readonly key: FileKey
  /** Position behind it. */
  readonly end: number
  readonly sequence: number
}

/** A header as a link of the chain, without what every shard is at. */
export type ChainLink = Omit<Header, 'shards'>

/** The number of a file in the chain, whichever round of it. */
export function numberOf(file: number): number {
  return file % ROUND
}

/** How often it was rewritten: 0 for what was appended to. */
export function roundOf(file: number): number {
  return Math.floor(file / ROUND)
}

export function inRound(file: number, round: number): number {
  return numberOf(file) + round * ROUND
}

export function fileName(file: number): string {
  const number = String(numberOf(file)).padStart(8, '0')
  const round = roundOf(file)
  return round === 0 ? `${number}.seg` : `${number}-${String(round).padStart(4, '0')}.seg`
}

/** The file that a name is of; null: it is no segment file's. */
export function fileOfName(name: string): number | null {
  const found = /^(\d{8,})(?:-(\d{4,}))?\.seg$/.exec(name)
  if (found === null) return null
  return inRound(Number.parseInt(found[1]!, 10), Number.parseInt(found[2] ?? '0', 10))
}

/** By number, the newest round of each file: any that has its name is whole. */
export function newestRounds(disk: Disk): ReadonlyMap<number, number> {
  const newest = new Map<number, number>()
  for (const name of disk.list()) {
    const file = fileOfName(name)
    if (file === null) continue
    const number = numberOf(file)
    if (file >= (newest.get(number) ?? 0)) newest.set(number, file)
  }
  return newest
}

/** Where a file ends; `next` is the one behind it in the chain. null: it isn't known. */
export function endOf(header: ChainLink, next: ChainLink | null): number | null {
  return header.rewritten?.end ?? next?.previous?.end ?? null
}

/** Number of the first file that this one stands for. */
export function firstOf({ rewritten, key }: ChainLink): number {
  return rewritten?.first ?? numberOf(key.file)
}

/** Numbers of the segment files that were appended to, ascending. */
export function listFiles(disk: Disk): number[] {
  const names = disk.list().filter((name) => /^\d{8,}\.seg$/.test(name))
  return names.map((name) => Number.parseInt(name, 10)).sort((a, b) => a - b)
}

/** `bytes`: of the frame that it must be, and for which its text must be short enough. */
export function encodeHeader(
  file: number,
  header: Omit<HeaderText, 'format'>,
  bytes?: number,
): Uint8Array[] {
  let text: Buffer = Buffer.from(JSON.stringify({ format: FORMAT, ...header }))
  if (bytes !== undefined) text = filled(text, bytes)
  const sequence = (header.previous?.sequence ?? 0) + 1
  return encodeFrame(headerKey(file), { position: 0, sequence, kind: HEADER_KIND }, text, [])
}

/** With spaces behind it, as long as a frame of so many bytes takes. */
function filled(text: Buffer, bytes: number): Buffer {
  let length = text.length
  while (frameBytes(length, 0) < bytes) length++
  const padded = Buffer.alloc(length, ' ')
  text.copy(padded)
  return padded
}

/**
 * Null where none was written, or not the whole of it: then nothing else was written either.
 * Throws JournalDamage, also where there is no file.
 */
export function readHeader(disk: Disk, file: number, generation: string): Header | null {
  return withFile(disk, file, (opened) => {
    const found = readFrame(opened, headerKey(file), 0)
    if (found.is === 'damaged') throw segmentDamage(disk, { file, position: 0, what: found.what })
    if (found.is !== 'frame') return null
    const { frame } = found
    const text = JSON.parse(frame.heads.toString()) as HeaderText
    const what =
      text.format !== FORMAT
        ? `is of format ${text.format}, not ${FORMAT}`
        : `belongs to store ${text.generation}, not to ${generation}`
    if (text.format !== FORMAT || text.generation !== generation) {
      throw segmentDamage(disk, { file, position: 0, what })
    }
    const key = { file, salt: Buffer.from(text.salt, 'hex') }
    return { ...text, key, end: frame.bytes, sequence: frame.sequence }
  })
}

export function withFile<T>(disk: Disk, file: number, use: (opened: DiskFile) => T): T {
  const opened = openSegment(disk, file)
  try {
    return use(opened)
  } finally {
    opened.close()
  }
}

/** Throws JournalDamage where there is none. */
export function openSegment(disk: Disk, file: number): DiskFile {
  try {
    return disk.open(fileName(file))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw segmentDamage(disk, { file, position: 0, what: 'the file is missing' })
  }
}

export interface SegmentFinding {
  readonly file: number
  readonly position: number
  readonly what: string
  /** Where in a shard's log the damage begins, as far as that is known. */
  readonly shard?: number | null
  readonly offset?: number | null
}

export function segmentDamage(disk: Disk, finding: SegmentFinding): JournalDamage {
  const { position, what, shard = null, offset = null } = finding
  const file = `${disk.path}/${fileName(finding.file)}`
  const where =
    shard === null ? '' : `, the first that is missing is shard ${shard}, offset ${offset}`
  return new JournalDamage(
    `${file}: position ${position}: ${what}${where}. Nothing was changed. ` +
      'Way back: restore the data directory from a backup',
    { file, shard, offset },
  )
}
