// The log of a store copied beside its writer, file by file. The node's files are only read; the
// folder becomes a log of its own: a backup.
//
// The order of the reads is what makes it whole:
//   1. The manifest. A commit goes only into a file that the manifest names, and what it names
//      never goes back. So whatever was acknowledged before the copy began lies in the file that is
//      read here as the last one, or in one before it. Newer files are left for the next copy.
//   2. The store's identity (store.json). Whoever accepts a loss writes there what is passed over,
//      and only then begins the file that lies behind it, and only then the manifest names that. So
//      an identity that is read after the manifest knows every gap of the files that it names.
//   3. The headers, from the last file's back to the first. Each names the file before it and its
//      end, which is final: whatever the file still has behind it belongs to nobody, and what lies
//      before it never changes.
//   4. The last file up to its last whole frame. What is acknowledged was synced before, so it can
//      be read.
// A roll, a close or another start meanwhile changes the manifest first, and only then cuts the
// file that was the last one. Where a read meets that, or one half of a frame, everything is read
// again from the manifest on: it names another last file then, or the frame is whole.
//
// The order of the writes keeps the folder a log that a node can be started on at any moment, once
// it was one: files come in by a rename, whole and checked, from the oldest on. Each is as long as
// its header says, with zeros (a hole, which takes no room) behind its end: so it may be the newest
// one for as long as no manifest names it, as what a node that was killed leaves behind. Then comes
// the manifest, with the end, as from a clean close, and only then the files are cut to their ends.
//
// A file that was written anew (segment-log/rewrite.ts) comes under its own name, beside those that
// it stands for; what is read is the newer one. Those go at the end. A node that is started before
// the file behind it has come takes it away again (segment-log/opening.ts).

import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { LIMITS } from '../../../config/limits.ts'
import type { Disk, DiskFile } from '../../segment-log/disk.ts'
import { FRAME_ALIGN } from '../../segment-log/frame.ts'
import { endOf, fileName, fileOfName, firstOf, numberOf } from '../../segment-log/header.ts'
import { openSegment, readHeader, roundOf, segmentDamage } from '../../segment-log/header.ts'
import { withFile, type ChainLink } from '../../segment-log/header.ts'
import { liveEnd } from '../../segment-log/live-end.ts'
import { missingManifest, readManifest, writeManifest } from '../../segment-log/manifest.ts'
import type { Manifest } from '../../segment-log/manifest.ts'
import { NodeDisk } from '../../segment-log/node-disk.ts'
import { readLinks, type LogGap, type LogPosition } from '../../segment-log/scan.ts'
import { checkSegment } from '../../segment-log/segment-check.ts'
import { JournalDamage } from '../../damage.ts'
import type { EmbeddedIdentity } from '../journal/identity.ts'
import { syncFolder } from '../synced-file.ts'

const PIECE_BYTES = 1024 * 1024

export interface LogCopyOptions {
  readonly source: Disk
  /** What store.json of the source says now. */
  readonly identity: () => EmbeddedIdentity
  /** Folder of the copy's segment files; what isn't there yet is made. */
  readonly folder: string
  /** Where files are until they are whole: in the same file system, emptied before and after. */
  readonly incoming: string
  /** Keeps the identity that belongs to the files, before any of them comes. */
  readonly keep: (identity: EmbeddedIdentity) => void
  readonly pause: (ms: number) => Promise<void>
}

export interface LogCopyReport {
  readonly files: number
  readonly bytes: number
  /** What was copied now. */
  readonly copied: { files: number; bytes: number; groups: number; entries: number }
  readonly end: LogPosition
}

/** A file of the source, and how much of it counts. */
interface Piece {
  readonly header: ChainLink
  readonly end: number
  readonly isLast: boolean
}

interface Plan {
  readonly identity: EmbeddedIdentity
  readonly pieces: readonly Piece[]
}

/**
 * Copies what the folder doesn't have yet. Throws JournalDamage for what is damaged in the source,
 * and Error where the folder has another timeline of the store; then what was there is as it was.
 */
export async function copyLog(options: LogCopyOptions): Promise<LogCopyReport> {
  const copied = { files: 0, bytes: 0, groups: 0, entries: 0 }
  for (let attempt = 1; ; attempt++) {
    try {
      return await copyOnce(options, copied)
    } catch (error) {
      if (!(error instanceof JournalDamage) || attempt === LIMITS.embedded.backupAttemptsMax)
        throw error
      await options.pause(LIMITS.embedded.backupRetryMs)
    } finally {
      rmSync(options.incoming, { recursive: true, force: true })
    }
  }
}

async function copyOnce(
  options: LogCopyOptions,
  copied: LogCopyReport['copied'],
): Promise<LogCopyReport> {
  const { folder, keep } = options
  const { identity, pieces } = readPlan(options)
  const { log: generation } = identity
  refuseOtherTimeline(folder, generation, pieces)
  keep(identity)
  rmSync(options.incoming, { recursive: true, force: true })
  const target = new NodeDisk(folder)
  const manifest = readManifest(target, generation)
  const brought: Piece[] = []
  for (const piece of pieces) {
    if (isThere(options.source, target, piece, manifest)) continue
    const counts = await bringIn(options, piece, identity)
    brought.push(piece)
    copied.files++
    copied.bytes += piece.end
    copied.groups += counts.groups
    copied.entries += counts.entries
  }
  const { header, end } = pieces.at(-1)!
  const { file } = header.key
  readLinks(target, generation, { first: null, last: readHeader(target, file, generation)! })
  if (manifest?.last !== file || manifest.end !== end) {
    await writeManifest(target, { generation, last: file, end })
  }
  for (const piece of brought) target.truncate(fileName(piece.header.key.file), piece.end)
  removeOthers(target, pieces)
  const bytes = pieces.reduce((sum, piece) => sum + piece.end, 0)
  return { files: pieces.length, bytes, copied, end: { file, position: end } }
}

