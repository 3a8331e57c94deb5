// The ring: pinned weights, even load, and few moves when a member comes or goes.

import t from 'tap'
import fc from 'fast-check'
import { SYSTEM_SHARD } from '../protocol/ids.ts'
import { ranked, targets, weight } from './ring.ts'

const SHARDS = Array.from({ length: 32 }, (_, i) => i)

t.test('pinned: another weight would move every installation', async (t) => {
  t.equal(weight('shard-7', 'a'), 2_029_409_565)
  t.same(
    [...targets([0, 1, 2, 3, 4, 5, 6, 7], ['a', 'b', 'c'])],
    [
      [0, 'c'],
      [1, 'c'],
      [2, 'a'],
      [3, 'b'],
      [4, 'c'],
      [5, 'b'],
      [6, 'b'],
      [7, 'a'],
    ],
  )
})

const members = fc.uniqueArray(fc.stringMatching(/^[a-z0-9-]{1,8}$/), {
  minLength: 1,
  maxLength: 5,
})

t.test('every shard has one target, all have the same share, order is no matter', async () => {
  fc.assert(
    fc.property(members, (names) => {
      const placed = targets(SHARDS, names)
      const load = new Map(names.map((name) => [name, 0]))
      for (const name of placed.values()) load.set(name, load.get(name)! + 1)
      const loads = [...load.values()]
      const same = targets(SHARDS.toReversed(), names.toReversed())
      return (
        placed.size === SHARDS.length &&
        Math.max(...loads) - Math.min(...loads) <= 1 &&
        SHARDS.every((shard) => placed.get(shard) === same.get(shard))
      )
    }),
  )
})

t.test('a new member takes its share; most shards stay where they are', async (t) => {
  let moved = 0
  let runs = 0
  fc.assert(
    fc.property(members, (names) => {
      const before = targets(SHARDS, names)
      const after = targets(SHARDS, [...names, 'the-new-one'])
      runs++
      moved += SHARDS.filter((shard) => before.get(shard) !== after.get(shard)).length
      return [...after.values()].includes('the-new-one')
    }),
  )
  t.ok(moved / runs < 22, `${moved / runs} of 32 shards move on average`)
})

t.test("the system shard takes nobody's room", async (t) => {
  const names = ['a', 'b', 'c', 'd']
  const placed = targets([SYSTEM_SHARD, ...SHARDS], names)
  t.equal(placed.get(SYSTEM_SHARD), ranked('system', names)[0])
  placed.delete(SYSTEM_SHARD)
  t.same([...placed], [...targets(SHARDS, names)])
})

t.test('nobody lives: nothing is placed; ranks name everybody once', async (t) => {
  t.equal(targets(SHARDS, []).size, 0)
  t.same(ranked('pacer', ['a', 'b', 'c']).toSorted(), ['a', 'b', 'c'])
})
