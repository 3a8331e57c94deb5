// Random runs of a log whose files are replaced while it is appended to, on a disk that forgets. A
// table of places, which loses nothing that it has committed, leads to the groups. Wherever the run
// is cut off, every place leads to its group, whole or with what is left of it.

import type { Group } from '../../journal.ts'
import type { GroupPart, Place } from '../frame.ts'
import { LogFollower } from '../follower.ts'
import { numberOf, readHeader, roundOf, type Header } from '../header.ts'
import { PlaceReader } from '../place-reader.ts'
import { finishReplacing, replaceSegments, type PlaceKeeper } from '../replace.ts'
import { readChain, type LogPosition } from '../scan.ts'
import { ShardHeads } from '../shard-heads.ts'
import type { CommittedFrame, SegmentLog } from '../segment-log.ts'
import { Appends, GENERATION, openLog } from './log-run.ts'
import { drawsOf, type SimulatedDisk } from './simulated-disk.ts'

const CRASH_POINTS = 60

interface Table {
  readonly places: Map<string, Place>
  readonly turned: Map<number, number>
}

/** The places of a store: what is committed stays, whatever the disk forgets. */
class Places implements PlaceKeeper {
  table: Table
  readonly #disk: SimulatedDisk
  readonly #step: () => void

  constructor(disk: SimulatedDisk, table: Table, step: () => void) {
    this.table = table
    this.#disk = disk
    this.#step = step
  }

  take({ groups }: CommittedFrame): void {
    for (const { group, place } of groups) this.table.places.set(keyOf(group), place)
  }

  isTurned({ key }: Header): boolean {
    return (this.table.turned.get(numberOf(key.file)) ?? 0) >= roundOf(key.file)
  }

  async turn(header: Header): Promise<void> {
    const { key, rewritten } = header
    const left = new Map<string, Place>()
    const all = { file: key.file, position: rewritten!.end }
    for (const part of partsOf(this.#disk, all)) left.set(keyOf(part), part.place)
    for (const source of rewritten!.sources) {
      for (const part of partsOf(this.#disk, source)) {
        const at = this.table.places.get(keyOf(part))
        if (at?.file !== source.file) continue
        const place = left.get(keyOf(part))
        await this.#commit(({ places }) => {
          if (place === undefined || place.length === 0) places.delete(keyOf(part))
          else places.set(keyOf(part), place)
        })
      }
    }
    await this.#commit(({ turned }) => turned.set(numberOf(key.file), roundOf(key.file)))
  }

  async #commit(change: (table: Table) => void): Promise<void> {
    for (let i = 0; i < 3; i++) await Promise.resolve()
    this.#step()
    change(this.table)
    this.#step()
  }
}

function keyOf({ shard, head, count }: Omit<Group, 'body'>): string {
  return `${shard}/${head + count}`
}

function* partsOf(disk: SimulatedDisk, until: LogPosition): Generator<GroupPart> {
  const from = { file: until.file, position: 0 }
  const follower = new LogFollower(disk, { generation: GENERATION, from })
  for (const { parts } of follower.to(until)) {
    for (const part of parts) if (part.kind === 'group') yield part
  }
}

/** What is left of a group: it says so itself. */
function leftOf({ commitId }: Omit<Group, 'body'>, body: Uint8Array): Uint8Array {
  const kind = Number.parseInt(commitId.slice('commit-'.length), 10) % 4
  if (kind === 0) return body
  return body.subarray(0, kind === 1 ? 10 : 0)
}

interface Point {
  readonly disk: SimulatedDisk
  readonly table: Table
  readonly acknowledged: number
}

/** Resolves to the crash points that were looked at, and how many files were replaced. */
export async function replaceRun(
  seed: number,
  disk: SimulatedDisk,
): Promise<{ readonly points: number; readonly replaced: number }> {
  const draw = drawsOf(seed)
  const run = new ReplaceRun(seed, disk, draw)
  await run.go()
  for (const [i, point] of run.points.entries()) await run.check(point, i)
  return { points: run.points.length, replaced: run.replaced }
}

class ReplaceRun {
  readonly points: Point[] = []
  replaced = 0
  readonly #seed: number
  readonly #disk: SimulatedDisk
  readonly #draw: () => number
  readonly #places: Places
  readonly #groups = new Map<string, Group>()
  #acknowledged = 0

  constructor(seed: number, disk: SimulatedDisk, draw: () => number) {
    this.#seed = seed
    this.#disk = disk
    this.#draw = draw
    this.#places = new Places(disk, { places: new Map(), turned: new Map() }, () => this.#look())
    disk.before = () => this.#look()
  }

