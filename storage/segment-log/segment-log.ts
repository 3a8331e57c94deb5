// The log of the embedded store as segment files: its writer. A commit is one frame: one write, one
// sync, one look whether a newer writer has begun a file, and only then it is said that it is in;
// one is in flight at a time, and what waits meanwhile goes into the next. After a write or sync
// that failed nothing is written any more. Of an append that is larger than a frame, each frame is
// a commit of its own. Source: PROTOCOL 3.2, 3.16.

import { LIMITS } from '../../config/limits.ts'
import type { AppendOutcome, Group, ShardStatus } from '../journal.ts'
import type { Disk } from './disk.ts'
import { COMMIT_KIND, encodeFrame, encodeParts, frameBytes, headBytes } from './frame.ts'
import type { Claim, Place } from './frame.ts'
import { encodeHeader, fileName } from './header.ts'
import { writeManifest } from './manifest.ts'
import { beginSegment, openForWriting, type Opened, type OpenSegment } from './opening.ts'
import type { LogGap, LogPosition } from './scan.ts'
import type { ShardHeads } from './shard-heads.ts'
import { SpareAhead } from './spare.ts'

export interface SegmentLogOptions {
  readonly generation: string
  /** The writer is at its end: what it appended last may be in or not. Called once. */
  readonly onFatal: (error: Error) => void
  /** Bytes of the first, the second, ... file of this writer; the last is that of all others. */
  readonly segmentBytes?: readonly number[]
  readonly frameBytesMax?: number
  /** False: the disk counts as full for a file of so many bytes, but for that of the opening. */
  readonly mayMake?: (bytes: number) => boolean
  /** A frame is in: called before anybody is told, frame by frame in their order. */
  readonly onCommitted?: (frame: CommittedFrame) => void
  /** Up to here the caller knows that frames were synced: nothing before it is left out. */
  readonly synced?: LogPosition | null
  /** What was given up, and is passed over. */
  readonly gaps?: readonly LogGap[]
}

export interface PartOutcome {
  readonly outcome: AppendOutcome
  /** Where the body lies; null for claims, and unless it is committed. */
  readonly place: Place | null
}

export interface CommittedFrame {
  readonly groups: readonly { readonly group: Group; readonly place: Place }[]
  readonly claims: readonly Claim[]
  /** Where the log ends now. */
  readonly end: LogPosition
}

export interface Appended {
  readonly groups: readonly PartOutcome[]
  readonly claims: readonly PartOutcome[]
}

/**
 * No room on the disk, for this user, or within the largest file that a process may make; or no
 * descriptor, of which callers' connections take as many as they like: nothing was begun then.
 */
const NO_ROOM: ReadonlySet<string | undefined> = new Set([
  ...['ENOSPC', 'EDQUOT', 'EFBIG'],
  ...['EMFILE', 'ENFILE'],
])

interface Waiting {
  readonly part: Group | Claim
  readonly settle: (outcome: PartOutcome) => void
}

export class SegmentLog {
  readonly #disk: Disk
  readonly #options: Required<Omit<SegmentLogOptions, 'synced' | 'gaps'>>
  readonly #ahead: SpareAhead
  readonly #waiting: Waiting[] = []
  #segment: OpenSegment
  /** The next file, from when it has its header until the manifest names it. */
  #next: OpenSegment | null = null
  readonly #heads: ShardHeads
  /** Files that this writer has begun. */
  #begun = 1
  #failed = false
  /** There was no room for the next file: until there is, nothing is taken, however small. */
  #isFull = false
  #running: Promise<void> | null = null

  /** `open` makes one. */
  private constructor(disk: Disk, options: SegmentLogOptions, opened: Opened) {
    const {
      segmentBytes = LIMITS.segmentLog.fileBytes,
      frameBytesMax = LIMITS.segmentLog.frameBytesMax,
    } = options
    const { onCommitted = () => {}, mayMake = () => true } = options
    this.#disk = disk
    this.#options = { ...options, segmentBytes, frameBytesMax, onCommitted, mayMake }
    this.#segment = opened.segment
    this.#heads = opened.heads
    this.#ahead = new SpareAhead(disk, mayMake)
    this.#ahead.fill(this.#nextBytes())
  }

  /** Throws JournalDamage; and the disk's errors, after which it can be tried again. */
  static async open(disk: Disk, options: SegmentLogOptions): Promise<SegmentLog> {
    const { generation, segmentBytes = LIMITS.segmentLog.fileBytes } = options
    const { synced = null, gaps = [] } = options
    const opened = await openForWriting(disk, { generation, bytes: segmentBytes[0]!, synced, gaps })
    return new SegmentLog(disk, options, opened)
  }

  status(shard: number): ShardStatus {
    return this.#heads.status(shard)
  }

  /** Shards that have ever been claimed or appended to. */
  shards(): readonly number[] {
    return this.#heads.entries().map(([shard]) => shard)
  }

