// The ring: pinned weights, even load, and few moves when a member comes or goes.

import t from 'tap'
import fc from 'fast-check'
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

t.test('every shard has one target, none has more than its share, order is no matter', async () => {
  fc.assert(
    fc.property(members, (names) => {
      const placed = targets(SHARDS, names)
      const room = Math.ceil(SHARDS.length / names.length)
      const load = new Map<string, number>()
      for (const name of placed.values()) load.set(name, (load.get(name) ?? 0) + 1)
      const same = targets(SHARDS.toReversed(), names.toReversed())
      return (
        placed.size === SHARDS.length &&
        [...load.values()].every((n) => n <= room) &&
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

t.test('nobody lives: nothing is placed; ranks name everybody once', async (t) => {
  t.equal(targets(SHARDS, []).size, 0)
  t.same(ranked('pacer', ['a', 'b', 'c']).toSorted(), ['a', 'b', 'c'])
})
