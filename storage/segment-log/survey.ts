// The log with whatever is wrong in it: frames that are whole, and what can't be read between them.

import type { Disk, DiskFile } from './disk.ts'
import { bodyIn, decodeParts, readFrame } from './frame.ts'
import type { Part, Place } from './frame.ts'
import { endOf, listFiles, openSegment, readHeader, segmentDamage } from './header.ts'
import type { ChainLink, Header } from './header.ts'
import { readManifest } from './manifest.ts'
import { endsHere, frameBehind, readLinks, type LogGap, type LogPosition } from './scan.ts'

/** What is found at a place of the log. */
export type Surveyed = { readonly header: Header; readonly at: LogPosition } & (
  | { readonly is: 'frame'; readonly parts: readonly Part[]; readonly body: (of: Place) => Buffer }
  /** Something was given up here. */
  | { readonly is: 'gap'; readonly gap: LogGap }
  /** Something can't be read. `next`: where the next whole frame begins, if there is one. */
  | {
      readonly is: 'damage'
      readonly next: number | null
      readonly what: string
      /** What it held, where that much can be read. */
      readonly parts: readonly Part[] | null
    }
)

export interface SurveyOptions {
  readonly generation: string
  readonly gaps: readonly LogGap[]
  /** The last file only, as a start reads it. */
  readonly isTail: boolean
  /** Up to here frames are known to have been synced. */
  readonly synced?: LogPosition | null
}

/** Throws JournalDamage for files that are missing, or whose headers are. */
export function* surveyLog(disk: Disk, options: SurveyOptions): Generator<Surveyed> {
  const { generation, isTail } = options
  const last = newestHeader(disk, generation)
  if (last === null) return
  const chain = isTail ? [last] : readLinks(disk, generation, { first: null, last })
  for (const [i, { key }] of chain.entries()) {
    const header = readHeader(disk, key.file, generation)!
    yield* surveyFile(disk, header, { next: chain[i + 1] ?? null, options })
  }
}

function newestHeader(disk: Disk, generation: string): Header | null {
  const manifest = readManifest(disk, generation)
  for (const file of listFiles(disk).toReversed()) {
    const header = readHeader(disk, file, generation)
    if (header !== null && file >= (manifest?.last ?? 0)) return header
  }
  if (manifest === null || manifest.last === 0) return null
  const what = 'the file is missing, or its header is'
  throw segmentDamage(disk, { file: manifest.last, position: 0, what })
}

function* surveyFile(
  disk: Disk,
  header: Header,
  of: { readonly next: ChainLink | null; readonly options: SurveyOptions },
): Generator<Surveyed> {
  const { file } = header.key
  const { generation, gaps, synced = null } = of.options
  const manifest = readManifest(disk, generation)
  const closedAt = manifest?.last === file ? manifest.end : null
  const end = endOf(header, of.next) ?? closedAt
  const least = synced?.file === file ? synced.position : 0
  const opened = openSegment(disk, file)
  try {
    let position: number | null = header.end
    while (position !== null && position < (end ?? Number.POSITIVE_INFINITY)) {
      const at: LogPosition = { file, position }
      const gap = gaps.find((one) => one.file === file && one.position === at.position)
      if (gap !== undefined) yield { is: 'gap', header, at, gap }
      const isInside: boolean = end !== null || position < least
      const found: ReturnType<typeof surveyAt> | LogGap =
        gap === undefined ? surveyAt(opened, header, { at, isInside }) : gap
      if (found === null) break
      if ('is' in found) yield found
      position = found.next
    }
    // The end isn't known, and the file is not as long as it was made.
    if (end === null && position !== null && opened.bytes() < header.bytes) {
      const at = { file, position }
      yield { is: 'damage', header, at, next: null, what: endsHere(header), parts: null }
    }
  } finally {
    opened.close()
  }
}

/** null: the log ends there. */
function surveyAt(
  opened: DiskFile,
  header: Header,
  { at, isInside }: { readonly at: LogPosition; readonly isInside: boolean },
): (Surveyed & { readonly is: 'frame' | 'damage'; readonly next: number | null }) | null {
  const { key } = header
  const found = readFrame(opened, key, at.position)
  if (found.is === 'frame') {
    const { frame } = found
    const parts = decodeParts(key.file, frame)
    const next = at.position + frame.bytes
    return { is: 'frame', header, at, parts, body: (place) => bodyIn(frame, place), next }
  }
  const behind = frameBehind(opened, key, at.position)
  if (found.is !== 'damaged' && behind === null && !isInside) return null
  const next = behind === null || behind === 'begun' ? null : behind.position
  const what = found.is === 'damaged' ? found.what : 'a whole frame is missing'
  const held = found.is === 'damaged' ? found.heads : undefined
  const parts = held === undefined ? null : decodeParts(key.file, held)
  return { is: 'damage', header, at, next, what, parts }
}
