// The trimmer: deletes log rows that every consumer is done with once they are old or many. Below
// the trim point the derived rows are the truth. It stands between the shards and the LogStore.
// Source: PROTOCOL 3.5 "Trim", 3.12.

import { LIMITS } from '../../config/limits.ts'
import { decodeEntry, splitEntries } from '../../protocol/entry.ts'
import type { LogRow } from '../../storage/journal.ts'
import type { Shard } from './shard.ts'

const READ_BYTES = 4 * 1024 * 1024

/**
 * Trims one shard by one step. `doneWith`: the lowest offset that consumers of the feed (index,
 * image of the system maps) have stored. Returns true when there may be more to trim.
 */
export async function trimStep(shard: Shard, doneWith: number): Promise<boolean> {
  const { kept } = shard
  const { log } = shard.context.journal
  const limit = Math.min(doneWith, kept.relayed, shard.flusher.stored)
  if (shard.state !== 'serving' || kept.trimmed >= limit) return false
  const share = LIMITS.feedRetentionBytes / (shard.context.shards + 1)
  const nowMs = shard.context.clock.nowMs()
  const rows = await log.read(shard.number, kept.trimmed, READ_BYTES)
  let surplus = kept.logBytes - kept.trimmedBytes - share
  let upTo = kept.trimmed
  let bytes = 0
  for (const row of rows) {
    if (row.offset > limit) break
    if (surplus <= 0 && nowMs - timeOf(row) < LIMITS.feedRetentionMs) break
    surplus -= row.body.length
    bytes += row.body.length
    upTo = row.offset
  }
  if (upTo === kept.trimmed) return false
  await log.trim(shard.number, shard.epoch, upTo)
  shard.trimmed(upTo, bytes)
  return true
}

function timeOf(row: LogRow): number {
  return decodeEntry(splitEntries(row.body).at(-1)!).t
}
