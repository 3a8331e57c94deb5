// The log on a simulated disk: the fence, what is said when the disk fails or is full, and what an
// opening refuses by name. What is lost or not at a crash is in crash.test.ts.

import t from 'tap'
import type { Group } from '../journal.ts'
import { JournalDamage } from '../damage.ts'
import { LogFollower } from './follower.ts'
import { readHeader } from './header.ts'
import { readManifest } from './manifest.ts'
import { readLinks, type LogGap, type LogPosition } from './scan.ts'
import { SegmentLog, type SegmentLogOptions } from './segment-log.ts'
import { contents, GENERATION, isSame, openLog, SMALL, type Written } from './testing/log-run.ts'
import { failure, SimulatedDisk } from './testing/simulated-disk.ts'

const FIRST = '00000001.seg'
const SECOND = '00000002.seg'
const LAST = '00000004.seg'
/** All of it in the first file. */
const ROOMY = { segmentBytes: [8_192] }

function groupOf(head: number, of: Partial<Group> = {}): Group {
  const body = Buffer.alloc(200, 1 + (head % 200))
  return { shard: 1, epoch: 1, head, count: 1, commitId: `commit-${head}`, body, ...of }
}

async function open(disk: SimulatedDisk, options: Partial<SegmentLogOptions> = {}) {
  return SegmentLog.open(disk, { ...SMALL, generation: GENERATION, onFatal: () => {}, ...options })
}

/** A log of several files with `count` groups of shard 1, one a frame. */
async function filled(
  disk: SimulatedDisk,
  count: number,
  options: Partial<SegmentLogOptions> = {},
): Promise<SegmentLog> {
  const log = await open(disk, options)
  await log.append([], [{ shard: 1, epoch: 1 }])
  for (let head = 0; head < count; head++) await log.append([groupOf(head)])
  return log
}

async function outcomes(log: SegmentLog, groups: readonly Group[]): Promise<string[]> {
  return (await log.append(groups)).groups.map(({ outcome }) => outcome)
}

function heads(parts: readonly Written[]): number[] {
  return parts.flatMap((part) => ('body' in part ? [part.head] : []))
}

t.test('groups and claims go on from epoch and head, or are fenced', async (t) => {
  const log = await openLog(new SimulatedDisk())
  const first = await log.append([groupOf(0)], [{ shard: 1, epoch: 1 }])
  t.match(first, { claims: [{ outcome: 'committed', place: null }] })
  t.equal(first.groups[0]!.place?.length, 200)
  t.same(log.status(1), { epoch: 1, head: 1, lastCommit: 'commit-0' })
  const groups = [
    groupOf(0),
    groupOf(2),
    groupOf(1, { epoch: 2 }),
    groupOf(1),
    groupOf(2, { count: 3 }),
    groupOf(0, { shard: 2, epoch: 0 }),
  ]
  t.same(await outcomes(log, groups), [
    'fenced',
    'fenced',
    'fenced',
    'committed',
    'committed',
    'committed',
  ])
  const claims = [1, 0, 3, 2].map((epoch) => ({ shard: 1, epoch }))
  const claimed = await log.append([], claims)
  t.same(
    claimed.claims.map(({ outcome }) => outcome),
    ['fenced', 'fenced', 'committed', 'fenced'],
  )
  t.same(log.status(1), { epoch: 3, head: 5, lastCommit: 'commit-2' })
  t.same(log.shards(), [1, 2])
})

t.test('what is appended together goes in few frames, larger things in several', async (t) => {
  const disk = new SimulatedDisk()
  const log = await openLog(disk)
  await log.append([], [{ shard: 1, epoch: 1 }])
  let syncs = 0
  disk.before = (_, name) => void (syncs += name === 'sync' ? 1 : 0)
  const small = Array.from({ length: 6 }, (_, head) => groupOf(head, { body: Buffer.alloc(20, 1) }))
  await Promise.all(small.map((group) => log.append([group])))
  t.equal(syncs, 1)
  const large = Array.from({ length: 20 }, (_, i) => groupOf(6 + i, { body: Buffer.alloc(700, 2) }))
  t.same(new Set(await outcomes(log, large)), new Set(['committed']))
  t.same(await outcomes(log, [groupOf(26, { body: Buffer.alloc(20_000, 3) })]), ['committed'])
  const again = await openLog(disk)
  t.equal(heads(contents(disk, again)).length, 27)
  t.equal(again.status(1).head, 27)
})

