// The natural keys of a store in Cassandra, against the actors that they lead to, while members
// serve. Source: storage/key-audit.ts.

import { decodeEntry, splitEntries } from '../../../protocol/entry/entry.ts'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import type { AliasClaim } from '../../journal.ts'
import { KeyAudit, relayedIn, type Behaviours, type Settled } from '../../key-audit.ts'
import { decodeBlob, encodeTextBlob } from '../derived/rows.ts'
import type { Session } from '../session/session.ts'
import type { Report } from '../../report.ts'
import type { Stores } from './shard.ts'

const READ_BYTES = 4 * 1024 * 1024
const PAGE_ROWS = 1_000

export interface KeysOf {
  readonly session: Session
  readonly keyspace: string
  readonly stores: Pick<Stores, 'identity' | 'segments' | 'derived'>
  readonly behaviours: Behaviours
  readonly repair: boolean
  readonly report: Report
}

/** Reports keys whose actor doesn't have them; `repair` gives them back. */
export async function verifyKeys(of: KeysOf): Promise<void> {
  const { session, keyspace, stores, behaviours, repair, report } = of
  const { shards } = stores.identity
  const settled = await settledOf(of)
  const audit = new KeyAudit({
    ...{ behaviours, settled, shards, report },
    entries: (actorId, range) => stores.derived.entries(actorId, range),
    free: repair
      ? async ({ keyType, key, claims }, { offset }) => {
          // Of two rows with one stamp the greater bytes stay: this one needs a higher stamp.
          const there = await readAlias(of, keyType, key)
          if (there === null || there >= offset) return false
          const query = `UPDATE ${keyspace}.alias USING TIMESTAMP ? SET body = ?
                         WHERE type = ? AND key = ?`
          const body = encodeTextBlob(offset, JSON.stringify(claims))
          await session.put([{ query, params: [offset, body, keyType, key] }])
          return true
        }
      : null,
  })
  for (const [shard, { flush, relayed }] of settled) {
    await readTail(of, shard, Math.min(flush, relayed), audit)
  }
  const query = `SELECT type, key, body FROM ${keyspace}.alias`
  for (let from: string | null = null; ;) {
    const page = await session.readPage(query, [], { rows: PAGE_ROWS, from })
    for (const row of page.rows) {
      const [keyType, key] = [String(row['type']), String(row['key'])]
      const { number, content } = decodeBlob(row['body'] as Buffer, () => `alias ${key}`)
      const claims = JSON.parse(content.toString()) as readonly AliasClaim[]
      await audit.row({ keyType, key, claims }, number)
    }
    if (page.next === null) break
    from = page.next
  }
  await audit.end()
}

/**
 * What was taken by a shard's relay is in its target's log, so this is read first; then how far
 * rows are flushed; then the logs.
 */
async function settledOf({ stores }: KeysOf): Promise<Map<number, Settled>> {
  const { identity, derived } = stores
  const all = Array.from({ length: identity.shards + 1 }, (_, i) => i + SYSTEM_SHARD)
  const relayed = await Promise.all(all.map(async (shard) => relayedIn(await derived.shard(shard))))
  const settled = new Map<number, Settled>()
  for (const [i, shard] of all.entries()) {
    const flush = (await derived.consumer(shard, 'flush')) ?? 0
    settled.set(shard, { flush, relayed: relayed[i]! })
  }
  return settled
}

/** Hands in the entries behind `after`. */
async function readTail({ stores }: KeysOf, shard: number, after: number, audit: KeyAudit) {
  for (let segment = 1; ; segment++) {
    const statics = await stores.segments.statics({ shard, segment })
    if (statics === null) return
    let at = Math.max(after, statics.base)
    while (at < statics.head) {
      const rows = await stores.segments.rows(
        { shard, segment },
        { after: at, bytesMax: READ_BYTES },
      )
      if (rows.length === 0) break
      for (const { offset, count, body } of rows) {
        splitEntries(body).forEach((bytes, i) => {
          audit.entry(shard, offset - count + 1 + i, decodeEntry(bytes))
        })
        at = offset
      }
    }
    if (!statics.sealed) return
  }
}

/** Offset of a key's row as it is now. */
async function readAlias({ session, keyspace }: KeysOf, keyType: string, key: string) {
  const query = `SELECT body FROM ${keyspace}.alias WHERE type = ? AND key = ?`
  const [row] = await session.read(query, [keyType, key])
  return row === undefined ? null : decodeBlob(row['body'] as Buffer, () => key).number
}
