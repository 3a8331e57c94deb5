// What is looked at before a journal is opened: every shard's log from its flush offset to its
// head. It stands between the data file and everything that trusts it: a journal that isn't whole
// is refused, never served short. Source: PROTOCOL 3.16.

import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { AcceptedLoss, LogRow, StoreIdentity } from '../journal.ts'
import type { JournalEnvironment } from './journal-environment.ts'
import {
  consumerKey,
  derivedOffset,
  isWhole,
  logKey,
  NIL_UUID,
  readGroup,
  readHead,
  rowCrc,
  shardKey,
} from './journal-layout.ts'

/** Damage in a shard's log: everything up to `good` is whole. */
export interface LogFinding {
  readonly what: string
  readonly good: number
}

/** Shards of a store, the `system` shard first. */
export function* shardsOf(identity: StoreIdentity): Generator<number> {
  for (let shard = SYSTEM_SHARD; shard < identity.shards; shard++) yield shard
}

/** An offset that is stored under a row of its own; 0 when there is none. Null: damaged. */
function storedOffset(table: JournalEnvironment['trims'], key: Uint8Array): number | null {
  const value = table.get(key)
  if (value === undefined) return 0
  return isWhole(key, value) ? derivedOffset(value) : null
}

/** What is below it is in the derived rows, or was never there. */
export interface Floor {
  readonly flush: number
  readonly trimmed: number
}

export function floorOf(env: JournalEnvironment, shard: number): Floor | LogFinding {
  const flush = storedOffset(env.consumers, consumerKey(shard, 'flush'))
  const trimmed = storedOffset(env.trims, shardKey(shard))
  if (flush === null) return { what: "the row of its flush offset doesn't match", good: 0 }
  if (trimmed === null) return { what: "the row of its trim offset doesn't match", good: flush }
  return { flush, trimmed }
}

/** Goes through the rows of a shard, and says where they stop being one log. */
export class LogWalk {
  readonly #losses: readonly AcceptedLoss[]
  /** Offset up to which everything is whole. */
  good: number
  /** Of the newest row. */
  epoch = 0
  #isFirst = true

  /** Rows are expected to go on from `from`; the first may begin before it. */
  constructor(shard: number, from: number, losses: readonly AcceptedLoss[]) {
    this.#losses = losses.filter((loss) => loss.shard === shard)
    this.good = from
  }

  /** What is wrong with the next row, or null; `row` is null when its checksum doesn't match. */
  next(offset: number, row: LogRow | null): string | null {
    if (row === null) return `the checksum of the group up to offset ${offset} doesn't match`
    if (row.offset !== offset) return `a group says offset ${row.offset} and stands at ${offset}`
    const before = offset - row.count
    const isNext = before === this.good || (this.#isFirst && before < this.good)
    if (!isNext && before !== this.#resumption()) {
      return `the entries behind offset ${this.good} are missing: the next begin at ${before + 1}`
    }
    if (row.epoch < this.epoch) return `its epoch falls from ${this.epoch} to ${row.epoch}`
    this.epoch = row.epoch
    this.#isFirst = false
    this.good = offset
    return null
  }

  /** Where the log goes on behind `good` if what came after it was given up; else -1. */
  #resumption(): number {
    return this.#losses.find((loss) => loss.offset === this.good)?.resumedAt ?? -1
  }

  /** What is wrong with the end of the log, or null. `last`: value of the last row, if any. */
  end(head: number, headRow: Uint8Array, last: Uint8Array | null): string | null {
    if (head !== this.good && head !== this.#resumption()) {
      return `the log ends at offset ${this.good} and its head says ${head}`
    }
    if (head !== this.good || last === null) return null
    const said = readHead(headRow)
    if (said.groupCrc === rowCrc(last) && said.commitId === readGroup(0, last).commitId) return null
    return 'the last group is another one than its head says'
  }
}

/** Damage in a shard between its flush offset and its head, or null. One read transaction. */
export function checkTail(
  env: JournalEnvironment,
  identity: StoreIdentity,
  shard: number,
): LogFinding | null {
  const key = shardKey(shard)
  const floor = floorOf(env, shard)
  if ('what' in floor) return floor
  const from = Math.max(floor.flush, floor.trimmed)
  const walk = new LogWalk(shard, from, identity.losses ?? [])
  let last: Uint8Array | null = null
  const range = { start: logKey(shard, from + 1), end: logKey(shard + 1, 0) }
  for (const { key: place, value } of env.log.getRange(range)) {
    const offset = Buffer.from(place).readUIntBE(2, 6)
    const what = walk.next(offset, isWhole(place, value) ? readGroup(shard, value) : null)
    if (what !== null) return { what, good: walk.good }
    last = value
  }
  const { good } = walk
  const headRow = env.heads.get(key)
  if (headRow === undefined || !isWhole(key, headRow)) {
    return { what: "the row of its head doesn't match its checksum", good }
  }
  const epochRow = env.epochs.get(key)
  if (epochRow === undefined || !isWhole(key, epochRow)) {
    return { what: "the row of its epoch doesn't match its checksum", good }
  }
  return endFinding(env, { shard, walk, headRow, last })
}

function endFinding(
  env: JournalEnvironment,
  tail: { shard: number; walk: LogWalk; headRow: Uint8Array; last: Uint8Array | null },
): LogFinding | null {
  const { shard, walk, headRow } = tail
  const { head, commitId } = readHead(headRow)
  // A shard that is flushed to its head: its last group is looked at all the same.
  const place = logKey(shard, head)
  const last = tail.last ?? env.log.get(place) ?? null
  if (tail.last === null && last !== null && !isWhole(place, last)) {
    return { what: "the last group's checksum doesn't match", good: walk.good }
  }
  if (env.heads.getEntry(shardKey(shard))?.version !== head) {
    return { what: "the head's two numbers differ", good: walk.good }
  }
  const what = walk.end(head, headRow, commitId === NIL_UUID ? null : last)
  return what === null ? null : { what, good: walk.good }
}
