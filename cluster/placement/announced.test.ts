// Shards that were announced: opened at once, held for as long as a move may take, let go for good.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { settle } from '../testing/harness.ts'
import type { Notice } from '../wire.ts'
import { Announced } from './announced.ts'
import type { Signed } from './announced.ts'
import type { Claimer } from './claimer.ts'
import { FakeHost, PREFETCHED, makeRows } from './testing/fake-host.ts'

const END = { segment: 6, base: 2, head: 7, flush: 5 } as const
const LAST = { memory: 'what it remembers' } as never

function makeAnnounced() {
  const host = new FakeHost()
  const rows = makeRows()
  const world = {
    host,
    rows,
    incarnation: 'mine',
    told: [] as (readonly [string, Notice])[],
    /** What was claimed, and how. */
    claims: [] as (readonly unknown[])[],
    /** A claim takes what was opened. */
    takes: false,
    announced: null as unknown as Announced,
  }
  const take = (...args: readonly unknown[]): Promise<void> => {
    world.claims.push(args)
    if (world.takes) for (const shard of host.shards.values()) shard.state = 'serving'
    return Promise.resolve()
  }
  const claimer = {
    handed: (...args: readonly unknown[]) => take('handed', ...args),
    reclaim: (...args: readonly unknown[]) => take('reclaim', ...args),
  } as unknown as Claimer
  world.announced = new Announced({
    control: rows.control,
    clock: rows.clock,
    host,
    claimer,
    incarnation: () => world.incarnation,
    tell: (to, notice) => void world.told.push([to, notice]),
  })
  return world
}

t.test('announced: opened, and its owner hears when both were read ahead', async (t) => {
  const { host, announced, told, rows } = makeAnnounced()
  let read: () => void = () => undefined
  host.script.prefetch = () => new Promise((resolve) => (read = () => resolve(PREFETCHED)))
  announced.expect(1, 5, 'owner')
  t.same(host.did, ['open 1'])
  await settle()
  t.same(rows.asked, ['shard 1'])
  t.same(told, [])
  read()
  await settle()
  t.same(told, [['owner', { kind: 'ready', shard: 1, epoch: 5 }]])
})

t.test('what could not be read ahead holds nobody up', async (t) => {
  const { host, announced, told, rows, claims } = makeAnnounced()
  host.script.prefetch = () => Promise.reject(new Error('as asked'))
  rows.isAway = true
  announced.expect(1, 5, 'owner')
  await settle()
  t.equal(told.length, 1)
  await announced.serve(1, { epoch: 5 })
  t.equal(claims[0]![0], 'reclaim', 'where its log ends nobody knows')
})

t.test('what has not come in its time is let go, with what it held', async (t) => {
  const { host, announced, rows } = makeAnnounced()
  announced.expect(1, 5, 'owner')
  const opened = host.shards.get(1)!
  await rows.clock.advance(LIMITS.placement.moveMs - 1)
  t.equal(host.tenure(1), opened.real)
  await rows.clock.advance(1)
  t.equal(host.tenure(1), null)
  t.equal(opened.state, 'stopped')
  t.notOk(announced.awaits(1, 5))
})

t.test('announced anew: only the last one counts, and for its own time', async (t) => {
  const { host, announced, rows } = makeAnnounced()
  announced.expect(1, 5, 'owner')
  await rows.clock.advance(LIMITS.placement.moveMs / 2)
  announced.expect(1, 6, 'owner')
  const second = host.shards.get(1)!
  await rows.clock.advance(LIMITS.placement.moveMs / 2)
  t.equal(host.tenure(1), second.real)
  t.equal(second.state, 'claiming')
  t.ok(announced.awaits(1, 6))
})

t.test('one that serves, or is another tenure by now, is not let go', async (t) => {
  const serves = makeAnnounced()
  serves.announced.expect(1, 5, 'owner')
  serves.host.shards.get(1)!.state = 'serving'
  await serves.rows.clock.advance(LIMITS.placement.moveMs)
  t.equal(serves.host.shards.get(1)?.state, 'serving')

  const other = makeAnnounced()
  other.announced.expect(1, 5, 'owner')
  const opened = other.host.shards.get(1)!
  const next = other.host.open(1)
  await other.rows.clock.advance(LIMITS.placement.moveMs)
  t.equal(other.host.tenure(1), next)
  t.equal(opened.state, 'claiming', 'it is nobody any more')
})