t.test('a failed write or sync: unknown, and nothing is written any more', async (t) => {
  for (const operation of ['write', 'sync']) {
    const disk = new SimulatedDisk()
    const fatal: string[] = []
    const log = await open(disk, { onFatal: ({ message }) => fatal.push(message) })
    await log.append([groupOf(0)], [{ shard: 1, epoch: 1 }])
    disk.before = (_, name) => {
      if (name === operation) throw failure('EIO')
    }
    const both = await Promise.all([outcomes(log, [groupOf(1)]), outcomes(log, [groupOf(2)])])
    t.same(both, [['unknown'], ['unknown']])
    const operations: string[] = []
    disk.before = (_, name) => void operations.push(name)
    t.same(await outcomes(log, [groupOf(1)]), ['unknown'])
    t.same(operations, [])
    t.same(fatal, ['EIO: the simulated disk'])
    t.equal(log.status(1).head, 1)
    await log.close()
    t.ok((await openLog(disk)).status(1).head >= 1)
  }
})

t.test('a sync that fails in a roll: unknown too', async (t) => {
  const disk = new SimulatedDisk()
  const log = await openLog(disk)
  await log.append([], [{ shard: 1, epoch: 1 }])
  disk.before = (_, name) => {
    if (name === 'sync of names') throw failure('EIO')
  }
  const all: string[] = []
  for (let head = 0; head < 8; head++) all.push(...(await outcomes(log, [groupOf(head)])))
  const first = all.indexOf('unknown')
  t.ok(first > 0)
  t.same(new Set(all.slice(first)), new Set(['unknown']))
  disk.before = () => {}
  t.same(heads(contents(disk, await openLog(disk))), [...Array.from({ length: first }).keys()])
})

t.test('no room: full, and it goes on when there is some', async (t) => {
  const disk = new SimulatedDisk()
  const log = await openLog(disk)
  await log.append([], [{ shard: 1, epoch: 1 }])
  disk.bytesMax = 0
  let head = 0
  let outcome = 'committed'
  // What was filled ahead is used up first.
  for (; outcome === 'committed'; head++)
    [outcome] = (await outcomes(log, [groupOf(head)])) as [string]
  t.equal(outcome, 'full')
  head--
  t.ok(head > 2)
  const names = disk.list().length
  const waiting = [groupOf(head), groupOf(head + 1), groupOf(head + 2)]
  const told = await Promise.all(waiting.map((group) => outcomes(log, [group])))
  t.same(told.flat(), ['full', 'full', 'full'])
  t.equal(disk.list().length, names, 'nothing is left of a try')
  disk.bytesMax = Infinity
  t.same(await outcomes(log, waiting), ['committed', 'committed', 'committed'])
  const again = await openLog(disk)
  t.same(heads(contents(disk, again)), [...Array.from({ length: head + 3 }).keys()])
})

t.test('a link that finds no room leaves nothing behind, and is tried again', async (t) => {
  const disk = new SimulatedDisk()
  const log = await openLog(disk)
  await log.append([], [{ shard: 1, epoch: 1 }])
  disk.before = (_, name) => {
    if (name === 'link') throw failure('ENOSPC')
  }
  let head = 0
  while ((await outcomes(log, [groupOf(head)]))[0] === 'committed') head++
  const names = disk.list().length
  for (let times = 0; times < 3; times++) t.same(await outcomes(log, [groupOf(head)]), ['full'])
  t.equal(disk.list().length, names)
  disk.before = () => {}
  t.same(await outcomes(log, [groupOf(head)]), ['committed'])
})

t.test('a roll that found no room is ended first, whatever comes next', async (t) => {
  const disk = new SimulatedDisk()
  const fatal: string[] = []
  const log = await open(disk, { ...ROOMY, onFatal: ({ message }) => fatal.push(message) })
  await log.append([], [{ shard: 1, epoch: 1 }])
  t.same(await outcomes(log, [groupOf(0, { body: Buffer.alloc(4_000, 1) })]), ['committed'])
  disk.before = (_, name) => {
    if (name === 'replace') throw failure('ENOSPC')
  }
  t.same(await outcomes(log, [groupOf(1, { body: Buffer.alloc(6_000, 2) })]), ['full'])
  const small = groupOf(1, { body: Buffer.alloc(20, 3) })
  t.same(await outcomes(log, [small]), ['full'], 'the next file has named the end of this one')
  disk.before = () => {}
  t.same(await outcomes(log, [small]), ['committed'])
  t.same(fatal, [])
  t.same(heads(contents(disk, await openLog(disk))), [0, 1])
})

