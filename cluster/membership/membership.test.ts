// Members on one store: joining, beats and leases, deaths, leaving, with processes that stop, clocks
// that jump, statements that nobody hears of and an engine that goes away.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { newStatementState } from '../../storage/memory/statements.ts'
import type { StatementState } from '../../storage/memory/statements.ts'
import { TestClock } from '../testing/harness.ts'
import { Machine } from './testing/machine.ts'
import type { Fate, Statement } from './testing/machine.ts'

interface Cluster {
  readonly time: TestClock
  readonly state: StatementState
  machine(member: string, rate?: number): Machine
  /** A machine that has joined. */
  start(member: string): Promise<Machine>
}

function cluster(): Cluster {
  const time = new TestClock()
  const state = newStatementState(2)
  let seed = 0
  const machine = (member: string, rate = 1): Machine =>
    new Machine({ member, time, state, rate, seed: ++seed })
  return {
    time,
    state,
    machine,
    async start(member) {
      const one = machine(member)
      await one.join()
      return one
    },
  }
}

/** The next statement of this kind has this fate. */
function once(machine: Machine, statement: Statement, fate: Fate): void {
  machine.fate = (sent) => {
    if (sent !== statement) return 'heard'
    machine.fate = null
    return fate
  }
}

/** True time until the lease is over, with nothing more being heard; at most 5 s. */
async function leaseLeft(time: TestClock, machine: Machine): Promise<number> {
  const began = time.monotonicMs()
  while (machine.membership.mayServe() && time.monotonicMs() < began + 5_000) {
    await time.advance(10)
  }
  return time.monotonicMs() - began
}

void t.test('a first life', async (t) => {
  const { time, state, machine } = cluster()
  const one = machine('a')
  t.equal(one.membership.incarnation, null)
  t.equal(one.membership.mayServe(), false)
  t.equal(one.membership.view, null)
  const incarnation = await one.join()
  t.equal(one.membership.incarnation, incarnation)
  t.equal(one.membership.mayServe(), true)
  t.same(state.members.get('a'), {
    member: 'a',
    incarnation,
    state: 'up',
    beat: 1,
    address: 'http://a',
    version: '1',
  })
  await time.advance(LIMITS.beatEveryMs * 4)
  t.equal(state.members.get('a')!.beat, 5)
  t.same(
    one.membership.view?.live().map(({ member }) => member),
    ['a'],
  )
  await t.rejects(one.membership.join(), { message: /a life is over/ })
  one.membership.close()
  t.equal(one.membership.mayServe(), false)
  const sent = one.calls.length
  await time.advance(5_000)
  t.equal(one.calls.length, sent, 'and no word more')
})

void t.test('a lease counts from when its beat was first sent', async (t) => {
  for (const fate of ['heard', 'unheard', 'lost', 'late'] as const) {
    const { time, start } = cluster()
    const one = await start('a')
    await time.advance(200)
    // Up to the next beat.
    const beats = () => one.calls.filter((call) => call === 'beat').length
    const before = beats()
    once(one, 'beat', fate)
    while (beats() === before) await time.advance(1)
    const sentAt = time.monotonicMs()
    await time.advance(LIMITS.beatRetryMs + 10)
    for (const land of one.late.splice(0)) await land()
    one.isAway = true
    t.equal(beats() - before, fate === 'heard' || fate === 'unheard' ? 1 : 2)
    const end = time.monotonicMs() + (await leaseLeft(time, one))
    t.ok(Math.abs(end - sentAt - LIMITS.leaseMs) <= 11, `${fate}: ${end - sentAt}`)
    t.same(one.lost, [], 'over, not lost')
    one.isAway = false
    await time.advance(LIMITS.beatEveryMs)
    t.equal(one.membership.mayServe(), true, 'and it comes back')
  }
})