  /** The end of what is committed: up to here any thread may read. */
  get end(): LogPosition {
    return { file: this.#segment.file, position: this.#segment.end }
  }

  /**
   * Appends claims, then groups; each has its own outcome. Their bodies must stay as they are
   * until then. A claim is in when its epoch is higher than the shard's.
   */
  async append(groups: readonly Group[], claims: readonly Claim[] = []): Promise<Appended> {
    const wait = (part: Group | Claim) =>
      new Promise<PartOutcome>((settle) => this.#waiting.push({ part, settle }))
    const claimed = claims.map(wait)
    const grouped = groups.map(wait)
    this.#running ??= this.#run()
    return { claims: await Promise.all(claimed), groups: await Promise.all(grouped) }
  }

  /** Waits for what is under way and writes down where the log ends. */
  async close(): Promise<void> {
    await this.#running
    await this.#ahead.close()
    const { file, end } = this.#segment
    try {
      if (!this.#failed && !this.#hasNewer()) {
        await writeManifest(this.#disk, { generation: this.#options.generation, last: file, end })
      }
    } finally {
      this.#segment.spare.file.close()
      this.#next?.spare.file.close()
    }
  }

  async #run(): Promise<void> {
    // What is appended in the same turn goes together.
    await Promise.resolve()
    while (this.#waiting.length > 0) {
      const batch = this.#takeBatch()
      if (this.#failed) settleAll(batch, 'unknown')
      else await this.#commitOrFail(batch)
    }
    this.#running = null
  }

  /** What fits a frame, at least one part. */
  #takeBatch(): Waiting[] {
    let bytes = 0
    let count = 0
    for (const { part } of this.#waiting) {
      bytes += headBytes(part) + ('body' in part ? part.body.length : 0)
      if (count > 0 && frameBytes(bytes, 0) > this.#options.frameBytesMax) break
      count++
    }
    return this.#waiting.splice(0, count)
  }

  async #commitOrFail(batch: readonly Waiting[]): Promise<void> {
    try {
      await this.#commit(batch)
    } catch (error) {
      this.#failed = true
      settleAll(batch, 'unknown')
      this.#options.onFatal(error as Error)
    }
  }

  async #commit(batch: readonly Waiting[]): Promise<void> {
    const heads = this.#heads
    const taken: Waiting[] = []
    const fenced: Waiting[] = []
    for (const waiting of batch) (heads.try(waiting.part) ? taken : fenced).push(waiting)
    settleAll(fenced, 'fenced')
    if (taken.length === 0) return
    const parts = taken.map(({ part }) => part)
    const bodies = parts.flatMap((part) => ('body' in part ? [part.body] : []))
    const bytes = frameBytes(sum(parts.map(headBytes)), sum(bodies.map(({ length }) => length)))
    while (this.#isFull || this.#next || this.#segment.end + bytes > this.#segment.spare.bytes) {
      this.#isFull = !(await this.#roll(bytes))
      if (!this.#isFull) continue
      heads.giveBack()
      // What waits may go on from these, and is not to be told that somebody else has its shard.
      settleAll([...taken, ...this.#waiting.splice(0)], 'full')
      return
    }
    const segment = this.#segment
    const { file, spare, end: position } = segment
    const { heads: encoded, places } = encodeParts({ file, position }, parts)
    const at = { position, sequence: segment.sequence + 1, kind: COMMIT_KIND }
    const chunks = encodeFrame({ file, salt: spare.salt }, at, encoded, bodies)
    await spare.file.writeSynced(position, chunks)
    if (this.#hasNewer()) throw new Error(`${this.#disk.path}: another process has opened the log`)
    segment.end += bytes
    segment.sequence++
    heads.keep()
    const groups = parts.filter((part) => 'body' in part)
    this.#options.onCommitted({
      groups: groups.map((group, i) => ({ group, place: places[i]! })),
      claims: parts.filter((part) => !('body' in part)),
      end: this.end,
    })
    const left = places.values()
    for (const { part, settle } of taken) {
      settle({ outcome: 'committed', place: 'body' in part ? left.next().value! : null })
    }
  }

  #hasNewer(): boolean {
    return this.#disk.exists(fileName(this.#segment.file + 1))
  }

  /** Goes on to the next file. False when there is no room for it; then it is tried again. */
  async #roll(bytes: number): Promise<boolean> {
    const { generation } = this.#options
    try {
      this.#next ??= await this.#beginNext(bytes)
      await writeManifest(this.#disk, { generation, last: this.#next.file, end: null })
    } catch (error) {
      if (!NO_ROOM.has((error as NodeJS.ErrnoException).code)) throw error
      return false
    }
    const { spare, end } = this.#segment
    this.#segment = this.#next
    this.#next = null
    this.#begun++
    spare.file.truncate(end)
    spare.file.close()
    this.#ahead.fill(this.#nextBytes())
    return true
  }

  async #beginNext(bytes: number): Promise<OpenSegment> {
    const { file, end, sequence, spare } = this.#segment
    const previous = { file, end, sequence, salt: spare.salt.toString('hex') }
    const { generation } = this.#options
    const shards = this.#heads.entries()
    const { salt } = previous
    // Only its length is asked for; the numbers that aren't known yet are at their longest.
    const text = { generation, salt, bytes: Number.MAX_SAFE_INTEGER, previous, shards }
    const least = sum(encodeHeader(file + 1, text).map(({ length }) => length)) + bytes
    const room = await this.#ahead.take(Math.max(least, this.#nextBytes()))
    try {
      await this.#disk.link(room.name, fileName(file + 1))
    } catch (error) {
      // Or every try on a full disk would leave another file.
      room.file.close()
      throw error
    } finally {
      this.#disk.remove(room.name)
    }
    return beginSegment(
      { file: file + 1, spare: room },
      { generation, previous, heads: this.#heads },
    )
  }

  #nextBytes(): number {
    const { segmentBytes } = this.#options
    return segmentBytes[Math.min(this.#begun, segmentBytes.length - 1)]!
  }
}

function settleAll(parts: readonly Waiting[], outcome: AppendOutcome): void {
  for (const { settle } of parts) settle({ outcome, place: null })
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, number) => all + number, 0)
}
