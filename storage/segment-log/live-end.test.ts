// The end of a log that is written to meanwhile: all that is whole lies before it, and a damage is
// only what is one at a second look. Source: PROTOCOL 3.16.

import t from 'tap'
import type { Group } from '../journal.ts'
import { JournalDamage } from '../damage.ts'
import type { DiskFile } from './disk.ts'
import { fileName, readHeader } from './header.ts'
import { liveEnd, type KnownOfEnd } from './live-end.ts'
import type { LogGap } from './scan.ts'
import { checkSegment } from './segment-check.ts'
import { SegmentLog } from './segment-log.ts'
import { GENERATION } from './testing/log-run.ts'
import { SimulatedDisk } from './testing/simulated-disk.ts'

const FILE_BYTES = 64 * 1024
const BODY_BYTES = 3_000
const NAME = fileName(1)

/** A log of one file whose writer is at work, with one group a frame; where each frame begins. */
async function logAtWork(groups = 4) {
  const disk = new SimulatedDisk()
  const onFatal = (error: Error): void => void t.fail(error.message)
  const log = await SegmentLog.open(disk, {
    ...{ segmentBytes: [FILE_BYTES], generation: GENERATION, onFatal },
  })
  await log.append([], [{ shard: 1, epoch: 1 }])
  const frames: number[] = []
  for (let head = 0; head < groups; head++) {
    frames.push(log.end.position)
    const body = Buffer.alloc(BODY_BYTES, 1 + head)
    const group: Group = {
      ...{ shard: 1, epoch: 1, head: 2 * head, count: 2, commitId: `commit-${head}`, body },
    }
    await log.append([group])
  }
  return { disk, frames, end: log.end.position, log }
}

function endIn(disk: SimulatedDisk, known: Partial<KnownOfEnd> = {}): number {
  const header = readHeader(disk, 1, GENERATION)!
  return liveEnd(disk, header, { closedAt: null, gaps: [], ...known })
}

/** Position and reason of the damage that is told. */
function damageIn(disk: SimulatedDisk, known: Partial<KnownOfEnd> = {}): string {
  try {
    return `an end: ${endIn(disk, known)}`
  } catch (error) {
    if (!(error instanceof JournalDamage)) throw error
    return /: (position \d+: [^.]*)\./.exec(error.message)![1]!
  }
}

/** A sector within the frame that begins there. */
function sectorIn(position: number): number {
  return Math.ceil(position / 512) * 512 + 512
}

function lose(disk: SimulatedDisk, position: number): void {
  const sector = sectorIn(position)
  disk.bytesOf(NAME).fill(0, sector, sector + 512)
}

t.test('behind the last whole frame, and before one that is being written', async (t) => {
  const { disk, frames, end } = await logAtWork()
  t.equal(endIn(disk), end)
  lose(disk, frames[3]!)
  t.equal(endIn(disk), frames[3])
  disk.bytesOf(NAME).fill(0, frames[0])
  t.equal(endIn(disk), frames[0])
})

t.test('what is not whole, with frames behind it, is a damage', async (t) => {
  const { disk, frames } = await logAtWork()
  lose(disk, frames[1]!)
  t.equal(damageIn(disk), `position ${frames[1]}: a whole frame is missing`)
  const other = await logAtWork()
  other.disk.bytesOf(NAME)[other.frames[3]! + BODY_BYTES / 2]! ^= 1
  t.match(damageIn(other.disk), new RegExp(`position ${other.frames[3]}: shard 1, offset 7`))
})

/** A disk that shows what was lost from the second read of its place on. */
class LateDisk extends SimulatedDisk {
  reads = 0
  readonly #whole: SimulatedDisk
  readonly #lost: { readonly position: number; readonly readsOfNothing: number }

  constructor(whole: SimulatedDisk, lost: { position: number; readsOfNothing: number }) {
    super()
    this.#whole = whole
    this.#lost = lost
  }

  override open(name: string): DiskFile {
    const file = this.#whole.open(name)
    const { position, readsOfNothing } = this.#lost
    return {
      ...file,
      read: (from, length) => {
        const bytes = file.read(from, length)
        const isFrame = from === position && length > 512
        if (isFrame && ++this.reads > readsOfNothing) return bytes
        const sector = sectorIn(position) - from
        if (isFrame) bytes.fill(0, sector, sector + 512)
        return bytes
      },
    }
  }
}

t.test('one that is whole at a second look was being written', async (t) => {
  const { disk, frames, end } = await logAtWork()
  for (const position of frames.slice(0, -1)) {
    t.equal(endIn(new LateDisk(disk, { position, readsOfNothing: 1 })), end)
    const lost = new LateDisk(disk, { position, readsOfNothing: 9 })
    t.equal(damageIn(lost), `position ${position}: a whole frame is missing`)
    t.equal(lost.reads, 2, 'it is looked at twice, and no more')
  }
})

t.test('a file that was closed ends where its writer says', async (t) => {
  const { disk, frames, end } = await logAtWork()
  t.equal(endIn(disk, { closedAt: end }), end)
  t.equal(endIn(disk, { closedAt: frames[2]! }), frames[2], 'nothing behind it is looked at')
  disk.truncate(NAME, end)
  t.equal(endIn(disk, { closedAt: end }), end, 'what was not used is given back')
  t.equal(damageIn(disk), `position ${end}: the file ends here and should end at ${FILE_BYTES}`)
  lose(disk, frames[3]!)
  t.equal(damageIn(disk, { closedAt: end }), `position ${frames[3]}: a whole frame is missing`)
})

t.test('what was given up is passed over', async (t) => {
  const { disk, frames, end } = await logAtWork()
  lose(disk, frames[1]!)
  const gap: LogGap = { file: 1, position: frames[1]!, next: frames[2]!, resumed: [[1, 4]] }
  t.equal(endIn(disk, { gaps: [gap] }), end)
  t.match(damageIn(disk, { gaps: [{ ...gap, file: 2 }] }), /a whole frame is missing/)
  const last = { ...gap, next: null }
  t.equal(endIn(disk, { gaps: [last] }), frames[1])
  disk.truncate(NAME, frames[1]!)
  t.equal(endIn(disk, { gaps: [last] }), frames[1], 'however short the file is')
})

t.test('a file that is checked: what it holds, and where it does not go on', async (t) => {
  const { disk, frames, end } = await logAtWork()
  const check = (upTo: number, gaps: readonly LogGap[] = []) =>
    checkSegment(disk, { generation: GENERATION, file: 1, end: upTo, gaps })
  t.same(check(end), { groups: 4, entries: 8 })
  t.same(check(frames[2]!), { groups: 2, entries: 4 })
  const gap: LogGap = { file: 1, position: frames[1]!, next: frames[2]!, resumed: [[1, 4]] }
  t.same(check(end, [gap]), { groups: 3, entries: 6 })
  for (const [next, resumed] of [
    [frames[2]!, 3],
    [frames[3]!, 5],
  ] as const) {
    const wrong: LogGap = { ...gap, next, resumed: [[1, resumed]] }
    t.throws(() => check(end, [wrong]), {
      message: new RegExp(`position ${frames[1]}: a frame doesn't go on from the one before it`),
    })
  }
  disk.bytesOf(NAME).fill(0, 0, 512)
  t.throws(() => check(end), { message: /position 0: the header is missing/ })
})
