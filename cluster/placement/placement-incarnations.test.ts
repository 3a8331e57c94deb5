// What a member asks of others as the rebalancer, what one incarnation of it leaves to the next,
// and how it ends: nothing of an old incarnation is asked, served or waited for by a new one.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { ranked } from '../ring.ts'
import { settle } from '../testing/harness.ts'
import { latch } from '../sharding/testing/scene.ts'
import { LOOK_MS, makePlacement } from './testing/placement-scene.ts'

type World = ReturnType<typeof makePlacement>

/** A name beside which this member is, or isn't, the rebalancer. */
function beside(isRebalancer: boolean): string {
  const names = ['p', 'q', 'r', 's', 'u', 'v', 'w', 'x', 'y', 'z']
  return names.find((name) => (ranked('pacer', ['me', name])[0] === 'me') === isRebalancer)!
}

async function startAsRebalancer(world: World, isRebalancer: boolean): Promise<string> {
  const name = beside(isRebalancer)
  world.rows.member(name, `inc-${name}`, 'up')
  for (const shard of world.rows.state.shards.keys()) world.owner(shard, name, 4)
  await world.start()
  return name
}

function asked(world: World): readonly unknown[] {
  return world.told.filter(([, { kind }]) => kind === 'hand-over')
}

async function die(world: World): Promise<void> {
  const { rows, placement } = world
  const old = placement.incarnation
  rows.state.members.set('me', { ...rows.state.members.get('me')!, state: 'dead' })
  await world.until('another incarnation', () => !['', old].includes(placement.incarnation))
}

t.test(
  'the rebalancer asks the owner for one move at a time, once, and goes on when told',
  async (t) => {
    const world = makePlacement(t, 8)
    const name = await startAsRebalancer(world, true)
    const { placement, clock } = world
    const mine = placement.incarnation
    await clock.advance(LIMITS.placement.moveSettleMs - 300)
    t.same(asked(world), [], 'this incarnation has just begun')
    await clock.advance(1_000)
    const moves = placement.overview().moves
    t.equal(moves.filter(({ state }) => state === 'moving').length, 1)
    t.ok(moves.filter(({ state }) => state === 'due').length > 1)
    const { shard } = moves.find(({ state }) => state === 'moving')!
    const first = [[`inc-${name}`], { kind: 'hand-over', shard, epoch: 4, to: mine }, mine]
    t.same(asked(world), [first])
    await clock.advance(3_000)
    t.same(asked(world), [first], 'once')
    placement.hear({ kind: 'owns', shard, epoch: 5 }, `inc-${name}`)
    await settle()
    t.equal(asked(world).length, 2, 'the rows are looked at when a move has ended')
  },
)

t.test('nothing is given to whose row says up and who is not seen to beat', async (t) => {
  const world = makePlacement(t, 8)
  const name = beside(true)
  await world.start()
  const { placement, host, rows, silent } = world
  await world.until('it serves', () => [...rows.state.shards.keys()].every(world.serves))
  silent.add(name)
  rows.member(name, `inc-${name}`, 'up')
  host.did.length = 0
  await world.look()
  const [shard] = placement.overview().moves.map((move) => move.shard)
  placement.hear({ kind: 'hand-over', shard: shard!, epoch: 1, to: `inc-${name}` }, 'inc-x')
  await world.until('it is dead', () => rows.state.members.get(name)!.state === 'dead')
  const did = [`prepare ${shard}`, `died inc-${name}`]
  t.same(host.did, did, 'asked by another it looks, and calls it off')
  silent.clear()
  rows.member(name, `inc-${name}2`, 'up')
  await world.until('a handoff', () => host.did.some((what) => what.startsWith('seal')))
})

t.test('who is not the rebalancer asks for nothing', async (t) => {
  const world = makePlacement(t, 8)
  await startAsRebalancer(world, false)
  await world.clock.advance(LIMITS.placement.moveSettleMs * 3)
  t.same(asked(world), [])
  t.ok(world.placement.overview().moves.length > 1)
})

