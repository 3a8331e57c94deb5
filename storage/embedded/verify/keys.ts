// The natural keys of an embedded store, against the actors that they lead to. Source:
// storage/key-audit.ts.

import { decodeEntry, splitEntries } from '../../../protocol/entry/entry.ts'
import type { AliasRow, StoreIdentity } from '../../journal.ts'
import { KeyAudit, relayedIn, type Behaviours, type Settled } from '../../key-audit.ts'
import { Arena } from '../../lmdb/arena.ts'
import { writeAlone, type JournalEnvironment } from '../../lmdb/environment.ts'
import { derivedBody, derivedOffset, isWhole } from '../../lmdb/layout.ts'
import type { EmbeddedDerivedReader, EmbeddedLogReader } from '../journal/read.ts'
import { encodeRow } from '../../lmdb/rows.ts'
import { shardsOf } from '../store-shards.ts'

const READ_BYTES = 4 * 1024 * 1024

/**
 * Reports keys whose actor doesn't have them; `repair` gives them back, which needs an environment
 * that may be written and no node that serves. Throws for what is damaged.
 */
export async function verifyKeys(
  stores: {
    readonly env: JournalEnvironment
    readonly identity: StoreIdentity
    readonly log: EmbeddedLogReader
    readonly derived: EmbeddedDerivedReader
  },
  options: {
    readonly behaviours: Behaviours
    readonly repair: boolean
    readonly report: (what: string) => void
  },
): Promise<void> {
  const { behaviours, repair, report } = options
  const { env, identity, log, derived } = stores
  const settled = new Map<number, Settled>()
  for (const shard of shardsOf(identity)) {
    const relayed = relayedIn(derived.shard(shard))
    settled.set(shard, { relayed, flush: derived.consumer(shard, 'flush') ?? 0 })
  }
  const audit = new KeyAudit({
    ...{ behaviours, settled, shards: identity.shards, report },
    entries: (actorId, range) => derived.entries(actorId, range),
    free: repair
      ? (row, { shard, offset }) => {
          const alias = { kind: 'alias', offset, row } as const
          const of = { shard, row: alias, place: null }
          const { table, key, value } = encodeRow(new Arena(), env, of)
          writeAlone(env, () => table.putSync(key, value))
          return true
        }
      : null,
  })
  for (const [shard, { flush, relayed }] of settled) {
    for (let after = Math.min(flush, relayed); ;) {
      const rows = log.read(shard, after, READ_BYTES)
      for (const { offset, count, body } of rows) {
        splitEntries(body).forEach((bytes, i) => {
          audit.entry(shard, offset - count + 1 + i, decodeEntry(bytes))
        })
        after = offset
      }
      if (rows.length === 0) break
    }
  }
  for (const { key, value } of env.aliases.getRange({ snapshot: false })) {
    if (!isWhole(key, value)) continue // reported with its table
    const row = JSON.parse(derivedBody(value).toString()) as AliasRow
    await audit.row(row, derivedOffset(value))
  }
  await audit.end()
}
