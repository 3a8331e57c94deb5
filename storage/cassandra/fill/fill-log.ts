// Fills one shard's log as segments: groups appended by the same conditional statements that
// members use, so that a fill that is sent twice, or goes on after a crash, leaves one log. Source:
// PROTOCOL 3.1, 3.2, 3.5 "Roll".

import { setTimeout as delay } from 'node:timers/promises'
import { LIMITS } from '../../../config/limits.ts'
import { joinEntries, splitEntries } from '../../../protocol/entry/entry.ts'
import { assert } from '../../../protocol/errors.ts'
import type { ShardExtent, StoreSource } from '../../copy.ts'
import type { Outcome } from '../../control.ts'
import type { Group, LogRow } from '../../journal.ts'
import type { SegmentStatics, SegmentStore } from '../../segments.ts'

const ATTEMPTS = 20
const RETRY_MS = 250

interface Place {
  segment: number
  statics: SegmentStatics
  rows: number
  bytes: number
}

/** Appends what is missing; `written` gets groups and entries. Answers the open segment. */
export async function fillLog(
  segments: SegmentStore,
  source: StoreSource,
  extent: ShardExtent,
  written: (groups: number, entries: number) => void,
): Promise<number> {
  const log = new LogFill(segments, extent.shard)
  const place = await log.find(extent.floor)
  for (const group of groupsOf(source.log(extent.shard), place.statics.head)) {
    await log.raise(place, group.epoch)
    await log.append(place, group)
    written(1, group.count)
  }
  assert(place.statics.head === extent.head, `the log of shard ${extent.shard} ends at its head`)
  await log.raise(place, extent.epoch)
  return place.segment
}

/** Groups behind `after`, small ones joined: a store at rest commits one entry at a time. */
function* groupsOf(rows: Iterable<LogRow>, after: number): Iterable<Group> {
  let open: { last: LogRow; head: number; entries: Buffer[]; bytes: number } | null = null
  for (const row of rows) {
    if (row.offset <= after) continue
    const entries = splitEntries(row.body)
    const isFull =
      open !== null &&
      (open.last.epoch !== row.epoch ||
        open.entries.length + entries.length > LIMITS.storage.groupEntriesMax ||
        open.bytes + row.body.length > LIMITS.storage.groupBytesMax)
    if (open !== null && isFull) {
      yield groupOf(open)
      open = null
    }
    // A row that was joined with others before is taken from its middle on.
    const fresh = row.offset - row.count < after ? entries.slice(after - row.offset) : entries
    open ??= { last: row, head: row.offset - fresh.length, entries: [], bytes: 0 }
    open.last = row
    open.entries.push(...fresh.map((entry) => Buffer.from(entry)))
    open.bytes += row.body.length
  }
  if (open !== null) yield groupOf(open)
}

function groupOf({
  last,
  head,
  entries,
}: {
  readonly last: LogRow
  readonly head: number
  readonly entries: readonly Buffer[]
}): Group {
  const { shard, epoch, commitId } = last
  return { shard, epoch, head, count: entries.length, commitId, body: joinEntries(entries) }
}

class LogFill {
  readonly #segments: SegmentStore
  readonly #shard: number

  constructor(segments: SegmentStore, shard: number) {
    this.#segments = segments
    this.#shard = shard
  }

  /** The open segment, made if there is none yet. */
  async find(floor: number): Promise<Place> {
    for (let segment = 1, head = floor, epoch = 0; ; segment++) {
      const of = { shard: this.#shard, segment }
      let statics = await this.#segments.statics(of)
      if (statics === null) {
        await this.#decided(() => this.#segments.open(of, { epoch, head }))
        statics = (await this.#segments.statics(of))!
      }
      if (!statics.sealed) return { segment, statics, rows: 0, bytes: 0 }
      head = statics.head
      epoch = statics.epoch
    }
  }

  async raise(place: Place, epoch: number): Promise<void> {
    if (place.statics.epoch >= epoch) return
    const of = { shard: this.#shard, segment: place.segment }
    await this.#decided(() => this.#segments.fence(of, epoch))
    place.statics = { ...place.statics, epoch }
  }

  async append(place: Place, group: Group): Promise<void> {
    if (
      place.rows >= LIMITS.storage.segmentRowsMax ||
      place.bytes >= LIMITS.storage.segmentBytesMax
    ) {
      await this.#roll(place)
    }
    const of = { shard: this.#shard, segment: place.segment }
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#segments.append(place.segment, group)
      if (outcome === 'applied') break
      const statics = await this.#segments.statics(of).catch(() => null)
      if (statics?.lastCommit === group.commitId) break
      const mayBeIn = statics === null || statics.head === group.head
      if (outcome === 'refused' && !mayBeIn) {
        throw new Error(`shard ${this.#shard}: somebody else writes its log at the same time`)
      }
      await this.#wait(attempt)
    }
    const { statics } = place
    place.statics = { ...statics, head: group.head + group.count, lastCommit: group.commitId }
    place.rows++
    place.bytes += group.body.length
  }

  async #roll(place: Place): Promise<void> {
    const { segment, statics } = place
    const { epoch, head } = statics
    const of = { shard: this.#shard, segment }
    await this.#decided(() => this.#segments.seal(of, { epoch, head }))
    const next = { shard: this.#shard, segment: segment + 1 }
    await this.#decided(() => this.#segments.open(next, { epoch, head }))
    place.segment = next.segment
    place.statics = { epoch, base: head, head, lastCommit: null, sealed: false }
    place.rows = 0
    place.bytes = 0
  }

  /** Nobody else writes here: refused means that an earlier copy of it was applied. */
  async #decided(send: () => Promise<Outcome>): Promise<void> {
    for (let attempt = 1; (await send()) === 'unknown'; attempt++) await this.#wait(attempt)
  }

  async #wait(attempt: number): Promise<void> {
    if (attempt >= ATTEMPTS) {
      throw new Error(
        `shard ${this.#shard}: Cassandra does not take its log: see to it, then run the same ` +
          'command again',
      )
    }
    await delay(RETRY_MS * attempt)
  }
}
