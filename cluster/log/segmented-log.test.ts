// The log over segments, statement by statement: what is answered and what is in the store when a
// statement is applied but not heard of, lost, or late.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { freshUuid } from '../../storage/conformance/journal-samples.ts'
import { LostTenure } from '../../storage/journal.ts'
import { MemorySegments } from '../../storage/memory/statements.ts'
import { audit, newState, takeShard } from './testing/engine.ts'
import { BAD, SMALL, append, land, of, once, owner, patiently } from './testing/owner.ts'

void t.test('an append whose answer does not come', async (t) => {
  for (const fate of BAD) {
    const state = newState()
    const one = owner(state)
    const { epoch } = await one.claim()
    const first = of(epoch, 0, 3)
    once(one.engine, 'append', fate)
    t.equal(await append(one, first), 'unknown')
    const isIn = fate === 'unheard'
    t.equal((await one.log.status(0)).head, isIn ? 3 : 0)
    t.equal((await one.log.status(0)).lastCommit, isIn ? first.commitId : null)
    t.equal(await append(one, first), 'committed', `the same bytes again, ${fate}`)
    await land(one.engine)
    t.equal(await append(one, of(epoch, 3)), 'committed')
    const { wrong, commits } = await audit(state, 0)
    t.same(wrong, [])
    t.equal(commits.length, 2)
    t.same(one.bugs, [])
  }
})

void t.test('a first copy that lands before the second', async (t) => {
  const state = newState()
  const one = owner(state)
  const { epoch } = await one.claim()
  const first = of(epoch, 0)
  once(one.engine, 'append', 'late')
  t.equal(await append(one, first), 'unknown')
  await land(one.engine)
  t.equal(await append(one, first), 'committed', 'refused, and yet it is in')
  t.equal((await audit(state, 0)).commits.length, 1)
  t.same(one.bugs, [])
})

void t.test('what status has shown as committed need not be said to the log', async (t) => {
  const state = newState()
  const one = owner(state, SMALL)
  const { epoch } = await one.claim()
  for (let head = 0; head < 6; head++) {
    const sent = of(epoch, head)
    once(one.engine, 'append', 'unheard')
    t.equal(await append(one, sent), 'unknown')
    t.equal((await one.log.status(0)).lastCommit, sent.commitId)
  }
  t.same((await audit(state, 0)).wrong, [])
  t.equal((await audit(state, 0)).segments.length, 3, 'and they count for the roll')
})

void t.test('other bytes never take the place of unresolved ones', async (t) => {
  const state = newState()
  const one = owner(state)
  const { epoch } = await one.claim()
  const first = of(epoch, 0)
  once(one.engine, 'append', 'late')
  t.equal(await append(one, first), 'unknown')
  t.equal(await append(one, of(epoch, 0)), 'fenced')
  t.equal(one.bugs.length, 1)
  await land(one.engine)
  t.same((await audit(state, 0)).commits, [first.commitId])
})

void t.test('a fenced owner', async (t) => {
  const state = newState()
  const [old, now] = [owner(state), owner(state)]
  const { epoch } = await old.claim()
  t.equal(await append(old, of(epoch, 0)), 'committed')
  const [late, unheard] = [of(epoch, 1), of(epoch, 1)]
  once(old.engine, 'append', 'late')
  t.equal(await append(old, late), 'unknown')
  const claimed = await now.claim()
  t.same(claimed, { epoch: epoch + 1, head: 1, flush: 0 })
  t.equal(await append(old, late), 'fenced')
  await land(old.engine)
  t.equal((await audit(state, 0)).commits.length, 1, 'its late append is false for ever')
  t.equal(await append(now, of(claimed.epoch, 1)), 'committed')

  // One that did land before the fence is in, and its sender may say so.
  once(now.engine, 'append', 'unheard')
  const sent = { ...unheard, epoch: claimed.epoch, head: 2 }
  t.equal(await append(now, sent), 'unknown')
  const newest = await old.claim()
  t.equal(newest.head, 3)
  t.equal(await append(old, of(newest.epoch, 3)), 'committed')
  t.equal(await append(now, sent), 'committed')
  t.equal(await append(now, of(claimed.epoch, 3)), 'fenced')
  t.same([old.bugs, now.bugs], [[], []])
  t.equal(await now.log.epochNow(0), newest.epoch)
})

