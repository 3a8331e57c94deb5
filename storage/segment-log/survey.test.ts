// What a look at a damaged log finds: whole frames, what can't be read between them and what that
// held, and an end only where nothing says that there is more.

import t from 'tap'
import type { Group } from '../journal.ts'
import { fileName } from './header.ts'
import { writeManifest } from './manifest.ts'
import type { LogGap, LogPosition } from './scan.ts'
import { SegmentLog } from './segment-log.ts'
import { surveyLog, type Surveyed, type SurveyOptions } from './survey.ts'
import { GENERATION } from './testing/log-run.ts'
import { SimulatedDisk } from './testing/simulated-disk.ts'

const GROUPS = 5
/** A frame has sectors of its own. */
const BODY_BYTES = 3_000
const SECTOR_BYTES = 512

/** A log with one group a frame, whose writer was killed if it was not closed. */
async function killed({ segmentBytes = [64 * 1024], closes = false } = {}): Promise<{
  readonly disk: SimulatedDisk
  readonly frames: readonly LogPosition[]
}> {
  const disk = new SimulatedDisk()
  const options = { segmentBytes, generation: GENERATION, onFatal: () => {} }
  const log = await SegmentLog.open(disk, options)
  await log.append([], [{ shard: 1, epoch: 1 }])
  for (let head = 0; head < GROUPS; head++) {
    const body = Buffer.alloc(BODY_BYTES, 1 + head)
    const group: Group = { shard: 1, epoch: 1, head, count: 1, commitId: `${head}`, body }
    await log.append([group])
  }
  if (closes) await log.close()
  const copy = disk.copy()
  if (!closes) await log.close()
  return {
    disk: copy,
    frames: survey(copy)
      .map(({ at }) => at)
      .slice(1),
  }
}

function survey(disk: SimulatedDisk, more: Partial<SurveyOptions> = {}): Surveyed[] {
  return [...surveyLog(disk, { generation: GENERATION, gaps: [], isTail: false, ...more })]
}

/** Frames by what their groups begin with, damage by where the next whole frame begins. */
function told(found: readonly Surveyed[]): unknown[] {
  return found.map((one) => {
    if (one.is === 'gap') return ['gap', one.at.position]
    if (one.is === 'damage') return ['damage', one.at.position, one.next, headsOf(one.parts)]
    return headsOf(one.parts)
  })
}

function headsOf(parts: readonly object[] | null): unknown {
  return parts?.map((part) => ('head' in part ? part.head : 'claim')) ?? null
}

/** In the body of a frame, or its first sector, or a sector of zeros within it. */
function damage(disk: SimulatedDisk, at: LogPosition, what: 'body' | 'begin' | 'zeros'): void {
  const bytes = disk.bytesOf(fileName(at.file))
  if (what === 'body') bytes[at.position + BODY_BYTES / 2]! ^= 255
  else if (what === 'begin') bytes[at.position + 9]! ^= 255
  else {
    const sector = Math.ceil((at.position + SECTOR_BYTES) / SECTOR_BYTES) * SECTOR_BYTES
    bytes.fill(0, sector, sector + SECTOR_BYTES)
  }
}

t.test('a log that is whole', async (t) => {
  const { disk, frames } = await killed()
  t.equal(frames.length, GROUPS)
  t.same(told(survey(disk)), [['claim'], [0], [1], [2], [3], [4]])
})

t.test('of many files all are looked at, or the last one only', async (t) => {
  const { disk } = await killed({ segmentBytes: [8 * 1024], closes: true })
  const all = survey(disk)
  t.same(told(all), [['claim'], [0], [1], [2], [3], [4]], 'what was closed has an end')
  const files = [...new Set(all.map(({ at }) => at.file))]
  t.equal(files.length, 3)
  const tail = survey(disk, { isTail: true })
  t.same(
    tail.map(({ at }) => at),
    all.map(({ at }) => at).filter(({ file }) => file === files.at(-1)),
  )
  // A start that came no further than to a file without a header changes nothing.
  await disk.create(fileName(9), 1_024)
  t.same(told(survey(disk)), told(all))
  disk.remove(fileName(files.at(-1)!))
  t.throws(() => survey(disk), { message: /the file is missing, or its header is/ })
})

t.test('a log that nothing was ever written to', async (t) => {
  t.same(survey(new SimulatedDisk()), [])
  const disk = new SimulatedDisk()
  await writeManifest(disk, { generation: GENERATION, last: 0, end: null })
  t.same(survey(disk), [])
})

t.test('a damage in the middle: what it held, and where it goes on', async (t) => {
  for (const [what, held] of [
    ['body', [2]],
    ['begin', null],
    ['zeros', null],
  ] as const) {
    const { disk, frames } = await killed()
    damage(disk, frames[2]!, what)
    const [at, next] = [frames[2]!.position, frames[3]!.position]
    t.same(told(survey(disk)), [['claim'], [0], [1], ['damage', at, next, held], [3], [4]], what)
  }
})

t.test('at the end: what was being written may be torn, and is no damage', async (t) => {
  const { disk, frames } = await killed()
  damage(disk, frames[4]!, 'zeros')
  t.same(told(survey(disk)), [['claim'], [0], [1], [2], [3]])
  const { file, position } = frames[4]!
  const synced = { file, position: position + 1 }
  t.same(
    told(survey(disk, { synced })).at(-1),
    ['damage', position, null, null],
    'it is known to have been synced',
  )
  t.equal(survey(disk, { synced: { file, position } }).length, 5)
})

t.test('at the end: other bytes than were written are a damage', async (t) => {
  for (const [what, held] of [
    ['body', [4]],
    ['begin', null],
  ] as const) {
    const { disk, frames } = await killed()
    damage(disk, frames[4]!, what)
    const { position } = frames[4]!
    t.same(told(survey(disk)).at(-1), ['damage', position, null, held], what)
  }
})

t.test('what was given up is a gap, and not looked at', async (t) => {
  const { disk, frames } = await killed()
  damage(disk, frames[1]!, 'begin')
  damage(disk, frames[2]!, 'body')
  const [from, next] = [frames[1]!, frames[3]!]
  const gap: LogGap = { ...from, next: next.position, resumed: [[1, 3]] }
  const found = survey(disk, { gaps: [gap] })
  t.same(told(found), [['claim'], [0], ['gap', from.position], [3], [4]])
})

t.test('a file that is shorter than it was made', async (t) => {
  const { disk, frames } = await killed()
  const { file, position } = frames[3]!
  disk.truncate(fileName(file), position)
  const found = survey(disk)
  t.same(told(found).slice(0, 4), [['claim'], [0], [1], [2]])
  t.match(found[4], { is: 'damage', at: { position }, next: null })
  t.equal(found.length, 5)
})
