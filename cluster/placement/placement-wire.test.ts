// What a member makes of wires that are down: its own while others' are up, another's, and all.

import t from 'tap'
import type { Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { WireState } from '../../storage/control.ts'
import { ranked, targets } from '../ring.ts'
import { LOOK_MS, makePlacement } from './testing/placement-scene.ts'

const { wireApartMs, wireDownMs, wireUpMs } = LIMITS.membership
/** From a loss until it counts, with the looks that see it. */
const APART_MS = wireDownMs + wireApartMs + 4 * LOOK_MS

/** This member and others, each with its wire. */
function makeCluster(t: Test, shards: number, others: readonly string[]) {
  const world = makePlacement(t, shards)
  const { rows, placement } = world
  const { members } = rows.state
  for (const name of others) rows.member(name, `inc-${name}`, 'up')
  const all = [...rows.state.shards.keys()]
  return {
    ...world,
    all,
    says(name: string, wire: WireState): void {
      members.set(name, { ...members.get(name)!, wire })
    },
    ownersOf: (): readonly string[] => all.map((shard) => rows.state.shards.get(shard)!.owner),
    mine: (): readonly number[] =>
      all.filter((shard) => rows.state.shards.get(shard)!.incarnation === placement.incarnation),
  }
}

t.test('its wire down while another is up: all goes there, and it is not ready', async (t) => {
  const world = makeCluster(t, 4, [])
  const { rows, placement, wire, clock, mine, all, told } = world
  await world.start()
  await world.until('alone it has all', () => all.every((shard) => world.serves(shard)))
  wire.isUp = false
  await clock.advance(APART_MS)
  t.same([mine(), placement.wireFault()], [all, null], 'nobody else is there')
  told.length = 0
  rows.member('other', 'inc-other', 'up')
  await clock.advance(wireApartMs - 2 * LOOK_MS)
  t.same([mine(), placement.wireFault()], [all, null], 'not for so long')
  await clock.advance(4 * LOOK_MS)
  t.match(placement.wireFault(), /the wire of this member is down \(Redis\)/)
  await world.until('all is given', () => mine().length === 0, 5_000)
  t.notOk(
    told.some(([, { kind }]) => kind === 'expect'),
    'nobody is asked to read ahead',
  )
  await clock.advance(60_000)
  t.same(mine(), [], 'and nothing is taken back')
  wire.isUp = true
  await clock.advance(wireUpMs + 3 * LOOK_MS)
  t.equal(rows.state.members.get('me')!.wire, 'up')
  t.equal(placement.wireFault(), null)
})

t.test('for a while, or while it is down for all, nothing moves', async (t) => {
  const world = makeCluster(t, 4, [])
  const { rows, placement, wire, clock, mine, all, says } = world
  await world.start()
  await world.until('alone it has all', () => all.every((shard) => world.serves(shard)))
  // Of all shards the targets are its own.
  rows.member('other', 'inc-other', 'up')
  says('other', 'down')
  await clock.advance(60_000)
  t.same(mine(), all, 'nothing is given to who says that his wire is down')
  wire.isUp = false
  for (let i = 0; i < 20; i++) {
    await clock.advance(3_000)
    t.equal(placement.wireFault(), null)
  }
  t.same(mine(), all)
  // Redis is back, and the other one has noticed four seconds earlier.
  wire.isUp = true
  await clock.advance(wireUpMs - 4_000)
  says('other', 'up')
  await clock.advance(4_000 - 2 * LOOK_MS)
  t.same([mine(), placement.wireFault()], [all, null])
  await clock.advance(4 * LOOK_MS)
  t.same([rows.state.members.get('me')!.wire, mine(), placement.wireFault()], ['up', all, null])
})

t.test('what nobody has is claimed by who is reached', async (t) => {
  const world = makeCluster(t, 4, ['other'])
  const { placement, wire, clock, mine, all, says } = world
  wire.isUp = false
  await world.start()
  await clock.advance(30_000)
  t.same(mine(), [])
  t.match(placement.wireFault(), /is down/, 'it never was up')
  says('other', 'down')
  await world.until('all is claimed', () => mine().length === all.length, 5_000)
  t.equal(placement.wireFault(), null)
})

t.test('the dead one of three: the one that is cut off leaves it to the other', async (t) => {
  const world = makeCluster(t, 16, ['a', 'dead'])
  const { rows, wire, clock, mine, all, says } = world
  for (const shard of all) world.owner(shard, 'dead', 4)
  await world.start()
  wire.isUp = false
  await clock.advance(wireDownMs + 4 * LOOK_MS)
  t.equal(rows.state.members.get('me')!.wire, 'down')
  const mineByRank = [...targets(all, ['a', 'me'])].filter(([, name]) => name === 'me')
  t.ok(mineByRank.length > 0)
  rows.member('dead', 'inc-dead', 'dead')
  await clock.advance(2 * LIMITS.placement.nextInRankMs + 4 * LOOK_MS)
  t.same(mine(), [])
  says('a', 'down')
  await world.until('nobody is reached: each takes its own', () => mine().length > 0, 5_000)
})

t.test('another that is cut off is not asked, and keeps what it has not given', async (t) => {
  const world = makeCluster(t, 4, [])
  await world.startBeside()
  const { rows, placement, wire, clock, says, told } = world
  const other = { incarnation: 'inc-other', epoch: 4 }
  t.match(placement.route(1), other)
  says('other', 'down')
  await clock.advance(wireApartMs + 2 * LOOK_MS)
  t.same([placement.route(1), placement.isCutOff(1)], [null, true])
  told.length = 0
  await clock.advance(30_000)
  t.notOk(
    told.some(([, { kind }]) => kind === 'hand-over'),
    'it can not be asked either',
  )
  t.same(rows.state.shards.get(1)!.incarnation, 'inc-other')
  wire.isUp = false
  t.match([placement.route(1), placement.isCutOff(1)], [other, false], 'to fail at once')
  wire.isUp = true
  says('other', 'up')
  await world.look()
  t.match([placement.route(1), placement.isCutOff(1)], [other, false])
})

t.test('the rebalancer gives nothing to who says that his wire is down', async (t) => {
  const others = ['a', 'b', 'c', 'd'].filter((name) => ranked('pacer', [name, 'me'])[0] === 'me')
  const world = makeCluster(t, 8, [others[0]!])
  const { all, mine, clock, says, told } = world
  says(others[0]!, 'down')
  await world.start()
  await world.until('it has all', () => mine().length === all.length)
  await clock.advance(LIMITS.placement.moveSettleMs + wireApartMs - 10 * LOOK_MS)
  t.notOk(told.some(([, { kind }]) => kind === 'expect'))
  says(others[0]!, 'up')
  await world.until('the first one moves', () => mine().length < all.length, 3_000)
})
