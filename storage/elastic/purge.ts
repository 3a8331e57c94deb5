// Forgets removed nodes once no write can be older than their removal any more: a day later. What
// the projector writes is always the newest state, so an older write can only be one that was on
// its way all that time. It stands between the graph index and what it keeps of removed nodes.
// Source: PROTOCOL 3.13.3.

import { LIMITS } from '../../config/limits.ts'
import type { BulkItem, SearchEngine } from './engine.ts'
import { DELETED, DELETED_AT } from './layout.ts'

export interface PurgeOptions {
  readonly engine: SearchEngine
  /** An index, and the alias by which it is written. */
  readonly index: string
  readonly writeAlias: string
  /** Wall clock, milliseconds since 1970. */
  readonly nowMs: number
}

/** Deletes some of those that are old enough for good. Answers their number. */
export async function purgeRemoved(options: PurgeOptions): Promise<number> {
  const { engine, index, writeAlias, nowMs } = options
  const before = nowMs - LIMITS.indexTombstoneMs
  const bound = { timeoutMs: LIMITS.engineAdminMs }
  const [old] = await engine.search(
    [
      {
        index,
        query: {
          bool: {
            filter: [
              { term: { [DELETED]: { value: true } } },
              { range: { [DELETED_AT]: { lt: before, format: 'epoch_millis' } } },
            ],
          },
        },
        size: LIMITS.indexPurgeMax,
        sort: [{ [DELETED_AT]: { order: 'asc', missing: '_last' } }],
        source: [DELETED],
        counts: false,
        sequence: true,
      },
    ],
    bound,
  )
  const items = old!.hits.map(({ id, seqNo, primaryTerm }): BulkItem => {
    const write = { kind: 'purge', seqNo: seqNo!, primaryTerm: primaryTerm! } as const
    return { index: writeAlias, id, write }
  })
  if (items.length > 0) await engine.bulk(items, bound)
  return items.length
}
