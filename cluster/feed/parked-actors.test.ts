// Actors that are set aside: only for what is their own fault, with a row before anything moves
// over them, tried again when somebody asks for it and not by themselves. Source: PROTOCOL 3.11.

import t from 'tap'
import { IndexAway } from '../../storage/search.ts'
import { ParkedActors } from './parked-actors.ts'
import { ActorStates } from './actor-states.ts'
import { actorIdOf, decodeTestSnapshot } from './testing/feed-store.ts'
import { notebookBehaviour } from './testing/notebook.ts'
import { A, C, follow, noted, opened, scene, started } from './testing/scene.ts'
import type { Scene } from './testing/scene.ts'

/** An actor that can't be shown any more, and others that can. */
async function withParked(count = 1): Promise<Scene> {
  const s = scene()
  for (let i = 0; i < count; i++) {
    await s.store.commit([actorIdOf(i, 0), opened('a'), { t: 'unshowable' }])
  }
  return s
}

t.test('a store that is away is nobody’s fault', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a')])
  await follow(s, await started(s))
  await s.store.flush()
  await s.store.commit([A, noted('n', '1')])
  const projector = await started(s)
  const { derived } = s.store.journal
  const { entries } = derived
  derived.entries = () => Promise.reject(new Error('away'))
  await t.rejects(projector.step(s.store.heads), { message: 'away' })
  t.same([s.parked, projector.parkedCount], [[], 0])
  derived.entries = entries
  await follow(s, projector)
  t.strictSame(s.index.docs(), s.store.expected())
})

t.test('tried again in vain: once, and it counts as one', async (t) => {
  const s = await withParked()
  const projector = await started(s)
  await follow(s, projector)
  await s.store.flush()
  projector.retryParked()
  for (let i = 0; i < 3; i++) await projector.step(s.store.heads)
  t.equal(s.parked.length, 2)
  t.equal(projector.parkedCount, 1)
})

t.test('an index that is away while one returns parks it no second time', async (t) => {
  const s = await withParked()
  const projector = await started(s)
  await follow(s, projector)
  await s.store.flush()
  s.defects.project = false
  s.index.fault = (_, writes) => {
    if (writes.length > 0) throw new IndexAway('no answer')
  }
  projector.retryParked()
  await t.rejects(projector.step(s.store.heads), IndexAway)
  t.equal(s.parked.length, 1)
  s.index.fault = () => undefined
  await follow(s, projector)
  t.strictSame(s.index.docs(), s.store.expected())
  t.same(s.unparked, [actorIdOf(0, 0)])
})

t.test('some return with each step, others have their turn in between', async (t) => {
  const s = await withParked(40)
  const projector = await started(s)
  await follow(s, projector)
  await s.store.flush()
  s.defects.project = false
  projector.retryParked()
  const returned: number[] = []
  for (let next = ''; next !== 'idle';) {
    next = (await projector.step(s.store.heads)).next
    returned.push(s.unparked.length)
  }
  t.same(returned, [16, 32, 40])
  t.strictSame(s.index.docs(), s.store.expected())
})

t.test('its place is that of the newest entry that it has', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a')], [C, opened('c')], [A, { t: 'unshowable' }])
  await follow(s, await started(s))
  t.match(s.parked, [{ actorId: A, offset: 3, version: 2 }])
})

t.test('one whose row is not durable yet is not tried again before it is', async (t) => {
  const s = scene()
  const behaviours = new Map([['notebook', notebookBehaviour(s.defects)]])
  const { derived } = s.store.journal
  const states = new ActorStates({ behaviours, derived, decodeSnapshot: decodeTestSnapshot })
  const rows: string[] = []
  let isAway = true
  const parked = new ParkedActors(
    {
      derived,
      index: s.index,
      park: async ({ actorId }) => {
        if (isAway) throw new Error('away')
        rows.push(actorId)
      },
      unpark: () => Promise.resolve(),
    },
    states,
  )
  const at = { shard: 0, offset: 1, version: 1, nodes: [], reason: 'as asked' }
  parked.add({ actorId: A, type: 'notebook', ...at })
  await t.rejects(parked.save(), { message: 'away' })
  parked.retry(new Map())
  t.ok(parked.has(A), 'its offset may not move over it')
  isAway = false
  await parked.save()
  t.same(rows, [A])
  parked.retry(new Map())
  t.notOk(parked.has(A))
})