t.test('the word of the owner before is waited for, not for long', async (t) => {
  const { announced, rows } = makeAnnounced()
  t.notOk(announced.awaits(1, 5), 'nothing was announced')
  announced.expect(1, 5, 'owner')
  t.notOk(announced.awaits(2, 5))
  t.notOk(announced.awaits(1, 6), 'another epoch than was announced')
  await rows.clock.advance(3_000)
  t.ok(announced.awaits(1, 5), 'from when its row is first seen')
  await rows.clock.advance(LIMITS.placement.handedAwaitMs - 1)
  t.ok(announced.awaits(1, 5))
  await rows.clock.advance(1)
  t.notOk(announced.awaits(1, 5))
})

t.test('told where the log ends: served from there, with what its owner remembers', async (t) => {
  const { host, announced, claims, rows } = makeAnnounced()
  rows.set(1, { segment: 3 })
  announced.expect(1, 5, 'owner')
  const shard = host.shards.get(1)!.real
  const signed = { epoch: 5, end: END, last: LAST } as unknown as Signed
  await announced.serve(1, signed)
  const [how, number, tenure, expected] = claims[0]!
  t.same([how, number], ['handed', 1])
  t.same(tenure, { epoch: 5, segment: 6, end: END })
  t.match(expected, { shard, last: LAST, epoch: 5 })
  t.notOk(announced.awaits(1, 5), 'it is awaited no more')
})

t.test('not told: served from the segment of the row that was read ahead', async (t) => {
  const { announced, claims, rows } = makeAnnounced()
  rows.set(1, { segment: 3 })
  announced.expect(1, 5, 'owner')
  await settle()
  rows.set(1, { segment: 4 })
  await announced.serve(1, { epoch: 5, last: LAST })
  const [how, , tenure, expected] = claims[0]!
  t.equal(how, 'handed')
  t.same(tenure, { epoch: 5, segment: 3 })
  t.notOk(Object.keys(expected as object).includes('last'), 'that counts only with the end')
})

t.test('unannounced, or in another epoch: the row decides', async (t) => {
  const { announced, claims } = makeAnnounced()
  await announced.serve(1, { epoch: 5 })
  t.same(claims.splice(0), [['reclaim', 1, undefined]])
  await announced.serve(1)
  t.same(claims.splice(0), [['reclaim', 1, undefined]])
  for (const signed of [{ epoch: 6, end: END } as unknown as Signed, undefined]) {
    announced.expect(1, 5, 'owner')
    await announced.serve(1, signed)
    const [how, number, expected] = claims.splice(0)[0]!
    t.same([how, number], ['reclaim', 1])
    t.match(expected, { epoch: 5 })
  }
})

t.test('what no claim has taken goes again, at once', async (t) => {
  const { host, announced } = makeAnnounced()
  announced.expect(1, 5, 'owner')
  const opened = host.shards.get(1)!
  await announced.serve(1)
  t.equal(host.tenure(1), null)
  t.equal(opened.state, 'stopped')
  const took = makeAnnounced()
  took.takes = true
  took.announced.expect(1, 5, 'owner')
  await took.announced.serve(1)
  t.equal(took.host.shards.get(1)?.state, 'serving')
  await took.rows.clock.advance(LIMITS.placement.moveMs)
  t.equal(took.host.shards.get(1)?.state, 'serving')
})

t.test(
  'an incarnation that ends serves nothing of it, and the next was told nothing',
  async (t) => {
    const world = makeAnnounced()
    world.announced.expect(1, 5, 'owner')
    const serving = world.announced.serve(1, { epoch: 5 })
    world.incarnation = 'next'
    await serving
    t.same(world.claims, [])
    world.announced.expect(1, 5, 'owner')
    world.announced.reset()
    t.notOk(world.announced.awaits(1, 5))
    await world.announced.serve(1, { epoch: 5 })
    t.same(world.claims, [['reclaim', 1, undefined]])
  },
)