t.test('the rebalancer hands its own shards over itself, and a word goes a long way', async (t) => {
  const world = makePlacement(t, 8)
  const name = beside(true)
  await world.start()
  const { placement, host, rows, clock } = world
  await world.until('it serves', () => [...rows.state.shards.keys()].every(world.serves))
  rows.member(name, `inc-${name}`, 'up')
  host.did.length = 0
  await world.until('a handoff', () => host.did.some((what) => what.startsWith('prepare')))
  t.same(asked(world), [])
  const [shard] = placement.handoff.underWay.keys()
  const { state } = placement.overview().moves.find((move) => move.shard === shard)!
  t.equal(state, 'moving')
  const began = clock.monotonicMs()
  t.notOk(host.did.includes(`seal ${shard}`))
  placement.hear({ kind: 'ready', shard: shard!, epoch: 2 }, `inc-${name}`)
  await settle()
  t.ok(host.did.includes(`seal ${shard}`), 'its target has read ahead')
  t.ok(clock.monotonicMs() - began < LIMITS.placement.readAheadMs)
  await settle()
  t.equal(placement.handoff.awaited, 1)
  placement.hear({ kind: 'owns', shard: shard!, epoch: 2 }, `inc-${name}`)
  t.equal(placement.handoff.awaited, 0)
  t.match(placement.stats, { handoffs: 1, pausesMs: [Number] })
})

t.test('one step a shard: a claim that takes long is not begun again', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, host, rows } = world
  host.script.claim = () => new Promise(() => undefined)
  rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation })
  for (let i = 0; i < 5; i++) await world.look()
  t.same(host.did, ['open 1'])
  placement.hear({ kind: 'expect', shard: 1, epoch: 6 }, 'inc-other')
  host.shards.delete(1)
  placement.hear({ kind: 'expect', shard: 1, epoch: 6 }, 'inc-other')
  await settle()
  t.same(host.did, ['open 1'], 'nor is it opened while that runs')
})

t.test('an inbox that is there only when its incarnation is over is closed', async (t) => {
  const world = makePlacement(t)
  const { placement, wired } = world
  const inbox = latch()
  world.serveAfter(inbox.opened)
  void placement.start()
  await world.until('it has joined', () => placement.incarnation !== '')
  const first = placement.incarnation
  await die(world)
  const ofFirst = (): string[] => wired.filter((what) => what.endsWith(first))
  t.same(ofFirst(), [`serve ${first}`, `close ${first}`])
  inbox.open()
  await settle()
  t.same(ofFirst().slice(2), [`close ${first}`], 'what was made after it was closed')
  t.equal(wired.at(-1), `close ${first}`)
  await world.until('the next serves', () => world.serves(1))
})

t.test('what the last incarnation has signed over the next does not wait for', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, rows, host } = world
  rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation })
  await world.look()
  placement.hear({ kind: 'hand-over', shard: 1, epoch: 5, to: 'inc-other' }, 'inc-other')
  await world.until('signed over', () => rows.state.shards.get(1)!.owner === 'other')
  await settle()
  t.equal(placement.handoff.awaited, 1)
  host.did.length = 0
  await die(world)
  t.equal(placement.handoff.awaited, 0)
})

t.test('what was announced to the last incarnation, the next was not told of', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, rows, host } = world
  placement.hear({ kind: 'expect', shard: 1, epoch: 9 }, 'inc-other')
  await settle()
  const opened = host.shards.get(1)!
  await die(world)
  rows.set(1, { epoch: 9, owner: 'me', incarnation: placement.incarnation })
  await placement.membership.refresh()
  await settle()
  t.ok(world.serves(1), 'nobody’s word is waited for')
  t.not(host.shards.get(1), opened)
})

t.test('an epoch that the last incarnation has used is a new one to the next', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, rows, host } = world
  rows.set(1, { epoch: 9, owner: 'me', incarnation: placement.incarnation })
  await world.look()
  await die(world)
  rows.set(1, { epoch: 9, owner: 'me', incarnation: placement.incarnation })
  await world.until('it is served', () => world.serves(1))
  t.equal(host.shards.get(1)!.epoch, 9)
})

