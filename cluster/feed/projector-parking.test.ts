// Actors that the projector can't show are parked, each alone: their rows are durable before
// offsets move, and they are tried again.

import t from 'tap'
import { IndexAway, RefusedWrites, type IndexWrite } from '../../storage/search.ts'
import type { ParkedActor } from './projection-batch.ts'
import { Projector } from './projector.ts'
import { decodeTestSnapshot } from './testing/feed-store.ts'
import { notebookBehaviour } from './testing/notebook.ts'
import { A, B, C, erased, follow, noted, opened, scene, started } from './testing/scene.ts'
import { check } from './testing/index-check.ts'

t.test('a record that can not be folded parks its actor only', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a')], [A, { t: 'unfoldable' }], [C, opened('c')])
  const projector = await started(s)
  await follow(s, projector)
  t.strictSame([...s.index.docs().keys()], [`${C} notebook ${C}`])
  t.match(s.parked, [{ actorId: A, shard: 0, offset: 2, type: 'notebook', version: 1 }])
  t.match(s.parked[0]!.reason, /record above version 1.*no meaning/)
  t.equal(s.index.offsets().get(0), 3)
  t.equal(projector.parkedCount, 1)
  await s.store.commit([A, noted('n', 'later')])
  await s.store.flush()
  await follow(s, projector)
  t.equal(s.parked.length, 1, 'it is not tried again by itself')
  projector.retryParked()
  await follow(s, projector)
  t.equal(s.parked.length, 2, 'tried again in vain')
  s.defects.fold = false
  projector.retryParked(A)
  await follow(s, projector)
  check(t, s)
  t.strictSame(s.unparked, [A])
  t.equal(projector.parkedCount, 0)
})

t.test(
  'a state that can not be projected parks; nodes that went meanwhile are removed',
  async (t) => {
    const s = scene()
    await s.store.commit([A, opened('a'), noted('n', '1'), noted('m', '1')])
    const projector = await started(s)
    await follow(s, projector)
    await s.store.commit([A, { t: 'unshowable' }])
    await follow(s, projector)
    await s.store.commit([A, erased('n')])
    await s.store.commit([C, opened('c')])
    await follow(s, projector)
    t.ok(s.index.docs().has(`${A} note n`), 'what was there stays')
    t.ok(s.index.docs().has(`${C} notebook ${C}`))
    s.defects.project = false
    await s.store.flush()
    projector.retryParked()
    await follow(s, projector)
    check(t, s)
  },
)

t.test('what was parked before a restart is tried again then', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a')], [A, { t: 'unfoldable' }])
  await follow(s, await started(s))
  const body = Buffer.from(JSON.stringify(s.parked[0]))
  await s.store.journal.derived.write(0, 9, [
    { kind: 'parked', consumer: 'index', actorId: A, body, offset: 2 },
  ])
  s.defects.fold = false
  const projector = await started(s)
  const steps = await follow(s, projector)
  t.equal(steps.at(-1)!.next, 'later', 'its entries have not arrived yet')
  await s.store.flush()
  await follow(s, projector)
  check(t, s)
  t.strictSame(s.unparked, [A])
})

t.test('the parked row is durable before the offset moves over it', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a'), { t: 'unfoldable' }])
  const { log, derived } = s.store.journal
  let refuse = true
  const rows: string[] = []
  const projector = new Projector({
    behaviours: new Map([['notebook', notebookBehaviour(s.defects)]]),
    log,
    derived,
    index: s.index,
    decodeSnapshot: decodeTestSnapshot,
    shards: 2,
    park: async (actor) => {
      if (refuse) throw new Error('not now')
      rows.push(actor.actorId)
    },
    unpark: () => Promise.resolve(),
    pause: () => Promise.resolve(),
    clock: () => 0,
  })
  await projector.start(s.store.heads, 'g1')
  await t.rejects(projector.step(s.store.heads), { message: 'not now' })
  t.equal(s.index.offsets().get(0), undefined)
  refuse = false
  await projector.step(s.store.heads)
  t.strictSame(rows, [A])
  t.equal(s.index.offsets().get(0), 1)
})

t.test('content that the index refuses: the row of its actor is durable first, too', async (t) => {
  const s = scene()
  s.index.fault = (when, writes) => {
    if (when === 'before' && writes.some(({ actorId }) => actorId === A)) throw new Error('mapping')
  }
  await s.store.commit([A, opened('a')], [C, opened('c')])
  s.refusesRows = true
  const projector = await started(s)
  await t.rejects(projector.step(s.store.heads), { message: 'not now' })
  t.equal(s.index.offsets().get(0), undefined, 'who reads on finds no trace of it')
  s.refusesRows = false
  await projector.step(s.store.heads)
  t.match(s.parked, [{ actorId: A, reason: 'Error: mapping' }])
  t.equal(s.index.offsets().get(0), 2)
})

