// The trimmer: deletes log rows that are old or too many. Some followers it waits for, whatever the
// log grows to; one that can be made anew (the graph index) only for so long and so much. Below the
// trim point the derived rows are the truth. Source: PROTOCOL 3.5 "Trim", 3.12.

import { LIMITS } from '../../../config/limits.ts'
import { decodeEntry, splitEntries } from '../../../protocol/entry/entry.ts'
import type { LogRow } from '../../../storage/journal.ts'
import { decodeShardSnapshot } from '../recovery/shard-snapshot.ts'
import type { Account } from '../account.ts'
import type { ShardContext, ShardState } from '../core.ts'
import type { ShardSnapshot } from '../recovery/shard-snapshot.ts'
import type { Flusher } from './flusher.ts'
import type { OutputGate } from './output-gate.ts'

const READ_BYTES = 4 * 1024 * 1024

/** Whose log is trimmed. */
export interface Trimmed {
  readonly number: number
  readonly epoch: number
  readonly state: ShardState
  readonly context: Pick<ShardContext, 'clock' | 'journal' | 'log' | 'shards'>
  readonly gate: Pick<OutputGate, 'head'>
  readonly flusher: Pick<Flusher, 'stored'>
  readonly account: Pick<Account, 'trimmed' | 'recounted'>
  /** The shard's account as it was told last. */
  readonly kept: ShardSnapshot
  /** The shard's clock, milliseconds (PROTOCOL 3.0). */
  clockMs(): number
}

/**
 * Trims one shard by one step. `needed`: the lowest offset that is stored by followers that can't
 * do without the log; `wanted`: by those that can be made anew. Answers true when there may be more
 * to trim.
 */
export async function trimStep(
  shard: Trimmed,
  needed: number,
  wanted: number = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  const { kept } = shard
  const { log } = shard.context.journal
  const most = Math.min(needed, shard.flusher.stored)
  if (!log.trim || shard.state !== 'serving' || kept.trimmed >= most) return false
  // The oldest row tells whether anything may go: mostly nothing may.
  const oldest = await log.read(shard.number, kept.trimmed, 1)
  const isCounted = kept.counted !== undefined && beginOf(oldest) <= kept.trimmed
  if (!isCounted) return recount(shard)
  if (reachOf(shard, oldest, { limit: most, wanted }).upTo === kept.trimmed) return false
  const limit = Math.min(most, await storedRelay(shard))
  if (kept.trimmed >= limit) return false
  const rows = await log.read(shard.number, kept.trimmed, READ_BYTES)
  const { upTo, bytes } = reachOf(shard, rows, { limit, wanted })
  if (upTo === kept.trimmed) return false
  await log.trim(shard.number, shard.epoch, upTo)
  shard.account.trimmed(upTo, bytes)
  if (upTo > wanted && kept.trimmed <= wanted) {
    const fields = { shard: shard.number, wanted, upTo }
    shard.context.log.error(fields, 'the log no longer waits for the graph index: it is made anew')
  }
  return true
}

/** How far the rows may go now, and their bytes. */
function reachOf(
  shard: Trimmed,
  rows: readonly LogRow[],
  { limit, wanted }: { readonly limit: number; readonly wanted: number },
): { readonly upTo: number; readonly bytes: number } {
  const { kept, context } = shard
  const parts = context.shards + 1
  let left = kept.logBytes - kept.trimmedBytes
  let upTo = kept.trimmed
  let bytes = 0
  for (const row of rows) {
    if (row.offset > limit) break
    const most =
      row.offset > wanted ? LIMITS.sharding.feedHeldBytes : LIMITS.sharding.feedRetentionBytes
    if (left <= most / parts && shard.clockMs() - clockOf(row) < LIMITS.sharding.feedRetentionMs)
      break
    left -= row.body.length
    bytes += row.body.length
    upTo = row.offset
  }
  return { upTo, bytes }
}

/**
 * The account of the log's bytes is kept with the flush offset: who was killed behind a trim, or an
 * older version, has left one that is too high. What is there is counted then, once.
 */
async function recount(shard: Trimmed): Promise<boolean> {
  const { kept } = shard
  const { head } = shard.gate
  const { journal, clock } = shard.context
  let begin: number | null = null
  let bytes = 0
  for (let at = kept.trimmed; at < head && shard.state === 'serving';) {
    const rows = await journal.log.read(shard.number, at, READ_BYTES)
    if (rows.length === 0) break
    begin ??= beginOf(rows)
    for (const row of rows) if (row.offset <= head) bytes += row.body.length
    at = rows.at(-1)!.offset
    // Embedded a read is answered at once: others have their turn between two.
    await new Promise<void>((resolve) => clock.defer(resolve))
  }
  if (shard.state !== 'serving') return false
  shard.account.recounted(kept, Math.max(kept.trimmed, begin ?? head), bytes)
  return true
}

/** Offset behind which the rows begin. */
function beginOf([first]: readonly LogRow[]): number {
  return first === undefined ? Number.POSITIVE_INFINITY : first.offset - first.count
}

/** Time of a row's newest entry by the shard's clock, which no machine's clock can turn. */
function clockOf(row: LogRow): number {
  return decodeEntry(splitEntries(row.body).at(-1)!).c
}

/**
 * Up to here the next owner will look for no effects: as the store has it, not as this owner does.
 * What it remembers may never become durable, what it was told by the owner before may not be yet,
 * and of two rows at one offset the store keeps which it likes. The epoch is asked for after the
 * row was read: who has claimed the shard since reads this row or a later one.
 */
async function storedRelay(shard: Trimmed): Promise<number> {
  const { log, derived } = shard.context.journal
  const row = await derived.shard(shard.number)
  const isOurs = (await log.epochNow(shard.number)) === shard.epoch
  return row !== null && isOurs ? decodeShardSnapshot(row.body).relayed : 0
}
