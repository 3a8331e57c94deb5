// Handing over, the owner's side: in which order, what the row decides, and who is told what.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { LogEnd } from '../../storage/journal.ts'
import { settle } from '../testing/harness.ts'
import type { Notice } from '../wire.ts'
import { Handoff } from './handoff.ts'
import { FakeHost, MEMORY, QUIET, makeRows } from './testing/fake-host.ts'

const TARGET = { member: 'other', incarnation: 'theirs' }
const END = { segment: 1, base: 0, head: 7 } as unknown as LogEnd

function makeHandoff(epoch = 4) {
  const host = new FakeHost()
  const rows = makeRows()
  const world = {
    host,
    rows,
    incarnation: 'mine',
    up: new Set(['theirs', 'mine']),
    beating: new Set(['theirs']),
    wireUp: true,
    told: [] as (readonly [string, Notice])[],
    learnt: [] as unknown[],
    /** The target says that it has read ahead as soon as it is told. */
    isReady: true,
    handoff: null as unknown as Handoff,
    row: () => rows.state.shards.get(1)!,
    handed: () => world.told.filter(([, { kind }]) => kind === 'handed'),
    /** Hands shard 1 over; time goes on until that has ended. */
    async handOver(): Promise<void> {
      const handing = { isOver: false }
      void world.handoff.handOver(1, TARGET).finally(() => (handing.isOver = true))
      for (let i = 0; i < 400 && !handing.isOver; i++) await rows.clock.advance(50)
      if (!handing.isOver) throw new Error('it does not end')
      await rows.clock.advance(LIMITS.placement.handedAwaitMs)
    },
  }
  rows.set(1, { epoch, owner: 'me', incarnation: 'mine' })
  host.served(1, epoch)
  world.handoff = new Handoff({
    control: rows.control,
    clock: rows.clock,
    log: QUIET,
    host,
    member: 'me',
    incarnation: () => world.incarnation,
    tell: (to, notice) => {
      world.told.push([to, notice])
      if (notice.kind === 'expect' && world.isReady) {
        world.handoff.ready(notice.shard, notice.epoch)
      }
    },
    isWireUp: () => world.wireUp,
    isUp: (incarnation) => world.up.has(incarnation),
    isBeating: (incarnation) => world.beating.has(incarnation),
    learn: (shard, route) => void world.learnt.push([shard, route]),
  })
  return world
}

t.test('without a wire nobody is waited for who would read ahead', async (t) => {
  const world = makeHandoff()
  world.wireUp = false
  const beganMs = world.rows.clock.monotonicMs()
  await world.handOver()
  t.equal(world.row().incarnation, 'theirs')
  t.ok(world.rows.clock.monotonicMs() - beganMs < LIMITS.placement.readAheadMs)
  t.same(
    world.told.map(([, { kind }]) => kind),
    ['handed'],
  )
})

t.test('flushed ahead, announced, sealed, closed and signed over, and told', async (t) => {
  const world = makeHandoff()
  const { host, told, rows, handoff } = world
  host.script.close = () => Promise.resolve(END)
  await world.handOver()
  t.same(host.did, ['prepare 1', 'seal 1', 'close 1 4 7', 'forget 1', 'signed over 1 theirs 5'])
  t.match(world.row(), { epoch: 5, owner: 'other', incarnation: 'theirs' })
  const end = { ...END, flush: 5 }
  t.same(told, [
    ['theirs', { kind: 'expect', shard: 1, epoch: 5 }],
    ['theirs', { kind: 'handed', shard: 1, epoch: 5, end, last: MEMORY }],
  ])
  t.same(world.learnt, [[1, { incarnation: 'theirs', epoch: 5 }]])
  t.same([handoff.count, handoff.awaited, handoff.underWay.size], [1, 1, 0])
  t.equal(rows.asked.filter((what) => what.startsWith('update')).length, 1)
})

t.test('it serves until its target has read ahead, or a second has passed', async (t) => {
  const world = makeHandoff()
  const { host, rows, handoff } = world
  world.isReady = false
  void handoff.handOver(1, TARGET)
  await settle()
  t.ok(handoff.underWay.has(1))
  handoff.ready(1, 4)
  handoff.ready(2, 5)
  await rows.clock.advance(LIMITS.placement.readAheadMs - 1)
  t.same(host.did, ['prepare 1'])
  await rows.clock.advance(1)
  t.equal(host.did[1], 'seal 1')
  handoff.ready(1, 5)

  const other = makeHandoff()
  other.isReady = false
  void other.handoff.handOver(1, TARGET)
  await settle()
  other.handoff.ready(1, 5)
  await settle()
  t.equal(other.host.did[1], 'seal 1', 'at its word')
})

