// Deaths: of processes that stop, and not of those that an engine, or the reader itself, kept from
// being heard of.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { MemoryControl } from '../../storage/memory/statements.ts'
import { DeathWatch } from './death-watch.ts'
import type { TestClock } from '../testing/harness.ts'
import { cluster, once } from './testing/machine.ts'

type State = ReturnType<typeof cluster>['state']

/** A watch by itself, as `b` has it; what it reads and says is counted. */
function watching(
  time: TestClock,
  state: State,
  more: { mayJudge?: () => boolean; member?: string } = {},
) {
  const quiet = (): void => undefined
  const declared: string[] = []
  const control = new MemoryControl(state)
  const counted = { views: 0, reads: 0, statements: 0, declared, control }
  const { members, updateMember } = control
  control.members = () => {
    counted.reads++
    return members.call(control)
  }
  control.updateMember = (...args) => {
    counted.statements++
    return updateMember.apply(control, args)
  }
  const watch = new DeathWatch({
    control,
    clock: time,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    member: 'b',
    mayJudge: () => true,
    onView: () => void counted.views++,
    onDeclared: ({ member }) => void declared.push(member),
    ...more,
  })
  return Object.assign(counted, { watch })
}

void t.test('stopped past its lease', async (t) => {
  const { time, state, start } = cluster()
  const [a, b] = [await start('a'), await start('b')]
  const old = a.membership.incarnation!
  await time.advance(1_000)
  a.stop()
  await time.advance(1_900)
  t.equal(state.members.get('a')!.state, 'up')
  await time.advance(1_400)
  t.equal(state.members.get('a')!.state, 'dead')
  t.same(b.declared, ['a'])
  t.equal(b.membership.view!.isDead(old), true)
  t.equal(b.membership.view!.isDead(b.membership.incarnation!), false)
  t.same(
    b.membership.view!.live().map(({ member }) => member),
    ['b'],
  )
  t.equal(a.membership.mayServe(), false, 'before it has done anything')
  a.resume()
  t.equal(a.membership.mayServe(), false)
  await time.advance(LIMITS.membership.beatEveryMs)
  t.same(a.lost, ['its row says dead'])
  t.equal(a.membership.incarnation, null)
  const began = time.monotonicMs()
  const incarnation = await a.join()
  t.ok(time.monotonicMs() - began < 500, 'a dead row is taken at once')
  t.not(incarnation, old)
  t.equal(a.membership.mayServe(), true)
  const view = await b.membership.refresh()
  t.equal(view.isDead(old), true, 'its row carries another one')
  t.equal(view.isDead(incarnation), false)
})

void t.test('stopped for less than a death takes', async (t) => {
  const { time, start } = cluster()
  const [a, b] = [await start('a'), await start('b')]
  const { incarnation } = a.membership
  for (let i = 0; i < 5; i++) {
    a.stop()
    await time.advance(1_900)
    a.resume()
    await time.advance(600)
    t.equal(a.membership.mayServe(), true)
  }
  t.equal(a.membership.incarnation, incarnation)
  t.same([a.lost, b.declared, b.lost], [[], [], []])
})

void t.test('a machine that was suspended has no lease', async (t) => {
  const { time, state, start } = cluster()
  const [a, b] = [await start('a'), await start('b')]
  a.suspend()
  await time.advance(600_000)
  t.equal(state.members.get('a')!.state, 'dead')
  a.resume()
  t.equal(a.membership.mayServe(), false)
  await time.advance(1_000)
  t.same(a.lost, ['its row says dead'])
  t.same(b.lost, [])
})

void t.test('an engine that is away for ten seconds makes nobody dead', async (t) => {
  const { time, start } = cluster()
  const all = [await start('a'), await start('b'), await start('c')]
  const before = all.map((one) => one.membership.incarnation)
  for (const order of [
    [0, 1, 2],
    [2, 0, 1],
  ]) {
    for (const i of order) {
      all[i]!.isAway = true
      await time.advance(130)
    }
    await time.advance(10_000)
    t.same(
      all.map((one) => one.membership.mayServe()),
      [false, false, false],
    )
    // It does not come back for all of them in the same moment.
    for (const i of order) {
      all[i]!.isAway = false
      await time.advance(300)
    }
    await time.advance(3_000)
    t.same(
      all.map((one) => one.membership.mayServe()),
      [true, true, true],
    )
  }
  t.same(
    all.map((one) => one.membership.incarnation),
    before,
  )
  t.same(
    all.flatMap((one) => [...one.lost, ...one.declared]),
    [],
  )
})