t.test('the wait for the shards of the dead begins anew in each incarnation', async (t) => {
  const world = makePlacement(t, 4)
  await world.startBeside()
  const { rows, clock, placement } = world
  rows.member('x', 'inc-x', 'dead')
  for (const shard of rows.state.shards.keys()) world.owner(shard, 'x', 5)
  await world.look()
  const later = [...rows.state.shards.keys()].filter((shard) => !world.serves(shard))
  t.ok(later.length > 0, 'the targets of the other member')
  await die(world)
  const began = clock.monotonicMs()
  await world.until('taken', () => later.every(world.serves))
  t.ok(clock.monotonicMs() - began >= LIMITS.placement.nextInRankMs / 2)
  t.equal(placement.stats.joins, 2)
})

t.test('without a lease nothing is read and nothing served', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, rows, clock } = world
  t.same([placement.mayServe(), placement.mayRead()], [true, true])
  rows.state.members.delete('me')
  rows.isAway = true
  await clock.advance(LIMITS.membership.leaseMs + 500)
  t.same([placement.mayServe(), placement.mayRead()], [false, false])
})

t.test('leaving ends in its time, whoever still waits and whoever takes nothing', async (t) => {
  for (const stuck of ['requests', 'shards'] as const) {
    const world = makePlacement(t)
    await world.startBeside()
    const { placement, rows, host, clock } = world
    rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation })
    await world.look()
    if (stuck === 'requests') host.pendingRequests = 1
    else host.script.seal = () => Promise.resolve(false)
    const began = clock.monotonicMs()
    const leaving = { isOver: false }
    void placement.leave(4_000).then(() => (leaving.isOver = true))
    await world.until('it has left', () => leaving.isOver, 8_000)
    const tookMs = clock.monotonicMs() - began
    t.ok(tookMs >= 3_900 && tookMs <= 6_500, `${stuck}: ${tookMs} ms`)
    t.equal(rows.state.members.get('me')!.state, 'left')
  }
})

t.test('who leaves alone waits for nobody', async (t) => {
  const world = makePlacement(t)
  await world.start()
  const { placement, rows, host, clock } = world
  rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation })
  await world.look()
  await world.until('it serves', () => host.shards.has(1))
  const began = clock.monotonicMs()
  const leaving = { isOver: false }
  void placement.leave(60_000).then(() => (leaving.isOver = true))
  await world.until('it has left', () => leaving.isOver, 70_000)
  const tookMs = clock.monotonicMs() - began
  t.ok(tookMs <= 5_000, `${tookMs} ms`)
  t.equal(rows.state.members.get('me')!.state, 'left')
})

t.test('leaving looks at the rows now and then while nothing comes of it', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, rows, host } = world
  rows.set(1, { epoch: 5, owner: 'me', incarnation: placement.incarnation })
  await world.look()
  host.script.prepare = () => new Promise(() => undefined)
  placement.hear({ kind: 'hand-over', shard: 1, epoch: 5, to: 'inc-other' }, 'inc-other')
  await settle()
  t.ok(placement.handoff.underWay.has(1))
  const leaveMs = 3_000
  const most = leaveMs / LIMITS.membership.beatRetryMs + leaveMs / LOOK_MS + 5
  let views = 0
  placement.membership.onView(() => {
    // Nothing is left to be signed over: it ends.
    if (++views > most) host.shards.clear()
  })
  let left = false
  void placement.leave(leaveMs).then(() => (left = true))
  await world.until('it has left', () => left, leaveMs + 2_000)
  t.ok(views <= most, `${views} looks in ${leaveMs} ms`)
  t.ok(host.shards.has(1))
})

t.test('stopped: its inbox goes, it beats, reads and claims no more', async (t) => {
  const world = makePlacement(t)
  await world.startBeside()
  const { placement, rows, clock, wired, host } = world
  placement.stop()
  t.equal(wired.at(-1), `close ${placement.incarnation}`)
  await settle()
  const { beat } = rows.state.members.get('me')!
  rows.member('x', 'inc-x', 'dead')
  for (const shard of rows.state.shards.keys()) world.owner(shard, 'x', 5)
  placement.hear({ kind: 'stopped' }, 'inc-x')
  placement.hear({ kind: 'expect', shard: 1, epoch: 6 }, 'inc-x')
  placement.hear({ kind: 'handed', shard: 2, epoch: 6 }, 'inc-x')
  await clock.advance(5_000)
  t.same(host.did, [])
  t.ok(rows.state.members.get('me')!.beat <= beat + 1)
})
