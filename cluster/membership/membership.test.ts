// A member's incarnation: it joins, beats, has a lease, leaves, while clocks jump and nobody hears
// of its statements; and the views that it reads.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { cluster, once } from './testing/machine.ts'

void t.test('a first incarnation', async (t) => {
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
    wire: 'up',
  })
  await time.advance(LIMITS.membership.beatEveryMs * 4)
  t.equal(state.members.get('a')!.beat, 5)
  t.same(
    one.membership.view?.live().map(({ member }) => member),
    ['a'],
  )
  await t.rejects(one.membership.join(), { message: /an incarnation is over/ })
  one.membership.close()
  t.equal(one.membership.mayServe(), false)
  const sent = one.calls.length
  await time.advance(5_000)
  t.equal(one.calls.length, sent, 'and no word more')
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
    await time.advance(LIMITS.membership.deathMs + 1_000)
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
  t.ok(takenAt >= seenAt + LIMITS.membership.deathMs, `after ${takenAt - seenAt} ms`)
  t.ok(takenAt <= seenAt + LIMITS.membership.deathMs + 500)
  await joining
  old.resume()
  await time.advance(1_000)
  t.same(old.lost, ['its row carries another incarnation'])
  // And again: the names are the same, the incarnations never.
  const third = old.membership.join()
  newcomer.stop()
  await time.advance(LIMITS.membership.deathMs + 1_000)
  newcomer.resume()
  await time.advance(1_000)
  t.same(newcomer.lost, ['its row carries another incarnation'])
  t.equal(old.membership.incarnation, await third)
  t.not(await third, incarnation)
})

void t.test('an earlier process that is known to be over is not waited for', async (t) => {
  const { time, state, machine, start } = cluster()
  const old = await start('a')
  await time.advance(700)
  old.stop()
  const gone = old.membership.incarnation
  const begun: string[] = []
  const over = new Set<string>()
  const newcomer = machine('a', 1, {
    begins: (incarnation) => void begun.push(incarnation),
    isOver: (incarnation) => over.has(incarnation),
  })
  const joining = newcomer.membership.join()
  await time.advance(1_000)
  t.equal(state.members.get('a')!.incarnation, gone, 'nobody knows yet')
  over.add(gone!)
  const knownAt = time.monotonicMs()
  while (newcomer.membership.incarnation === null) await time.advance(10)
  t.ok(time.monotonicMs() < knownAt + 500)
  t.same(begun, [await joining], 'kept before the row was taken')
})

void t.test('a join that comes too late is none', async (t) => {
  const { time, state, machine, start } = cluster()
  const old = await start('a')
  old.stop()
  const newcomer = machine('a')
  once(newcomer, 'join', 'late')
  const joining = newcomer.membership.join()
  joining.catch(() => undefined)
  while (newcomer.late.length === 0) await time.advance(10)
  old.resume()
  await time.advance(20)
  t.equal(old.membership.mayServe(), true)
  for (const land of newcomer.late.splice(0)) t.equal(await land(), 'refused')
  await time.advance(5_000)
  t.equal(state.members.get('a')!.incarnation, old.membership.incarnation)
  newcomer.membership.close()
})

void t.test('a join whose statement is not heard of, lost, late', async (t) => {
  for (const fate of ['unheard', 'lost', 'late'] as const) {
    const { time, state, machine } = cluster()
    const one = machine('a')
    once(one, 'join', fate)
    const began = time.monotonicMs()
    const incarnation = await one.join()
    t.ok(time.monotonicMs() - began < 500)
    for (const land of one.late.splice(0)) await land()
    await time.advance(5_000)
    t.equal(state.members.get('a')!.incarnation, incarnation, fate)
    t.equal(one.membership.mayServe(), true)
    t.same(one.lost, [])
  }
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
    // Long enough for a beat to come between.
    a.delay = (call) => (call === 'state' ? 550 : 0)
    const left = a.membership.left()
    for (let i = 0; i < 50; i++) {
      t.equal(a.membership.mayServe(), false, 'before others can see it')
      await time.advance(20)
    }
    await time.advance(1_000)
    await left
    a.delay = null
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

void t.test('an incarnation that was over before it began', async (t) => {
  const { time, state, machine, start } = cluster()
  const b = await start('b')
  const a = machine('a')
  a.fate = (statement) => {
    if (statement === 'join') a.isAway = true
    return 'unheard'
  }
  const joining = a.membership.join()
  await time.advance(500)
  const first = state.members.get('a')!.incarnation
  await time.advance(4_000)
  t.same(b.declared, ['a'])
  a.isAway = false
  a.fate = null
  await time.advance(1_000)
  t.not(await joining, first)
  t.equal(a.membership.mayServe(), true)
  t.same(a.lost, [], 'nobody has lost what he never had')
})

void t.test('somebody else beats in its name', async (t) => {
  const { time, state, start } = cluster()
  const one = await start('a')
  const row = state.members.get('a')!
  state.members.set('a', { ...row, beat: row.beat + 5 })
  await time.advance(1_000)
  t.same(one.lost, ['the beat has failed'])
  t.equal(one.membership.mayServe(), false)
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
  await time.advance(2 * LIMITS.membership.leaveMs + 500)
  t.equal(isDone, true)
  t.equal(a.membership.mayServe(), false)
  await time.advance(3_000)
  t.same(b.declared, ['a'])
})

void t.test('views', async (t) => {
  const { time, start } = cluster()
  const one = await start('a')
  await time.advance(1_000)
  one.calls.length = 0
  one.delay = () => 30
  // While one read is under way already.
  while (!one.calls.includes('shards')) await time.advance(10)
  await time.advance(15)
  one.calls.length = 0
  const before = time.monotonicMs()
  const asked = [one.membership.refresh(), one.membership.refresh(), one.membership.refresh()]
  await time.advance(600)
  const views = await Promise.all(asked)
  const reads = one.calls.filter((call) => call !== 'beat')
  t.same(reads.slice(0, 3), ['members', 'shards', 'members'], 'shards first, and shared')
  t.ok(reads.length <= 5)
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

void t.test('who was declared dead writes nothing over it when it leaves', async (t) => {
  for (const how of ['startLeaving', 'left'] as const) {
    const { time, state, start } = cluster()
    const one = await start('a')
    const dead = { ...state.members.get('a')!, state: 'dead' as const }
    state.members.set('a', dead)
    let isOver = false
    void one.membership[how]().then(() => (isOver = true))
    await time.advance(100)
    t.equal(isOver, true, 'it has nothing to wait for')
    t.same(state.members.get('a'), dead)
  }
})

void t.test('a view that comes when all is closed is told to nobody', async (t) => {
  const { start } = cluster()
  const { membership } = await start('a')
  const before = membership.view
  let views = 0
  membership.onView(() => views++)
  const reading = membership.refresh()
  membership.close()
  await reading
  t.equal(views, 0)
  t.equal(membership.view, before)
})