void t.test('statements that fail while reads go on make nobody dead', async (t) => {
  const { time, start } = cluster()
  const all = [await start('a'), await start('b')]
  for (const one of all) one.fate = (statement) => (statement === 'beat' ? 'lost' : 'heard')
  await time.advance(10_000)
  t.same(
    all.map((one) => one.membership.mayServe()),
    [false, false],
  )
  all[0]!.fate = null
  await time.advance(1_000)
  t.equal(all[0]!.membership.mayServe(), true)
  t.same(all[0]!.declared, [], 'what stood still before its own beat came through, proves nothing')
  all[1]!.fate = null
  await time.advance(5_000)
  t.equal(all[1]!.membership.mayServe(), true)
  t.same(
    all.flatMap((one) => [...one.lost, ...one.declared]),
    [],
  )
})

void t.test('a reader whose reads paused counts afresh', async (t) => {
  const { time, state, start } = cluster()
  const [a, b] = [await start('a'), await start('b')]
  a.stop()
  await time.advance(2_000)
  b.stop()
  await time.advance(1_100)
  b.resume()
  await time.advance(1_500)
  t.equal(state.members.get('a')!.state, 'up')
  await time.advance(1_500)
  t.equal(state.members.get('a')!.state, 'dead')
  t.same(b.lost, [])
})

void t.test('a reader whose own beat failed counts afresh', async (t) => {
  const { time, state, start } = cluster()
  const [a, b] = [await start('a'), await start('b')]
  a.stop()
  await time.advance(1_500)
  once(b, 'beat', 'lost')
  await time.advance(2_000)
  t.equal(b.membership.mayServe(), true)
  t.equal(state.members.get('a')!.state, 'up')
  await time.advance(2_000)
  t.equal(state.members.get('a')!.state, 'dead')
})

void t.test('a death whose statement is not heard of, lost, late', async (t) => {
  for (const fate of ['unheard', 'lost', 'late'] as const) {
    const { time, state, start } = cluster()
    const [a, b] = [await start('a'), await start('b')]
    once(b, 'dead', fate)
    a.stop()
    await time.advance(4_000)
    t.equal(state.members.get('a')!.state, 'dead', fate)
    t.equal(b.membership.view!.isDead(a.membership.incarnation!), true)
    a.resume()
    await time.advance(1_000)
    const incarnation = await a.join()
    for (const land of b.late.splice(0)) t.equal(await land(), 'refused')
    await time.advance(3_000)
    t.equal(a.membership.incarnation, incarnation)
    t.equal(a.membership.mayServe(), true)
  }
})

void t.test('a death that comes too late is none', async (t) => {
  const { time, state, start } = cluster()
  const [a, b] = [await start('a'), await start('b')]
  once(b, 'dead', 'late')
  a.stop()
  while (b.late.length === 0) await time.advance(10)
  a.resume()
  await time.advance(20)
  t.equal(a.membership.mayServe(), true)
  for (const land of b.late.splice(0)) t.equal(await land(), 'refused')
  await time.advance(5_000)
  t.equal(state.members.get('a')!.state, 'up')
  t.same(a.lost, [])
})

void t.test(
  'who has died while all slept is up by its row, and was not seen to beat',
  async (t) => {
    for (const how of ['stop', 'suspend'] as const) {
      for (let offsetMs = 0; offsetMs < 500; offsetMs += 30) {
        const { time, state, start } = cluster()
        const [a, b, c] = [await start('a'), await start('b'), await start('c')]
        const [dead, other] = [a.membership.incarnation!, c.membership.incarnation!]
        t.same([dead, other].filter(b.membership.isBeating, b.membership), [], 'not yet')
        await time.advance(1_000 + offsetMs)
        t.ok([dead, other].every(b.membership.isBeating, b.membership))
        a.stop()
        for (const one of [b, c]) one[how]()
        await time.advance(600_000)
        for (const one of [b, c]) one.resume()
        t.same([dead, other].filter(b.membership.isBeating, b.membership), [], 'not as it wakes')
        for (let ms = 0; ms < 1_000; ms += 10) {
          await time.advance(10)
          t.notOk(b.membership.isBeating(dead), `${how} ${offsetMs} ${ms}`)
        }
        t.equal(state.members.get('a')!.state, 'up', 'nobody has had the time to declare it dead')
        t.ok(b.membership.isBeating(other))
      }
    }
  },
)

void t.test('one of many declares, all see it', async (t) => {
  const { time, start } = cluster()
  const all = [await start('a'), await start('b'), await start('c'), await start('d')]
  const [first, ...others] = all
  const { incarnation } = first!.membership
  first!.stop()
  await time.advance(4_000)
  t.equal(others.flatMap((one) => one.declared).length, 1)
  for (const one of others) t.equal(one.membership.view!.isDead(incarnation!), true)
})

