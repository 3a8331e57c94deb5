// The files of the log: how long each is made, in what order the system may name them, what becomes
// of one that was begun and never used, and which of two rounds is read.

import t from 'tap'
import type { Group } from '../journal.ts'
import { JournalDamage } from '../damage.ts'
import { fileName, inRound, listFiles, newestRounds, readHeader } from './header.ts'
import { rewriteSegments } from './rewrite.ts'
import { readChain } from './scan.ts'
import { SegmentLog, type SegmentLogOptions } from './segment-log.ts'
import { surveyLog } from './survey.ts'
import { contents, GENERATION, openLog } from './testing/log-run.ts'
import { failure, SimulatedDisk } from './testing/simulated-disk.ts'

function groupOf(head: number, bytes = 200): Group {
  const body = Buffer.alloc(bytes, 1 + (head % 200))
  return { shard: 1, epoch: 1, head, count: 1, commitId: `commit-${head}`, body }
}

function open(disk: SimulatedDisk, more: Partial<SegmentLogOptions> = {}): Promise<SegmentLog> {
  const onFatal = (error: Error): void => void t.fail(error.message)
  const small = { segmentBytes: [1024, 2048, 4096], frameBytesMax: 2048 }
  return SegmentLog.open(disk, { ...small, generation: GENERATION, onFatal, ...more })
}

/** Appends groups, one a frame, until the log is in this file. */
async function fillTo(log: SegmentLog, file: number, from: number): Promise<number> {
  let head = from
  for (; log.end.file < file; head++) {
    const { groups } = await log.append([groupOf(head)])
    t.equal(groups[0]!.outcome, 'committed')
  }
  return head
}

/** A disk that names its files in the other order. */
class BackwardsDisk extends SimulatedDisk {
  override list(): readonly string[] {
    return super.list().toReversed()
  }
}

t.test('a writer makes its files longer one by one, up to the last length', async (t) => {
  const disk = new SimulatedDisk()
  const log = await open(disk)
  await log.append([], [{ shard: 1, epoch: 1 }])
  const head = await fillTo(log, 5, 0)
  const lengths = (first: number, last: number): number[] =>
    Array.from({ length: last - first + 1 }, (_, i) => {
      return readHeader(disk, first + i, GENERATION)!.bytes
    })
  t.same(lengths(1, 5), [1024, 2048, 4096, 4096, 4096])
  t.equal(disk.bytesOf(fileName(5)).length, 4096, 'the last one as it was made')
  t.ok(disk.bytesOf(fileName(4)).length <= 4096)
  t.equal(disk.bytesOf(fileName(2)).length, readHeader(disk, 3, GENERATION)!.previous!.end)
  await log.close()
  const again = await open(disk)
  await fillTo(again, 8, head)
  t.same(lengths(6, 8), [1024, 2048, 4096], 'the next writer begins small again')
})

t.test('a header of many shards gets the room that it needs', async (t) => {
  const disk = new SimulatedDisk()
  const log = await open(disk, { segmentBytes: [1024] })
  let operations = 0
  disk.before = () => {
    // Who makes files that are too small makes them for ever.
    if (++operations > 5_000) throw failure('EIO')
  }
  const claims = Array.from({ length: 300 }, (_, i) => ({ shard: i + 1, epoch: 1 }))
  await log.append([], claims)
  const from = log.end.file
  await fillTo(log, from + 2, 0)
  const header = readHeader(disk, log.end.file, GENERATION)!
  t.equal(header.shards.length, 300)
  t.ok(header.end > 2048)
  t.ok(log.end.position <= header.bytes, 'nothing is written behind its end')
  t.equal(disk.bytesOf(fileName(log.end.file)).length, header.bytes)
  await log.close()
  t.equal((await open(disk)).shards().length, 300)
})

t.test('files are in the order of their numbers, however the system names them', async (t) => {
  const disk = new BackwardsDisk()
  const log = await open(disk)
  await log.append([], [{ shard: 1, epoch: 1 }])
  const head = await fillTo(log, 4, 0)
  t.same(listFiles(disk), [1, 2, 3, 4])
  const found = [...surveyLog(disk, { generation: GENERATION, gaps: [], isTail: false })]
  t.same([...new Set(found.map(({ at }) => at.file))], [1, 2, 3, 4])
  const again = await open(disk)
  t.equal(again.end.file, 5)
  t.equal(again.status(1).head, head)
  t.equal(contents(disk, again).length, head + 1)
})

