// What a member makes of each view of the rows: what it claims and when, what it serves, ends and
// believes.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import { ranked, targets } from '../ring.ts'
import { settle } from '../testing/harness.ts'
import { parcelOf } from '../testing/wire-conformance.ts'
import { LOOK_MS, makePlacement } from './testing/placement-scene.ts'

t.test('alone it takes what nobody has, its inbox first', async (t) => {
  const { placement, until, start, serves, wired, rows } = makePlacement(t)
  await start()
  t.same(wired, [`serve ${placement.incarnation}`])
  await until('all are served', () => [SYSTEM_SHARD, 0, 1, 2].every(serves), 3_000)
  for (const { incarnation, epoch } of rows.state.shards.values()) {
    t.same([incarnation, epoch], [placement.incarnation, 1])
  }
  t.same(placement.stats.claims, 4)
  t.equal(placement.stats.joins, 1)
})

t.test('of the dead: its own targets at once, the others by its rank', async (t) => {
  const world = makePlacement(t, 16)
  const { rows, placement, host, clock } = world
  const names = ['a', 'b', 'me']
  rows.member('a', 'inc-a', 'up')
  rows.member('b', 'inc-b', 'up')
  rows.member('gone', 'inc-gone', 'up')
  for (const shard of rows.state.shards.keys()) world.owner(shard, 'gone', 4)
  await world.start()
  await world.look()
  t.same(host.did, [], 'its owner lives')
  rows.member('gone', 'inc-gone', 'dead')
  const diedMs = clock.monotonicMs()
  const servedMs = new Map<number, number>()
  await world.until('all are taken', () => {
    for (const shard of rows.state.shards.keys()) {
      if (world.serves(shard) && !servedMs.has(shard)) servedMs.set(shard, clock.monotonicMs())
    }
    return servedMs.size === rows.state.shards.size
  })
  const target = targets([...rows.state.shards.keys()], names)
  for (const shard of rows.state.shards.keys()) {
    const others = ranked(`shard-${shard}`, names).filter((name) => name !== target.get(shard))
    const rank = target.get(shard) === 'me' ? 0 : others.indexOf('me') + 1
    const tookMs = servedMs.get(shard)! - diedMs
    t.ok(
      tookMs >= rank * LIMITS.placement.nextInRankMs - LOOK_MS,
      `${shard}: rank ${rank}, ${tookMs} ms`,
    )
    t.ok(
      tookMs <= rank * LIMITS.placement.nextInRankMs + 3 * LOOK_MS,
      `${shard}: rank ${rank}, ${tookMs} ms`,
    )
  }
  t.equal(world.wired.filter((what) => what === 'close inc-gone').length, 1)
  t.equal(host.did.filter((what) => what === 'died inc-gone').length, 1)
  t.notOk(host.did.includes(`died ${placement.incarnation}`))
})

t.test('the wait for a shard begins anew with each owner that dies', async (t) => {
  const world = makePlacement(t, 4)
  await world.startBeside()
  const { rows, clock } = world
  const names = ['me', 'other']
  const target = targets([...rows.state.shards.keys()], names)
  const shard = [0, 1, 2, 3].find((number) => target.get(number) === 'other')!
  rows.member('x', 'inc-x', 'dead')
  rows.member('y', 'inc-y', 'dead')
  world.owner(shard, 'x', 5)
  await clock.advance(LIMITS.placement.nextInRankMs - LOOK_MS)
  world.owner(shard, 'y', 6)
  await clock.advance(LIMITS.placement.nextInRankMs - LOOK_MS)
  t.notOk(world.serves(shard), 'the second has not been dead for so long')
  world.owner(shard, 'x', 7)
  await clock.advance(LIMITS.placement.nextInRankMs - LOOK_MS)
  t.notOk(world.serves(shard), 'nor the third')
  world.owner(shard, 'other', 8)
  await world.look()
  world.owner(shard, 'y', 9)
  await clock.advance(LIMITS.placement.nextInRankMs - LOOK_MS)
  t.notOk(world.serves(shard), 'nor has it after somebody had it in between')
  await world.until('it is taken', () => world.serves(shard), 3 * LOOK_MS)
})

t.test(
  'a row that names this incarnation is served; one of before, or of another, is not',
  async (t) => {
    const world = makePlacement(t)
    await world.startBeside()
    const { rows, placement, host } = world
    rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation })
    await world.look()
    t.same(host.did, ['open 1', 'serving 1'])
    await world.look()
    t.same(host.did, ['open 1', 'serving 1'], 'once')
    rows.set(1, { epoch: 6 })
    await world.look()
    t.equal(host.shards.get(1)!.epoch, 6, 'a newer epoch of its own')
    host.did.length = 0
    host.shards.get(1)!.state = 'stopped'
    await world.look()
    t.equal(host.shards.get(1)!.epoch, 7, 'one that has stopped is claimed again')
  },
)