void t.test('a beat never revives who was declared dead', async (t) => {
  const { time, state, start } = cluster()
  const [a, b] = [await start('a'), await start('b')]
  await time.advance(700)
  // Its beat is on its way while it is declared dead.
  a.fate = (statement) => (statement === 'beat' ? 'late' : 'heard')
  a.isAway = false
  while (a.late.length === 0) await time.advance(10)
  a.stop()
  await time.advance(4_000)
  t.same(b.declared, ['a'])
  for (const land of a.late.splice(0)) t.equal(await land(), 'refused')
  t.equal(state.members.get('a')!.state, 'dead')
})

void t.test('who has no lease declares nobody dead, and counts afresh once it has', async (t) => {
  const { time, state, start } = cluster()
  const a = await start('a')
  a.stop()
  const every = LIMITS.membership.membersReadEveryMs
  let mayJudge = false
  const { declared, watch } = watching(time, state, { mayJudge: () => mayJudge })
  watch.start()
  await time.advance(LIMITS.membership.deathMs * 3)
  t.same([declared, state.members.get('a')!.state], [[], 'up'])
  mayJudge = true
  await time.advance(LIMITS.membership.deathMs - 2 * every)
  t.same(declared, [], 'what stood still before proves nothing')
  mayJudge = false
  await time.advance(every)
  mayJudge = true
  await time.advance(LIMITS.membership.deathMs - 2 * every)
  t.same(declared, [], 'nor does it behind a lease that was over in between')
  await time.advance(3 * every)
  t.same([declared, state.members.get('a')!.state], [['a'], 'dead'])
  watch.stop()
})

void t.test('a newcomer that can not join yet declares nobody dead', async (t) => {
  const { time, state, start, machine } = cluster()
  const a = await start('a')
  const b = machine('b')
  b.fate = (statement) => (statement === 'join' ? 'lost' : 'heard')
  const joining = b.membership.join()
  a.stop()
  await time.advance(10_000)
  t.ok(b.membership.view!.live().length > 0, 'it reads the rows')
  t.same([b.declared, state.members.get('a')!.state], [[], 'up'])
  b.fate = null
  await time.advance(10_000)
  t.equal(await joining, b.membership.incarnation)
  t.same([b.declared, state.members.get('a')!.state], [['a'], 'dead'])
})

void t.test(
  'a watch looks four times a second, however often it is begun, until it ends',
  async (t) => {
    const { time, state, start } = cluster()
    const a = await start('a')
    const counted = watching(time, state)
    const { watch } = counted
    watch.start()
    watch.start()
    await time.advance(1_000)
    t.ok(counted.views >= 4 && counted.views <= 5, `${counted.views} views in a second`)
    a.stop()
    for (let at = 0; at < LIMITS.membership.deathMs + 500; at += 100) {
      if (at === 500) watch.stop()
      await time.advance(100)
      if (at >= 500) await watch.refresh()
    }
    t.equal(counted.statements, 0, 'who has stopped looks when asked, and judges nobody')
  },
)

void t.test('it judges itself never, and another once while that is on its way', async (t) => {
  const { time, state, start } = cluster()
  const a = await start('a')
  a.stop()
  const own = watching(time, state, { member: 'a' })
  const other = watching(time, state)
  let end = (): void => undefined
  const { updateMember } = other.control
  other.control.updateMember = (...args) =>
    new Promise((resolve) => {
      other.statements++
      end = () => resolve(updateMember.apply(other.control, args))
    })
  own.watch.start()
  other.watch.start()
  await time.advance(LIMITS.membership.deathMs + 2_000)
  t.same([own.statements, other.statements], [0, 1])
  const { reads } = other
  end()
  await time.advance(0)
  t.same(other.declared, ['a'])
  t.equal(other.reads, reads + 1, 'what that has changed is read at once')
  own.watch.stop()
  other.watch.stop()
})

void t.test('who asks during a read that fails has one of his own', async (t) => {
  const { time, state } = cluster()
  const { watch, control } = watching(time, state)
  const { shards } = control
  let fail = (): void => undefined
  control.shards = () => new Promise((_, reject) => (fail = () => reject(new Error('away'))))
  const first = watch.refresh()
  control.shards = shards
  const second = watch.refresh()
  t.equal(watch.refresh(), second, 'those who ask meanwhile share it')
  fail()
  await t.rejects(first, { message: 'away' })
  t.equal((await second).members.size, 0)
})
