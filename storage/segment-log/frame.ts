// A frame, the unit in which the log is written: all of it is there or nothing is. What
// a commit holds (groups, claims), as bytes in a segment file:
//
//     0   checksum of salt, file number, position and the bytes 4-31
//     4   length, a multiple of 64; with the padding
//     8   sequence number, dense over all files
//     16  bytes of the heads
//     20  kind
//     24  checksum of the heads
//     28  bytes of the bodies
//     32  heads (each group's has its body's checksum), bodies, padding (at least 8 bytes)
//
// The salt is drawn for each file, so nothing that a caller sends can look like a frame.
//
// A frame that is not whole is torn or damaged. Files are filled with zeros before they are used,
// are written once and in sectors of 512 bytes, and neither the first 32 bytes nor the padding can
// be zeros. So of a frame whose write was cut off some sector is still all zeros, and one that is
// wrong and has no such sector was whole once. What can't be told apart: a damage in a last frame
// that has 512 zeros of a sector in a body.

import { crc32 } from 'node:zlib'
import type { Group } from '../journal.ts'
import type { DiskFile } from './disk.ts'

export const FRAME_ALIGN = 64
const FIXED_BYTES = 32
const PADDING_BYTES_MIN = 8
const PADDING = 0xa5
const SECTOR_BYTES = 512
const GROUP_HEAD_BYTES = 44
const CLAIM_BYTES = 17
const GROUP = 1
const CLAIM = 2
const NO_SALT = Buffer.alloc(0)

export const HEADER_KIND = 1
export const COMMIT_KIND = 2

/** Where a body lies, with its checksum. */
export interface Place {
  readonly file: number
  readonly position: number
  readonly length: number
  readonly crc: number
}

export interface Claim {
  readonly shard: number
  readonly epoch: number
}

/** A group as the log gives it back: its body by place. */
export type GroupPart = Omit<Group, 'body'> & { readonly kind: 'group'; readonly place: Place }
export type Part = GroupPart | ({ readonly kind: 'claim' } & Claim)

/** What every checksum of a file begins with. `salt` is empty for the header frame itself. */
export interface FileKey {
  readonly file: number
  readonly salt: Buffer
}

export interface Frame {
  readonly sequence: number
  readonly kind: number
  readonly position: number
  readonly bytes: number
  readonly heads: Buffer
  readonly bodiesAt: number
  /** All of it, as it was read. */
  readonly raw: Buffer
}

/** What is at a position where a frame may begin. `empty`: zeros. */
export type Found =
  | { readonly is: 'frame'; readonly frame: Frame }
  | { readonly is: 'empty' | 'torn' }
  /** `heads`: where they are right, for the frame says then what it held. */
  | { readonly is: 'damaged'; readonly what: string; readonly heads?: Frame }

export function headerKey(file: number): FileKey {
  return { file, salt: NO_SALT }
}

/** Bytes of a frame with heads and bodies of these lengths. */
export function frameBytes(headsBytes: number, bodiesBytes: number): number {
  const bytes = FIXED_BYTES + headsBytes + bodiesBytes + PADDING_BYTES_MIN
  return Math.ceil(bytes / FRAME_ALIGN) * FRAME_ALIGN
}

/** Bytes of a part's head. */
export function headBytes(part: Group | Claim): number {
  return 'body' in part ? GROUP_HEAD_BYTES + Buffer.byteLength(part.commitId) : CLAIM_BYTES
}

/** A commit's heads, and the places of the bodies (in the order of the groups). */
export function encodeParts(
  at: { readonly file: number; readonly position: number },
  parts: readonly (Group | Claim)[],
): { readonly heads: Buffer; readonly places: readonly Place[] } {
  const heads = Buffer.alloc(parts.reduce((sum, part) => sum + headBytes(part), 0))
  const places: Place[] = []
  let to = 0
  let position = at.position + FIXED_BYTES + heads.length
  for (const part of parts) {
    heads.writeUInt8('body' in part ? GROUP : CLAIM, to)
    if ('body' in part) {
      const { body } = part
      const place = { file: at.file, position, length: body.length, crc: crc32(body) }
      writeGroupHead(heads, to, { group: part, crc: place.crc })
      places.push(place)
      position += body.length
    } else {
      heads.writeDoubleLE(part.shard, to + 1)
      heads.writeDoubleLE(part.epoch, to + 9)
    }
    to += headBytes(part)
  }
  return { heads, places }
}

function writeGroupHead(heads: Buffer, to: number, of: { group: Group; crc: number }): void {
  const { shard, epoch, head, count, commitId, body } = of.group
  heads.writeUInt8(Buffer.byteLength(commitId), to + 1)
  heads.writeUInt32LE(body.length, to + 4)
  heads.writeUInt32LE(of.crc, to + 8)
  for (const [i, value] of [shard, epoch, head, count].entries()) {
    heads.writeDoubleLE(value, to + 12 + 8 * i)
  }
  heads.write(commitId, to + GROUP_HEAD_BYTES)
}