  #look(): void {
    if (this.#draw() >= 0.1 || this.points.length === CRASH_POINTS) return
    const { places, turned } = this.#places.table
    const table = { places: new Map(places), turned: new Map(turned) }
    const disk = this.#disk.crashed(this.#draw)
    this.points.push({ disk, table, acknowledged: this.#acknowledged })
  }

  async go(): Promise<void> {
    const appends = new Appends(this.#draw)
    const onCommitted = (frame: CommittedFrame): void => this.#places.take(frame)
    let log = await openLog(this.#disk, { onCommitted })
    for (let i = 0; i < 30 || (this.points.length < CRASH_POINTS && i < 200); i++) {
      const { claims, groups } = appends.next()
      for (const group of groups) this.#groups.set(keyOf(group), group)
      const replacing = i % 4 === 3 ? this.#replace(log) : null
      const appended = await log.append(groups, claims)
      const isIn = appended.groups.every(({ outcome }) => outcome === 'committed')
      if (!isIn) throw new Error(`seed ${this.#seed}: append ${i} is not in`)
      this.#acknowledged = this.#groups.size
      await replacing
      if (i % 10 !== 9) continue
      await log.close()
      log = await openLog(this.#disk, { onCommitted })
    }
    this.#disk.before = () => {}
  }

  async #replace(log: SegmentLog): Promise<void> {
    const chain = chainOf(this.#disk, log)
    const count = 1 + Math.floor(this.#draw() * 3)
    const first = Math.floor(this.#draw() * Math.max(1, chain.length - count))
    const sources = chain.slice(first, first + count)
    const next = chain[first + count]
    if (next === undefined) return
    this.replaced += count
    const options = {
      ...{ disk: this.#disk, generation: GENERATION, sources, next },
      ...{ keep: leftOf, throttle: async () => {}, frameBytesMax: 1_000, erasedMax: 10 },
    }
    await replaceSegments(options, this.#places)
  }

  async check({ disk, table, acknowledged }: Point, i: number): Promise<void> {
    const name = `seed ${this.#seed}, crash point ${i}`
    // What an earlier process has begun is finished by the next one, and may be cut off again.
    let found = disk
    const places = new Places(disk, table, () => {})
    const log = await openLog(found)
    this.#checkPlaces(found, table, name)
    const chain = chainOf(found, log)
    await finishReplacing(found, chain, places)
    this.#checkPlaces(found, table, name)
    found = disk.crashed(this.#draw)
    this.#checkPlaces(found, table, `${name}, again`)
    const again = await openLog(found)
    await finishReplacing(found, chainOf(found, again), new Places(found, table, () => {}))
    this.#checkPlaces(found, table, `${name}, finished again`)
    this.#checkLog(found, again, { name, acknowledged })
  }

  #checkPlaces(disk: SimulatedDisk, { places }: Table, name: string): void {
    const reader = new PlaceReader(disk)
    for (const [key, place] of places) this.#checkBody(key, reader.read(place), name)
  }

  #checkBody(key: string, found: Uint8Array, name: string): void {
    const group = this.#groups.get(key)!
    const isIt = [group.body, leftOf(group, group.body)].some((body) => {
      return Buffer.compare(body, found) === 0
    })
    if (!isIt) throw new Error(`${name}: group ${key} is another`)
  }

  /** Dense, and every group is there: itself, what is left of it, or within one that covers it. */
  #checkLog(
    disk: SimulatedDisk,
    log: SegmentLog,
    { name, acknowledged }: { readonly name: string; readonly acknowledged: number },
  ): void {
    const heads = new Map<number, number>()
    const reader = new PlaceReader(disk)
    const follower = new LogFollower(disk, { generation: GENERATION, from: null })
    let taken = new ShardHeads()
    for (const { parts, begun } of follower.to(log.end)) {
      if (begun !== null) taken = new ShardHeads(begun.shards)
      for (const part of parts) {
        if (!taken.take(part)) throw new Error(`${name}: shard ${part.shard} does not go on`)
        if (part.kind === 'claim') continue
        const { shard, head, count, place } = part
        if (head !== (heads.get(shard) ?? 0)) throw new Error(`${name}: a hole at ${shard}/${head}`)
        heads.set(shard, head + count)
        if (place.length > 0) this.#checkBody(keyOf(part), reader.read(place), name)
        else this.#checkGone(shard, { head, count }, name)
      }
    }
    for (const group of [...this.#groups.values()].slice(0, acknowledged)) {
      const isThere = (heads.get(group.shard) ?? 0) >= group.head + group.count
      if (!isThere) throw new Error(`${name}: group ${keyOf(group)} is not there`)
    }
    for (const [shard, head] of heads) {
      if (log.status(shard).head !== head) throw new Error(`${name}: shard ${shard} is elsewhere`)
    }
  }

  #checkGone(shard: number, of: { head: number; count: number }, name: string): void {
    for (const group of this.#groups.values()) {
      const isIn = group.shard === shard && group.head >= of.head
      if (!isIn || group.head >= of.head + of.count) continue
      if (leftOf(group, group.body).length > 0) throw new Error(`${name}: ${keyOf(group)} is gone`)
    }
  }
}

function chainOf(disk: SimulatedDisk, log: SegmentLog): Header[] {
  const last = readHeader(disk, log.end.file, GENERATION)!
  return readChain(disk, GENERATION, { first: null, last })
}
