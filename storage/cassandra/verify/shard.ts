// The audit of one shard's log, on live data: its segments chained, offsets dense, epochs never
// falling, ids never twice, and what is derived of it the same. It only reads the tables. Source:
// PROTOCOL 3.0, 3.5, 4.1 (K4).

import { LIMITS } from '../../../config/limits.ts'
import { decodeEntry, decodeWholeEntry } from '../../../protocol/entry/entry.ts'
import { splitEntries, type EntryHead } from '../../../protocol/entry/entry.ts'
import type { ControlStore } from '../../control.ts'
import type { AcceptedLoss, DerivedReader, EntryRow, LogRow, StoreIdentity } from '../../journal.ts'
import { EntryAudit } from '../../entry-audit.ts'
import type { Report } from '../../report.ts'
import { placeOf } from '../../row-audit.ts'
import { isPassing } from '../../row-expiry.ts'
import type { SegmentStatics, SegmentStore } from '../../segments.ts'
import { Limiter } from '../session/limiter.ts'

export interface Stores {
  readonly identity: StoreIdentity
  readonly control: Pick<ControlStore, 'shard'>
  readonly segments: Pick<SegmentStore, 'statics' | 'rows'>
  readonly derived: DerivedReader
  /** Milliseconds since 1970: what may have expired isn't looked for. */
  readonly nowMs: number
  /** Puts a row back that is missing; null: it is only told. */
  readonly putBack: PutBack | null
}

/** Writes a row of an entry so that it stays; `stamp`: above whatever stands in its place. */
export type PutBack = (row: EntryOf, stamp: number) => Promise<void>

export interface EntryOf extends EntryRow {
  readonly actorId: string
  /** Of one behind which its actor is forgotten. */
  readonly passesFrom?: number
}

/** Bytes of log rows that are compared at a time. */
const READ_BYTES = 4 * 1024 * 1024
/** Rows of an actor among which its end is looked for: what it was told later stands behind. */
const ROWS_OF_END = 8
/** Reads of derived rows at once. */
const READS = 16

interface Placed {
  readonly offset: number
  readonly entry: EntryHead
  readonly body: Buffer
}

export class ShardVerification {
  groups = 0
  entries = 0
  /** The open segment and its head, once they were read. */
  segment = 1
  head = 0
  readonly #stores: Stores
  readonly #shard: number
  readonly #report: Report
  readonly #losses: readonly AcceptedLoss[]
  readonly #audit: EntryAudit
  readonly #commitIds = new Set<string>()
  readonly #reads = new Limiter({ inFlightMax: READS, waitingMax: Number.MAX_SAFE_INTEGER })
  /** Entries that have no row, by actor: they may be of one that is forgotten. */
  readonly #withoutRow = new Map<string, EntryOf[]>()
  #flush = 0
  /** Up to here rows were seen; null: none yet. */
  #at: number | null = null
  #epoch = 0

  constructor(stores: Stores, shard: number, report: Report) {
    this.#stores = stores
    this.#shard = shard
    this.#report = (what) => report(`shard ${shard}: ${what}`)
    this.#losses = (stores.identity.losses ?? []).filter((loss) => loss.shard === shard)
    this.#audit = new EntryAudit((what) => this.#report(what))
  }

  async run(): Promise<void> {
    // First: what is flushed now must be there whenever it is looked for.
    this.#flush = await this.#flushNow()
    const own = await this.#stores.derived.shard(this.#shard)
    let before: SegmentStatics | null = null
    for (let segment = 1; ; segment++) {
      const statics = await this.#stores.segments.statics({ shard: this.#shard, segment })
      if (statics === null) break
      this.#verifyChain(segment, statics, before)
      await this.#verifySegment(segment, statics)
      before = statics
      this.segment = segment
      this.head = statics.head
      if (!statics.sealed) break
    }
    this.#audit.end()
    await this.#missedRows()
    if (before === null) return this.#report('its log has no first segment')
    if (this.#flush > this.head) {
      this.#report(`its flush offset ${this.#flush} is above its head ${this.head}`)
    }
    if (own !== null && own.offset > this.head) {
      this.#report(`its own row is of offset ${own.offset}, its head is ${this.head}`)
    }
    const { epoch } = await this.#stores.control.shard(this.#shard)
    if (epoch < before.epoch) this.#report(`its epoch is ${epoch}, its log has ${before.epoch}`)
  }

  async #flushNow(): Promise<number> {
    return (await this.#stores.derived.consumer(this.#shard, 'flush')) ?? 0
  }

