// Where new actors gather: which shard each goes to, by what is on its way.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { ShardState } from '../sharding/core.ts'
import { TestClock } from '../testing/harness.ts'
import { CreateBatching } from './create-batching.ts'

interface FakeShard {
  number: number
  state: ShardState
  gate: { isFlying: boolean; taken: number }
}

function makeShards(numbers: readonly number[]) {
  const clock = new TestClock()
  const all = numbers.map((number): [number, FakeShard] => [
    number,
    { number, state: 'serving', gate: { isFlying: false, taken: 0 } },
  ])
  const shards = new Map(all)
  const gathering = new CreateBatching({ clock, shards })
  const take = (number: number): void => {
    shards.get(number)!.gate.taken++
  }
  return { clock, shards, gathering, take }
}

t.test(
  'what arrives before a group is taken goes into one shard, then into the next',
  async (t) => {
    const { gathering, take } = makeShards([0, 1, 2, 3])
    const seen: number[] = []
    for (let round = 0; round < 8; round++) {
      const shard = gathering.next()!
      for (let i = 0; i < 10; i++) t.equal(gathering.next(), shard, 'the same shard')
      seen.push(shard)
      take(shard)
    }
    t.strictSame(seen.slice(0, 4).toSorted(), [0, 1, 2, 3], 'each has its turn')
    t.strictSame(seen.slice(4).toSorted(), [0, 1, 2, 3], 'and again')
  },
)

t.test('that another shard was taken changes nothing', async (t) => {
  const { gathering, take } = makeShards([0, 1])
  const shard = gathering.next()!
  take(1 - shard)
  t.equal(gathering.next(), shard)
})

t.test('a shard with a group on its way is passed over while there is another', async (t) => {
  const { gathering, shards, take } = makeShards([0, 1, 2])
  const first = gathering.next()!
  for (const shard of shards.values()) shard.gate.isFlying = shard.number !== 1
  take(first)
  t.equal(gathering.next(), 1)
  shards.get(1)!.gate.isFlying = true
  take(1)
  t.type(gathering.next(), 'number', 'all are busy: any')
})

t.test('a free shard is found wherever it is in the round', async (t) => {
  for (let free = 0; free < 4; free++) {
    const { gathering, shards } = makeShards([0, 1, 2, 3])
    for (const shard of shards.values()) shard.gate.isFlying = shard.number !== free
    t.equal(gathering.next(), free)
  }
})

t.test('all are busy: each has its turn, for one of them may stand still', async (t) => {
  const { gathering, shards, take } = makeShards([0, 1, 2, 3])
  for (const shard of shards.values()) shard.gate.isFlying = true
  const seen = Array.from({ length: 8 }, () => {
    const shard = gathering.next()!
    take(shard)
    return shard
  })
  t.same(seen.slice(0, 4).toSorted(), [0, 1, 2, 3])
  t.same(seen.slice(4).toSorted(), [0, 1, 2, 3])
})

t.test('only shards that are served, and never the system shard', async (t) => {
  const { gathering, shards, take } = makeShards([SYSTEM_SHARD, 0, 1])
  shards.get(1)!.state = 'sealed'
  for (let i = 0; i < 4; i++) {
    t.equal(gathering.next(), 0)
    take(0)
  }
  t.equal(gathering.next(), 0)
  shards.get(0)!.state = 'stopped'
  t.equal(gathering.next(), null, 'nowhere')
  shards.get(1)!.state = 'serving'
  t.equal(gathering.next(), 1)
  shards.set(1, { number: 1, state: 'claiming', gate: { isFlying: false, taken: 0 } })
  t.equal(gathering.next(), null, 'a new tenure is another shard')
})

t.test('a round that names shards which have gone is gone on from', async (t) => {
  const { gathering, shards, take } = makeShards([0, 1, 2, 3, 4, 5])
  const first = gathering.next()!
  take(first)
  const kept = shards.get(first)!
  shards.clear()
  shards.set(first, kept)
  t.equal(gathering.next(), first, 'the one that is left is found at once')
})

t.test('not for long, and not too many: a shard that stands still holds up few', async (t) => {
  const { gathering, clock } = makeShards([0, 1])
  const shard = gathering.next()!
  for (let i = 1; i < LIMITS.routing.gatherActorsMax; i++) t.equal(gathering.next(), shard)
  t.equal(gathering.next(), 1 - shard, 'after so many')
  clock.stepWall(-3_600_000)
  await clock.advance(LIMITS.routing.gatherMs - 1)
  t.equal(gathering.next(), 1 - shard)
  await clock.advance(1)
  t.equal(gathering.next(), shard, 'after so long')
})
