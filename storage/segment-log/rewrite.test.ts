// A file written anew holds what is left, in few and bounded pieces: what a crash does to it is in
// replace.test.ts. Source: PROTOCOL 3.16.

import t from 'tap'
import type { Group } from '../journal.ts'
import { LogFollower } from './follower.ts'
import { readHeader, roundOf, type Header } from './header.ts'
import { rewriteSegments, type RewriteOptions } from './rewrite.ts'
import { readChain } from './scan.ts'
import { SegmentLog } from './segment-log.ts'
import { GENERATION } from './testing/log-run.ts'
import { SimulatedDisk } from './testing/simulated-disk.ts'

const OPTIONS = { segmentBytes: [64 * 1024], generation: GENERATION, onFatal: () => {} }
const NONE = new Uint8Array(0)

function groupOf(head: number, of: Partial<Group> = {}): Group {
  const body = Buffer.alloc(100, 1 + head)
  return { shard: 1, epoch: 1, head, count: 1, commitId: `commit-${head}`, body, ...of }
}

/** A sealed file that holds this, and the one behind it. */
async function sealed(disk: SimulatedDisk, write: (log: SegmentLog) => Promise<unknown>) {
  const options = { ...OPTIONS, frameBytesMax: 2048 }
  const before = await SegmentLog.open(disk, options)
  await write(before)
  await before.close()
  const log = await SegmentLog.open(disk, options)
  const last = readHeader(disk, log.end.file, GENERATION)!
  const [source, next] = readChain(disk, GENERATION, { first: null, last })
  return { source: source!, next: next!, last }
}

async function rewritten(
  disk: SimulatedDisk,
  { source, next }: { readonly source: Header; readonly next: Header },
  more: Partial<RewriteOptions>,
) {
  const throttled: number[] = []
  const header = await rewriteSegments({
    ...{ disk, generation: GENERATION, sources: [source], next },
    ...{ keep: (_, body) => body, frameBytesMax: 1_000, erasedMax: 3 },
    throttle: async (bytes) => void throttled.push(bytes),
    ...more,
  })
  const { file } = header.key
  const follower = new LogFollower(disk, { generation: GENERATION, from: { file, position: 0 } })
  const frames = [...follower.to({ file, position: header.rewritten!.end })].map((frame) =>
    frame.parts.map((part) =>
      part.kind === 'claim'
        ? ['claim', part.shard, part.epoch]
        : [part.shard, part.epoch, part.head, part.count, frame.body(part.place).length],
    ),
  )
  follower.close()
  return { header, frames, throttled, found: readHeader(disk, file, GENERATION) }
}

t.test(
  'entries that are gone stand together, so many at most; of claims the last ones',
  async (t) => {
    const disk = new SimulatedDisk()
    const files = await sealed(disk, async (log) => {
      await log.append([], [{ shard: 1, epoch: 1 }])
      for (let head = 0; head < 10; head++) await log.append([groupOf(head)])
      for (const epoch of [2, 3]) await log.append([], [{ shard: 1, epoch }])
      await log.append([groupOf(10, { epoch: 3 })])
      await log.append([], [{ shard: 2, epoch: 1 }])
      await log.append([], [{ shard: 1, epoch: 4 }])
    })
    const { header, frames } = await rewritten(disk, files, {
      keep: ({ head }, body) => (head === 0 || head === 9 ? body : NONE),
    })
    t.same(frames.flat(), [
      ['claim', 1, 1],
      [1, 1, 0, 1, 100],
      [1, 1, 1, 3, 0],
      [1, 1, 4, 3, 0],
      [1, 1, 7, 2, 0],
      [1, 1, 9, 1, 100],
      // The claim goes before what is gone behind it.
      ['claim', 1, 4],
      [1, 4, 10, 1, 0],
      ['claim', 2, 1],
    ])
    t.equal(roundOf(header.key.file), 1)
    t.same(header.previous, files.source.previous)
    t.same(header.rewritten!.sources, [
      { file: files.source.key.file, position: files.next.previous!.end },
    ])
  },
)

t.test('frames get no longer than they may, but for a body that is', async (t) => {
  const disk = new SimulatedDisk()
  const files = await sealed(disk, async (log) => {
    await log.append([], [{ shard: 1, epoch: 1 }])
    for (let head = 0; head < 6; head++) await log.append([groupOf(head)])
    await log.append([groupOf(6, { body: Buffer.alloc(500, 7) })])
  })
  const { frames, throttled } = await rewritten(disk, files, { frameBytesMax: 300 })
  const bytes = frames.map((parts) =>
    parts.reduce((sum, part) => sum + (part.length === 5 ? Number(part[4]) : 0), 0),
  )
  t.same(bytes, [300, 300, 500])
  t.equal(
    throttled.reduce((sum, one) => sum + one, 0),
    1_100,
    'what is read is asked for',
  )
})

t.test('it stands for all of its sources, and says what its header says', async (t) => {
  const disk = new SimulatedDisk()
  await sealed(disk, (log) => log.append([groupOf(0)], [{ shard: 1, epoch: 1 }]))
  const { last } = await sealed(disk, (log) =>
    log.append([groupOf(1, { epoch: 2 })], [{ shard: 1, epoch: 2 }]),
  )
  const chain = readChain(disk, GENERATION, { first: null, last })
  const sources = chain.slice(0, -1)
  const { header, frames, found } = await rewritten(
    disk,
    { source: sources[0]!, next: last },
    { sources },
  )
  t.same(header, found)
  t.same(frames.flat(), [
    ['claim', 1, 1],
    [1, 1, 0, 1, 100],
    ['claim', 1, 2],
    [1, 2, 1, 1, 100],
  ])
  t.same(
    header.rewritten!.sources,
    sources.map(({ key }, i) => {
      return { file: key.file, position: chain[i + 1]!.previous!.end }
    }),
  )
  t.match(header.rewritten!.of, { file: sources.at(-1)!.key.file })
  t.equal(header.rewritten!.first, sources[0]!.key.file)
})

t.test('a file that holds nothing has a frame by which it is heard of', async (t) => {
  const disk = new SimulatedDisk()
  const files = await sealed(disk, async () => undefined)
  const { frames, header, found } = await rewritten(disk, files, {})
  t.same(frames, [[]])
  t.same(header, found)
})

t.test('one that ends early leaves nothing', async (t) => {
  const disk = new SimulatedDisk()
  const files = await sealed(disk, async (log) => {
    await log.append([groupOf(0)], [{ shard: 1, epoch: 1 }])
  })
  // Beside them the log fills a file ahead.
  const names = () => disk.list().filter((name) => !name.startsWith('spare-'))
  const before = names().toSorted()
  const throttle = () => Promise.reject(new Error('stopped'))
  await t.rejects(rewritten(disk, files, { throttle }), { message: 'stopped' })
  t.same(names().toSorted(), before)
})