  #verifyChain(segment: number, statics: SegmentStatics, before: SegmentStatics | null): void {
    const { base, head } = statics
    if (head < base) this.#report(`segment ${segment}: its head ${head} is below its base ${base}`)
    if (before === null) return
    if (base !== before.head && base !== this.#resumedBehind(before.head)) {
      this.#report(`segment ${segment} begins at ${base}, the one before it ends at ${before.head}`)
    }
  }

  /** Where the log goes on behind `offset` if what came after it was given up; else -1. */
  #resumedBehind(offset: number): number {
    return this.#losses.find((loss) => loss.offset === offset)?.resumedAt ?? -1
  }

  async #verifySegment(segment: number, statics: SegmentStatics): Promise<void> {
    let after = statics.base
    let last: LogRow | null = null
    while (after < statics.head) {
      const rows = await this.#rows(segment, after)
      const some = rows.filter(({ offset }) => offset <= statics.head)
      if (some.length === 0) break
      for (const row of some) await this.#verifyRow(segment, row, statics)
      await this.#verifyEntries(some)
      last = some.at(-1)!
      after = last.offset
    }
    if (last !== null && last.offset === statics.head && last.commitId !== statics.lastCommit) {
      this.#report(`segment ${segment}: its last group is another one than its statics say`)
    }
    if (after < statics.head) await this.#missing(segment, after, statics.head)
  }

  /** Rows behind `after`, looked for at the serial level where one seems to be missing. */
  async #rows(segment: number, after: number): Promise<readonly LogRow[]> {
    const { segments } = this.#stores
    const of = { shard: this.#shard, segment }
    const rows = await segments.rows(of, { after, bytesMax: READ_BYTES })
    const [first] = rows
    if (first !== undefined && first.offset - first.count === after) return rows
    return segments.rows(of, { after, bytesMax: READ_BYTES, serial: true })
  }

  async #verifyRow(segment: number, row: LogRow, statics: SegmentStatics): Promise<void> {
    this.groups++
    const { offset, count, epoch, commitId } = row
    const before = offset - count
    const at = Math.max(this.#at ?? statics.base, statics.base)
    if (before > at) await this.#missing(segment, at, before)
    else if (before < at) this.#report(`offset ${before + 1}: is in two groups`)
    this.#at = offset
    if (epoch < this.#epoch) {
      this.#report(`offset ${before + 1}: its epoch falls from ${this.#epoch} to ${epoch}`)
    }
    this.#epoch = Math.max(this.#epoch, epoch)
    if (epoch > statics.epoch) {
      this.#report(`offset ${before + 1}: its epoch ${epoch} is above its segment's`)
    }
    if (this.#commitIds.has(commitId)) {
      this.#report(`offset ${before + 1}: commit id ${commitId} is there twice`)
    }
    this.#commitIds.add(commitId)
  }

  /** No rows in (from, to]: they were trimmed, with all below them, or are lost. */
  async #missing(segment: number, from: number, to: number): Promise<void> {
    this.#flush = Math.max(this.#flush, await this.#flushNow())
    const range = { after: this.#at === null ? from : from - 1, bytesMax: 1, serial: true }
    const [lowest] = await this.#stores.segments.rows({ shard: this.#shard, segment }, range)
    const isTrimmed = lowest === undefined || lowest.offset > from
    if (isTrimmed && to <= this.#flush) return
    this.#report(`offset ${from + 1}: the entries up to ${to} are missing`)
  }

  async #verifyEntries(rows: readonly LogRow[]): Promise<void> {
    const placed: Placed[] = []
    for (const row of rows) this.#decode(row, placed)
    const byActor = new Map<string, Placed[]>()
    for (const one of placed) {
      this.#audit.next(one.offset, one.entry)
      if (one.entry.n === 0 || one.offset > this.#flush) continue
      const known = byActor.get(one.entry.p)
      if (known) known.push(one)
      else byActor.set(one.entry.p, [one])
    }
    const compared = [...byActor].map(([actorId, own]) =>
      this.#reads.run(() => this.#verifyCopies(actorId, own)),
    )
    const keys = this.#keysOf(placed).map((key) => this.#reads.run(() => this.#verifyAlias(key)))
    await Promise.all([...compared, ...keys])
    for (const { entry } of placed) if (entry.f !== undefined) this.#withoutRow.delete(entry.p)
  }

  #decode(row: LogRow, placed: Placed[]): void {
    const first = row.offset - row.count + 1
    let bodies: Buffer[] = []
    try {
      bodies = splitEntries(row.body)
    } catch (error) {
      return this.#report(`offset ${first}: ${String(error)}`)
    }
    if (bodies.length !== row.count) {
      this.#report(`offset ${first}: holds ${bodies.length} entries and says ${row.count}`)
    }
    for (const [i, body] of bodies.entries()) {
      this.entries++
      try {
        placed.push({ offset: first + i, entry: decodeWholeEntry(body), body })
      } catch (error) {
        this.#report(`offset ${first + i}: the entry can't be read: ${String(error)}`)
      }
    }
  }

  /** The actor's own rows of these entries: there, and the same. */
  async #verifyCopies(actorId: string, own: readonly Placed[]): Promise<void> {
    const { derived } = this.#stores
    const copies = new Map<number, { readonly offset: number; readonly body: Uint8Array }>()
    const upTo = own.at(-1)!.entry.n
    for (let after = own[0]!.entry.n - 1; after < upTo;) {
      const range = { order: 'ascending', after, bytesMax: READ_BYTES } as const
      const rows = await derived.entries(actorId, range)
      if (rows.length === 0) break
      for (const row of rows) copies.set(row.n, row)
      after = rows.at(-1)!.n
    }
    for (const one of own) await this.#verifyCopy(actorId, one, copies.get(one.entry.n))
  }

  async #verifyCopy(
    actorId: string,
    { offset, entry, body }: Placed,
    copy: { readonly offset: number; readonly body: Uint8Array } | undefined,
  ): Promise<void> {
    const { n, f } = entry
    const place = `offset ${offset}: actor ${actorId}`
    // It may have gone, and its number may be another's.
    const mayBeGone =
      isPassing({ kind: 'entry', actorId, n, offset, body }) ||
      f !== undefined ||
      (copy?.offset !== offset && (await this.#hasEnded(actorId, offset)))
    if (copy === undefined) {
      if (!mayBeGone) this.#missed(actorId, { actorId, n, offset, body })
    } else if (copy.offset !== offset) {
      if (mayBeGone && copy.offset > offset) return
      this.#report(`${place}: ${placeOf(entry, offset)} has a row of offset ${copy.offset}`)
    } else if (!body.equals(copy.body)) {
      this.#report(`${place}: entry ${n} has a row with another content`)
    }
  }

  /** Whether a row says that the actor has ended behind this offset, and all before it went. */
  async #hasEnded(actorId: string, offset: number): Promise<boolean> {
    const newest = { order: 'descending', before: Number.MAX_SAFE_INTEGER } as const
    const bounds = { countMax: ROWS_OF_END, bytesMax: READ_BYTES }
    const rows = await this.#stores.derived.entries(actorId, { ...newest, ...bounds })
    return rows.some((row) => row.offset > offset && decodeEntry(row.body).f !== undefined)
  }

  /** Of an actor whose end has gone as well, and comes further on in the log, nothing is missed. */
  #missed(actorId: string, row: EntryOf): void {
    const known = this.#withoutRow.get(actorId)
    if (known) known.push(row)
    else this.#withoutRow.set(actorId, [row])
  }

  async #missedRows(): Promise<void> {
    const { putBack } = this.#stores
    for (const row of [...this.#withoutRow.values()].flat()) {
      const { actorId, n, offset } = row
      // What stood there and has expired is stamped with a flushed offset, this one's or a later
      // one's, and wins over a live row of the same stamp.
      await putBack?.(row, this.#flush + 1)
      const done = putBack === null ? '' : '; it was put back'
      const place = `offset ${offset}: actor ${actorId}`
      this.#report(`${place}: entry ${n} is flushed and has no row${done}`)
    }
  }

  /** Keys that these entries have taken, and whose rows can't have expired: a row each. */
  #keysOf(placed: readonly Placed[]): KeyPlace[] {
    const keys = new Map<string, KeyPlace>()
    for (const { entry, offset } of placed) {
      if (offset > this.#flush || this.#stores.nowMs - entry.t > LIMITS.storage.callerMarkMs)
        continue
      for (const { keyType, key, change } of entry.k ?? []) {
        if (change === 'take') keys.set(`${keyType}\0${key}`, { keyType, key, offset })
      }
    }
    return [...keys.values()]
  }

  async #verifyAlias({ keyType, key, offset }: KeyPlace): Promise<void> {
    const row = await this.#stores.derived.alias(keyType, key)
    if (row === null) this.#report(`offset ${offset}: key '${key}' of ${keyType} has no row`)
  }
}

interface KeyPlace {
  readonly keyType: string
  readonly key: string
  readonly offset: number
}
