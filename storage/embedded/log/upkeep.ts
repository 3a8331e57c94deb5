// Room that the log gives back: sealed files of which enough is dead are written anew, oldest
// first, and small ones behind one another become one. The shards' clocks say what has had its
// time. Source: PROTOCOL 3.12 "What expires", 3.16.
//
// A file is read through once its entries' time is over, so about once in all: what may go is
// known then for good. Entries of a shard whose clock is behind are seen again when it has caught
// up: each time the shards that are due have doubled, and when all are.

import { LIMITS } from '../../../config/limits.ts'
import { decodeEntry, joinEntries, splitEntries } from '../../../protocol/entry/entry.ts'
import type { Disk } from '../../segment-log/disk.ts'
import { LogFollower } from '../../segment-log/follower.ts'
import type { GroupPart } from '../../segment-log/frame.ts'
import { endOf, numberOf, readHeader, roundOf, ROUNDS_MAX } from '../../segment-log/header.ts'
import type { Header } from '../../segment-log/header.ts'
import { finishReplacing, replaceSegments } from '../../segment-log/replace.ts'
import { readChain, type LogPosition } from '../../segment-log/scan.ts'
import { expiryOfLogged } from '../../row-expiry.ts'
import { getUpkeep, upkeepRow } from '../../lmdb/covered.ts'
import type { JournalEnvironment } from '../../lmdb/environment.ts'
import { isOver, type ClockOf } from '../../lmdb/expiry.ts'
import { ForgottenEntries } from '../../lmdb/forgotten-entries.ts'
import type { EmbeddedIdentity } from '../journal/identity.ts'
import { consumerKey, derivedOffset } from '../../lmdb/layout.ts'
import { getDerived, type EmbeddedLogReader } from '../journal/read.ts'
import type { JournalWriter } from '../../lmdb/writer.ts'
import type { UpkeepThrottle } from './upkeep-throttle.ts'
import { PlaceTurner } from '../../lmdb/place-turner.ts'
import type { PlaceReader } from '../../segment-log/place-reader.ts'

export interface UpkeepOptions {
  readonly env: JournalEnvironment
  readonly disk: Disk
  readonly identity: EmbeddedIdentity
  readonly places: PlaceReader
  readonly reader: EmbeddedLogReader
  readonly writer: Pick<JournalWriter, 'change' | 'handFrom'>
  readonly throttle: UpkeepThrottle
  /** The log's end, now. */
  readonly end: () => LogPosition
  /** Whether so many bytes may be taken, for a file that then stands for others. */
  readonly mayTake: (bytes: number) => boolean
  /** Bytes of a file that isn't made longer by merging. */
  readonly fileBytes: number
}

/** What one look at the log has done. */
export interface UpkeepReport {
  /** Files that were read through, and those that others stand for now. */
  read: number
  replaced: number
  /** Bytes by which the log became shorter. */
  freed: number
}

/** A file that no place in memory leads to, with the one behind it. */
interface Sealed {
  readonly header: Header
  readonly next: Header
  readonly bytes: number
}

/** Shards that have groups in a file, and those of them whose entries have all had their time. */
interface Due {
  readonly shards: number
  readonly due: number
}

const NOTHING = new Uint8Array(0)
const NO_BYTES = Buffer.alloc(0)

export class LogUpkeep {
  readonly #options: UpkeepOptions
  readonly #turner: PlaceTurner
  /** The file that this process began with. */
  readonly #begun: number
  #chain: readonly Header[] = []
  #isFinished = false
  /** Clocks of the last entries of shards in a file, by the file's number. */
  readonly #clocks = new Map<number, ReadonlyMap<number, number> | null>()

