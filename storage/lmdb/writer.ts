// The one way into the data file: a transaction at a time, over the derived rows that wait and the
// places of the groups that were committed meanwhile. No acknowledgement waits for it. It decides
// what a failed transaction means. Source: PROTOCOL 3.12, 3.16.

import { LIMITS } from '../../config/limits.ts'
import { assert } from '../../protocol/errors.ts'
import type { FillRandom } from '../../protocol/ids.ts'
import type { AppendOutcome, DerivedRow, ShardStatus } from '../journal.ts'
import type { Place } from '../segment-log/frame.ts'
import type { LogPosition } from '../segment-log/scan.ts'
import { expiryOf } from '../row-expiry.ts'
import { Arena } from './arena.ts'
import { putCovered } from './covered.ts'
import { encodeEnded } from './ended.ts'
import { causeOfFailure, type JournalEnvironment } from './environment.ts'
import { Notes, type Changes } from './expiry.ts'
import { derivedOffset } from './layout.ts'
import { pathBytes, shardPaths, type Room } from './room.ts'
import { encodeGroup, encodeHead, encodeRow, type DerivedTableRow } from './rows.ts'
import { WaitingRows, type TakenRows } from './waiting.ts'
import type { LoggedGroup, LogTail } from '../segment-log/tail.ts'

export interface WriterOptions {
  readonly env: JournalEnvironment
  readonly room: Room
  /** The disk is full when less would be left: what is committed may be finished from it. */
  readonly roomBytes: number
  readonly random: FillRandom
  /** Groups whose places the data file doesn't have yet: it forgets those that are written. */
  readonly tail: LogTail
  /** Epoch of a shard now: rows of an older owner are refused. */
  readonly epochOf: (shard: number) => number
  /** Where an entry lies in the log, if it is there. */
  readonly placeOf: (shard: number, row: EntryRowOf) => Place | null
  /** A transaction has failed: ends the process. Should it return, nothing is written any more. */
  readonly onFatal: (error: Error) => void
  /** Called once when the disk turns full and once when there is room again. */
  readonly onFull: (isFull: boolean) => void
}

export type EntryRowOf = Extract<DerivedRow, { kind: 'entry' }>

/** What a frame of the log has brought. */
export interface Logged {
  readonly groups: readonly LoggedGroup[]
  /** Where the shards of its groups and claims are now. */
  readonly statuses: readonly (readonly [number, ShardStatus])[]
  /** The log's end behind it. */
  readonly end: LogPosition
}

/** Paths of pages that the notes of one change touch at most, with those of LMDB's own tables. */
const NOTES_PATHS = 6

type Written = 'committed' | 'full' | 'unknown'

export class JournalWriter {
  readonly #env: JournalEnvironment
  readonly #options: WriterOptions
  readonly #arena = new Arena()
  readonly #notes: Notes
  readonly #waiting: WaitingRows
  #groups: LoggedGroup[] = []
  #statuses = new Map<number, ShardStatus>()
  #covered: LogPosition | null = null
  /** Where the log ended with the newest transactions, the oldest first. */
  readonly #writtenTo: LogPosition[] = []
  #forgotten: LogPosition | null = null
  #running: Promise<unknown> | null = null
  #isFull = false
  #end: 'closed' | 'failed' | null = null

  constructor(options: WriterOptions) {
    this.#options = options
    this.#env = options.env
    const firstN = Buffer.alloc(6)
    options.random(firstN)
    this.#notes = new Notes(this.#arena, options.env.lives!, firstN.readUIntBE(0, 6))
    this.#waiting = new WaitingRows(() => void this.#inTurn(() => this.#writeDue()))
  }

