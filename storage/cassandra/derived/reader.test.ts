// An actor's entries behind an accepted loss, wherever in its partition the last one before it
// lies. Source: PROTOCOL 3.0, 3.12.

import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { LOSS_JUMP } from '../../../protocol/entry/entry.ts'
import { ENTRIES_TOGETHER } from '../../row-expiry.ts'
import { CassandraDerivedReader } from './reader.ts'
import { bucketOf, encodeBlob } from './rows.ts'
import type { Page, Row, Session } from '../session/session.ts'

const ACTOR = '0191d8f0-0000-7000-8000-000000000001'
const IDENTITY = { format: 1, shards: 1, generation: 'g', secret: 's' }
const LOSSES = [{ shard: 0, offset: 5, resumedAt: LOSS_JUMP + 5 }]

/** Answers what the reader asks of the table of entries, from these numbers. */
function readerOf(numbers: readonly number[], losses: typeof LOSSES): CassandraDerivedReader {
  const answer = (query: string, [, bucket, n]: readonly unknown[]): Row[] => {
    const isAsked = (own: number): boolean => {
      if (query.includes('n > ?')) return own > (n as number)
      if (query.includes('n < ?')) return own < (n as number)
      return !query.includes('n = ?') || own === n
    }
    const found = numbers.filter((own) => bucketOf(own) === bucket && isAsked(own))
    if (query.includes('DESC')) found.reverse()
    return found.map((own) => ({ n: own, body: encodeBlob(own, Buffer.of(1)) }) as unknown as Row)
  }
  const session: Pick<Session, 'read' | 'readPage'> = {
    read: (query, params) => Promise.resolve(answer(query, params)),
    readPage: (query, params): Promise<Page> => {
      return Promise.resolve({ rows: answer(query, params), next: null })
    },
  }
  return new CassandraDerivedReader(session as Session, 'k', { ...IDENTITY, losses })
}

t.test('entries go on behind an accepted loss, from any place of a partition', async (t) => {
  const wrong: object[] = []
  for (let last = 1; last <= 2 * ENTRIES_TOGETHER + 1; last++) {
    // The last entry of each partition is always there.
    const ends = [1, 2].map((i) => i * ENTRIES_TOGETHER).filter((n) => n < last)
    const behind = [last + LOSS_JUMP + 1, last + LOSS_JUMP + 2]
    const all = [...ends, last, ...behind]
    const read = async (range: Parameters<CassandraDerivedReader['entries']>[1], has = LOSSES) =>
      (await readerOf(all, has).entries(ACTOR, range)).map(({ n }) => n)
    const forth = { order: 'ascending', after: 0, bytesMax: 1e6 } as const
    const back = { order: 'descending', countMax: 9, bytesMax: 1e6 } as const
    const found = [
      await read(forth),
      await read({ ...forth, after: last }),
      await read({ ...forth, after: behind[0]! }),
      await read({ ...back, before: Number.MAX_SAFE_INTEGER }),
      await read({ ...back, before: behind[0]! }),
      await read(forth, []),
    ]
    const wanted = [all, behind, behind.slice(1), all.toReversed()]
    const before = [...ends, last]
    const isRight = isDeepStrictEqual(found, [...wanted, before.toReversed(), before])
    if (!isRight) wrong.push({ last, found })
  }
  t.same(wrong, [])
})
