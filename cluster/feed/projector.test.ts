// The projector on the twins: what the index holds must be what the actors are, whatever fails,
// repeats, lags or is trimmed on the way.

import t from 'tap'
import type { Step } from './projector-options.ts'
import { actorIdOf } from './testing/feed-store.ts'
import { A, B, C, erased, follow, noted, opened, scene, started } from './testing/scene.ts'
import { check } from './testing/index-check.ts'

t.test('follows the shards and writes what the actors are', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('one'), noted('n1', 'x')], [C, opened('three')])
  await s.store.commit([B, opened('two')])
  const projector = await started(s)
  await follow(s, projector)
  t.equal(s.index.docs().size, 4)
  check(t, s)
  await s.store.commit([A, noted('n2', 'y')], [A], [C, opened('other')])
  t.equal((await follow(s, projector))[0]!.entries, 3)
  check(t, s)
})

t.test('a node is written once per batch, with its newest content and version', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('one')], [A, noted('n', 'a')], [A, noted('n', 'b'), opened('z')])
  await follow(s, await started(s))
  const writes = s.index.applied.flat()
  t.strictSame(
    writes.map((w) => [w.node, w.version, w.doc]),
    [
      ['notebook', 4, { notebookId: A, title: 'z', size: 1 }],
      ['note', 4, { noteId: 'n', text: 'b', notebookId: A }],
    ],
  )
})

t.test('nodes that go are removed, with the actor or alone', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('one'), noted('n1', 'x'), noted('n2', 'y')])
  const projector = await started(s)
  await follow(s, projector)
  await s.store.commit([A, erased('n1')])
  await follow(s, projector)
  check(t, s)
  t.equal(s.index.docs().size, 2)
  await s.store.commit([A, { t: 'closed', notes: ['n2'] }])
  await follow(s, projector)
  check(t, s)
  t.equal(s.index.docs().size, 0)
})

t.test('bounds of a batch are kept, and no shard starves', async (t) => {
  const s = scene()
  for (let i = 0; i < 20; i++) await s.store.commit([actorIdOf(100 + i, 0), opened(`${i}`)])
  await s.store.commit([B, opened('b')])
  const projector = await started(s, { entries: 2 })
  const steps: Step[] = []
  while (!s.index.docs().has(`${B} notebook ${B}`)) {
    steps.push(await projector.step(s.store.heads))
    t.ok(steps.at(-1)!.entries <= 2)
    t.ok(steps.length <= 2, 'the other shard gets its turn')
  }
  await follow(s, projector)
  check(t, s)
})

t.test('somebody who waits gets smaller batches', async (t) => {
  const s = scene()
  for (let i = 0; i < 9; i++) await s.store.commit([actorIdOf(i, 0), opened(`n${i}`)])
  const projector = await started(s, { entries: 8 })
  s.isAwaited = true
  t.match(await projector.step(s.store.heads), { entries: 2, next: 'now' })
  s.isAwaited = false
  t.match(await projector.step(s.store.heads), { entries: 7, next: 'idle' })
  check(t, s)
})

t.test('a step also ends by time', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a')])
  await s.store.commit([B, opened('b')])
  const projector = await started(s, { ms: 0 })
  const step = await projector.step(s.store.heads)
  t.match(step, { entries: 1, next: 'now' })
})

t.test('rows above the given head are not taken: they may not be durable', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a')])
  const early = new Map(s.store.heads)
  await s.store.commit([A, opened('b')])
  const projector = s.projector()
  await projector.start(early, 'g1')
  await projector.step(early)
  t.equal(s.index.offsets().get(0), 1)
})

t.test('an actor that is not in memory is read: snapshot, then the entries above it', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a'), noted('n', '1')])
  await follow(s, await started(s))
  await s.store.flush()
  await s.store.snapshot(A)
  await s.store.commit([A, noted('m', '2')])
  await s.store.commit([A, noted('n', '3')])
  await s.store.flush()
  await follow(s, await started(s))
  check(t, s)
  t.equal(s.parked.length, 0)
})