/** What the source has given back is gone from the copy, too, once it has what stands for it. */
function removeOthers(target: Disk, pieces: readonly Piece[]): void {
  const own = new Set(pieces.map(({ header }) => header.key.file))
  for (const name of target.list()) {
    const file = fileOfName(name)
    if (file !== null && !own.has(file)) target.remove(name)
  }
}

/** The reads, in the order that is told above. */
function readPlan({ source, identity: identityNow }: LogCopyOptions): Plan {
  const { log: generation } = identityNow()
  const manifest = readManifest(source, generation)
  if (manifest === null) throw missingManifest(source)
  const identity = identityNow()
  const file = manifest.last
  const last = file === 0 ? null : readHeader(source, file, generation)
  if (last === null) {
    if (file === 0) throw new Error(`${source.path}: nothing was ever written to this store`)
    throw segmentDamage(source, { file, position: 0, what: 'the header is missing' })
  }
  const chain = readLinks(source, generation, { first: null, last })
  const end = liveEnd(source, last, { closedAt: manifest.end, gaps: identity.gaps })
  const pieces = chain.map((header, i): Piece => {
    const next = chain[i + 1]
    return { header, end: endOf(header, next ?? null) ?? end, isLast: next === undefined }
  })
  return { identity, pieces }
}

/** Files of the folder are those of the source, or the source was once set back: throws Error. */
function refuseOtherTimeline(folder: string, generation: string, pieces: readonly Piece[]): void {
  if (!existsSync(folder)) return
  const target = new NodeDisk(folder)
  for (const name of target.list()) {
    const file = fileOfName(name)
    if (file === null) continue
    const salt = readHeader(target, file, generation)?.salt
    if (salt !== undefined && isOfTimeline(pieces, file, salt)) continue
    throw new Error(
      `${folder}/${fileName(file)} is not of the store as it is now: it holds what came after, or ` +
        'another timeline of it. Nothing was changed: name another directory',
    )
  }
}

/** It is one of the files, or what one of them was made from. */
function isOfTimeline(pieces: readonly Piece[], file: number, salt: string): boolean {
  const number = numberOf(file)
  const piece = pieces.find(({ header }) => numberOf(header.key.file) >= number)?.header
  if (piece === undefined || firstOf(piece) > number) return false
  const { key, rewritten } = piece
  if (key.file === file) return piece.salt === salt
  if (rewritten === undefined) return false
  // Of what it stands for, it names the last as that was first; the others' numbers are enough.
  return numberOf(key.file) !== number || roundOf(file) > 0 || rewritten.of.salt === salt
}

/** A file that goes so far, with the same beginning and end, is the same: it was copied whole. */
function isThere(source: Disk, target: Disk, piece: Piece, manifest: Manifest | null): boolean {
  const { header, end, isLast } = piece
  const { file } = header.key
  if (!target.exists(fileName(file))) return false
  if (isLast) return manifest?.last === file && manifest.end === end
  return withFile(target, file, (there) => {
    if (there.bytes() < end) return false
    return withFile(source, file, (opened) => {
      const isSame = (from: number, length: number): boolean =>
        opened.read(from, length).equals(there.read(from, length))
      // The end tells it from one that was copied while it was the last, and has zeros there.
      return isSame(0, header.end) && isSame(end - FRAME_ALIGN, FRAME_ALIGN)
    })
  })
}

async function bringIn(
  { source, folder, incoming }: LogCopyOptions,
  { header, end }: Piece,
  { log: generation, gaps }: EmbeddedIdentity,
): Promise<{ readonly groups: number; readonly entries: number }> {
  const { file } = header.key
  const name = fileName(file)
  mkdirSync(incoming, { recursive: true })
  const path = join(incoming, name)
  rmSync(path, { force: true })
  const opened = openSegment(source, file)
  try {
    const bytes = Math.max(end, header.bytes)
    const given = await writeCopy(opened, path, { end, bytes })
    if (given < end) {
      throw segmentDamage(source, { file, position: given, what: 'the file ends here' })
    }
  } finally {
    opened.close()
  }
  const counts = checkCopy(source, new NodeDisk(incoming), { generation, file, end, gaps })
  renameSync(path, join(folder, name))
  syncFolder(folder)
  return counts
}

/** `end` bytes, made `bytes` long, on the disk. Resolves to how many the file had. */
async function writeCopy(
  from: DiskFile,
  path: string,
  { end, bytes }: { readonly end: number; readonly bytes: number },
): Promise<number> {
  const to = await open(path, 'wx', 0o600)
  try {
    const given = await pour(from, to, end)
    await to.truncate(bytes)
    await to.sync()
    return given
  } finally {
    await to.close()
  }
}

async function pour(from: DiskFile, to: FileHandle, end: number): Promise<number> {
  for (let at = 0; at < end;) {
    const piece = from.read(at, Math.min(PIECE_BYTES, end - at))
    if (piece.length === 0) return at
    await to.writeFile(piece)
    at += piece.length
  }
  return end
}

/** What is wrong in the copy and right in the source is a fault of the copy's disk. */
function checkCopy(
  source: Disk,
  target: Disk,
  check: {
    readonly generation: string
    readonly file: number
    readonly end: number
    readonly gaps: readonly LogGap[]
  },
): { readonly groups: number; readonly entries: number } {
  try {
    return checkSegment(target, check)
  } catch (error) {
    if (!(error instanceof JournalDamage)) throw error
    checkSegment(source, check)
    throw new Error(`what was copied can't be read back: ${error.message}`, { cause: error })
  }
}