  constructor(options: UpkeepOptions) {
    const { env, disk, identity, places, writer, throttle } = options
    this.#options = options
    this.#begun = options.end().file
    const generation = identity.log
    this.#turner = new PlaceTurner({
      env,
      disk,
      generation,
      places,
      writer,
      throttle: throttle.take,
    })
  }

  /**
   * Does what is to be done now. Rejects with JournalDamage, with the disk's errors, NoRoomToTurn
   * and UpkeepStopped; it goes on from there the next time.
   */
  async run(clockOf: ClockOf): Promise<UpkeepReport> {
    const report: UpkeepReport = { read: 0, replaced: 0, freed: 0 }
    try {
      if (!this.#isFinished) await this.#finish()
      for (;;) {
        const sealed = this.#sealed()
        const dead = await this.#nextDead(sealed, clockOf, report)
        const sources = dead === null ? this.#nextSmall(sealed, clockOf) : [dead]
        if (sources === null) return report
        if (!(await this.#replace(sources, clockOf, report))) return report
      }
    } catch (error) {
      this.#isFinished = false
      this.#chain = []
      throw error
    }
  }

  async #finish(): Promise<void> {
    this.#sealed()
    await finishReplacing(this.#options.disk, this.#chain, this.#turner)
    this.#isFinished = true
  }

  #sealed(): readonly Sealed[] {
    const { disk, identity, end, writer } = this.#options
    const known = this.#chain.at(-1)?.key.file
    if (known !== end().file) {
      const last = readHeader(disk, end().file, identity.log)!
      const chain = readChain(disk, identity.log, { first: known ?? null, last })
      this.#chain = [...this.#chain.slice(0, -1), ...chain]
    }
    const before = writer.handFrom?.file ?? this.#begun
    const sealed: Sealed[] = []
    for (const [i, header] of this.#chain.entries()) {
      const next = this.#chain[i + 1]
      if (next === undefined || numberOf(header.key.file) >= numberOf(before)) break
      sealed.push({ header, next, bytes: endOf(header, next)! })
    }
    return sealed
  }

  /** The oldest that has to be written anew, of those that are due to be read through. */
  async #nextDead(
    sealed: readonly Sealed[],
    clockOf: ClockOf,
    report: UpkeepReport,
  ): Promise<Sealed | null> {
    const { env } = this.#options
    for (const one of sealed) {
      const found = this.#dueOf(one, clockOf)
      const number = numberOf(one.header.key.file)
      env.root.resetReadTxn()
      const upkeep = getUpkeep(env, number)
      const share = LIMITS.embedded.upkeepDeadShare * one.bytes
      const isWorthIt = (upkeep.ended ?? 0) >= Math.max(1, share)
      if (found === null || !(isWorthIt || isToBeRead(found, upkeep.due))) continue
      const dead = await this.#deadIn(one, clockOf)
      report.read++
      await this.#note(number, found.due)
      if (dead >= share) return one
    }
    return null
  }

  async #note(number: number, due: number): Promise<void> {
    const { env, writer } = this.#options
    await writer.change(() => {
      env.root.resetReadTxn()
      const { ended: _, ...upkeep } = getUpkeep(env, number)
      const row = upkeepRow(number, { ...upkeep, due })
      return { notes: [], rows: [{ table: env.meta, ...row }] }
    })
  }

  /** Small files that are read through for the last time, enough of them side by side. */
  #nextSmall(sealed: readonly Sealed[], clockOf: ClockOf): readonly Sealed[] | null {
    const { env, fileBytes } = this.#options
    let run: Sealed[] = []
    const isEnough = (): boolean => {
      const sum = run.reduce((all, { bytes }) => all + bytes, 0)
      const most = Math.max(...run.map(({ bytes }) => bytes))
      // Or a large one would be written again for each few that come behind it.
      return run.length >= LIMITS.embedded.upkeepMergeMin && 2 * most <= sum
    }
    for (const one of sealed) {
      const found = this.#dueOf(one, clockOf)
      const { due } = getUpkeep(env, numberOf(one.header.key.file))
      const isDone = found !== null && due >= found.shards
      const sum = run.reduce((all, { bytes }) => all + bytes, one.bytes)
      if (isDone && sum <= fileBytes) {
        run.push(one)
        continue
      }
      if (isEnough()) return run
      run = isDone && one.bytes <= fileBytes ? [one] : []
    }
    while (run.length >= LIMITS.embedded.upkeepMergeMin) {
      if (isEnough()) return run
      run = run.slice(1)
    }
    return null
  }

  /** null: it can't be touched yet, or not at all. */
  #dueOf({ header, next }: Sealed, clockOf: ClockOf): Due | null {
    const { identity } = this.#options
    const number = numberOf(header.key.file)
    if (identity.gaps.some(({ file }) => file === number)) return null
    if (roundOf(header.key.file) === ROUNDS_MAX) return null
    const known = this.#clocks.get(number)
    const clocks = known ?? this.#lastClocks(header, next)
    if (clocks === null) return null
    this.#clocks.set(number, clocks)
    let due = 0
    for (const [shard, from] of clocks) {
      const clock = clockOf(shard)
      if (clock !== null && isOver(from, clock)) due++
    }
    return { shards: clocks.size, due }
  }

  /** By shard with groups in the file; null: the derived rows of one are not all written. */
  #lastClocks(header: Header, next: Header): ReadonlyMap<number, number> | null {
    const { env, reader } = this.#options
    const before = new Map(header.shards)
    const clocks = new Map<number, number>()
    for (const [shard, { head }] of next.shards) {
      if (head <= (before.get(shard)?.head ?? 0)) continue
      const flush = getDerived(env, env.consumers, consumerKey(shard, 'flush'))
      if (flush === null || derivedOffset(flush) < head) return null
      const [row] = reader.read(shard, head - 1, 1)
      clocks.set(shard, row === undefined ? 0 : clockIn(row.body))
    }
    return clocks
  }

  async #deadIn({ header, bytes }: Sealed, clockOf: ClockOf): Promise<number> {
    const { disk, identity, throttle } = this.#options
    const { file } = header.key
    const keep = this.#keep(clockOf, [header])
    const follower = new LogFollower(disk, {
      generation: identity.log,
      from: { file, position: 0 },
    })
    let dead = 0
    try {
      for (const { parts, body } of follower.to({ file, position: bytes })) {
        for (const part of parts) {
          if (part.kind !== 'group') continue
          await throttle.take(part.place.length)
          dead += part.place.length - keep(part, body(part.place)).length
        }
      }
    } finally {
      follower.close()
    }
    return dead
  }

  /** False: there is no room for it now. */
  async #replace(
    sources: readonly Sealed[],
    clockOf: ClockOf,
    report: UpkeepReport,
  ): Promise<boolean> {
    const { disk, identity, throttle, mayTake } = this.#options
    const bytes = sources.reduce((sum, one) => sum + one.bytes, 0)
    if (!mayTake(bytes)) return false
    const headers = sources.map(({ header }) => header)
    const options = {
      ...{ disk, generation: identity.log, sources: headers, next: sources.at(-1)!.next },
      ...{ keep: this.#keep(clockOf, headers), throttle: throttle.take },
      frameBytesMax: LIMITS.embedded.rewriteFrameBytes,
      erasedMax: LIMITS.embedded.erasedEntriesMax,
    }
    const header = await replaceSegments(options, this.#turner)
    const at = this.#chain.indexOf(headers[0]!)
    this.#chain = this.#chain.toSpliced(at, headers.length, header)
    for (const { key } of headers) this.#clocks.delete(numberOf(key.file))
    report.replaced += headers.length
    report.freed += bytes - header.rewritten!.end
    return true
  }

  /** What is left of a body. Behind an accepted loss all of it: entries say how far numbers go. */
  #keep(
    clockOf: ClockOf,
    files: readonly Header[],
  ): (group: GroupPart, body: Buffer) => Uint8Array {
    const { env, identity } = this.#options
    const isLossy = (identity.losses ?? []).length > 0
    const forgotten = new ForgottenEntries(env, new Set(files.map(({ key }) => key.file)))
    const clocks = new Map<number, number | null>()
    const frozen = (shard: number): number | null => {
      if (!clocks.has(shard)) clocks.set(shard, clockOf(shard))
      return clocks.get(shard)!
    }
    return ({ shard, head, count }, body) => {
      const clock = frozen(shard)
      const entries = clock === null || isLossy ? null : entriesOf(body, count)
      if (entries === null) return body
      const left = entries.map((entry, i) => {
        if (isDead(entry, clock!)) return NO_BYTES
        const at = { shard, offset: head + 1 + i }
        return isForgotten(forgotten, entry, at, clock!) ? NO_BYTES : entry
      })
      if (left.every(({ length }) => length === 0)) return NOTHING
      return left.every((entry, i) => entry === entries[i]) ? body : joinEntries(left)
    }
  }
}

function isToBeRead({ shards, due }: Due, before: number): boolean {
  return due > before && (due === shards || due >= 2 * before)
}

/** null: it isn't made of entries, or there are none left. */
function entriesOf(body: Buffer, count: number): readonly Buffer[] | null {
  try {
    const entries = body.length === 0 ? [] : splitEntries(body)
    return entries.length === count ? entries : null
  } catch {
    return null
  }
}

function isDead(entry: Buffer, clock: number): boolean {
  if (entry.length === 0) return false
  const expiry = expiryOfLogged(entry)
  return expiry !== null && isOver(expiry.from!, clock)
}

function isForgotten(
  forgotten: ForgottenEntries,
  entry: Buffer,
  at: { readonly shard: number; readonly offset: number },
  clock: number,
): boolean {
  return entry.length > 0 && forgotten.areAny && forgotten.isDead(decodeEntry(entry), at, clock)
}

/** Clock of the newest entry; of bytes that are no entries, none. */
function clockIn(body: Uint8Array): number {
  try {
    return decodeEntry(splitEntries(body).at(-1)!).c
  } catch {
    return 0
  }
}
