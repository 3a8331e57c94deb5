// The one way into the data file: a transaction at a time, over all groups that wait and the
// derived rows that ride with them. It stands between the journal's stores and the LMDB
// environment, and decides what a failed transaction means. Source: PROTOCOL 3.16, ARCHITECTURE 2.

import { LIMITS } from '../../config/limits.ts'
import { assert } from '../../protocol/errors.ts'
import type { FillRandom } from '../../protocol/ids.ts'
import type { AppendOutcome, DerivedRow, Group } from '../journal.ts'
import { causeOfFailure, type JournalEnvironment } from './journal-environment.ts'
import type { Removals } from './journal-expiry.ts'
import { derivedOffset, isWhole, logKey, readGroup, shardKey } from './journal-layout.ts'
import { CLAIMS_KEY, Places } from './journal-places.ts'
import type { Reserve } from './journal-reserve.ts'
import type { Room } from './journal-room.ts'
import type { DerivedTableRow } from './journal-rows.ts'
import { Sections, type Section } from './journal-sections.ts'
import { WaitingRows, type TakenRows } from './journal-waiting.ts'

export interface CommitterOptions {
  readonly env: JournalEnvironment
  readonly reserve: Reserve
  readonly room: Room
  /** The disk is full when less would be left. */
  readonly roomBytes: number
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly random: FillRandom
  /** A commit has failed: ends the process. Should it return, nothing is written any more. */
  readonly onFatal: (error: Error) => void
  /** Called once when the disk turns full and once when there is room again. */
  readonly onFull: (isFull: boolean) => void
}

/** Pages from the root to the leaf of a large table, and one that splits. */
const PAGES_OF_A_ROW = 5
/** What a claim, or one step of a trim, makes the data file grow at most, about. */
const ESSENTIAL_BYTES = 512 * 1024

type Written = 'committed' | 'full' | 'unknown'

interface Essential {
  readonly build: () => Promise<boolean>[]
  readonly resolve: (written: Written) => void
}

export class Committer {
  readonly #env: JournalEnvironment
  readonly #reserve: Reserve
  readonly #options: CommitterOptions
  readonly #waiting: WaitingRows
  readonly #places: Places
  readonly #sections: Sections
  readonly #essentials: Essential[] = []
  #running: Promise<unknown> | null = null
  #isFull = false
  #isMaking = false
  #triedAt = -Infinity
  #end: 'closed' | 'failed' | null = null

  constructor(options: CommitterOptions) {
    this.#options = options
    this.#env = options.env
    this.#reserve = options.reserve
    this.#places = new Places(options.env)
    this.#sections = new Sections(options.env, options.random)
    this.#waiting = new WaitingRows(() => void this.#inTurn(() => this.#writeDueRows()))
  }

  /** Appends the groups and, when it is their time, waiting rows, in one transaction. */
  append(groups: readonly Group[]): Promise<readonly AppendOutcome[]> {
    return this.#inTurn(() => this.#append(groups))
  }

