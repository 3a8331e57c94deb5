// The log of a store without its data file: all of it is counted, and of what is missing it is said
// once where it begins, and where the log goes on. Source: PROTOCOL 3.16.

import t from 'tap'
import type { Group } from '../../journal.ts'
import { fileName } from '../../segment-log/header.ts'
import type { LogGap, LogPosition } from '../../segment-log/scan.ts'
import { SegmentLog } from '../../segment-log/segment-log.ts'
import { GENERATION } from '../../segment-log/testing/log-run.ts'
import { SimulatedDisk } from '../../segment-log/testing/simulated-disk.ts'
import { surveyLog } from '../../segment-log/survey.ts'
import { JOURNAL_FORMAT } from '../../lmdb/layout.ts'
import { LogVerification } from './segments.ts'

const BODY_BYTES = 3_000

function groupOf(head: number, of: Partial<Group> = {}): Group {
  const body = Buffer.alloc(BODY_BYTES, 1 + head)
  return { shard: 1, epoch: 1, head, count: 1, commitId: `commit-${head}`, body, ...of }
}

/** A log with these groups, one a frame, behind a claim of shards 1 and 2. */
async function logWith(groups: readonly Group[], segmentBytes = [64 * 1024]) {
  const disk = new SimulatedDisk()
  const onFatal = (error: Error): void => void t.fail(error.message)
  const log = await SegmentLog.open(disk, { segmentBytes, generation: GENERATION, onFatal })
  await log.append(
    [],
    [1, 2].map((shard) => ({ shard, epoch: 1 })),
  )
  for (const group of groups) {
    if (group.epoch > log.status(group.shard).epoch) {
      await log.append([], [{ shard: group.shard, epoch: group.epoch }])
    }
    t.equal((await log.append([group])).groups[0]!.outcome, 'committed')
  }
  await log.close()
  const all = surveyLog(disk, { generation: GENERATION, gaps: [], isTail: false })
  // Of each group.
  const frames = [...all].flatMap((found) => {
    const isGroup = found.is === 'frame' && found.parts.some(({ kind }) => kind === 'group')
    return isGroup ? [found.at] : []
  })
  return { disk, frames }
}

function verify(disk: SimulatedDisk, gaps: readonly LogGap[] = []) {
  const lines: string[] = []
  const identity = {
    ...{ format: JOURNAL_FORMAT, shards: 4, generation: 'g', secret: 's', log: GENERATION },
    gaps,
  }
  const verification = new LogVerification(disk, identity, (line) => lines.push(line))
  verification.run(null)
  const { groups, entries } = verification
  return { lines, groups, entries, head: verification.status(1).head }
}

function breakAt(disk: SimulatedDisk, { file, position }: LogPosition): void {
  disk.bytesOf(fileName(file))[position + BODY_BYTES / 2]! ^= 255
}

t.test('a sound log, over several files, is counted', async (t) => {
  const groups = [
    groupOf(0, { count: 3 }),
    groupOf(3),
    groupOf(0, { shard: 2, count: 2 }),
    groupOf(4, { epoch: 3, count: 5 }),
    groupOf(9, { epoch: 3 }),
  ]
  for (const segmentBytes of [[64 * 1024], [4 * 1024]]) {
    const { disk } = await logWith(groups, segmentBytes)
    t.same(verify(disk), { lines: [], groups: 5, entries: 12, head: 10 })
  }
})

t.test('of a frame that is damaged: it, and what is missing of each shard', async (t) => {
  const { disk, frames } = await logWith([
    groupOf(0),
    groupOf(1, { count: 4 }),
    groupOf(5),
    groupOf(0, { shard: 2 }),
    groupOf(6),
  ])
  breakAt(disk, frames[1]!)
  const { lines, groups } = verify(disk)
  const place = (at: LogPosition): string => `log/${fileName(at.file)}: position ${at.position}: `
  t.same(lines, [
    `${place(frames[1]!)}shard 1, offset 2: a group has the wrong checksum`,
    `${place(frames[2]!)}shard 1, offset 2: the entries behind offset 1 are missing: ` +
      'the next begin at 6',
  ])
  t.equal(groups, 4, 'those that can be read')
})

t.test('a claim that is lost with a damaged frame is told by what comes behind it', async (t) => {
  const { disk, frames } = await logWith([
    groupOf(0),
    groupOf(1, { epoch: 2 }),
    groupOf(2, { epoch: 2 }),
  ])
  const found = [...surveyLog(disk, { generation: GENERATION, gaps: [], isTail: false })]
  const claim = found.find(({ at }) => at.position > frames[0]!.position)!.at
  t.ok(claim.position < frames[1]!.position)
  disk.bytesOf(fileName(claim.file))[claim.position + 40]! ^= 255
  t.equal(verify(disk).lines.length, 1, 'the damage: of the shard nothing is missing')
})

t.test('what was given up is no finding, nor what it took along', async (t) => {
  const { disk, frames } = await logWith([groupOf(0), groupOf(1), groupOf(2), groupOf(3)])
  breakAt(disk, frames[1]!)
  const gap = { ...frames[1]!, next: frames[2]!.position, resumed: [[1, 100]] as const }
  const behind = verify(disk, [gap])
  t.same(behind.lines, [])
  t.equal(behind.groups, 1, 'what comes before the place where it goes on was given up as well')
  t.equal(behind.head, 100)
})

t.test('a log that is not there', async (t) => {
  t.same(verify(new SimulatedDisk()), { lines: [], groups: 0, entries: 0, head: 0 })
})

t.test('files that are missing are one finding', async (t) => {
  const { disk } = await logWith([groupOf(0), groupOf(1), groupOf(2)], [4 * 1024])
  disk.remove(fileName(2))
  const { lines } = verify(disk)
  t.equal(lines.length, 1)
  t.match(lines[0], /00000002\.seg: position 0: the file is missing/)
})