  /** Derived rows of a shard: in a while, together with others. */
  write(shard: number, epoch: number, rows: readonly DerivedRow[]): Promise<AppendOutcome> {
    assert(this.#end !== 'closed', 'the journal is open')
    if (rows.length === 0) return Promise.resolve('committed')
    if (this.#end === 'failed') return Promise.resolve('unknown')
    return this.#waiting.add(shard, epoch, rows)
  }

  /** Frames in their order: their places are written with the next rows, or by themselves. */
  logged({ groups, statuses, end }: Logged): void {
    for (const group of groups) this.#groups.push(group)
    for (const [shard, status] of statuses) this.#statuses.set(shard, status)
    this.#covered = end
    this.#waiting.startTimer()
  }

  /** What a shard's clock says, for rows that don't say when they were written. */
  tell(shard: number, clock: number): void {
    this.#notes.tell(shard, clock)
  }

  /** False when the disk is full: what would be committed could not be finished. */
  hasRoom(): boolean {
    const { room, roomBytes } = this.#options
    const hasRoom = room.left() >= roomBytes
    if (!hasRoom) this.#setFull(true)
    return hasRoom
  }

  /** The log has had room for a commit, or none. */
  tellRoom(hasHad: boolean): void {
    this.#setFull(!hasHad)
  }

  /**
   * No group that waits or is at hand lies before it in the log; null: of this process' groups none
   * was forgotten yet.
   */
  get handFrom(): LogPosition | null {
    return this.#forgotten
  }

  /** A transaction that changes what `find` finds, in one step with it. `later`: no room for it. */
  change(find: () => Changes | null): Promise<'changed' | 'nothing' | 'later'> {
    return this.#inTurn(async () => {
      if (this.#end !== null) return 'nothing'
      const found = find()
      if (found === null) return 'nothing'
      // A row that goes or turns is a path of pages that are written anew, as one that comes; notes
      // stand behind one another. A reader may hold all pages that are free.
      const cost = pathBytes(found.rows.length + NOTES_PATHS)
      if (this.#options.room.left() < cost) return 'later'
      const written = await this.#run(() => {
        for (const { table, key, value } of found.rows) {
          void (value === undefined ? table.remove(key) : table.put(key, value))
        }
        for (const key of found.notes) void this.#env.lives!.remove(key)
      })
      return written === 'committed' ? 'changed' : 'later'
    })
  }

