// A log of groups and what is derived of it, written to Cassandra as members leave them.

import t from 'tap'
import { encodeEntry, joinEntries, type Entry } from '../../../protocol/entry/entry.ts'
import { group } from '../../conformance/journal-samples.ts'
import type { DerivedRow } from '../../journal.ts'
import type { CassandraStore } from '../store.ts'

export const ACTOR = '00000000-0000-7000-8000-00000000000a'
export const OTHER = '00000000-0000-7000-8000-00000000000c'
export const SHARD = 0

/** An entry with one record; a rejection when `records` is 0. */
export function entryOf(
  actorId: string,
  n: number,
  more: Partial<Entry> & { records?: number } = {},
): Entry {
  const { records = 1, ...rest } = more
  const made = {
    y: 'order',
    p: actorId,
    v: n - 1,
    n,
    r: Array.from({ length: records }, () => ({ type: 'x' })),
    m: `message ${actorId} ${n}`,
    l: 1,
    a: { type: 'm', success: true },
    t: Date.now(),
    c: 0,
    b: 'me',
    ...rest,
  }
  return made as unknown as Entry
}

/** A log of groups and what is derived of it, as members leave them. */
export async function write(
  store: Pick<CassandraStore, 'segments' | 'derived'>,
  groups: readonly (readonly Entry[])[],
  { segment = 1, head = 0 } = {},
): Promise<number> {
  let at = head
  for (const entries of groups) {
    const bodies = entries.map((entry) => encodeEntry(entry))
    const sent = group({
      shard: SHARD,
      epoch: 0,
      head: at,
      count: entries.length,
      body: joinEntries(bodies),
    })
    t.equal(await store.segments.append(segment, sent), 'applied')
    const first = at + 1
    const rows = entries.map((entry, i): DerivedRow => {
      return { kind: 'entry', actorId: entry.p, n: entry.n, offset: first + i, body: bodies[i]! }
    })
    at += entries.length
    const consumer = { kind: 'consumer', consumer: 'flush', offset: at } as const
    t.equal(await store.derived.write(SHARD, 0, [...rows, consumer]), 'committed')
  }
  return at
}