t.test('one at a time, and only what is served', async (t) => {
  const world = makeHandoff()
  world.isReady = false
  void world.handoff.handOver(1, TARGET)
  await world.handoff.handOver(1, TARGET)
  await world.handoff.handOver(2, TARGET)
  for (const state of ['claiming', 'sealed', 'stopped'] as const) {
    world.host.served(0, 4).state = state
    await world.handoff.handOver(0, TARGET)
  }
  await settle()
  t.same(world.host.did, ['prepare 1'])
})

t.test('a target that is gone before the seal, or before a signature: it serves on', async (t) => {
  const early = makeHandoff()
  early.host.script.prepare = () => {
    early.up.delete('theirs')
    return Promise.resolve()
  }
  await early.handOver()
  t.same(early.host.did, ['prepare 1'])

  const late = makeHandoff()
  late.host.script.seal = () => {
    late.up.delete('theirs')
    return Promise.resolve(true)
  }
  await late.handOver()
  t.same(late.host.did, ['prepare 1', 'seal 1', 'unseal 1'])
  for (const { row, handoff } of [early, late]) {
    t.match(row(), { epoch: 4, incarnation: 'mine' })
    t.same([handoff.count, handoff.underWay.size], [0, 0])
  }
})

t.test('a target whose beat was not seen to move by then gets nothing', async (t) => {
  const world = makeHandoff()
  world.beating.clear()
  await world.handOver()
  t.same(world.host.did, ['prepare 1'])
  t.match(world.row(), { epoch: 4, incarnation: 'mine' })
  world.host.script.prepare = () => {
    world.beating.add('theirs')
    return Promise.resolve()
  }
  await world.handOver()
  t.match(world.row(), { epoch: 5, incarnation: 'theirs' }, 'while it read ahead')
})

t.test('gone after a signature has left: only one of its own ends it', async (t) => {
  const world = makeHandoff()
  world.rows.fates.push('lost')
  world.rows.before = () => void world.up.delete('theirs')
  await world.handOver()
  t.match(world.row(), { epoch: 5, owner: 'me', incarnation: 'mine' })
  t.notOk(world.host.did.includes('unseal 1'))
  t.equal(world.host.did.at(-1), 'signed over 1 mine 5')
  t.equal(world.handoff.awaited, 0, 'nobody else is waited for')
  t.match(world.handed(), [['mine', { kind: 'handed', epoch: 5 }]])
  t.equal(world.host.did.filter((what) => what.startsWith('close')).length, 1)
})

t.test('one that can not be sealed is not signed over', async (t) => {
  const world = makeHandoff()
  world.host.script.seal = () => Promise.resolve(false)
  await world.handOver()
  t.same(world.host.did, ['prepare 1', 'seal 1'])
  t.equal(world.row().epoch, 4)
  t.notOk(world.handoff.underWay.has(1), 'it may be tried again')
})

t.test('a signature without an answer: the row says what has become of it', async (t) => {
  const unheard = makeHandoff()
  unheard.host.script.close = () => Promise.resolve(END)
  unheard.rows.fates.push('unheard')
  await unheard.handOver()
  t.match(unheard.row(), { epoch: 5, incarnation: 'theirs' })
  t.match(unheard.handed(), [['theirs', { epoch: 5, end: END, last: MEMORY }]])
  t.equal(unheard.handoff.count, 1)

  const lost = makeHandoff()
  lost.rows.fates.push('lost', 'lost')
  void lost.handoff.handOver(1, TARGET)
  await settle()
  t.equal(lost.host.shards.get(1)!.state, 'sealed')
  await lost.rows.clock.advance(LIMITS.membership.beatRetryMs * 2 - 1)
  t.equal(lost.row().epoch, 4)
  await lost.rows.clock.advance(1)
  t.match(lost.row(), { epoch: 5, incarnation: 'theirs' })

  const away = makeHandoff()
  away.rows.before = () => {
    away.rows.before = null
    away.rows.isAway = true
  }
  away.rows.fates.push('lost')
  void away.handoff.handOver(1, TARGET)
  await settle()
  away.rows.isAway = false
  await away.rows.clock.advance(LIMITS.membership.beatRetryMs)
  t.match(away.row(), { epoch: 5, incarnation: 'theirs' }, 'a row that can not be read')
})

