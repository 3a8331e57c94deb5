// How far one step of a projector goes, and what ends it at once. Source: PROTOCOL 3.13.

import t from 'tap'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import { IndexAway, IndexGone } from '../../storage/search.ts'
import { actorIdOf } from './testing/feed-store.ts'
import { A, C, follow, noted, opened, scene, started } from './testing/scene.ts'

overrideLimits({ 'feed.projectorBatchEntries': 4, 'feed.refillReadsTogether': 2 })

t.test('an index that is said to be ahead of the log is of another store', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a')])
  const projector = s.projector()
  await t.rejects(projector.gained(0, 2, 1), IndexGone)
  t.equal(projector.offsets.size, 0)
  await projector.gained(0, 1, 1)
  t.equal(projector.offsets.get(0), 1, 'as far as the log is right')
})

t.test('an index that is away, or gone, is not tried with each actor alone', async (t) => {
  for (const why of [new IndexAway('no answer'), new IndexGone('it was set back', 0)]) {
    const s = scene()
    await s.store.commit([A, opened('a'), noted('n', '1')], [C, opened('c')])
    const projector = await started(s)
    let tries = 0
    s.index.fault = (when) => {
      if (when === 'after') return
      tries++
      throw why
    }
    await t.rejects(projector.step(s.store.heads), why)
    t.equal(tries, 1)
    t.equal(s.parked.length, 0)
    t.equal(projector.offsets.get(0) ?? 0, 0)
    s.index.fault = () => undefined
    await follow(s, projector)
    t.strictSame(s.index.docs(), s.store.expected())
  }
})

t.test('a refill stands back for who waits', async (t) => {
  const s = scene()
  for (let i = 0; i < 12; i++) await s.store.commit([actorIdOf(i, 0), opened(`${i}`)])
  await s.store.flush()
  await s.store.trim()
  const projector = await started(s)
  await projector.step(s.store.heads)
  s.isAwaited = true
  const step = await projector.step(s.store.heads)
  t.match(step, { actors: 4, next: 'now' })
  s.isAwaited = false
  t.match(await projector.step(s.store.heads), { actors: 8 }, 'else it goes on while it has time')
  await follow(s, projector)
  t.strictSame(s.index.docs(), s.store.expected())
})

t.test('without what was parked nothing is followed: it would be passed over', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a')])
  Object.assign(s.store.journal.derived, { parked: () => Promise.reject(new Error('away')) })
  await t.rejects(started(s), { message: 'away' })
  await t.rejects(s.projector().gained(0, null, 1), { message: 'away' })
})

t.test('how new is what the index has of a shard, for as long as it is followed', async (t) => {
  const s = scene()
  s.store.nowMs = 5_000
  await s.store.commit([A, opened('a')])
  s.store.nowMs = 7_000
  await s.store.commit([A, noted('n', '1')])
  const projector = await started(s)
  t.equal(projector.timesMs.get(0), undefined)
  await follow(s, projector)
  t.equal(projector.timesMs.get(0), 7_000)
  projector.lost(0)
  t.equal(projector.timesMs.get(0), undefined)
})
