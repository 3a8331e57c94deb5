// What a member makes of each notice of the others, of its own death and of its own leaving.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import { settle } from '../testing/harness.ts'
import type { OwnersNotice } from '../wire.ts'
import { makePlacement } from './testing/placement-scene.ts'

t.test('hand over: only in that epoch, to another that is up, under a lease', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, host, rows } = world
  const mine = placement.incarnation
  rows.set(1, { epoch: 5, owner: 'me', incarnation: mine })
  await world.look()
  host.did.length = 0
  const ask = async (epoch: number, to: string): Promise<boolean> => {
    placement.hear({ kind: 'hand-over', shard: 1, epoch, to }, 'inc-other')
    await settle()
    return host.did.splice(0).includes('prepare 1')
  }
  t.notOk(await ask(4, 'inc-other'))
  t.notOk(await ask(6, 'inc-other'))
  t.notOk(await ask(5, mine))
  t.notOk(await ask(5, 'inc-nobody'))
  rows.member('leaver', 'inc-leaver', 'leaving')
  t.notOk(await ask(5, 'inc-leaver'))
  rows.member('new', 'inc-new', 'up')
  host.script.prepare = () => new Promise(() => undefined)
  t.ok(await ask(5, 'inc-new'), 'the rebalancer has seen it first: the rows are read')
})

t.test('hand over: not when the lease has ended', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, host, rows, clock } = world
  rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation })
  await world.look()
  host.did.length = 0
  // The machine was asleep for so long.
  const { nowMs } = clock
  clock.nowMs = () => nowMs.call(clock) + LIMITS.membership.leaseMs
  t.equal(placement.mayServe(), false)
  placement.hear({ kind: 'hand-over', shard: 1, epoch: 5, to: 'inc-other' }, 'inc-other')
  await settle()
  t.same(host.did, [])
  clock.nowMs = nowMs
  placement.hear({ kind: 'hand-over', shard: 1, epoch: 5, to: 'inc-other' }, 'inc-other')
  await settle()
  t.ok(host.did.includes('prepare 1'))
})

t.test('expect: opened where nothing is served or on its way', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, host, told } = world
  placement.hear({ kind: 'expect', shard: 1, epoch: 5 }, 'inc-other')
  await settle()
  t.same(host.did.splice(0), ['open 1'])
  t.same(told.splice(0), [
    [['inc-other'], { kind: 'ready', shard: 1, epoch: 5 }, placement.incarnation],
  ])
  placement.hear({ kind: 'expect', shard: 1, epoch: 5 }, 'inc-other')
  host.served(2, 4)
  placement.hear({ kind: 'expect', shard: 2, epoch: 5 }, 'inc-other')
  await settle()
  t.same([host.did, told], [[], []])
})

t.test('handed: served at its word; before it the row alone is waited with', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, host, rows } = world
  const mine = placement.incarnation
  placement.hear({ kind: 'expect', shard: 1, epoch: 5 }, 'inc-other')
  await settle()
  const opened = host.shards.get(1)!
  rows.set(1, { epoch: 5, owner: 'me', incarnation: mine })
  await placement.membership.refresh()
  await settle()
  t.equal(opened.state, 'claiming', 'the owner before closes the log meanwhile')
  const end = { segment: 1, base: 0, head: 7, flush: 7 }
  placement.hear(
    { kind: 'handed', shard: 1, epoch: 5, end } as unknown as OwnersNotice,
    'inc-other',
  )
  await settle()
  t.match(opened, { state: 'serving', epoch: 5 })
  t.match(opened.claims, [{ tenure: { epoch: 5, segment: 1, end } }])
})

t.test('handed, and the word is lost: served all the same', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, host, rows } = world
  placement.hear({ kind: 'expect', shard: 1, epoch: 5 }, 'inc-other')
  rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation })
  await world.until('it is served', () => world.serves(1), 1_000)
  t.match(host.shards.get(1), { epoch: 5 })
})

t.test('a notice that a shard is served: believed, and the rebalancer looks on', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, host } = world
  placement.hear({ kind: 'owns', shard: 1, epoch: 9 }, 'inc-other')
  t.match(placement.route(1), { incarnation: 'inc-other', epoch: 9 })
  placement.hear({ kind: 'retry-parked' }, 'inc-other')
  placement.hear({ kind: 'system', first: 1, entries: [] }, 'inc-other')
  t.same(host.did, ['retry parked', 'pushed'])
})

t.test('a member has stopped: the rows are looked at now', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, host, rows } = world
  rows.member('other', 'inc-other', 'left')
  placement.hear({ kind: 'stopped' }, 'inc-other')
  await settle()
  t.ok(host.did.includes('died inc-other'))
})

t.test('a shard that has stepped down: the row says whose it is, at once', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, host, rows } = world
  rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation })
  await world.look()
  host.shards.get(1)!.state = 'stopped'
  placement.steppedDown(1, 'as asked')
  await settle()
  t.match(host.shards.get(1), { state: 'serving', epoch: 6 })
})