t.test('a forced claim was first: its owner is told of no end of the log', async (t) => {
  const world = makeHandoff()
  world.host.script.close = () => Promise.resolve(END)
  world.rows.before = () =>
    world.rows.set(1, { epoch: 6, owner: 'third', incarnation: 'the third' })
  await world.handOver()
  t.equal(world.host.did.at(-1), 'signed over 1 the third 6')
  t.same(world.handed(), [['the third', { kind: 'handed', shard: 1, epoch: 6 }]])
  t.same(world.learnt, [[1, { incarnation: 'the third', epoch: 6 }]])
})

t.test('a log that is not closed in time, or not at all, is told without its end', async (t) => {
  const plain = [['theirs', { kind: 'handed', shard: 1, epoch: 5 }]]
  for (const close of [
    () => Promise.resolve(null),
    () => Promise.reject(new Error('as asked')),
    () => new Promise<never>(() => undefined),
  ]) {
    const world = makeHandoff()
    world.host.script.close = close
    await world.handOver()
    t.same(world.handed(), plain)
  }
  const slow = makeHandoff()
  slow.host.script.close = () =>
    new Promise(
      (resolve) =>
        void slow.rows.clock.after(LIMITS.placement.handedAwaitMs + 1, () => resolve(END)),
    )
  void slow.handoff.handOver(1, TARGET)
  await slow.rows.clock.advance(LIMITS.placement.handedAwaitMs - 1)
  t.same(slow.handed(), [])
  await slow.rows.clock.advance(5)
  t.same(slow.handed(), plain, 'told once')
})

t.test('another incarnation tells nothing of what the last one handed over', async (t) => {
  const world = makeHandoff()
  world.host.script.close = () => new Promise(() => undefined)
  void world.handoff.handOver(1, TARGET)
  await settle()
  world.incarnation = 'next'
  await world.rows.clock.advance(LIMITS.placement.handedAwaitMs)
  t.same(world.handed(), [])
  t.equal(world.handoff.awaited, 1)
  world.handoff.reset()
  t.equal(world.handoff.awaited, 0)
})

t.test('a pause is from the seal until that owner says that it serves, once', async (t) => {
  const world = makeHandoff()
  const { handoff, rows } = world
  world.host.script.seal = () =>
    new Promise((resolve) => void rows.clock.after(30, () => resolve(true)))
  void handoff.handOver(1, TARGET)
  await rows.clock.advance(30)
  await rows.clock.advance(70)
  handoff.served(2, 5)
  handoff.served(1, 4)
  t.equal(handoff.awaited, 1)
  t.same(handoff.pausesMs, [])
  handoff.served(1, 5)
  handoff.served(1, 5)
  t.same([handoff.awaited, handoff.pauseMs, handoff.pausesMs], [0, 100, [100]])

  const taken = makeHandoff()
  await taken.handOver()
  taken.handoff.served(1, 6)
  t.same([taken.handoff.awaited, taken.handoff.pausesMs], [0, []], 'that was a death, not a move')
})

t.test('the last thousand pauses are kept, the sum is of all', async (t) => {
  const world = makeHandoff()
  const { handoff, host, rows } = world
  for (let i = 0; i < 1_003; i++) {
    rows.set(1, { epoch: i, owner: 'me', incarnation: 'mine' })
    host.served(1, i)
    await handoff.handOver(1, TARGET)
    await rows.clock.advance(i < 3 ? 7 : 2)
    handoff.served(1, i + 1)
  }
  t.equal(handoff.pausesMs.length, 1_000)
  t.ok(handoff.pausesMs.every((ms) => ms === 2))
  t.equal(handoff.pauseMs, 2_000 + 21)
})

t.test('what throws on the way ends the tenure: the row decides from then on', async (t) => {
  const world = makeHandoff()
  world.host.script.prepare = () => Promise.reject(new Error('as asked'))
  await world.handOver()
  t.same(world.host.did, ['prepare 1', 'step down 1: a handoff has failed'])
  t.equal(world.handoff.underWay.size, 0)
})
