// One generation's feed by itself: when it tries again and when it sleeps, which shards it follows,
// and what it says of those that it can't go on with.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { RecentRows } from '../../../cluster/feed/recent-rows.ts'
import { FeedStore, decodeTestSnapshot } from '../../../cluster/feed/testing/feed-store.ts'
import { notebookBehaviour } from '../../../cluster/feed/testing/notebook.ts'
import { A, B, erased, noted, opened } from '../../../cluster/feed/testing/scene.ts'
import { latch } from '../../../cluster/sharding/testing/scene.ts'
import { TestClock, settle } from '../../../cluster/testing/harness.ts'
import type { ActorRecord } from '../../../protocol/behaviour.ts'
import { graphSchema } from '../../../protocol/graph/schema.ts'
import { Generations } from '../../../storage/elastic/generations.ts'
import { layoutOf } from '../../../storage/elastic/layout.ts'
import { MemorySearchEngine } from '../../../storage/memory/search-engine.ts'
import type { EngineHooks } from '../../../storage/memory/search-engine.ts'
import { IndexFeed } from './index-feed.ts'
import { IndexRegisters } from './index-registers.ts'

/** A feed of generation 1 on two shards, of which it has none yet. */
async function makeFeed() {
  const clock = new TestClock()
  const defects = { fold: false, project: true }
  const behaviour = notebookBehaviour(defects)
  const store = new FeedStore(behaviour, { shards: 2, generation: 'g1' })
  const hooks: EngineHooks = {}
  const nowMs = (): number => clock.monotonicMs()
  const engine = new MemorySearchEngine({ nowMs, hooks, gcDeletesMs: 100 })
  const layout = layoutOf(graphSchema(behaviour.nodeTypes))
  const generations = new Generations({ engine, prefix: 't-', layout, store: 'g1' })
  await generations.make(1)
  const { derived, log } = store.journal
  const epochs = new Map<number, number>()
  const registers = new IndexRegisters(derived, (shard) => epochs.get(shard) ?? null)
  const counts = { entries: 0, writes: 0, batches: 0, batchMs: 0, failures: 0, actors: 0, gone: 0 }
  const quiet = (): void => undefined
  const scene = {
    ...{ clock, defects, store, hooks, engine, registers, stats: counts },
    /** Steps that have ended well. */
    steps: 0,
    isAwaited: false,
    isServed: true,
    feed: null as unknown as IndexFeed,
    async gains(shard: number): Promise<void> {
      epochs.set(shard, await store.claim(shard))
      scene.feed.gained(shard)
    },
    loses(shard: number): void {
      epochs.delete(shard)
      scene.feed.lost(shard)
    },
    async commits(entry: readonly [string, ...ActorRecord[]]): Promise<void> {
      await store.commit(entry)
      scene.feed.wake()
    },
    /** Has come to the head of its shards. */
    isAt: (shard: number): boolean => scene.feed.applied(shard) === store.heads.get(shard),
  }
  scene.feed = new IndexFeed({
    ...{ generation: 1, engine, layout, registers, clock, stats: counts, decodeSnapshot },
    rows: new Set(layout.nodes.keys()),
    writeAliasOf: (name) => generations.writeAliasOf(1, name),
    behaviours: new Map([['notebook', behaviour]]),
    derived,
    recent: new RecentRows(log, 1),
    shards: 2,
    headOf: (shard) => store.heads.get(shard)!,
    serves: () => scene.isServed,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    onApplied: () => void scene.steps++,
    isAwaited: () => scene.isAwaited,
  })
  return scene
}

const decodeSnapshot = decodeTestSnapshot
const GATHER = LIMITS.feed.projectorGatherMs

t.test('an engine that is away is asked ever later, whatever comes meanwhile', async (t) => {
  const s = await makeFeed()
  await s.gains(0)
  await s.clock.advance(2 * GATHER)
  let bulks = 0
  s.hooks.beforeBulk = () => {
    bulks++
    return 'away'
  }
  await s.commits([A, opened('a')])
  await s.clock.advance(GATHER + 5_000)
  t.ok(bulks >= 5 && bulks <= 10, `${bulks} times in five seconds`)
  const before = bulks
  for (let i = 0; i < 20; i++) {
    await s.commits([A, noted('n', `${i}`)])
    await s.clock.advance(10)
  }
  t.ok(bulks <= before + 1, 'new entries are no reason to ask')
  s.hooks.beforeBulk = undefined
  await s.clock.advance(LIMITS.storage.retryMsMax)
  t.ok(s.isAt(0))
  await s.clock.advance(2 * GATHER)
  bulks = 0
  s.hooks.beforeBulk = () => {
    bulks++
    return 'away'
  }
  await s.commits([A, noted('n', 'x')])
  await s.clock.advance(GATHER + 8 * LIMITS.storage.retryMs)
  t.ok(bulks >= 3, `${bulks} times: it begins anew with each outage`)
  s.hooks.beforeBulk = undefined
})

