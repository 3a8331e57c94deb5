// The projector on the twins: what the index holds must be what the actors are, whatever fails,
// repeats, lags or is trimmed on the way.

import t, { type Test } from 'tap'
import { IndexAway, RefusedWrites, type IndexWrite } from '../../storage/search.ts'
import type { ParkedActor } from './projection-batch.ts'
import { Projector, type Step } from './projector.ts'
import { actorIdOf, decodeTestSnapshot } from './testing/feed-store.ts'
import { notebookBehaviour } from './testing/notebook.ts'
import {
  A,
  B,
  C,
  type Scene,
  erased,
  follow,
  noted,
  opened,
  scene,
  started,
} from './testing/scene.ts'

function check(t: Test, s: Scene): void {
  t.strictSame(s.index.docs(), s.store.expected())
  for (const [shard, head] of s.store.heads) t.equal(s.index.offsets().get(shard) ?? 0, head)
}

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