t.test(
  'content that the index refuses parks its actor, an index that is away parks none',
  async (t) => {
    const s = scene()
    const holds = (writes: readonly IndexWrite[], actorId: string): boolean =>
      writes.some((w) => w.actorId === actorId)
    s.index.fault = (when, writes) => {
      if (when === 'before' && holds(writes, A)) throw new Error('mapping')
    }
    await s.store.commit([A, opened('a')], [C, opened('c')])
    const projector = await started(s)
    await follow(s, projector)
    t.match(s.parked, [{ actorId: A, reason: 'Error: mapping' }])
    t.strictSame([...s.index.docs().keys()], [`${C} notebook ${C}`])
    t.equal(s.index.offsets().get(0), 2)
    s.index.fault = () => {
      throw new Error('disk full')
    }
    await s.store.commit([B, opened('b')])
    await t.rejects(projector.step(s.store.heads), { message: 'disk full' })
    t.equal(s.parked.length, 1)
    s.index.fault = () => undefined
    await s.store.flush()
    projector.retryParked()
    await follow(s, projector)
    check(t, s)
  },
)

t.test('what an engine has refused is shown as it is by then, once it takes it', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a')], [C, opened('c')])
  const projector = await started(s)
  await follow(s, projector)
  s.index.fault = (when, writes) => {
    const isRefused = when === 'after' && writes.some(({ actorId }) => actorId === A)
    if (isRefused) throw new RefusedWrites(new Map([[A, 'mapping']]))
  }
  await s.store.commit([A, noted('n', '1')], [C, noted('m', '1')])
  await follow(s, projector)
  t.match(s.parked, [{ actorId: A, reason: 'mapping' }])
  s.index.fault = () => undefined
  await s.store.commit([A, noted('n', '2')], [A, noted('o', '2')])
  await follow(s, projector)
  await s.store.flush()
  projector.retryParked()
  await follow(s, projector)
  await s.store.commit([A, opened('later')])
  await follow(s, projector)
  check(t, s)
})

t.test('an index that goes away while actors are written one by one parks none', async (t) => {
  const s = scene()
  const holds = (writes: readonly IndexWrite[], actorId: string): boolean =>
    writes.some((w) => w.actorId === actorId)
  s.index.fault = (when, writes) => {
    if (when !== 'before' || !holds(writes, A)) return
    // The batch is refused as a whole; by itself the actor meets an index that is gone.
    throw holds(writes, C) ? new Error('mapping') : new IndexAway('stopped')
  }
  await s.store.commit([A, opened('a')], [C, opened('c')])
  const projector = await started(s)
  await t.rejects(projector.step(s.store.heads), IndexAway)
  t.equal(s.parked.length, 0)
  s.index.fault = () => undefined
  await follow(s, projector)
  check(t, s)
})

t.test('an actor of an unknown type is parked, not lost', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a')])
  const { log, derived } = s.store.journal
  const parked: ParkedActor[] = []
  const projector = new Projector({
    behaviours: new Map(),
    log,
    derived,
    index: s.index,
    decodeSnapshot: decodeTestSnapshot,
    shards: 2,
    park: async (actor) => void parked.push(actor),
    unpark: () => Promise.resolve(),
    pause: () => Promise.resolve(),
    clock: () => 0,
  })
  await projector.start(s.store.heads, 'g1')
  await projector.step(s.store.heads)
  t.match(parked, [{ actorId: A, reason: /no actor type 'notebook'/ }])
})

t.test('an index that takes nothing at all parks none again', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a')])
  const projector = await started(s)
  await follow(s, projector)
  s.index.fault = (when, writes) => {
    if (when === 'after' && writes.length > 0) throw new RefusedWrites(new Map([[A, 'mapping']]))
  }
  await s.store.commit([A, noted('n', '1')])
  await follow(s, projector)
  t.equal(s.parked.length, 1)
  s.index.fault = (when) => {
    if (when === 'before') throw new Error('full')
  }
  await s.store.flush()
  projector.retryParked()
  await t.rejects(projector.step(s.store.heads), /full/)
  s.index.fault = () => undefined
  await follow(s, projector)
  t.equal(projector.parkedCount, 0)
  check(t, s)
})