t.test('a writer is fenced by one that opens the log after it', async (t) => {
  const disk = new SimulatedDisk()
  const fatal: string[] = []
  const stale = await open(disk, { onFatal: ({ message }) => fatal.push(message) })
  await stale.append([groupOf(0)], [{ shard: 1, epoch: 1 }])
  const newer = await openLog(disk)
  t.same(await outcomes(stale, [groupOf(1)]), ['unknown'])
  t.same(fatal, ['log: another process has opened the log'])
  t.same(await outcomes(newer, [groupOf(1, { commitId: 'newer' })]), ['committed'])
  await stale.close()
  const found = contents(disk, await openLog(disk))
  t.ok(isSame(found.at(-1), groupOf(1, { commitId: 'newer' })))
})

t.test(
  'who was overtaken and has not noticed it leaves the manifest to the newer one',
  async (t) => {
    const disk = new SimulatedDisk()
    const stale = await openLog(disk)
    await openLog(disk)
    const named = readManifest(disk, GENERATION)
    await stale.close()
    t.same(readManifest(disk, GENERATION), named)
  },
)

t.test('a gap is told once, with the first frame behind it', async (t) => {
  const disk = new SimulatedDisk()
  const log = await filled(disk, 6, ROOMY)
  const follow = (gaps: readonly LogGap[]) => [
    ...new LogFollower(disk, { generation: GENERATION, from: null, gaps }).to(log.end),
  ]
  const [, before, gone, ...behind] = follow([])
  const gap: LogGap = { ...before!.next, next: gone!.next.position, resumed: [[1, 9]] }
  const told = follow([gap]).map(({ passed }) => passed)
  t.same(told, [[], [], [gap], ...behind.slice(1).map(() => [])])
})

t.test('a log is followed from a place on', async (t) => {
  const disk = new SimulatedDisk()
  const log = await filled(disk, 30)
  const framesFrom = (from: LogPosition | null) => {
    const follower = new LogFollower(disk, { generation: GENERATION, from })
    const frames = [...follower.to(log.end)].map(({ parts, next }) => ({ parts, next }))
    t.same([...follower.to(log.end)], [], 'and there is no more')
    return frames
  }
  const all = framesFrom(null)
  for (const [i, { next }] of all.entries()) t.same(framesFrom(next), all.slice(i + 1))
})

t.test('the chain of many files holds nothing of what their shards are at', async (t) => {
  const disk = new SimulatedDisk()
  const log = await filled(disk, 30)
  const last = readHeader(disk, log.end.file, GENERATION)!
  t.ok(last.shards.length > 0)
  const chain = readLinks(disk, GENERATION, { first: null, last })
  t.same(
    chain.map(({ key }) => key.file),
    Array.from({ length: log.end.file }, (_, i) => i + 1),
  )
  t.notOk(chain.some((link) => 'shards' in link))
})

function isRefused(error: unknown, file: string, what: RegExp): boolean {
  if (!(error instanceof JournalDamage)) return false
  return error.message.startsWith(`log/${file}: `) && what.test(error.message)
}

/** The files, without what is filled ahead. */
function filesOf(disk: SimulatedDisk): string {
  const names = disk.list().filter((name) => !name.startsWith('spare-'))
  return JSON.stringify(names.sort().map((name) => [name, disk.bytesOf(name).toString('hex')]))
}

/** What an opening throws, having changed nothing. */
async function refusal(
  disk: SimulatedDisk,
  options: Partial<SegmentLogOptions> = {},
): Promise<unknown> {
  const before = filesOf(disk)
  try {
    await open(disk, options)
  } catch (error) {
    if (filesOf(disk) !== before) throw new Error('files were changed', { cause: error })
    return error
  }
  return null
}

/** The same of a closed log of four files that were damaged. */
async function damagedBy(
  damage: (disk: SimulatedDisk) => void,
  options: Partial<SegmentLogOptions> = {},
): Promise<unknown> {
  const disk = new SimulatedDisk()
  await (await filled(disk, 30)).close()
  const copy = disk.copy()
  damage(copy)
  return refusal(copy, options)
}

