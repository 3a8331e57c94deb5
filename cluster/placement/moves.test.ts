// Rebalancing as a pure function: who moves, who rebalances, who claims when.

import t from 'tap'
import type { Test } from 'tap'
import fc from 'fast-check'
import type { MemberRow, MemberState, ShardRow } from '../../storage/control.ts'
import { LIMITS } from '../../config/limits.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import { makeView } from '../membership/view.ts'
import { ranked, targets } from '../ring.ts'
import { claimAfterMs, isRebalancer, movesAtOnce, movesDue, targetsOf } from './moves.ts'

function member(name: string, state: MemberState = 'up'): MemberRow {
  return { member: name, incarnation: `inc-${name}`, state, beat: 1, address: '', version: '1' }
}

function shardsOf(owners: readonly string[]): ShardRow[] {
  return owners.map((owner, shard) => {
    return { shard, epoch: 1, owner, incarnation: `inc-${owner}`, segment: 1 }
  })
}

t.test('moves end: once each is done, none is due, and the load is level', async (t) => {
  const names = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), { minLength: 1 })
  fc.assert(
    fc.property(names, fc.integer({ min: 1, max: 64 }), fc.nat(), (up, count, from) => {
      const owners = Array.from({ length: count }, (_, i) => up[(i * 7 + from) % up.length]!)
      let rows = shardsOf(owners)
      const members = up.map((name) => member(name))
      for (let step = 0; step <= count; step++) {
        const view = makeView({ readAtMs: 0, shards: rows, members })
        const [move] = movesDue(view)
        if (!move) {
          const targets = targetsOf(view)
          for (const row of rows) t.equal(targets.get(row.shard)!.incarnation, row.incarnation)
          const most = Math.ceil(count / up.length)
          for (const name of up) {
            const has = rows.filter(({ incarnation }) => incarnation === `inc-${name}`).length
            if (has > most) throw new Error(`${name} has ${has} of ${count}`)
          }
          return
        }
        const { shard, to } = move
        rows = rows.map((row) => (row.shard === shard ? { ...row, incarnation: to } : row))
      }
      throw new Error('moves without an end')
    }),
  )
})

t.test(
  'nothing moves while a shard has no living owner, nor what a leaving member has',
  async (t) => {
    const dead = makeView({
      readAtMs: 0,
      shards: shardsOf(['a', 'a', 'gone']),
      members: [member('a'), member('b')],
    })
    t.same(movesDue(dead), [])
    const leaving = makeView({
      readAtMs: 0,
      shards: shardsOf(['a', 'a', 'a', 'a']),
      members: [member('a', 'leaving'), member('b')],
    })
    t.same(movesDue(leaving), [])
  },
)

t.test(
  'one rebalancer; a dead member is claimed by the target at once, by the others in turn',
  async (t) => {
    const members = ['a', 'b', 'c'].map((name) => member(name))
    const view = makeView({ readAtMs: 0, shards: shardsOf(Array(8).fill('gone')), members })
    t.equal(members.filter((row) => isRebalancer(view, row.member)).length, 1)
    for (let shard = 0; shard < 8; shard++) {
      const waits = members
        .map((row) => claimAfterMs(view, shard, row.member)!)
        .sort((a, b) => a - b)
      t.same(waits, [0, LIMITS.placement.nextInRankMs, 2 * LIMITS.placement.nextInRankMs])
      t.equal(claimAfterMs(view, shard, targetsOf(view).get(shard)!.member), 0)
    }
    t.equal(claimAfterMs(view, 0, 'stranger'), null)
  },
)

t.test('moves come in the order of their shards, and the first in rank rebalances', async (t) => {
  const members = ['a', 'b', 'c'].map((name) => member(name))
  const shards = shardsOf(Array<string>(12).fill('a'))
  for (const rows of [shards, shards.toReversed()]) {
    const view = makeView({ readAtMs: 0, shards: rows, members })
    const due = movesDue(view).map(({ shard }) => shard)
    t.ok(due.length > 2)
    t.same(
      due,
      due.toSorted((one, other) => one - other),
    )
    for (const { member } of members) {
      t.equal(isRebalancer(view, member), ranked('pacer', ['a', 'b', 'c'])[0] === member)
    }
  }
})

/** As the rule says it, for one shard by itself. */
function claimAfterByRule(names: readonly string[], shards: number[], of: number, who: string) {
  if (!names.includes(who)) return null
  const target = targets(shards, names).get(of)
  const others = ranked(`shard-${of}`, names).filter((name) => name !== target)
  return who === target ? 0 : (others.indexOf(who) + 1) * LIMITS.placement.nextInRankMs
}

t.test('who claims when is the same for every shard as reckoned for it alone', async () => {
  const names = fc.uniqueArray(fc.stringMatching(/^[a-z0-9-]{1,6}$/), { maxLength: 6 })
  fc.assert(
    fc.property(names, fc.integer({ min: 1, max: 40 }), fc.boolean(), (up, count, hasSystem) => {
      const shards = shardsOf(Array<string>(count).fill('gone'))
      if (hasSystem) shards.push({ ...shards[0]!, shard: SYSTEM_SHARD })
      const members = [...up.map((name) => member(name)), member('Leaving', 'leaving')]
      const view = makeView({ readAtMs: 0, shards: shards.toReversed(), members })
      const numbers = shards.map(({ shard }) => shard)
      const by = targets(numbers, up)
      return numbers.every(
        (shard) =>
          targetsOf(view).get(shard)?.member === by.get(shard) &&
          [...up, 'Leaving'].every(
            (who) => claimAfterMs(view, shard, who) === claimAfterByRule(up, numbers, shard, who),
          ),
      )
    }),
  )
})

/** Hashed characters are what weights cost: each multiplies. */
function countMultiplied(t: Test, run: () => void): number {
  let count = 0
  const { imul } = Math
  t.teardown(() => void (Math.imul = imul))
  Math.imul = (a, b) => (count++, imul(a, b))
  run()
  Math.imul = imul
  return count
}

t.test('a look weighs each shard and member once, however many shards are unowned', async (t) => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
  const members = names.map((name) => member(name, name === 'h' ? 'dead' : 'up'))
  const costOfLook = (owners: readonly string[]): number => {
    const shards = shardsOf(owners)
    shards.push({ ...shards[0]!, shard: SYSTEM_SHARD })
    const view = makeView({ readAtMs: 0, shards, members })
    return countMultiplied(t, () => {
      for (const { shard } of shards) claimAfterMs(view, shard, 'a')
      targetsOf(view)
      movesDue(view)
    })
  }
  const lookOf = (count: number): number => costOfLook(Array.from({ length: count }, () => 'h'))
  const once = countMultiplied(t, () => {
    targets([SYSTEM_SHARD, ...Array(512).keys()], names.slice(0, 7))
  })
  t.equal(lookOf(512), once, 'as much as the targets cost once')
  t.ok(lookOf(2_048) < 5 * once, 'and no more a shard where there are more')
})

t.test('few at once', async (t) => {
  t.same([1, 20, 33, 64, 1_025].map(movesAtOnce), [1, 1, 1, 3, 20])
})