t.test('of two rounds the newer one is read, whichever is named first', async (t) => {
  for (const disk of [new SimulatedDisk(), new BackwardsDisk()]) {
    const log = await open(disk)
    await log.append([], [{ shard: 1, epoch: 1 }])
    await fillTo(log, 3, 0)
    const last = readHeader(disk, log.end.file, GENERATION)!
    for (const round of [1, 2]) {
      const chain = readChain(disk, GENERATION, { first: null, last })
      const header = await rewriteSegments({
        ...{ disk, generation: GENERATION, sources: [chain[1]!], next: chain[2]! },
        ...{ keep: (_, body) => body, throttle: async () => {}, frameBytesMax: 2048, erasedMax: 9 },
      })
      t.equal(header.key.file, inRound(2, round))
    }
    t.same([...newestRounds(disk)].toSorted(), [
      [1, 1],
      [2, inRound(2, 2)],
      [3, 3],
    ])
    const chain = readChain(disk, GENERATION, { first: null, last })
    t.same(
      chain.map(({ key }) => key.file),
      [1, inRound(2, 2), 3],
    )
  }
})

t.test('the room of files that were begun and never used is given back', async (t) => {
  const disk = new SimulatedDisk()
  const log = await open(disk)
  await log.append([groupOf(0)], [{ shard: 1, epoch: 1 }])
  const { position } = log.end
  await log.close()
  // As starts leave them that came no further than to the link.
  for (const file of [2, 3]) await disk.create(fileName(file), 1024)
  const again = await open(disk)
  t.equal(again.end.file, 4)
  for (const file of [2, 3]) t.equal(disk.bytesOf(fileName(file)).length, 0, 'the name stays')
  t.equal(disk.bytesOf(fileName(1)).length, position, 'nor is what was not used of the last one')
  t.equal(again.status(1).head, 1)
  t.equal((await openLog(disk)).status(1).head, 1)
})

t.test('sectors that are lost of a large frame, with frames behind it, are no end', async (t) => {
  const disk = new SimulatedDisk()
  const large = { segmentBytes: [8 * 1024 * 1024], frameBytesMax: 8 * 1024 * 1024 }
  const log = await open(disk, large)
  await log.append([groupOf(0)], [{ shard: 1, epoch: 1 }])
  const { file, position } = log.end
  // The frame behind it begins in another piece than is read at once.
  await log.append([groupOf(1, 3 * 1024 * 1024)])
  await log.append([groupOf(2)])
  const sector = Math.ceil(position / 512) * 512 + 512
  disk.bytesOf(fileName(file)).fill(0, sector, sector + 512)
  const error: unknown = await open(disk, large).catch((e: unknown) => e)
  t.ok(error instanceof JournalDamage)
  const { message, place } = error as JournalDamage
  t.match(message, new RegExp(`position ${position}: a whole frame is missing`))
  t.match(place, { shard: 1, offset: 2 })
})

t.test('the end of a log that was closed is known: what is torn there is a damage', async (t) => {
  const disk = new SimulatedDisk()
  const log = await open(disk, { segmentBytes: [16 * 1024] })
  await log.append([groupOf(0)], [{ shard: 1, epoch: 1 }])
  const { file, position } = log.end
  await log.append([groupOf(1, 3_000)])
  const told = (): unknown[] => {
    const options = { generation: GENERATION, gaps: [], isTail: false }
    return [...surveyLog(disk, options)].map(({ is, at }) => [is, at.position])
  }
  const sector = Math.ceil(position / 512) * 512 + 512
  const closed = async (): Promise<void> => {
    await log.close()
    disk.bytesOf(fileName(file)).fill(0, sector, sector + 512)
  }
  t.equal(told().length, 2)
  await closed()
  t.same(told().at(-1), ['damage', position])
})
