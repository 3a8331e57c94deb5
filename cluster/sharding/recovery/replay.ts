// A tail that is too long for memory, as of a store that was restored from its log alone: it is
// replayed in steps, each as by an owner that came, wrote what was derived of so much, and was gone
// again. So a claim holds a bounded part of the log, and one that ends on its way is gone on with.
// Recovery has the last, short tail. Source: PROTOCOL 3.5 (claim, step 3), 3.12.

import { LIMITS } from '../../../config/limits.ts'
import type { ClaimedShard, StoreIdentity } from '../../../storage/journal.ts'
import type { ShardContext, ShardState } from '../core.ts'
import { Flusher } from '../commit/flusher.ts'
import { isRelayed } from '../commit/outbox.ts'
import type { Flushed } from '../commit/flusher.ts'
import { recover } from './recovery.ts'
import type { Recovered, Recovering } from './recovery.ts'

/** A shard that is being claimed. */
export interface Replaying extends Recovering, Omit<Flushed, 'clockMs' | 'snapshot'> {
  readonly context: Pick<
    ShardContext,
    'behaviours' | 'clock' | 'edgeMarkMs' | 'journal' | 'log' | 'shards'
  >
  readonly state: ShardState
  stepDown(reason: string): void
}

/**
 * What is left of a claimed shard's tail to be recovered at once: all of it unless it is long.
 * Rejects with what the store said; returns early when the shard is another's.
 */
export async function replayLong(shard: Replaying, claimed: ClaimedShard): Promise<ClaimedShard> {
  const { log, identity } = shard.context.journal
  if (entriesIn(identity, shard.number, claimed) <= LIMITS.sharding.replayedAtOnceMax)
    return claimed
  let { flush } = claimed
  while (shard.state === 'claiming') {
    const rows = await log.read(shard.number, flush, LIMITS.sharding.replayStepBytes)
    const upTo = rows.at(-1)?.offset ?? claimed.head
    if (upTo >= claimed.head) break
    const found = await recover(shard, { ...claimed, flush, head: upTo })
    await write(shard, found, upTo)
    flush = upTo
  }
  return { ...claimed, flush }
}

/** Offsets that were given up with a loss hold none. */
function entriesIn(
  { losses = [] }: StoreIdentity,
  number: number,
  { flush, head }: ClaimedShard,
): number {
  const own = losses.filter((loss) => loss.shard === number && loss.offset >= flush)
  return own.reduce((left, { offset, resumedAt }) => left - (resumedAt - offset), head - flush)
}

/** Writes what is derived of the step, and that it is. */
async function write(shard: Replaying, found: Recovered, upTo: number): Promise<void> {
  const { flush, snapshot, tail } = found
  const { context, numbers, keys, spilled, number, epoch } = shard
  const isTaken = snapshot.relayed >= flush && !tail.some(({ entry }) => isRelayed(entry))
  // Effects leave once the shard serves; until then it remembers where the first of them is.
  const relayed = isTaken ? upTo : snapshot.relayed
  const flusher = new Flusher({
    shard: {
      ...{ context, numbers, keys, spilled, number, epoch, clockMs: () => snapshot.clockMs },
      snapshot: (offset) => ({
        ...snapshot,
        ...numbers.told(),
        ...(snapshot.counted !== undefined && { counted: upTo }),
        relayed: Math.min(relayed, offset),
      }),
    },
    deadLetters: shard.deadLetters,
    flush,
    onRefused: (outcome) => {
      if (outcome === 'fenced') shard.stepDown('another owner has this shard')
    },
    onDurable: () => {},
  })
  flusher.replayed(tail, found.marks, upTo)
  while (flusher.stored < upTo && shard.state === 'claiming') {
    await flusher.storedTo(upTo, LIMITS.sharding.flushStoredMs)
  }
  flusher.stop()
}
