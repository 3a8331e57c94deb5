// The header of a segment file, its first frame. It stands between a file and the one before it:
// it names that one with its end, so the files are a chain in which none can be missing, swapped
// or cut short. It holds what every shard is at, so that a start reads the last file only.

import { JournalDamage } from '../embedded/journal-damage.ts'
import type { ShardStatus } from '../journal.ts'
import type { Disk, DiskFile } from './disk.ts'
import { encodeFrame, HEADER_KIND, headerKey, readFrame, type FileKey } from './frame.ts'

const FORMAT = 1

/** The end of a file, and the frame before it. */
export interface SegmentEnd {
  readonly file: number
  readonly end: number
  readonly sequence: number
  /** Hexadecimal: a file of the same number from another life of the store has another one. */
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
}

export interface Header extends HeaderText {
  readonly key: FileKey
  /** Position behind it. */
  readonly end: number
  readonly sequence: number
}

export function fileName(file: number): string {
  return `${String(file).padStart(8, '0')}.seg`
}

/** Numbers of the segment files, ascending. */
export function listFiles(disk: Disk): number[] {
  const names = disk.list().filter((name) => /^\d{8,}\.seg$/.test(name))
  return names.map((name) => Number.parseInt(name, 10)).sort((a, b) => a - b)
}

export function encodeHeader(file: number, header: Omit<HeaderText, 'format'>): Uint8Array[] {
  const text = Buffer.from(JSON.stringify({ format: FORMAT, ...header }))
  const sequence = (header.previous?.sequence ?? 0) + 1
  return encodeFrame(headerKey(file), { position: 0, sequence, kind: HEADER_KIND }, text, [])
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