t.test(
  'a row in somebody newer’s hands ends the tenure, but one that is being moved',
  async (t) => {
    for (const state of ['serving', 'sealed', 'claiming'] as const) {
      const world = makePlacement(t)
      await world.startBeside()
      const shard = world.host.served(1, 4)
      shard.state = state
      await world.look()
      t.equal(shard.state, state, 'a row of the same epoch says nothing new')
      world.owner(1, 'other', 5)
      await world.look()
      t.equal(shard.state, state === 'claiming' ? 'claiming' : 'stopped')
    }
    const world = makePlacement(t)
    await world.startBeside()
    const { host, placement, rows } = world
    const shard = host.served(1, 4)
    rows.set(1, { epoch: 4, owner: 'me', incarnation: placement.incarnation })
    await world.look()
    host.script.prepare = () => new Promise(() => undefined)
    placement.hear({ kind: 'hand-over', shard: 1, epoch: 4, to: 'inc-other' }, 'inc-other')
    await settle()
    t.ok(placement.handoff.underWay.has(1))
    world.owner(1, 'other', 5)
    await world.look()
    t.equal(shard.state, 'serving', 'its own handoff finds out')
  },
)

t.test('claims run eight side by side, one a shard', async (t) => {
  const world = makePlacement(t, 20)
  const { host } = world
  let claiming = 0
  let most = 0
  const waiting: (() => void)[] = []
  host.script.claim = async () => {
    most = Math.max(most, ++claiming)
    await new Promise<void>((resolve) => void waiting.push(resolve))
    claiming--
  }
  await world.start()
  await world.until('as many as may', () => claiming === LIMITS.placement.claimsInFlightMax)
  await world.look()
  t.equal(claiming, LIMITS.placement.claimsInFlightMax)
  const opened = host.did.filter((what) => what.startsWith('open'))
  t.equal(new Set(opened).size, opened.length, 'no shard twice')
  waiting.shift()!()
  await settle()
  t.equal(host.did.filter((what) => what.startsWith('open')).length, opened.length + 1, 'at once')
  for (let i = 0; i < 40 && host.did.filter((d) => d.startsWith('serving')).length < 21; i++) {
    for (const go of waiting.splice(0)) go()
    await world.clock.advance(25)
  }
  t.equal(host.did.filter((what) => what.startsWith('serving')).length, 21)
  t.equal(most, LIMITS.placement.claimsInFlightMax)
})

t.test('a claim that fails is tried again', async (t) => {
  const world = makePlacement(t)
  const { host } = world
  let failures = 2
  host.script.claim = () =>
    failures-- > 0 ? Promise.reject(new Error('as asked')) : Promise.resolve()
  await world.start()
  await world.until('all are served', () => [SYSTEM_SHARD, 0, 1, 2].every(world.serves), 3_000)
  const raised = [...world.rows.state.shards.values()].filter(({ epoch }) => epoch === 2)
  t.equal(raised.length, 2, 'in an epoch in which nothing was sent')
})

t.test('routes: as rows and answers say, to nobody who is dead', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, rows } = world
  t.match(placement.route(1), { incarnation: 'inc-other', epoch: 4 })
  t.equal(placement.route(99), null)
  rows.member('third', 'inc-third', 'up')
  await world.look()
  placement.learn(1, { incarnation: 'inc-third', epoch: 6 })
  t.match(placement.route(1), { incarnation: 'inc-third', epoch: 6 })
  placement.learn(1, { incarnation: 'inc-other', epoch: 5 })
  t.match(placement.route(1), { incarnation: 'inc-third' }, 'the newest counts')
  rows.member('third', 'inc-third', 'dead')
  await world.look()
  t.equal(placement.route(1), null)
})

t.test('somebody newer is heard of: the rows are looked at, and they decide', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, host, rows } = world
  rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation })
  await world.look()
  const shard = host.shards.get(1)!
  world.owner(1, 'other', 6)
  placement.learn(1, { incarnation: 'inc-other', epoch: 6 })
  await settle()
  t.equal(shard.state, 'stopped', 'at once, not with the next look')
})

t.test('a parcel is taken from whom a fresh view shows alive', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, rows, clock } = world
  const from = (incarnation: string) => placement.admits(parcelOf(incarnation))
  t.equal(from(placement.incarnation), true)
  t.equal(from('inc-other'), true)
  const unknown = from('inc-new')
  t.not(unknown, true)
  t.equal(await unknown, false)
  rows.member('new', 'inc-new', 'leaving')
  t.equal(await from('inc-new'), true, 'the rows are read for it')
  rows.member('new', 'inc-new', 'dead')
  await world.look()
  t.equal(await from('inc-new'), false)
  // Rows that were read too long ago prove nothing.
  rows.isAway = true
  const { readAtMs } = placement.membership.view!
  await clock.advance(LIMITS.membership.leaseMs - (clock.monotonicMs() - readAtMs))
  t.equal(from('inc-other'), true)
  await clock.advance(1)
  const old = from('inc-other')
  t.not(old, true)
  t.equal(from(placement.incarnation), true, 'this incarnation needs no rows to know itself')
  await clock.advance(5_000)
  t.equal(await old, false)
})

t.test('others are all that were seen alive, but this incarnation', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  world.rows.member('goes', 'inc-goes', 'leaving')
  world.rows.member('left', 'inc-left', 'left')
  await world.look()
  t.same([...world.placement.others()].toSorted(), ['inc-goes', 'inc-other'])
})