void t.test('what a store says of a log that others go on with', async (t) => {
  const state = newState()
  const [old, now] = [owner(state, SMALL), owner(state, SMALL)]
  const { epoch } = await old.claim()
  t.equal(await append(old, of(epoch, 0)), 'committed')
  const claimed = await now.claim()
  const sent = Array.from({ length: 7 }, (_, i) => of(claimed.epoch, 1 + i))
  for (const one of sent) t.equal(await append(now, one), 'committed')
  const status = { epoch: claimed.epoch, head: 8, lastCommit: sent.at(-1)!.commitId }
  t.same(await old.log.status(0), status, 'over the segments that it does not know')
  t.same(await owner(state).log.status(0), status)
  t.equal(await append(old, of(epoch, 1)), 'fenced')
})

void t.test('what can not be raises the alarm', async (t) => {
  const state = newState()
  const one = owner(state)
  const { epoch } = await one.claim()
  t.equal(await append(one, of(epoch + 1, 0)), 'fenced', 'an epoch that nobody claimed')
  t.equal(one.bugs.length, 1)
  t.equal(await append(one, of(epoch, 7)), 'fenced', 'a head that is not there')
  t.equal(one.bugs.length, 2)
  // Somebody else writes in this owner's name.
  await new MemorySegments(state).append(1, of(epoch, 0))
  t.equal(await append(one, of(epoch, 0)), 'fenced')
  t.equal(one.bugs.length, 3)
  t.match(one.bugs[2], /offsets 1 to 1/)
  await t.rejects(one.log.claim(0), { message: /control rows/ })
})

void t.test('a log that its owner closes for the next', async (t) => {
  for (const fate of ['heard', ...BAD] as const) {
    const state = newState()
    const [old, next] = [owner(state, SMALL), owner(state, SMALL)]
    const { epoch } = await old.claim()
    for (const head of [0, 1, 2]) t.equal(await append(old, of(epoch, head)), 'committed')
    t.equal(await old.log.close(0, { epoch: epoch - 1, head: 3 }), null, 'of another tenure')
    once(old.engine, 'fence', fate)
    const end = await old.log.close(0, { epoch, head: 3 })
    const isClosed = fate === 'heard' || fate === 'unheard'
    t.same(end, isClosed ? { segment: 2, base: 2, head: 3 } : null, fate)
    const tenure = await takeShard(state, 0, freshUuid())
    const claimed = await next.log.claim(0, {
      ...tenure,
      ...(end && { end: { ...end, flush: 1 } }),
    })
    t.same(claimed, { epoch: epoch + 1, head: 3, flush: isClosed ? 1 : 0 })
    t.equal(next.engine.calls.includes('fence'), !isClosed)
    await land(old.engine)
    t.equal(await append(old, of(epoch, 3)), 'fenced')
    for (const head of [3, 4, 5]) {
      t.equal(await append(next, of(claimed.epoch, head)), 'committed')
    }
    const { wrong, commits } = await audit(state, 0)
    t.same(wrong, [])
    t.equal(commits.length, 6)
    t.same([old.bugs, next.bugs], [[], []])
  }
})

void t.test(
  'a log that the next owner has gone on with is not closed where it ended',
  async (t) => {
    const state = newState()
    const [old, next] = [owner(state), owner(state)]
    const { epoch } = await old.claim()
    for (const head of [0, 1]) t.equal(await append(old, of(epoch, head)), 'committed')
    const claimed = await next.claim()
    t.equal(await append(next, of(claimed.epoch, 2)), 'committed')
    t.equal(await old.log.close(0, { epoch, head: 2 }), null)
    t.equal(await append(next, of(claimed.epoch, 3)), 'committed')
    t.same((await audit(state, 0)).wrong, [])
  },
)

void t.test('one append of a shard at a time', async (t) => {
  const one = owner(newState())
  const { epoch } = await one.claim()
  const first = of(epoch, 0)
  t.same(await Promise.all([append(one, first), append(one, first)]), ['committed', 'fenced'])
  t.equal(one.bugs.length, 1)
  t.equal(await append(one, of(epoch, 1)), 'committed')
})

void t.test('a claim whose steps are not heard of, lost, late', async (t) => {
  for (const kind of ['fence', 'open'] as const) {
    for (const fate of BAD) {
      const state = newState()
      const [old, now] = [owner(state, SMALL), owner(state, SMALL)]
      const { epoch } = await old.claim()
      for (let head = 0; head < 2; head++) await append(old, of(epoch, head))
      // It dies between seal and open.
      once(old.engine, 'open', 'lost')
      t.equal(await append(old, of(epoch, 2)), 'unknown')
      once(now.engine, kind, fate)
      const claimed = await patiently(now, now.claim())
      t.same(claimed, { epoch: epoch + 1, head: 2, flush: 0 }, `${kind} ${fate}`)
      await land(now.engine)
      t.equal(await append(now, of(claimed.epoch, 2)), 'committed')
      t.equal(await append(old, of(epoch, 2)), 'fenced')
      t.same((await audit(state, 0)).wrong, [])
      t.same([old.bugs, now.bugs], [[], []])
    }
  }
})