void t.test('a beat whose answer takes long', async (t) => {
  const { time, start } = cluster()
  const one = await start('a')
  one.delay = () => 400
  await time.advance(5_000)
  t.equal(one.membership.mayServe(), true)
  t.equal(one.membership.view!.readAtMs > 0, true)
  one.delay = () => 1_100
  await time.advance(10_000)
  let served = 0
  for (let i = 0; i < 100; i++) {
    await time.advance(50)
    if (one.membership.mayServe()) served++
  }
  t.equal(served, 0, 'longer than a lease: it never has one')
  t.same(one.lost, [])
})

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
  await time.advance(LIMITS.beatEveryMs)
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

void t.test(
  'a machine that was suspended has no lease, whatever its monotonic clock says',
  async (t) => {
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
  },
)

void t.test('a wall clock that jumps', async (t) => {
  const { time, start } = cluster()
  const one = await start('a')
  await time.advance(50)
  for (const [jump, may] of [
    [400, true],
    [-400, true],
    [600, false],
    [-600, false],
    [3_600_000, false],
  ] as const) {
    one.wallOffsetMs += jump
    t.equal(one.membership.mayServe(), may, `by ${jump} ms`)
    await time.advance(LIMITS.beatEveryMs)
    t.equal(one.membership.mayServe(), true, 'the next beat goes by the new time')
  }
  t.same(one.lost, [])
})

void t.test('two newcomers of one name', async (t) => {
  for (const before of ['nobody', 'left', 'dead']) {
    const { time, state, machine, start } = cluster()
    if (before !== 'nobody') {
      const old = await start('a')
      await old.membership.left()
      old.membership.close()
      state.members.set('a', { ...state.members.get('a')!, state: before as 'left' })
    }
    const [one, two] = [machine('a'), machine('a')]
    const joining = [one, two].map((each) => each.membership.join())
    await time.advance(10_000)
    const joined = [one, two].filter((each) => each.membership.incarnation !== null)
    t.equal(joined.length, 1, `after ${before}: one of them`)
    joined[0]!.stop()
    await time.advance(LIMITS.deathMs + 1_000)
    const other = joined[0] === one ? two : one
    t.not(other.membership.incarnation, null, 'the other, once the first is over')
    joined[0]!.resume()
    await time.advance(1_000)
    t.same(joined[0]!.lost, ['its row carries another incarnation'])
    await Promise.all(joining)
  }
})

void t.test('a newcomer waits for an earlier process that may merely be stopped', async (t) => {
  const { time, state, machine, start } = cluster()
  const old = await start('a')
  await time.advance(700)
  old.stop()
  const [{ incarnation }, seenAt] = [old.membership, time.monotonicMs()]
  const newcomer = machine('a')
  const joining = newcomer.membership.join()
  let takenAt = 0
  while (takenAt === 0 && time.monotonicMs() < seenAt + 10_000) {
    await time.advance(10)
    const isOld = state.members.get('a')!.incarnation === incarnation
    if (!isOld) takenAt = time.monotonicMs()
    t.ok(isOld || !old.membership.mayServe())
  }
  t.ok(takenAt >= seenAt + LIMITS.deathMs, `after ${takenAt - seenAt} ms`)
  t.ok(takenAt <= seenAt + LIMITS.deathMs + 500)
  await joining
  old.resume()
  await time.advance(1_000)
  t.same(old.lost, ['its row carries another incarnation'])
  // And again: the names are the same, the incarnations never.
  const third = old.membership.join()
  newcomer.stop()
  await time.advance(LIMITS.deathMs + 1_000)
  newcomer.resume()
  await time.advance(1_000)
  t.same(newcomer.lost, ['its row carries another incarnation'])
  t.equal(old.membership.incarnation, await third)
  t.not(await third, incarnation)
})