  /** Writes what waits, then lets nothing in any more. */
  async close(): Promise<void> {
    await this.#inTurn(async () => {
      let isDone = false
      while (!isDone && this.#end === null) {
        const written = this.#isEmpty ? 'committed' : await this.#transact()
        isDone = written !== 'committed' || this.#isEmpty
      }
      this.#end ??= 'closed'
    })
    this.#waiting.refuse('unknown')
  }

  get #isEmpty(): boolean {
    return this.#waiting.size === 0 && this.#covered === null
  }

  /** One at a time: what a transaction reads before it is built includes all earlier ones. */
  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    while (this.#running !== null) await this.#running
    const done = work()
    this.#running = done.then(
      () => {
        this.#running = null
      },
      () => {
        this.#running = null
      },
    )
    return done
  }

  async #writeDue(): Promise<void> {
    while (this.#waiting.isDue && this.#end === null) {
      if ((await this.#transact()) !== 'committed') return
    }
  }

  /** What waits, up to a transaction's bound of rows, and all places. */
  async #transact(): Promise<Written> {
    const taken = this.#waiting.take(this.#rowsMax())
    const current = taken.filter((rows) => rows.epoch === this.#options.epochOf(rows.shard))
    const [groups, statuses, covered] = [this.#groups, this.#statuses, this.#covered]
    this.#groups = []
    this.#statuses = new Map()
    this.#covered = null
    this.#arena.reset()
    const derived = this.#encode(current)
    const places = groups.map((group) => encodeGroup(this.#arena, group))
    const heads = [...statuses].map(([shard, status]) => encodeHead(this.#arena, shard, status))
    const written = this.#fits(derived.length + shardPaths(statuses.size))
      ? await this.#run(() => {
          for (const row of derived) this.#putRow(row)
          for (const row of places) void this.#env.log.put(row.key, row.value)
          for (const row of heads) void this.#env.heads.put(row.key, row.value)
          if (covered !== null) putCovered(this.#env, covered)
        })
      : 'full'
    if (written !== 'committed') this.#putBack({ groups, statuses, covered })
    else if (covered !== null) this.#written(covered)
    for (const rows of taken) {
      this.#waiting.settle(rows, current.includes(rows) ? written : 'fenced')
    }
    return written
  }

  /** Groups stay at hand for a while: rows of their entries, which ask for places, come later. */
  #written(covered: LogPosition): void {
    this.#writtenTo.push(covered)
    const { length } = this.#writtenTo
    if (length <= LIMITS.lmdb.tailTransactions) return
    this.#forgotten = this.#writtenTo.shift()!
    this.#options.tail.forget(this.#forgotten)
  }

  /** Places that could not be written come before those that came meanwhile. */
  #putBack(places: {
    readonly groups: LoggedGroup[]
    readonly statuses: ReadonlyMap<number, ShardStatus>
    readonly covered: LogPosition | null
  }): void {
    this.#groups = [...places.groups, ...this.#groups]
    this.#statuses = new Map([...places.statuses, ...this.#statuses])
    this.#covered ??= places.covered
    this.#waiting.startTimer()
  }

  #encode(taken: readonly TakenRows[]): DerivedTableRow[] {
    const byShard = new Map<number, DerivedTableRow[]>()
    for (const { shard, rows } of taken) {
      const all = byShard.get(shard) ?? []
      byShard.set(shard, all)
      for (const row of rows) this.#encodeRow(shard, row, all)
    }
    for (const rows of byShard.values()) sortByOffset(rows)
    return [...byShard.values()].flat()
  }

  #encodeRow(shard: number, row: DerivedRow, into: DerivedTableRow[]): void {
    const place = row.kind === 'entry' ? this.#options.placeOf(shard, row) : null
    const encoded = encodeRow(this.#arena, this.#env, { shard, row, place })
    into.push(encoded)
    const expiry = expiryOf(row)
    if (expiry === null) return
    const ended = row.kind === 'entry' && row.passesFrom !== undefined
    const noted = ended ? this.#encodeEnded(shard, row) : encoded
    if (ended) into.push(noted)
    const kind = ended ? 'ended' : row.kind
    const note = this.#notes.encode({ kind, shard, expiry, row: noted })
    if (note !== null) into.push(note)
  }

  #encodeEnded(shard: number, { actorId, offset, passesFrom }: EntryRowOf): DerivedTableRow {
    const ended = { actorId, shard, offset, from: passesFrom! }
    return encodeEnded(this.#arena, this.#env, ended)
  }

  #putRow(row: DerivedTableRow): void {
    const { table, key, value } = row
    if (row.isRegister) {
      const there = table.getBinaryFast(key)
      if (there !== undefined && derivedOffset(there) > row.offset) return
    }
    void table.put(key, value)
  }

  /** Derived rows that half of the room is enough for; the other half is for what they hold. */
  #rowsMax(): number {
    const rows = Math.floor(this.#options.room.left() / 2 / pathBytes(1))
    return rows - shardPaths(this.#statuses.size) - 1
  }

  /** Whether the data file can grow by so many rows: every one may touch a path of pages. */
  #fits(rows: number): boolean {
    const cost = 2 * this.#arena.used + pathBytes(rows + 1)
    const fits = this.#options.room.left() >= cost
    if (!fits) this.#setFull(true)
    return fits
  }

  async #run(build: () => void): Promise<Written> {
    try {
      await this.#env.root.batch(build)
      return 'committed'
    } catch (error) {
      const cause = await causeOfFailure(error)
      // Whatever it was, what the disk holds is not known any more: pages that a failed flush left
      // may be marked clean, and a later flush would succeed without them.
      this.#end = 'failed'
      this.#options.onFatal(cause)
      this.#waiting.refuse('unknown')
      return 'unknown'
    }
  }

  #setFull(isFull: boolean): void {
    if (this.#isFull !== isFull) this.#options.onFull(isFull)
    this.#isFull = isFull
  }
}

/** Of two rows of one register the newer is put last. */
function sortByOffset(rows: DerivedTableRow[]): void {
  for (let i = 1; i < rows.length; i++) {
    if (rows[i]!.offset >= rows[i - 1]!.offset) continue
    rows.sort((a, b) => a.offset - b.offset)
    return
  }
}
