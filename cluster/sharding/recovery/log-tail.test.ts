// A shard's log read as entries: what is missing is told, what was given up is passed over.

import t from 'tap'
import type { AcceptedLoss } from '../../../storage/journal.ts'
import { entriesBetween } from './log-tail.ts'

const NOTHING = { read: () => Promise.resolve([]) }

async function countIn(
  losses: readonly AcceptedLoss[],
  after: number,
  upTo: number,
): Promise<number> {
  const identity = { generation: 'g', losses }
  const source = { number: 0, identity, log: NOTHING } as unknown as Parameters<
    typeof entriesBetween
  >[0]
  let count = 0
  for await (const _ of entriesBetween(source, after, upTo)) count++
  return count
}

t.test('a loss that reaches the head leaves nothing to read', async (t) => {
  const losses = [{ shard: 0, offset: 5, resumedAt: 1_000_005 }]
  t.equal(await countIn(losses, 5, 1_000_005), 0)
  await t.rejects(countIn(losses, 5, 1_000_006), /1000006/)
  await t.rejects(countIn(losses, 4, 1_000_005), /5/)
  await t.rejects(countIn([], 5, 6), /6/)
})
