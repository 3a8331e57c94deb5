// Filling shards of an index from their actors: it keeps its place over failures, restarts and
// changes of owner, and where the log was trimmed meanwhile the index is made anew.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import { IndexAway, IndexGone, type Fill } from '../../storage/search.ts'
import { Projector } from './projector.ts'
import { FeedStore, PlainIndex, actorIdOf, decodeTestSnapshot } from './testing/feed-store.ts'
import { notebookBehaviour } from './testing/notebook.ts'
import { erased, noted, opened } from './testing/scene.ts'

overrideLimits({
  'feed.projectorBatchEntries': 40,
  'feed.refillReadsTogether': 4,
  'feed.refillStepMs': 0,
})

const ACTORS = 300
/** Each has a notebook and a note. */
const NODES = 2 * ACTORS

class Filling {
  readonly behaviour = notebookBehaviour({ fold: false, project: false })
  readonly store = new FeedStore(this.behaviour, { shards: 2, generation: 'g1' })
  readonly index = new PlainIndex()
  readonly resets: IndexGone[] = []
  nowMs = 0
  written = 0
  /** Pages of names that were read. */
  pages = 0
  /** The next writes are taken, then it is away. */
  #left = Number.POSITIVE_INFINITY

  constructor() {
    this.index.fault = (when, writes) => {
      if (when === 'after') return
      if (this.#left <= 0) throw new IndexAway('no answer')
      this.#left -= writes.length
      this.written += writes.length
    }
  }

  /** Actors of both shards, whose log is trimmed. */
  static async of(shards: readonly number[]): Promise<Filling> {
    const f = new Filling()
    for (let i = 0; i < ACTORS; i++) {
      const actorId = actorIdOf(i, shards[i % shards.length]!)
      await f.store.commit([actorId, opened('x'), noted('n', '1')])
    }
    await f.store.flush()
    await f.store.trim()
    return f
  }

  awayAfter(writes: number): void {
    this.#left = writes
  }

  projector(shared: boolean): Projector {
    const { log, derived } = this.store.journal
    return new Projector({
      behaviours: new Map([['notebook', this.behaviour]]),
      log,
      derived: {
        snapshot: (id) => derived.snapshot(id),
        entries: (id, range) => derived.entries(id, range),
        consumer: (shard, consumer) => derived.consumer(shard, consumer),
        parked: (shard, consumer) => derived.parked(shard, consumer),
        actors: (after, limit) => {
          this.pages++
          return derived.actors(after, limit)
        },
      },
      index: this.index,
      decodeSnapshot: decodeTestSnapshot,
      shards: 2,
      park: ({ reason }) => Promise.reject(new Error(reason)),
      unpark: () => Promise.resolve(),
      pause: () => Promise.resolve(),
      shared,
      onReset: (why) => void this.resets.push(why),
      clock: () => (this.nowMs += 10),
    })
  }

  /** Steps, however often it fails, until all is there or nothing gets better. */
  async run(projector: Projector, heads = this.store.heads): Promise<number> {
    let failures = 0
    for (let i = 0; i < 1_000; i++) {
      try {
        if ((await projector.step(heads)).next === 'idle') return failures
      } catch (error) {
        if (!(error instanceof IndexAway)) throw error
        failures++
        this.awayAfter(150)
      }
    }
    throw new Error(`it does not come to an end; ${this.written} documents were written`)
  }

  /** Some steps, until that many documents are written. */
  async until(projector: Projector, written: number, heads = this.store.heads): Promise<void> {
    while (this.written < written) await projector.step(heads)
  }
}

for (const shared of [false, true])
  t.test(
    `an index that fails again and again is filled, ${shared ? 'shared' : 'alone'}`,
    async (t) => {
      const f = await Filling.of([0])
      const projector = f.projector(shared)
      if (shared) await projector.gained(0, null, ACTORS)
      else await projector.start(f.store.heads, 'g1')
      f.awayAfter(150)
      const failures = await f.run(projector, new Map([[0, ACTORS]]))
      t.ok(failures >= 3, `${failures} failures`)
      t.strictSame(f.index.docs(), f.store.expected())
      const again = f.written - NODES
      t.ok(again <= failures * 60, `${again} documents were written again`)
      t.equal(f.index.resets, shared ? 0 : 1, 'it is emptied once')
      t.equal(f.index.fills().size, 0)
    },
  )

t.test('another process goes on where the one before was', async (t) => {
  const f = await Filling.of([0])
  const first = f.projector(false)
  await first.start(f.store.heads, 'g1')
  await f.until(first, NODES / 2)
  f.nowMs += LIMITS.feed.refillKeptMs
  await first.step(f.store.heads)
  const before = f.written
  // What is removed and changed in between is in the log only.
  await f.store.commit([actorIdOf(0, 0), erased('n')], [actorIdOf(ACTORS - 2, 0), erased('n')])
  await f.store.flush()
  const second = f.projector(false)
  t.equal(await second.start(f.store.heads, 'g1'), 'kept')
  await f.run(second)
  t.strictSame(f.index.docs(), f.store.expected())
  t.equal(f.index.resets, 1)
  t.ok(f.written <= NODES + 60, `${f.written} documents for ${NODES}, ${before} by the first`)
})

t.test('a new owner goes on where the one before was, among shards that just begin', async (t) => {
  const f = await Filling.of([0, 1])
  const [one, two] = [f.projector(true), f.projector(true)]
  const heads = (shard: number) => new Map([[shard, f.store.heads.get(shard)!]])
  await one.gained(0, null, heads(0).get(0)!)
  await f.until(one, NODES / 4, heads(0))
  f.nowMs += LIMITS.feed.refillKeptMs
  await one.step(heads(0))
  const fill = f.index.fills().get(0)!
  t.not(fill.after, null)
  // The second has shard 1 of its own, and gets shard 0.
  await two.gained(1, null, heads(1).get(1)!)
  await two.step(heads(1))
  await two.gained(0, null, heads(0).get(0)!, fill)
  t.equal(two.doneWith(0), fill.begun, 'the log from there on is needed')
  const [pages, written] = [f.pages, f.written]
  await f.run(two)
  t.strictSame(f.index.docs(), f.store.expected())
  t.ok(f.written <= NODES + 60, `${f.written} documents for ${NODES}, ${written} before it came`)
  const alone = Math.ceil(NODES / LIMITS.feed.projectorBatchEntries)
  t.ok(f.pages - pages <= alone + 3, `${f.pages - pages} steps: they meet and go on together`)
})

t.test('shards that have what they need are followed while others are filled', async (t) => {
  const f = await Filling.of([0])
  const projector = f.projector(true)
  await projector.gained(0, null, ACTORS)
  await projector.gained(1, 0, 0)
  await f.until(projector, 100)
  await f.store.commit([actorIdOf(1, 1), opened('other')])
  await projector.step(f.store.heads)
  t.equal(projector.offsets.get(1), 1)
  t.equal(f.index.fills().size, 1, 'the other is not there yet')
  await f.run(projector)
  t.strictSame(f.index.docs(), f.store.expected())
})

const trimmedMeanwhile = async (f: Filling): Promise<Fill> => {
  const fill = f.index.fills().get(0)!
  await f.store.commit([actorIdOf(0, 0), erased('n')])
  await f.store.flush()
  await f.store.trim()
  return fill
}

t.test('a log that was trimmed above its beginning: alone it begins again', async (t) => {
  const f = await Filling.of([0])
  const first = f.projector(false)
  await first.start(f.store.heads, 'g1')
  await f.until(first, NODES / 2)
  await trimmedMeanwhile(f)
  const second = f.projector(false)
  await second.start(f.store.heads, 'g1')
  await second.step(f.store.heads)
  t.equal(f.index.resets, 2, 'at once, not when all was written in vain')
  t.match(f.resets.at(-1), { message: /the log of shard 0 no longer reaches down/, shard: 0 })
  t.equal(second.whole, false)
  await f.run(second)
  t.strictSame(f.index.docs(), f.store.expected())
})

t.test('... and one that many fill is given up', async (t) => {
  const f = await Filling.of([0])
  const first = f.projector(true)
  await first.gained(0, null, ACTORS)
  await f.until(first, NODES / 2)
  const fill = await trimmedMeanwhile(f)
  const second = f.projector(true)
  await second.gained(0, null, f.store.heads.get(0)!, fill)
  await t.rejects(second.step(f.store.heads), IndexGone)
  t.equal(f.index.resets, 0)
  // Nobody looked in time: at its end it is noticed all the same.
  await t.rejects(f.run(first), IndexGone)
})

t.test('a shard that is lost and gained with all that it needs is not filled', async (t) => {
  const f = await Filling.of([0])
  const projector = f.projector(true)
  const fill = { shard: 0, begun: ACTORS, after: actorIdOf(9, 0), step: 2 }
  await projector.gained(0, null, ACTORS, fill)
  projector.lost(0)
  await projector.gained(0, ACTORS, ACTORS)
  t.equal((await projector.step(new Map([[0, ACTORS]]))).next, 'idle')
  t.equal(f.written, 0)
})

t.test('that a shard begins to be filled is there before the first of its nodes', async (t) => {
  const f = await Filling.of([0])
  const projector = f.projector(true)
  await projector.gained(0, null, ACTORS)
  let early = 0
  let isAway = true
  f.index.fault = (when, writes) => {
    if (when === 'after') return
    if (writes.length > 0 && f.index.fills().size === 0) early++
    if (isAway) throw new IndexAway('no answer')
  }
  const heads = new Map([[0, ACTORS]])
  for (let i = 0; i < 3; i++) await t.rejects(projector.step(heads), IndexAway)
  isAway = false
  await f.run(projector, heads)
  t.equal(early, 0)
  t.strictSame(f.index.docs(), f.store.expected())
})

t.test('a shard that is lost with its last page is finished by its next owner', async (t) => {
  const f = await Filling.of([0])
  const projector = f.projector(true)
  await projector.gained(0, null, ACTORS)
  const heads = new Map([[0, ACTORS]])
  const { fault } = f.index
  f.index.fault = (when, writes) => {
    fault(when, writes)
    if (f.written === NODES) projector.lost(0)
  }
  await f.until(projector, NODES, heads)
  t.equal(f.index.offsets().get(0), undefined, 'its offset is not this one’s to write any more')
  t.equal(f.index.fills().size, 1)
})

t.test('a shard that is lost while it begins to be filled is its next owner’s', async (t) => {
  const f = await Filling.of([0])
  const projector = f.projector(true)
  await projector.gained(0, null, ACTORS)
  const heads = new Map([[0, ACTORS]])
  const { fault } = f.index
  f.index.fault = (when, writes) => {
    fault(when, writes)
    if (when === 'before') projector.lost(0)
  }
  await projector.step(heads)
  t.equal(f.index.fills().size, 1, 'that it has begun is there for the next one')
  t.equal(projector.doneWith(0), 0, 'and no log is kept for it here')
  f.index.fault = fault
  // One that is filled is passed over.
  await t.rejects(projector.step(heads), IndexGone)
  t.equal(f.written, 0)
})