t.test('a re-claim raises the epoch, which is not served a second time', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, host, rows } = world
  rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation, segment: 3 })
  await world.look()
  t.same(await placement.reclaim(1), { epoch: 6, segment: 3 })
  host.shards.get(1)!.state = 'stopped'
  await world.look()
  t.equal(host.shards.get(1)!.epoch, 7)
  t.equal(await placement.reclaim(2), null, 'another has that')
})

t.test('declared dead: nothing of that incarnation is left, and another begins', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, host, rows, wired } = world
  const old = placement.incarnation
  rows.set(1, { epoch: 5, owner: 'me', incarnation: old })
  await world.look()
  host.did.length = 0
  const row = rows.state.members.get('me')!
  rows.state.members.set('me', { ...row, state: 'dead' })
  await world.until('it is another incarnation', () => ![old, ''].includes(placement.incarnation))
  t.ok(host.did.includes('abandon'))
  t.notOk(host.did.includes(`died ${old}`), 'its own end it knows')
  t.equal(wired.filter((what) => what === `close ${old}`).length, 1)
  t.ok(wired.includes(`serve ${placement.incarnation}`))
  t.equal(placement.stats.joins, 2)
  await world.until('its row is served', () => world.serves(1))
  t.match(rows.state.shards.get(1), { epoch: 6, incarnation: placement.incarnation })
})

t.test('leaving: nobody’s target, its shards go over, then it says so', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, host, rows, told, clock } = world
  const mine = placement.incarnation
  for (const shard of [0, 1, 2]) {
    rows.set(shard, { epoch: 5, owner: 'me', incarnation: mine })
  }
  await world.look()
  host.did.length = 0
  let left = false
  let most = 0
  host.script.seal = async () => {
    most = Math.max(most, placement.handoff.underWay.size)
    await new Promise<void>((resolve) => void clock.after(20, resolve))
    return true
  }
  host.pendingRequests = 1
  void placement.leave(60_000).then(() => (left = true))
  await settle()
  t.equal(rows.state.members.get('me')!.state, 'leaving')
  const isOver = (): boolean => [0, 1, 2].every((n) => rows.state.shards.get(n)!.owner === 'other')
  await world.until('they are signed over', isOver, 10_000)
  t.equal(most, LIMITS.placement.handoffsInFlightMax, 'two side by side')
  await clock.advance(LIMITS.placement.moveServedMs * 2)
  t.equal(rows.state.members.get('me')!.state, 'leaving', 'a request is open yet')
  host.pendingRequests = 0
  await world.until('it has left', () => left, 5_000)
  t.equal(rows.state.members.get('me')!.state, 'left')
  t.match(told.at(-1), [['inc-other'], { kind: 'stopped' }, mine])
})

t.test('leaving waits a second for the word that its shards are served', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, rows, clock } = world
  rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation })
  await world.look()
  let leftMs = 0
  const leave = (): void => void placement.leave(60_000).then(() => (leftMs = clock.monotonicMs()))
  leave()
  await world.until('signed over', () => rows.state.shards.get(1)!.owner === 'other', 10_000)
  const signedMs = clock.monotonicMs()
  await clock.advance(LIMITS.placement.moveServedMs / 2)
  t.equal(leftMs, 0)
  placement.hear({ kind: 'owns', shard: 1, epoch: 6 }, 'inc-other')
  await world.until('it has left', () => leftMs > 0, LIMITS.placement.moveServedMs)
  t.ok(leftMs - signedMs < LIMITS.placement.moveServedMs, 'at that word')
})

t.test('leaving with nobody to take its shards: they are sealed, and it leaves', async (t) => {
  const world = makePlacement(t)
  await world.start()
  await world.until('all are served', () => [SYSTEM_SHARD, 0, 1, 2].every(world.serves))
  let left = false
  void world.placement.leave(3_000).then(() => (left = true))
  await world.until('it has left', () => left, 5_000)
  t.ok([SYSTEM_SHARD, 0, 1, 2].every((n) => world.host.shards.get(n)!.state === 'sealed'))
})

t.test('overview: who has what, and what is still to move', async (t) => {
  const world = makePlacement(t)
  t.same(world.placement.overview(), { members: [], shards: [], moves: [] })
  await world.startBeside()
  const { placement, rows } = world
  rows.member('gone', 'inc-gone', 'dead')
  const { members, shards, moves } = placement.overview()
  t.same(members.map(({ member }) => member).toSorted(), ['me', 'other'])
  t.ok(shards.every(({ owner, epoch }) => owner === 'other' && epoch === 4))
  t.ok(moves.length > 0)
  t.ok(moves.every(({ from, to }) => from === 'other' && to === 'me'))
  world.owner(1, 'gone', 5)
  await placement.membership.refresh()
  t.equal(placement.overview().shards.find(({ shard }) => shard === 1)!.owner, null)
  t.same(placement.overview().moves, [], 'claims come first')
})
