// Rolls of a segmented log: the next segment is begun in order and within its limits, whatever step
// is not heard of, lost, late, or the last before a crash.

import t from 'tap'
import { MemoryControl } from '../../storage/memory/statements.ts'
import { audit, newState, takeShard } from './testing/engine.ts'
import { BAD, LARGE, SMALL, append, land, of, once, owner, resolve } from './testing/owner.ts'

void t.test('a roll whose steps are not heard of, lost, late', async (t) => {
  for (const kind of ['seal', 'open', 'hint'] as const) {
    for (const fate of BAD) {
      const state = newState()
      const one = owner(state, SMALL)
      const { epoch } = await one.claim()
      t.equal(await append(one, of(epoch, 0)), 'committed')
      t.equal(await append(one, of(epoch, 1, 4)), 'committed')
      once(one.engine, kind, fate)
      t.equal(await resolve(one, of(epoch, 5)), 'committed', `${kind} ${fate}`)
      await land(one.engine)
      for (let head = 6; head < 12; head++) {
        t.equal(await append(one, of(epoch, head)), 'committed')
      }
      const { wrong, commits, segments } = await audit(state, 0)
      t.same(wrong, [])
      t.equal(commits.length, 9)
      t.equal(segments.length, 5)
      t.same(one.bugs, [])
      const next = owner(state)
      t.equal((await next.claim()).head, 12)
    }
  }
})

void t.test('the steps of a roll are in order', async (t) => {
  const state = newState()
  const one = owner(state, SMALL)
  const { epoch } = await one.claim()
  for (let head = 0; head < 2; head++) await append(one, of(epoch, head))
  one.engine.calls.length = 0
  t.equal(await append(one, of(epoch, 2)), 'committed')
  t.same(one.engine.calls, ['seal', 'open', 'hint', 'append'])
})

void t.test('limits of a segment: bytes, and entries over all owners', async (t) => {
  const state = newState()
  const one = owner(state, { ...LARGE, bytesMax: 1_000 })
  const { epoch } = await one.claim()
  for (let head = 0; head < 6; head++) {
    const body = Buffer.alloc(400)
    await append(one, { ...of(epoch, head), body })
  }
  t.same(
    (await audit(state, 0)).segments.map(({ head }) => head),
    [3, 6],
  )
  for (let i = 0; i < 4; i++) {
    const next = owner(state, { ...LARGE, entriesMax: 3 })
    const claimed = await next.claim()
    t.equal(await append(next, of(claimed.epoch, claimed.head)), 'committed')
  }
  t.same(
    (await audit(state, 0)).segments.map(({ head }) => head),
    [3, 6, 9, 10],
  )
  t.same((await audit(state, 0)).wrong, [])
})

void t.test('a crash between any two steps of a roll', async (t) => {
  for (const kind of ['seal', 'open', 'hint', 'append'] as const) {
    for (const fate of BAD) {
      const state = newState()
      const [old, now] = [owner(state, SMALL), owner(state, SMALL)]
      const { epoch } = await old.claim()
      for (let head = 0; head < 4; head++) await append(old, of(epoch, head))
      // From this statement on nothing that it sends is heard of.
      let isDead = false
      old.engine.fate = (sent) => {
        if (sent === kind) isDead = true
        return isDead ? fate : 'heard'
      }
      const last = of(epoch, 4)
      const outcome = await append(old, last)
      t.equal(outcome, kind === 'hint' && fate !== 'lost' ? 'unknown' : outcome)
      const claimed = await now.claim()
      await land(old.engine)
      const { wrong, commits } = await audit(state, 0)
      t.same(wrong, [], `${kind} ${fate}`)
      t.equal(claimed.head, commits.length)
      const { length } = (await audit(state, 0)).segments
      t.equal(state.shards.get(0)!.segment, length, 'a claim brings the hint up')
      t.equal(commits.includes(last.commitId), claimed.head === 5)
      t.equal(await append(now, of(claimed.epoch, claimed.head)), 'committed')
      old.engine.fate = null
      t.equal(await append(old, last), claimed.head === 5 ? 'committed' : 'fenced')
      t.equal(await append(old, of(epoch, 5)), 'fenced')
      t.same((await audit(state, 0)).wrong, [])
      t.same([old.bugs, now.bugs], [[], []])
    }
  }
})

void t.test('a hint that a newer owner refuses ends the roll', async (t) => {
  const state = newState()
  const one = owner(state, SMALL)
  const { epoch } = await one.claim()
  for (let head = 0; head < 2; head++) await append(one, of(epoch, head))
  one.engine.pause = async (kind) => {
    if (kind !== 'hint') return
    one.engine.pause = null
    await takeShard(state, 0, 'two')
  }
  const sent = of(epoch, 2)
  t.equal(await append(one, sent), 'fenced')
  t.equal((await audit(state, 0)).commits.length, 2)
  const { segment } = await new MemoryControl(state).shard(0)
  t.equal(segment, 1)
  t.same(one.bugs, [])
})
