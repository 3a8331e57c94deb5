// Where each shard of the log goes on, by what was taken and what was given up: a part that fits
// neither is told from both, for it is a damage.

import t from 'tap'
import { ShardHeads } from './shard-heads.ts'

const groupAt = (head: number, epoch: number) => ({
  ...{ shard: 1, epoch, head, count: 2 },
  commitId: `commit-${head}`,
})

t.test('what was given up lies below the head behind which the shard goes on', async (t) => {
  const heads = new ShardHeads([[1, { epoch: 5, head: 10, lastCommit: 'commit-8' }]])
  t.notOk(heads.isGivenUp(groupAt(4, 5)), 'nothing was')
  heads.pass([[1, 100]])
  t.same(heads.status(1), { epoch: 5, head: 100, lastCommit: null })
  t.ok(heads.isGivenUp(groupAt(10, 5)))
  t.ok(heads.isGivenUp(groupAt(98, 5)))
  for (const head of [100, 102]) {
    t.notOk(heads.take(groupAt(head, 4)), 'of an epoch that is over')
    t.notOk(heads.isGivenUp(groupAt(head, 4)), `nor was the one behind ${head} given up`)
  }
  t.ok(heads.take(groupAt(100, 5)))
})

t.test('an epoch that was seen in what was given up counts', async (t) => {
  const heads = new ShardHeads([[1, { epoch: 5, head: 10, lastCommit: null }]])
  heads.pass([[1, 100]])
  t.ok(heads.isGivenUp(groupAt(10, 7)))
  t.same(heads.status(1), { epoch: 7, head: 100, lastCommit: null })
  t.ok(heads.isGivenUp(groupAt(12, 6)))
  t.equal(heads.status(1).epoch, 7, 'and never falls')
  t.notOk(heads.take({ shard: 1, epoch: 7 }), 'it was issued')
  t.ok(heads.take({ shard: 1, epoch: 8 }))
})