/** The parts of a commit frame whose heads were checked. */
export function decodeParts(file: number, { heads, bodiesAt }: Frame): Part[] {
  const parts: Part[] = []
  let position = bodiesAt
  for (let at = 0; at < heads.length;) {
    if (heads[at] === CLAIM) {
      const shard = heads.readDoubleLE(at + 1)
      parts.push({ kind: 'claim', shard, epoch: heads.readDoubleLE(at + 9) })
      at += CLAIM_BYTES
      continue
    }
    const length = heads.readUInt32LE(at + 4)
    const end = at + GROUP_HEAD_BYTES + heads.readUInt8(at + 1)
    parts.push({
      kind: 'group',
      shard: heads.readDoubleLE(at + 12),
      epoch: heads.readDoubleLE(at + 20),
      head: heads.readDoubleLE(at + 28),
      count: heads.readDoubleLE(at + 36),
      commitId: heads.toString('utf8', at + GROUP_HEAD_BYTES, end),
      place: { file, position, length, crc: heads.readUInt32LE(at + 8) },
    })
    position += length
    at = end
  }
  return parts
}

/** A group's body, as a view of the frame that it is in. */
export function bodyIn({ position, raw }: Frame, place: Place): Buffer {
  const at = place.position - position
  return raw.subarray(at, at + place.length)
}

/** A frame as chunks for one write; bodies aren't copied. */
export function encodeFrame(
  key: FileKey,
  frame: { readonly position: number; readonly sequence: number; readonly kind: number },
  heads: Buffer,
  bodies: readonly Uint8Array[],
): Uint8Array[] {
  const bodiesBytes = bodies.reduce((sum, body) => sum + body.length, 0)
  const length = frameBytes(heads.length, bodiesBytes)
  const fixed = Buffer.alloc(FIXED_BYTES)
  fixed.writeUInt32LE(length, 4)
  fixed.writeDoubleLE(frame.sequence, 8)
  fixed.writeUInt32LE(heads.length, 16)
  fixed.writeUInt32LE(frame.kind, 20)
  fixed.writeUInt32LE(crc32(heads), 24)
  fixed.writeUInt32LE(bodiesBytes, 28)
  fixed.writeUInt32LE(fixedCrc(key, frame.position, fixed), 0)
  const padding = Buffer.alloc(length - FIXED_BYTES - heads.length - bodiesBytes, PADDING)
  return [fixed, heads, ...bodies, padding]
}

function fixedCrc({ file, salt }: FileKey, position: number, fixed: Buffer): number {
  const place = Buffer.alloc(16)
  place.writeDoubleLE(file, 0)
  place.writeDoubleLE(position, 8)
  return crc32(fixed.subarray(4, FIXED_BYTES), crc32(place, crc32(salt)))
}

/** Whether the first bytes of a frame are at `position`; what follows them isn't looked at. */
export function beginsAt(key: FileKey, position: number, fixed: Buffer): boolean {
  if (fixed.length < FIXED_BYTES) return false
  const length = fixed.readUInt32LE(4)
  // Most places where none begins are told by this, without a checksum.
  if (length === 0 || length % FRAME_ALIGN !== 0) return false
  return fixedCrc(key, position, fixed) === fixed.readUInt32LE(0)
}

/** Reads and checks what is at `position`, up to the last byte. */
export function readFrame(file: DiskFile, key: FileKey, position: number): Found {
  const first = file.read(position, SECTOR_BYTES - (position % SECTOR_BYTES))
  if (isZeros(first)) return { is: 'empty' }
  if (!beginsAt(key, position, first)) {
    return { is: 'damaged', what: 'the beginning of a frame has the wrong checksum' }
  }
  const length = first.readUInt32LE(4)
  const bytes = file.read(position, length)
  if (bytes.length < length) return { is: 'damaged', what: 'a frame ends behind the file' }
  const bodiesAt = FIXED_BYTES + bytes.readUInt32LE(16)
  const frame = {
    sequence: bytes.readDoubleLE(8),
    kind: bytes.readUInt32LE(20),
    position,
    bytes: length,
    heads: bytes.subarray(FIXED_BYTES, bodiesAt),
    bodiesAt: position + bodiesAt,
    raw: bytes,
  }
  const what = wrongIn(key.file, frame, bytes)
  if (what === null) return { is: 'frame', frame }
  if (hasZeroSector(bytes, position)) return { is: 'torn' }
  const isKnown = crc32(frame.heads) === bytes.readUInt32LE(24)
  return { is: 'damaged', what, ...(isKnown && { heads: frame }) }
}

function wrongIn(file: number, frame: Frame, bytes: Buffer): string | null {
  if (crc32(frame.heads) !== bytes.readUInt32LE(24))
    return "a frame's heads have the wrong checksum"
  const groups = frame.kind === COMMIT_KIND ? decodeParts(file, frame) : []
  for (const part of groups) {
    if (part.kind !== 'group') continue
    const at = part.place.position - frame.position
    if (crc32(bytes.subarray(at, at + part.place.length)) === part.place.crc) continue
    return `shard ${part.shard}, offset ${part.head + 1}: a group has the wrong checksum`
  }
  const end = frame.bodiesAt - frame.position + bytes.readUInt32LE(28)
  return bytes.subarray(end).every((byte) => byte === PADDING) ? null : "a frame's padding is wrong"
}

function hasZeroSector(bytes: Buffer, position: number): boolean {
  for (let at = 0; at < bytes.length;) {
    const end = at + SECTOR_BYTES - ((position + at) % SECTOR_BYTES)
    if (isZeros(bytes.subarray(at, end))) return true
    at = end
  }
  return false
}

function isZeros(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0)
}
