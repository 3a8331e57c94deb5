// Random runs of a segment log on a disk that forgets. It appends, keeps in a plain list what was
// acknowledged, and compares what a log that is opened later gives back with that list.

import type { Group } from '../../journal.ts'
import type { Claim, Part } from '../frame.ts'
import { LogFollower } from '../follower.ts'
import { PlaceReader } from '../place-reader.ts'
import type { LogPosition } from '../scan.ts'
import { SegmentLog, type CommittedFrame, type SegmentLogOptions } from '../segment-log.ts'
import { drawsOf, type SimulatedDisk } from './simulated-disk.ts'

export type Written = Group | Claim

export const GENERATION = 'a-store'
export const SMALL = { segmentBytes: [1024, 2048, 4096], frameBytesMax: 2048 }
const SHARDS = 3
/** Of a run; every one of them is a log that is opened and read twice. */
export const CRASH_POINTS = 50
const STALE_APPENDS_MAX = 2_000

export async function openLog(
  disk: SimulatedDisk,
  options: Pick<SegmentLogOptions, 'onCommitted' | 'synced'> = {},
): Promise<SegmentLog> {
  return SegmentLog.open(disk, { ...SMALL, generation: GENERATION, onFatal: () => {}, ...options })
}

/** Everything in the log, in order, with the bodies. */
export function contents(disk: SimulatedDisk, log: SegmentLog): Written[] {
  const frames = new LogFollower(disk, { generation: GENERATION, from: null }).to(log.end)
  const reader = new PlaceReader(disk)
  return [...frames].flatMap(({ parts }) => parts.map((part) => written(reader, part)))
}

function written(reader: PlaceReader, part: Part): Written {
  if (part.kind === 'claim') return { shard: part.shard, epoch: part.epoch }
  const { kind: _, place, ...group } = part
  return { ...group, body: reader.read(place) }
}

export function isSame(a: Written | undefined, b: Written | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  if (a.shard !== b.shard || a.epoch !== b.epoch || 'body' in a !== 'body' in b) return false
  if (!('body' in a) || !('body' in b)) return true
  const isGroup = a.head === b.head && a.count === b.count && a.commitId === b.commitId
  return isGroup && Buffer.compare(a.body, b.body) === 0
}

/** Draws appends that go on from one another. */
export class Appends {
  readonly #draw: () => number
  readonly #shards = new Map<number, { epoch: number; head: number }>()
  #made = 0

  constructor(draw: () => number) {
    this.#draw = draw
  }