t.test('without a lease nothing is written, however long it lasts', async (t) => {
  for (const when of ['before a step', 'in the middle of a write']) {
    const s = await makeFeed()
    await s.gains(0)
    await s.clock.advance(2 * GATHER)
    let bulks = 0
    s.hooks.beforeBulk = (items) => {
      bulks++
      // The engine has no room, and the member sleeps before it sends them again.
      s.isServed = false
      return items.map(() => 'busy')
    }
    if (when === 'before a step') s.isServed = false
    await s.commits([A, opened('a')])
    await s.clock.advance(20 * GATHER)
    t.equal(bulks, when === 'before a step' ? 0 : 1, when)
    t.notOk(s.isAt(0))
    t.equal(s.stats.failures, 0, 'it is no failure')
    s.hooks.beforeBulk = undefined
    s.isServed = true
    await s.clock.advance(GATHER)
    t.ok(s.isAt(0), 'it goes on when the lease is back, though nothing comes')
    await s.feed.stop()
  }
})

t.test('with nothing to do it sleeps; what comes then is gathered, if nobody waits', async (t) => {
  const s = await makeFeed()
  await s.gains(0)
  await s.clock.advance(2 * GATHER)
  const { steps } = s
  await s.clock.advance(20 * GATHER)
  t.equal(s.steps, steps)
  await s.commits([A, opened('a')])
  await s.clock.advance(GATHER / 2)
  t.notOk(s.isAt(0))
  await s.clock.advance(GATHER)
  t.ok(s.isAt(0))
  await s.clock.advance(2 * GATHER)
  s.isAwaited = true
  await s.commits([A, noted('n', '1')])
  await settle()
  t.ok(s.isAt(0), 'at once')
  await s.feed.stop()
})

t.test('a shard that is lost while it is taken up is not followed', async (t) => {
  const s = await makeFeed()
  const { derived } = s.store.journal
  const { parked } = derived
  const reading = latch()
  derived.parked = async (...args) => {
    await reading.opened
    return parked.apply(derived, args)
  }
  await s.gains(0)
  await s.clock.advance(GATHER * 2)
  s.loses(0)
  reading.open()
  await settle()
  await s.commits([A, opened('a')])
  await s.clock.advance(GATHER * 2)
  t.equal(s.feed.applied(0), null)
  t.equal(s.stats.writes, 0)
  await s.gains(0)
  await s.clock.advance(GATHER * 2)
  t.ok(s.isAt(0), 'its next time it is')
  await s.feed.stop()
})

t.test('with a shard go its parked actors', async (t) => {
  const s = await makeFeed()
  await s.gains(0)
  await s.gains(1)
  await s.commits([A, opened('a'), { t: 'unshowable' }])
  await s.commits([B, opened('b'), { t: 'unshowable' }])
  await s.clock.advance(GATHER * 2)
  t.equal(s.feed.parkedCount, 2)
  s.loses(0)
  t.equal(s.feed.parkedCount, 1)
  t.equal(s.feed.appliedTimeMs(0), 0)
  await s.feed.stop()
})

for (const isLost of [false, true]) {
  t.test(
    `a hole in the log: that shard alone is given up, ${isLost ? '' : 'not '}lost`,
    async (t) => {
      const s = await makeFeed()
      await s.gains(0)
      await s.gains(1)
      await s.commits([A, opened('a'), noted('n', '1')])
      await s.clock.advance(GATHER * 2)
      s.hooks.beforeBulk = () => 'away'
      await s.commits([A, erased('n')])
      await s.clock.advance(GATHER * 2)
      await s.store.flush()
      await s.store.trim()
      s.hooks.beforeBulk = undefined
      if (isLost) {
        const { setGone } = s.registers
        s.registers.setGone = async (...args) => {
          await setGone.apply(s.registers, args)
          s.loses(0)
        }
      }
      await s.commits([B, opened('b')])
      await s.clock.advance(LIMITS.storage.retryMsMax)
      t.equal(await s.registers.gone(0), 1, 'who sees to the index is told')
      t.equal(await s.registers.gone(1), 0)
      t.equal(s.feed.doneWith(0), isLost ? 0 : Number.POSITIVE_INFINITY)
      t.equal(s.feed.applied(0), null)
      t.ok(s.isAt(1), 'the other goes on')
      await s.feed.stop()
    },
  )
}

t.test('an index that is not there: told of all its shards, and their log stays', async (t) => {
  const s = await makeFeed()
  await s.gains(0)
  await s.gains(1)
  await s.clock.advance(GATHER * 2)
  for (const { name } of await s.engine.indexes('t-')) await s.engine.deleteIndex(name)
  await s.commits([A, opened('a')])
  await s.clock.advance(GATHER * 2)
  t.same([await s.registers.gone(0), await s.registers.gone(1)], [1, 1])
  t.ok(s.stats.gone > 0)
  t.same([s.feed.doneWith(0), s.feed.doneWith(1)], [0, 0], 'a successor may need it')
  s.feed.wake()
  await s.feed.stop()
})