t.test('files that are missing, swapped or short are refused by name', async (t) => {
  const swap = (disk: SimulatedDisk) => {
    disk.rename(FIRST, 'aside')
    disk.rename(SECOND, FIRST)
    disk.rename('aside', SECOND)
  }
  const missing = /position 0: the file is missing/
  const short = /position 600: the file ends here and should end at/
  for (const name of [FIRST, SECOND, LAST]) {
    const removed = await damagedBy((disk) => disk.remove(name))
    t.ok(isRefused(removed, name, missing), `${name} is missing: ${String(removed)}`)
    const cut = await damagedBy((disk) => disk.truncate(name, 600))
    t.ok(isRefused(cut, name, short), `${name} is short: ${String(cut)}`)
  }
  t.ok(isRefused(await damagedBy(swap), SECOND, /position 0: /))
  const bare = await damagedBy((disk) => disk.remove('manifest.json'))
  t.ok(isRefused(bare, 'manifest.json', /is missing/))
})

t.test('a log or a file of another store is refused', async (t) => {
  const opened = await damagedBy(() => {}, { generation: 'other' })
  t.ok(isRefused(opened, 'manifest.json', /belongs to store a-store, not to other/))
  const other = new SimulatedDisk()
  await (await open(other, { generation: 'other' })).close()
  const found = await damagedBy((disk) => other.bytesOf(FIRST).copy(disk.bytesOf(FIRST)))
  t.ok(isRefused(found, FIRST, /belongs to store other, not to a-store/))
})

t.test('a file from another generation of the same store is refused', async (t) => {
  const other = new SimulatedDisk()
  await (await filled(other, 30)).close()
  const found = await damagedBy((disk) => other.bytesOf(SECOND).copy(disk.bytesOf(SECOND)))
  t.ok(isRefused(found, SECOND, /position 0: is not the file that 00000003.seg goes on from/))
})

t.test('what the caller knows to be synced is not left out', async (t) => {
  const disk = new SimulatedDisk()
  const log = await filled(disk, 2, ROOMY)
  const { file, position } = log.end
  await log.append([groupOf(2, { body: Buffer.alloc(600, 1) })])
  const synced = log.end
  t.same([file, synced.file], [1, 1])
  const cut = disk.copy()
  // The next sector, which the frame goes on into, is as if it had never been written.
  cut.bytesOf(FIRST).fill(0, Math.ceil(position / 512) * 512)
  const error = await refusal(cut, { synced })
  t.ok(isRefused(error, FIRST, new RegExp(`position ${position}: a whole frame is missing`)))
  t.equal((await openLog(cut)).status(1).head, 2, 'but nobody else knows of it')
  const gone = await refusal(disk.copy(), { synced: { file: 9, position: 0 } })
  t.ok(isRefused(gone, '00000009.seg', /position 0: the file is missing/))
})

t.test('a last file that goes missing is refused, though nobody closed the log', async (t) => {
  for (const count of [1, 30]) {
    const disk = new SimulatedDisk()
    const { file } = (await filled(disk, count)).end
    const copy = disk.copy()
    const name = `0000000${file}.seg`
    copy.remove(name)
    t.ok(isRefused(await refusal(copy), name, /position 0: the file is missing/))
  }
})

t.test('sectors that were lost with frames behind them are no end', async (t) => {
  const disk = new SimulatedDisk()
  const log = await filled(disk, 1, ROOMY)
  const { position } = log.end
  await log.append([groupOf(1, { body: Buffer.alloc(1_500, 1) })])
  await log.append([groupOf(2)])
  disk
    .bytesOf(FIRST)
    .fill(0, Math.ceil(position / 512) * 512, Math.ceil(position / 512) * 512 + 512)
  const error = await refusal(disk.copy())
  t.ok(isRefused(error, FIRST, new RegExp(`position ${position}: a whole frame is missing`)))
})

t.test('a damage with frames behind it tells what is lost', async (t) => {
  const disk = new SimulatedDisk()
  const log = await filled(disk, 1, ROOMY)
  const { position } = log.end
  for (const head of [1, 2]) await log.append([groupOf(head)])
  disk.bytesOf(FIRST)[position + 2]! ^= 1
  const error = await refusal(disk.copy())
  t.ok(isRefused(error, FIRST, new RegExp(`position ${position}: .*shard 1, offset 2`)))
  t.match((error as JournalDamage).place, { shard: 1, offset: 2 })
})