t.test('missing derived rows are waited for, never guessed; others go on', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a')])
  await follow(s, await started(s))
  await s.store.commit([A, noted('n', '1')])
  await s.store.commit([B, opened('b')])
  const projector = await started(s)
  const steps = await follow(s, projector)
  t.equal(steps.at(-1)!.next, 'later')
  t.equal(s.index.offsets().get(0), 1)
  t.equal(s.index.offsets().get(1), 1)
  await s.store.flush()
  await follow(s, projector)
  check(t, s)
})

t.test('derived rows that end too early are waited for as well', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a')], [A, opened('b')])
  await follow(s, await started(s))
  await s.store.flush(1)
  await s.store.commit([A, noted('n', '1')])
  const projector = await started(s)
  const steps = await follow(s, projector)
  t.equal(steps.at(-1)!.next, 'later')
  t.equal(s.index.offsets().get(0), 2)
  await s.store.flush()
  await follow(s, projector)
  check(t, s)
})

t.test('an index of another store, or ahead of the log, is filled anew', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a')])
  t.equal(await s.projector().start(s.store.heads, 'g1'), 'reset')
  await follow(s, await started(s))
  t.equal(s.index.resets, 1)
  s.generation = 'g2'
  await follow(s, await started(s))
  t.equal(s.index.resets, 2)
  check(t, s)
  s.index.apply([], [{ shard: 1, offset: 7 }])
  t.equal(await s.projector().start(s.store.heads, 'g2'), 'reset')
  await follow(s, await started(s))
  check(t, s)
})

t.test('below a trimmed log the actors themselves are read', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a'), noted('n', '1')], [C, opened('c')])
  await s.store.commit([B, opened('b')])
  await s.store.flush()
  await s.store.trim()
  await s.store.commit([A, noted('m', '2')])
  await follow(s, await started(s))
  check(t, s)
  t.equal(s.index.resets, 1)
  // Now the index stays behind while the log is trimmed: what went in between is in no entry.
  await s.store.commit([A, erased('n')])
  await s.store.flush()
  await s.store.trim()
  await follow(s, await started(s))
  t.equal(s.index.resets, 2)
  check(t, s)
})

for (const restarted of [true, false])
  t.test('a rebuild that was cut off begins again', async (t) => {
    const s = scene()
    for (let i = 0; i < 5; i++)
      await s.store.commit([actorIdOf(i, 0), opened('x'), noted('n', '1')])
    await s.store.flush()
    await s.store.trim()
    let left = 0
    s.index.fault = (when) => {
      if (when === 'after' && left-- === 0) throw new Error('power cut')
    }
    const projector = await started(s)
    await t.rejects(follow(s, projector), { message: 'power cut' })
    s.index.fault = () => undefined
    await s.store.commit([actorIdOf(0, 0), erased('n')])
    await s.store.flush()
    await s.store.trim()
    await follow(s, restarted ? await started(s) : projector)
    check(t, s)
  })

t.test('an index that took a refused batch all the same is emptied before a rebuild', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a'), noted('n', '1')])
  await s.store.flush()
  const projector = await started(s)
  s.index.fault = (when) => {
    if (when === 'after') throw new Error('unknown outcome')
  }
  await t.rejects(projector.step(s.store.heads), { message: 'unknown outcome' })
  s.index.fault = () => undefined
  await s.store.commit([A, { t: 'closed', notes: ['n'] }])
  await s.store.trim()
  await s.store.flush()
  await follow(s, projector)
  check(t, s)
})

t.test('a shard that goes takes only its own actors from those that return', async (t) => {
  const s = scene()
  await s.store.commit([A, opened('a'), noted('n', '1')])
  await s.store.commit([B, opened('b'), noted('m', '1')])
  const projector = await started(s)
  await follow(s, projector)
  await s.store.commit([A, { t: 'unshowable' }, erased('n')])
  await s.store.commit([B, { t: 'unshowable' }, erased('m')])
  await follow(s, projector)
  s.defects.project = false
  projector.retryParked()
  projector.lost(0)
  await s.store.flush()
  const left = new Map([[1, s.store.heads.get(1)!]])
  t.equal((await projector.step(left)).next, 'idle')
  t.strictSame(s.unparked, [B])
  t.notOk(s.index.docs().has(`${B} note m`))
})
