// Forgets removed nodes once no write can be older than their removal any more: a day later. What
// the projector writes is always the newest state, so an older write can only be one that was on
// its way all that time. Source: PROTOCOL 3.13.3.

import { LIMITS } from '../../config/limits.ts'
import type { BulkItem, SearchEngine, SearchHit } from './engine.ts'
import { DELETED, DELETED_AT } from './layout.ts'
import { BY_ID } from './selection.ts'

export interface PurgeOptions {
  readonly engine: SearchEngine
  /** An index, and the alias by which it is written. */
  readonly index: string
  readonly writeAlias: string
  /** Wall clock, milliseconds since 1970. */
  readonly nowMs: number
  /** False: its time is over; what is left is for the next time. */
  readonly mayGoOn: () => boolean
}

const BOUND = { timeoutMs: LIMITS.elastic.adminMs }

/**
 * Deletes those that are old enough for good, page by page. True: all of them; false: there may be
 * more, its time was over or the engine had no room.
 */
export async function purgeRemoved(options: PurgeOptions): Promise<boolean> {
  const { engine, writeAlias, mayGoOn } = options
  for (let last: SearchHit | null = null; mayGoOn();) {
    const hits: readonly SearchHit[] = await pageOf(options, last)
    if (hits.length === 0) return true
    const items = hits.map(({ id, seqNo, primaryTerm }): BulkItem => {
      const write = { kind: 'purge', seqNo: seqNo!, primaryTerm: primaryTerm! } as const
      return { index: writeAlias, id, write }
    })
    const results = await engine.bulk(items, BOUND)
    if (results.includes('busy')) return false
    if (hits.length < LIMITS.storage.indexPurgeMax) return true
    last = hits.at(-1)!
  }
  return false
}

/** Behind the last one seen: what was deleted is still found until the index is refreshed. */
async function pageOf(
  { engine, index, nowMs }: PurgeOptions,
  last: SearchHit | null,
): Promise<readonly SearchHit[]> {
  const before = nowMs - LIMITS.storage.indexTombstoneMs
  const filter = [
    { term: { [DELETED]: { value: true } } },
    { range: { [DELETED_AT]: { lt: before, format: 'epoch_millis' } } },
  ] as const
  const request = {
    index,
    query: { bool: { filter } },
    size: LIMITS.storage.indexPurgeMax,
    sort: [{ [DELETED_AT]: { order: 'asc', missing: '_last' } } as const, ...BY_ID],
    ...(last && { searchAfter: last.sort }),
    source: [DELETED],
    counts: false,
    sequence: true,
  }
  const [page] = await engine.search([request], BOUND)
  return page!.hits
}