void t.test('a join whose statement is not heard of, lost, late', async (t) => {
  for (const fate of ['unheard', 'lost', 'late'] as const) {
    const { time, state, machine } = cluster()
    const one = machine('a')
    once(one, 'join', fate)
    const incarnation = await one.join()
    for (const land of one.late.splice(0)) await land()
    await time.advance(5_000)
    t.equal(state.members.get('a')!.incarnation, incarnation, fate)
    t.equal(one.membership.mayServe(), true)
    t.same(one.lost, [])
  }
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

void t.test('leaving', async (t) => {
  for (const fate of ['heard', 'unheard', 'lost', 'late'] as const) {
    const { time, state, start } = cluster()
    const [a, b] = [await start('a'), await start('b')]
    const { incarnation } = a.membership
    once(a, 'state', fate)
    const leaving = a.membership.startLeaving()
    await time.advance(500)
    await leaving
    for (const land of a.late.splice(0)) await land()
    t.equal(state.members.get('a')!.state, 'leaving', fate)
    await time.advance(10_000)
    t.equal(a.membership.mayServe(), true, 'beats go on')
    t.same(
      b.membership.view!.live().map(({ member }) => member),
      ['b'],
    )
    t.equal(b.membership.view!.isDead(incarnation!), false)

    once(a, 'state', fate)
    const left = a.membership.left()
    t.equal(a.membership.mayServe(), false, 'before others can see it')
    await time.advance(500)
    await left
    for (const land of a.late.splice(0)) await land()
    t.equal(state.members.get('a')!.state, 'left')
    await time.advance(3_000)
    t.equal(b.membership.view!.isDead(incarnation!), true)
    t.same([a.lost, b.declared], [[], []])
    t.equal(a.membership.incarnation, null)
    await a.join()
    t.equal(state.members.get('a')!.state, 'up', 'and it may come again')
  }
})

void t.test('leaving while the engine is away ends in time', async (t) => {
  const { time, start } = cluster()
  const [a, b] = [await start('a'), await start('b')]
  a.isAway = true
  let isDone = false
  void a.membership
    .startLeaving()
    .then(() => a.membership.left())
    .then(() => (isDone = true))
  await time.advance(2 * LIMITS.leaveMs + 500)
  t.equal(isDone, true)
  t.equal(a.membership.mayServe(), false)
  await time.advance(3_000)
  t.same(b.declared, ['a'])
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

void t.test('views', async (t) => {
  const { time, start } = cluster()
  const one = await start('a')
  await time.advance(1_000)
  one.calls.length = 0
  one.delay = () => 30
  const before = time.monotonicMs()
  const asked = [one.membership.refresh(), one.membership.refresh(), one.membership.refresh()]
  await time.advance(600)
  const views = await Promise.all(asked)
  const reads = one.calls.filter((call) => call !== 'beat')
  t.same(reads.slice(0, 4), ['shards', 'members', 'shards', 'members'], 'shards first, and shared')
  t.ok(views.every(({ readAtMs }) => readAtMs >= before))
  t.equal(one.membership.view!.shards.size, 3)
  t.equal(one.membership.view!.isDead('00000000-0000-0000-0000-000000000000'), true)

  const seen: number[] = []
  const end = one.membership.onView(({ readAtMs }) => void seen.push(readAtMs))
  await time.advance(1_000)
  t.ok(seen.length >= 3)
  t.same(
    seen,
    seen.toSorted((a, b) => a - b),
  )
  end()
  const { length } = seen
  await time.advance(1_000)
  t.equal(seen.length, length)
  one.isAway = true
  const failing = one.membership.refresh()
  failing.catch(() => undefined)
  await time.advance(600)
  await t.rejects(failing, { message: 'the engine is away' })
})

void t.test('closed while it joins', async (t) => {
  const { time, machine } = cluster()
  const one = machine('a')
  one.isAway = true
  const joining = one.membership.join()
  joining.catch(() => undefined)
  await time.advance(5_000)
  one.membership.close()
  await time.advance(1_000)
  await t.rejects(joining, { message: 'the membership was closed' })
  const two = machine('b')
  two.fate = (statement) => (statement === 'beat' ? 'lost' : 'heard')
  const waiting = two.membership.join()
  waiting.catch(() => undefined)
  await time.advance(1_000)
  two.membership.close()
  await t.rejects(waiting, { message: 'the membership was closed' })
})
