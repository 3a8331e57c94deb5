// Going on without what is lost: the way back that an operator chooses with --accept-loss when a
// shard's log is damaged and there is no backup. It stands between the check of a journal and its
// opening. Source: PROTOCOL 3.16.

import { LIMITS } from '../../config/limits.ts'
import { COUNTER_SUFFIX } from '../journal.ts'
import type { AcceptedLoss, StoreIdentity } from '../journal.ts'
import { Arena } from './journal-arena.ts'
import type { DERIVED_TABLES, JournalEnvironment } from './journal-environment.ts'
import { putIdentity } from './journal-identity.ts'
import {
  derivedOffset,
  derivedShard,
  isWhole,
  logKey,
  NIL_UUID,
  readHead,
  shardKey,
} from './journal-layout.ts'
import { encodeHead, encodeNumber } from './journal-rows.ts'

/** Rows that say more than the log that is left, and go with it. The other registers hold counters
 * and offsets: higher ones than the log's do no harm, lower ones would. */
const FOLLOWS_LOG: readonly (typeof DERIVED_TABLES)[number][] = [
  'entries',
  'aliases',
  'snapshots',
  'marks',
  'images',
]

/**
 * Gives up what `shard` holds behind `offset`, in one transaction: the log's rows and what was
 * derived from them. The log goes on LIMITS.lossOffsets higher, and the store gets a new
 * generation, so that indexes are filled again and old cursors are refused. Returns the new
 * identity.
 */
export function acceptLoss(
  env: JournalEnvironment,
  identity: StoreIdentity,
  at: { readonly shard: number; readonly offset: number },
  generation: string,
): StoreIdentity {
  const { shard, offset } = at
  return env.root.transactionSync(() => {
    const highest = dropLog(env, shard, offset)
    for (const name of FOLLOWS_LOG) dropDerived(env, name, at)
    const resumedAt = highest + LIMITS.lossOffsets
    const key = shardKey(shard)
    const start = { epoch: 0, head: resumedAt, groupCrc: 0, commitId: NIL_UUID }
    const head = encodeHead(new Arena(256), shard, start)
    env.heads.putSync(head.key, head.value, resumedAt)
    const epochRow = env.epochs.get(key)
    if (epochRow === undefined || !isWhole(key, epochRow)) {
      // The number is gone; one that was never given out will do.
      env.epochs.putSync(key, encodeNumber(shard, LIMITS.lossOffsets).value, LIMITS.lossOffsets)
    }
    const loss: AcceptedLoss = { shard, offset, resumedAt }
    const next = { ...identity, generation, losses: [...(identity.losses ?? []), loss] }
    putIdentity(env, next)
    return next
  })
}

/** Deletes the rows behind `offset`; returns the highest offset that was ever heard of. */
function dropLog(env: JournalEnvironment, shard: number, offset: number): number {
  let highest = offset
  const key = shardKey(shard)
  const headRow = env.heads.get(key)
  if (headRow !== undefined && isWhole(key, headRow)) {
    highest = Math.max(highest, readHead(headRow).head)
  }
  const range = { start: logKey(shard, offset + 1), end: logKey(shard + 1, 0) }
  for (const place of [...env.log.getKeys(range)]) {
    highest = Math.max(highest, Buffer.from(place).readUIntBE(2, 6))
    env.log.removeSync(place)
  }
  return highest
}

/** Counters of generated numbers stand among the keys; theirs begin with their type. */
function isCounter(key: Uint8Array): boolean {
  const [keyType] = Buffer.from(key).toString('latin1').split('\0')
  return keyType!.endsWith(COUNTER_SUFFIX)
}

function dropDerived(
  env: JournalEnvironment,
  name: (typeof DERIVED_TABLES)[number],
  at: { readonly shard: number; readonly offset: number },
): void {
  const lost: Uint8Array[] = []
  for (const { key, value } of env[name].getRange({})) {
    if (derivedShard(value) !== at.shard || derivedOffset(value) <= at.offset) continue
    if (name === 'aliases' && isCounter(key)) continue
    lost.push(key)
  }
  for (const key of lost) env[name].removeSync(key)
}