  /** Derived rows of a shard: with the next append, or in a while by themselves. */
  write(shard: number, epoch: number, rows: readonly DerivedRow[]): Promise<AppendOutcome> {
    assert(this.#end !== 'closed', 'the journal is open')
    if (rows.length === 0) return Promise.resolve('committed')
    return this.#waiting.add(shard, epoch, rows)
  }

  /**
   * A transaction apart from the appends, for what must be possible on a full disk too (claims,
   * trims): the reserve is freed for it. `build` queues the writes and returns the promises of its
   * conditions.
   */
  essential(build: () => Promise<boolean>[]): Promise<Written> {
    return new Promise((resolve, reject) => {
      this.#essentials.push({ build, resolve })
      if (this.#essentials.length > 1) return
      this.#inTurn(() => this.#writeEssentials()).catch(reject)
    })
  }

  /** What a shard's clock says, for rows that don't say when they were written. */
  tell(shard: number, clock: number): void {
    this.#sections.notes.tell(shard, clock)
  }

  /** Removes rows, unless another process has claimed since `find` looked. */
  async remove(find: () => Removals | null): Promise<'removed' | 'nothing' | 'later'> {
    let found: Removals | null = null
    let isIn = false
    const written = await this.essential(() => {
      found = this.#end === null ? find() : null
      if (found === null) return []
      const { lives, epochs } = this.#env
      const { token, notes, rows } = found
      const all = epochs.ifVersion(CLAIMS_KEY, token, () => {
        for (const { table, key } of rows) void table.remove(key)
        for (const key of notes) void lives!.remove(key)
      })
      return [all.then((is) => (isIn = is))]
    })
    if (written !== 'committed') return 'later'
    return found === null ? 'nothing' : isIn ? 'removed' : 'later'
  }

  /** All that was asked for meanwhile, as one: a start claims every shard. */
  async #writeEssentials(): Promise<void> {
    const all = this.#essentials.splice(0)
    const hasRoom = this.#hasRoomToFinish(all.length * ESSENTIAL_BYTES)
    const build = () => all.flatMap((essential) => essential.build())
    const written = hasRoom ? await this.#run(build) : 'full'
    this.#places.forget()
    for (const { resolve } of all) resolve(written)
  }

  /** Writes what waits, then lets nothing in any more. */
  async close(): Promise<void> {
    await this.#inTurn(async () => {
      while (this.#waiting.size > 0 && this.#end === null) await this.#writeRows()
      this.#end ??= 'closed'
    })
    this.#waiting.refuse('unknown')
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

  async #append(groups: readonly Group[]): Promise<readonly AppendOutcome[]> {
    assert(this.#end !== 'closed', 'the journal is open')
    if (groups.length === 0) return []
    const taken = this.#waiting.take('due')
    const sections = this.#sections.of(groups, taken)
    if (!this.#hasRoomToAppend(this.#cost(sections))) {
      this.#setFull(true)
      if (taken.length > 0) await this.#finishRows(taken)
      return groups.map((): AppendOutcome => 'full')
    }
    this.#setFull(false)
    const atOnce = await this.#writeAtOnce(groups, taken, sections)
    if (atOnce !== null) return groups.map(() => atOnce)
    const written = await this.#run(() => this.#build(sections))
    this.#places.forget()
    await this.#settleRows(sections, written)
    if (written !== 'committed') return groups.map(() => written)
    return this.#outcomes(groups, sections)
  }

  /**
   * All of it under one condition: that nobody has claimed since this process saw where the shards
   * stand. Null: somebody has, or something of it doesn't fit; nothing of it is in.
   */
  async #writeAtOnce(
    groups: readonly Group[],
    taken: readonly TakenRows[],
    sections: readonly Section[],
  ): Promise<Written | null> {
    const token = this.#places.tokenFor(groups, taken)
    if (token === null) return null
    const { epochs, heads, log } = this.#env
    let isUnclaimed = false
    const written = await this.#run(() => {
      const all = epochs.ifVersion(CLAIMS_KEY, token, () => {
        for (const section of sections) {
          const { groups: own, encodedGroups } = section
          for (let i = 0; i < own.length; i++) {
            const { row, head } = encodedGroups[i]!
            void log.put(row.key, row.value)
            void heads.put(head.key, head.value, own[i]!.head + own[i]!.count)
          }
          for (const row of section.encodedRows) this.#putRow(row)
        }
      })
      return [all.then((is) => (isUnclaimed = is))]
    })
    if (written === 'committed' && !isUnclaimed) return null
    if (written === 'committed') this.#places.committed(groups)
    else this.#places.forget()
    for (const rows of taken) this.#waiting.settle(rows, written)
    return written
  }

  async #writeDueRows(): Promise<void> {
    if (this.#waiting.isDue) await this.#writeRows()
  }

  /** A transaction of waiting rows alone. */
  async #writeRows(): Promise<void> {
    const taken = this.#waiting.take('all')
    if (taken.length > 0) await this.#finishRows(taken)
  }

  async #finishRows(taken: readonly TakenRows[]): Promise<void> {
    const sections = this.#sections.of([], taken)
    const hasRoom = this.#hasRoomToFinish(this.#cost(sections))
    const written = hasRoom ? await this.#run(() => this.#build(sections)) : 'full'
    await this.#settleRows(sections, written)
  }

  /** By how much the data file grows at most, about: every row may touch a path of pages. */
  #cost(sections: readonly Section[]): number {
    let rows = 1
    for (const { groups, encodedRows } of sections) rows += 2 * groups.length + encodedRows.length
    return 2 * this.#sections.bytes + rows * PAGES_OF_A_ROW * LIMITS.journalPageBytes
  }

  /**
   * Queues the sections' writes. Each block is applied only if its condition holds, which LMDB's
   * write thread looks at under the lock of the file: no other process can come between.
   */
  #build(sections: readonly Section[]): Promise<boolean>[] {
    const { epochs, heads, log } = this.#env
    const all: Promise<boolean>[] = []
    for (const section of sections) {
      const { groups, encodedGroups } = section
      section.hasHead.length = 0
      section.hasEpoch = epochs.ifVersion(shardKey(section.shard), section.epoch, () => {
        for (const [i, { row, head }] of encodedGroups.entries()) {
          const group = groups[i]!
          const isIn = heads.ifVersion(head.key, group.head, () => {
            void log.put(row.key, row.value)
            void heads.put(head.key, head.value, group.head + group.count)
          })
          section.hasHead.push(isIn)
          all.push(isIn)
        }
        for (const row of section.encodedRows) this.#putRow(row)
      })
      all.push(section.hasEpoch)
    }
    return all
  }

  #putRow(row: DerivedTableRow): void {
    const { table, key, value } = row
    if (row.isRegister) {
      const there = table.getBinaryFast(key)
      if (there !== undefined && derivedOffset(there) > row.offset) return
    }
    void table.put(key, value)
  }

  async #run(build: () => Promise<boolean>[]): Promise<Written> {
    if (this.#end === 'failed') return 'unknown'
    let conditions: Promise<boolean>[] = []
    try {
      const whole = this.#env.root.batch(() => {
        conditions = build()
      })
      await Promise.all([whole, ...conditions])
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

  async #settleRows(sections: readonly Section[], written: Written): Promise<void> {
    for (const section of sections) {
      const isIn = written !== 'committed' || (await section.hasEpoch)
      for (const taken of section.taken) this.#waiting.settle(taken, isIn ? written : 'fenced')
    }
  }

  async #outcomes(
    groups: readonly Group[],
    sections: readonly Section[],
  ): Promise<readonly AppendOutcome[]> {
    const outcomes = new Map<Group, AppendOutcome>()
    for (const section of sections) {
      for (const [i, group] of section.groups.entries()) {
        const isIn = (await section.hasHead[i]!) || this.#isInAlready(group)
        outcomes.set(group, isIn ? 'committed' : 'fenced')
      }
    }
    return groups.map((group) => outcomes.get(group)!)
  }

  /** True when an earlier copy of the same group won (PROTOCOL 3.2.4). */
  #isInAlready(group: Group): boolean {
    this.#env.root.resetReadTxn()
    const key = logKey(group.shard, group.head + group.count)
    const value = this.#env.log.get(key)
    if (value === undefined || !isWhole(key, value)) return false
    return readGroup(group.shard, value).commitId === group.commitId
  }

  #setFull(isFull: boolean): void {
    if (this.#isFull !== isFull) this.#options.onFull(isFull)
    this.#isFull = isFull
  }

  /** True when an append may be written: the reserve is held, and the disk isn't full behind it. */
  #hasRoomToAppend(cost: number): boolean {
    const left = this.#options.room.left() - this.#options.roomBytes
    if (!this.#reserve.isHeld && left > this.#reserve.bytes) this.#makeReserve()
    return this.#reserve.isHeld && left >= cost
  }

  /** True when what must be finished may be written: it has the reserve to spend. */
  #hasRoomToFinish(cost: number): boolean {
    const { room, roomBytes } = this.#options
    if (room.left() - roomBytes >= cost) return true
    this.#setFull(true)
    this.#reserve.release()
    return room.left() >= cost
  }

  #makeReserve(): void {
    const now = this.#options.now()
    if (this.#isMaking || now - this.#triedAt < LIMITS.journalFullRetryMs) return
    this.#isMaking = true
    this.#triedAt = now
    void this.#reserve.make().then(() => (this.#isMaking = false))
  }
}