void t.test('a claim that ends behind a newer one of its own process', async (t) => {
  const state = newState()
  const one = owner(state)
  const first = one.claim()
  let goOn = (): void => undefined
  const held = new Promise<void>((resolve) => (goOn = resolve))
  // Fenced and looked at, and before that is heard of.
  let looks = 0
  const looked = new Promise<void>((resolve) => {
    one.engine.pause = async (kind) => {
      if (kind !== 'statics' || ++looks !== 2) return
      resolve()
      await held
    }
  })
  first.catch(() => undefined)
  await looked
  const newer = await one.claim()
  goOn()
  await t.rejects(first, LostTenure)
  t.equal(await append(one, of(newer.epoch, 0)), 'committed')
  t.same(one.bugs, [])
})

void t.test('a claim asks again soon, and then in steps that have a bound', async (t) => {
  const state = newState()
  const one = owner(state)
  const tenure = await takeShard(state, 0, 'one')
  const asked: number[] = []
  one.engine.pause = async (kind) => {
    if (kind === 'fence') asked.push(one.clock.monotonicMs())
    throw new Error('away')
  }
  const claim = one.log.claim(0, tenure)
  claim.catch(() => undefined)
  for (let i = 0; i < 300; i++) await one.clock.advance(LIMITS.log.claimRetryMs / 2)
  await t.rejects(claim, { message: /in time/ })
  const gaps = asked.slice(1).map((at, i) => at - asked[i]!)
  t.equal(gaps[0], LIMITS.log.claimRetryMs)
  t.equal(gaps[1], 2 * LIMITS.log.claimRetryMs)
  t.equal(Math.max(...gaps), LIMITS.log.claimRetryMsMax)
})

void t.test('a claim of a log that can not be ends at once', async (t) => {
  const state = newState()
  const one = owner(state)
  const { epoch } = await takeShard(state, 0, 'one')
  await t.rejects(one.log.claim(0, { epoch, segment: 7 }), { message: /was never opened/ })
  t.equal(one.bugs.length, 1, 'it raises the alarm instead of waiting for the store')
})

void t.test('a claim meets somebody newer', async (t) => {
  const state = newState()
  const [one, two] = [owner(state, SMALL), owner(state, SMALL)]
  const { epoch } = await one.claim()
  for (let head = 0; head < 5; head++) await append(one, of(epoch, head))
  const stale = { epoch: epoch + 1, segment: 1 }
  await takeShard(state, 0, 'stale')
  const newest = await two.claim()
  t.equal(newest.epoch, epoch + 2)
  await t.rejects(one.log.claim(0, stale), LostTenure)
  await t.rejects(one.log.claim(0, { ...stale, segment: 3 }), LostTenure)
  t.equal(await append(two, of(newest.epoch, 5)), 'committed')
})

void t.test(
  'a claim is given up when the store is away, and succeeds when it is back',
  async (t) => {
    const state = newState()
    const one = owner(state)
    const tenure = await takeShard(state, 0, 'one')
    one.engine.pause = () => Promise.reject(new Error('away'))
    const began = one.clock.monotonicMs()
    await t.rejects(patiently(one, one.log.claim(0, tenure)), {
      message: /has not answered in time/,
    })
    t.ok(one.clock.monotonicMs() - began <= LIMITS.log.claimMs + 200)
    const again = one.log.claim(0, tenure)
    await one.clock.advance(1_000)
    one.engine.pause = null
    t.same(await patiently(one, again), { epoch: 1, head: 0, flush: 0 })
  },
)

void t.test('reads that fail leave an outcome unknown', async (t) => {
  const state = newState()
  const one = owner(state)
  const { epoch } = await one.claim()
  const sent = of(epoch, 0)
  once(one.engine, 'append', 'late')
  t.equal(await append(one, sent), 'unknown')
  await land(one.engine)
  one.engine.pause = (kind) =>
    kind === 'statics' ? Promise.reject(new Error('away')) : Promise.resolve()
  t.equal(await append(one, sent), 'unknown', 'refused, but why is not known')
  await t.rejects(one.log.status(0), { message: 'away' })
  one.engine.pause = null
  t.equal(await append(one, sent), 'committed')
})
