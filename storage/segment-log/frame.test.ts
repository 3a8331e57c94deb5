// Frames: what was written is read back, a frame is only one at its own place in its own file, and
// one whose write was cut off is told from one that was damaged later.

import { randomBytes } from 'node:crypto'
import t from 'tap'
import type { Group } from '../journal.ts'
import {
  COMMIT_KIND,
  decodeParts,
  encodeFrame,
  encodeParts,
  frameBytes,
  readFrame,
} from './frame.ts'
import type { Claim, FileKey } from './frame.ts'
import { SimulatedDisk } from './testing/simulated-disk.ts'

const KEY: FileKey = { file: 7, salt: randomBytes(16) }
const AT = 448
const GROUP: Group = {
  shard: 3,
  epoch: 2,
  head: 40,
  count: 2,
  commitId: 'Größe',
  body: randomBytes(1_500),
}
const PARTS: (Group | Claim)[] = [
  { shard: 9, epoch: 4 },
  GROUP,
  { ...GROUP, head: 42, body: Buffer.alloc(0) },
]

function frameOf(parts: readonly (Group | Claim)[]): Buffer {
  const { heads } = encodeParts({ file: KEY.file, position: AT }, parts)
  const bodies = parts.flatMap((part) => ('body' in part ? [part.body] : []))
  const at = { position: AT, sequence: 12, kind: COMMIT_KIND }
  return Buffer.concat(encodeFrame(KEY, at, heads, bodies))
}

async function fileWith(bytes: Buffer, at: number) {
  const file = await new SimulatedDisk().create('file', 8_192)
  await file.writeSynced(at, [bytes])
  return file
}

t.test('a frame is read back with its parts and their places', async (t) => {
  const bytes = frameOf(PARTS)
  t.equal(bytes.length % 64, 0)
  const file = await fileWith(bytes, AT)
  const found = readFrame(file, KEY, AT)
  t.equal(found.is, 'frame')
  if (found.is !== 'frame') return
  t.equal(found.frame.sequence, 12)
  t.equal(found.frame.bytes, bytes.length)
  const parts = decodeParts(KEY.file, found.frame)
  t.same(parts[0], { kind: 'claim', shard: 9, epoch: 4 })
  const { body, ...group } = GROUP
  t.match(parts[1], { kind: 'group', ...group })
  t.match(parts[2], { head: 42, place: { file: 7, length: 0 } })
  if (parts[1]!.kind !== 'group') return
  const { place } = parts[1]!
  t.same(file.read(place.position, place.length), body)
})

t.test('a frame elsewhere, in another file or of another generation is none', async (t) => {
  const bytes = frameOf(PARTS)
  const moved = await fileWith(bytes, AT + 64)
  t.equal(readFrame(moved, KEY, AT + 64).is, 'damaged')
  const file = await fileWith(bytes, AT)
  t.equal(readFrame(file, { ...KEY, file: 8 }, AT).is, 'damaged')
  t.equal(readFrame(file, { ...KEY, salt: randomBytes(16) }, AT).is, 'damaged')
})

t.test('a frame with any sector unwritten is torn, never damaged', async (t) => {
  const bytes = frameOf(PARTS)
  for (let sector = 0; sector < AT + bytes.length; sector += 512) {
    const cut = Buffer.from(bytes)
    cut.fill(0, Math.max(0, sector - AT), Math.min(bytes.length, sector + 512 - AT))
    const { is } = readFrame(await fileWith(cut, AT), KEY, AT)
    t.equal(is, sector === 0 ? 'empty' : 'torn')
  }
})

t.test('a frame with any byte changed is damaged', async (t) => {
  const bytes = frameOf(PARTS)
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed[at]! ^= 0x10
    const { is } = readFrame(await fileWith(changed, AT), KEY, AT)
    if (is !== 'damaged') t.fail(`byte ${at}: ${is}`)
  }
})

t.test('a frame ends on a multiple of 64, with padding that is never left out', async (t) => {
  for (let bytes = 0; bytes < 200; bytes++) {
    const length = frameBytes(bytes, 10)
    if (length % 64 !== 0 || length < 32 + bytes + 10 + 8) t.fail(`${bytes}: ${length}`)
  }
  t.equal(frameBytes(0, 0), 64)
})