  next(): { claims: Claim[]; groups: Group[] } {
    const claims: Claim[] = []
    const groups: Group[] = []
    const count = 1 + Math.floor(this.#draw() * 3)
    for (let i = 0; i < count; i++) {
      const shard = Math.floor(this.#draw() * SHARDS)
      // Claims go before the groups of their append, so a shard with a group waits.
      const isFree = groups.every((group) => group.shard !== shard)
      if (isFree && this.#draw() < 0.15) claims.push(this.#claim(shard))
      else groups.push(this.#group(shard))
    }
    return { claims, groups }
  }

  /** What a log that was opened has not, was lost. */
  goOnFrom(log: SegmentLog): void {
    for (let shard = 0; shard < SHARDS; shard++) this.#shards.set(shard, log.status(shard))
  }

  #at(shard: number): { epoch: number; head: number } {
    return this.#shards.get(shard) ?? { epoch: 0, head: 0 }
  }

  #claim(shard: number): Claim {
    const { epoch, head } = this.#at(shard)
    this.#shards.set(shard, { epoch: epoch + 1, head })
    return { shard, epoch: epoch + 1 }
  }

  #group(shard: number): Group {
    const { epoch, head } = this.#at(shard)
    const count = 1 + Math.floor(this.#draw() * 4)
    this.#shards.set(shard, { epoch, head: head + count })
    const size = Math.floor(this.#draw() * (this.#draw() < 0.1 ? 3_000 : 300))
    const body = Buffer.alloc(size)
    // Some bodies are full of zeros, as if their sectors had never been written.
    if (this.#draw() < 0.9) for (let i = 0; i < size; i++) body[i] = Math.floor(this.#draw() * 256)
    return { shard, epoch, head, count, commitId: `commit-${++this.#made}`, body }
  }
}

interface CrashPoint {
  readonly disk: SimulatedDisk
  readonly acknowledged: number
  /** With what is under way. */
  readonly sent: number
  /** Up to where something derived from the log has it, and so takes it to be synced. */
  readonly covered: LogPosition | null
}

/** Resolves to the crash points that were looked at; throws where one lost or made up anything. */
export async function crashRun(seed: number, disk: SimulatedDisk): Promise<number> {
  const draw = drawsOf(seed)
  const appends = new Appends(draw)
  const sent: Written[] = []
  const points: CrashPoint[] = []
  let acknowledged = 0
  let covered: LogPosition | null = null
  // The worst that a file with places can be: on the disk at once.
  const onCommitted = ({ end }: CommittedFrame): void => void (covered = end)
  disk.before = () => {
    if (draw() >= 0.28) return
    points.push({ disk: disk.crashed(draw), acknowledged, sent: sent.length, covered })
  }
  let log = await openLog(disk, { onCommitted })
  for (let i = 0; i < 25 || points.length < CRASH_POINTS; i++) {
    if (i % 10 === 9) {
      if (draw() < 0.5) await log.close()
      log = await openLog(disk, { onCommitted, synced: covered })
    }
    const { claims, groups } = appends.next()
    sent.push(...claims, ...groups)
    const appended = await log.append(groups, claims)
    const outcomes = [...appended.claims, ...appended.groups].map(({ outcome }) => outcome)
    const isIn = outcomes.every((outcome) => outcome === 'committed')
    if (!isIn) throw new Error(`seed ${seed}: ${outcomes.join()} of append ${i}`)
    acknowledged = sent.length
  }
  disk.before = () => {}
  for (const [i, point] of points.entries()) {
    await checkPoint({ point, sent, draw, name: `seed ${seed}, crash point ${i}` })
  }
  return points.length
}

async function checkPoint(run: {
  point: CrashPoint
  sent: readonly Written[]
  draw: () => number
  name: string
}): Promise<void> {
  const { point, sent, draw, name } = run
  let { disk } = point
  // Again while it is being opened, some of the times.
  for (let times = 0; times < 3 && draw() < 0.3; times++) {
    disk = await crashWhileOpening(disk, draw)
  }
  const log = await openLog(disk, { synced: draw() < 0.5 ? point.covered : null })
  const found = contents(disk, log)
  const isWhole = found.length >= point.acknowledged && found.length <= point.sent
  if (!isWhole || !found.every((part, i) => isSame(part, sent[i]))) {
    const { acknowledged } = point
    throw new Error(`${name}: ${found.length} parts, acknowledged ${acknowledged}`)
  }
  for (let shard = 0; shard < SHARDS; shard++) checkHead(log, shard, found)
  await checkGoesOn({ disk, log, found, name })
}

/** What is appended now is found behind the rest by a log that is opened without a close. */
async function checkGoesOn(run: {
  disk: SimulatedDisk
  log: SegmentLog
  found: readonly Written[]
  name: string
}): Promise<void> {
  const { disk, log, found, name } = run
  const { epoch, head } = log.status(0)
  const group = { shard: 0, epoch, head, count: 1, commitId: 'behind', body: Buffer.from('behind') }
  const { groups } = await log.append([group])
  const again = contents(disk, await openLog(disk))
  const all = [...found, group]
  if (groups[0]!.outcome === 'committed' && again.length === all.length) {
    if (again.every((part, i) => isSame(part, all[i]))) return
  }
  throw new Error(`${name}: does not go on`)
}

async function crashWhileOpening(disk: SimulatedDisk, draw: () => number): Promise<SimulatedDisk> {
  const at = Math.floor(draw() * 12)
  let found: SimulatedDisk | null = null
  let operations = 0
  disk.before = () => {
    if (operations++ === at) found = disk.crashed(draw)
  }
  await openLog(disk)
  disk.before = () => {}
  return found ?? disk
}

function checkHead(log: SegmentLog, shard: number, found: readonly Written[]): void {
  const own = found.filter((part) => part.shard === shard)
  const last = own.findLast((part) => 'body' in part)
  const epoch = Math.max(0, ...own.map((part) => part.epoch))
  const head = last && 'body' in last ? last.head + last.count : 0
  const status = log.status(shard)
  const commitId = last && 'body' in last ? last.commitId : null
  if (status.epoch !== epoch || status.head !== head || status.lastCommit !== commitId) {
    throw new Error(`shard ${shard} is at ${status.epoch}/${status.head}, not ${epoch}/${head}`)
  }
}

/** Tries again where the other writer took the file, or removed what was filled ahead. */
async function openBeside(disk: SimulatedDisk): Promise<SegmentLog> {
  for (let times = 1; ; times++) {
    try {
      return await openLog(disk)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || times === 10) throw error
    }
  }
}

/**
 * A writer goes on while a newer one opens: what it says is in must be in the newer one's log.
 * Resolves to whether it was fenced.
 */
export async function staleRun(seed: number, disk: SimulatedDisk): Promise<boolean> {
  const draw = drawsOf(seed)
  const appends = new Appends(draw)
  const stale = await openLog(disk)
  const acknowledged: Written[] = []
  const run = { goesOn: true, isFenced: false }
  const appending = (async () => {
    // Bounded, as it never lets anything but microtasks run.
    for (let left = STALE_APPENDS_MAX; run.goesOn && left > 0; left--) {
      const { claims, groups } = appends.next()
      const appended = await stale.append(groups, claims)
      const parts = [...appended.claims, ...appended.groups]
      const all = [...claims, ...groups]
      parts.forEach(({ outcome }, i) => outcome === 'committed' && acknowledged.push(all[i]!))
      run.isFenced = parts.some(({ outcome }) => outcome !== 'committed')
      if (run.isFenced) return
    }
  })()
  for (let turns = Math.floor(draw() * 600); turns > 0; turns--) await Promise.resolve()
  let newer: SegmentLog
  try {
    newer = await openBeside(disk)
    for (let turns = 0; turns < 600; turns++) await Promise.resolve()
  } finally {
    run.goesOn = false
    await appending
  }
  const found = contents(disk, newer)
  if (!acknowledged.every((part, i) => isSame(part, found[i]))) {
    throw new Error(`seed ${seed}: ${acknowledged.length} acknowledged, ${found.length} found`)
  }
  return run.isFenced
}
