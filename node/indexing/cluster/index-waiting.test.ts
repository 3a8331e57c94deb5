// Waiting for the graph index of a cluster, without a cluster: what requests that wait cost while
// the index stands still, and what is left of them.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import { IndexWaiting } from './index-waiting.ts'
import { ManualClock } from '../testing/manual-clock.ts'

const turns = async (): Promise<void> => {
  for (let i = 0; i < 8; i++) await new Promise((resolve) => setImmediate(resolve))
}

/** Shard 0 is our own, shard 1 another's; of more shards all but shard 1 are our own. */
class Stage {
  readonly shards: number

  readonly clock = new ManualClock()
  live: number | null = 1
  readonly applied = new Map([[0, 0]])
  readonly stored = new Map([[1, 0]])
  reads = 0
  /** How often the offset of an own shard was looked at. */
  looks = 0
  refreshes = 0
  isAway = false
  /** Refreshes and reads end when these say so. */
  refreshing: () => Promise<void> = () => Promise.resolve()
  reading: () => Promise<void> = () => Promise.resolve()
  /** Shards of which it was asked what is flushed. */
  readonly askedFlushed: number[] = []
  /** Runs while a refresh is under way. */
  during: () => void = () => undefined
  readonly watch = new IndexWaiting({
    clock: this.clock,
    live: () => this.live,
    applied: (shard) => {
      this.looks++
      return this.applied.get(shard) ?? null
    },
    stored: (_generation, shard) => {
      this.reads++
      return this.isAway
        ? Promise.reject(new Error('away'))
        : Promise.resolve(this.stored.get(shard) ?? null).then((offset) =>
            this.reading().then(() => offset),
          )
    },
    refresh: () => {
      this.refreshes++
      this.during()
      return this.isAway ? Promise.reject(new Error('away')) : this.refreshing()
    },
    follows: (shard) => shard >= SYSTEM_SHARD && shard < this.shards,
    head: () => null,
    flushed: (shard) => {
      this.askedFlushed.push(shard)
      return Promise.resolve(0)
    },
  })

  constructor(shards = 2) {
    this.shards = shards
  }

  /** Time passes in steps of 10 ms. */
  async pass(ms: number): Promise<void> {
    for (let at = 0; at < ms; at += 10) {
      await turns()
      this.clock.advance(10)
    }
    await turns()
  }

  reached(shard: number, offset: number, waitMs: number = LIMITS.indexing.consistencyWaitMs) {
    return Promise.resolve(this.watch.reached([{ shard, offset }], waitMs))
  }
}

t.test('10,000 that wait while the index stands still: one look for all', async (t) => {
  const s = new Stage()
  const half = LIMITS.indexing.consistencyWaitersMax / 2
  const own = Array.from({ length: half }, () => s.reached(0, 5))
  const others = Array.from({ length: half }, () => s.reached(1, 5))
  t.equal(s.watch.waiting, LIMITS.indexing.consistencyWaitersMax)
  t.throws(() => s.watch.reached([{ shard: 0, offset: 5 }], 1), { errors: [{ code: 'TOO_BUSY' }] })
  await s.pass(LIMITS.indexing.consistencyWaitMs + LIMITS.indexing.pollMs)
  t.strictSame(new Set(await Promise.all([...own, ...others])), new Set([false]))
  t.ok(
    s.reads <= LIMITS.indexing.consistencyWaitMs / LIMITS.indexing.pollMs + 1,
    `${s.reads} reads`,
  )
  t.equal(s.refreshes, 0, 'nothing new is there to be seen')
  t.equal(s.watch.waiting, 0)
  t.equal(s.clock.timers, 0, 'nobody looks any more')
})

t.test('whoever comes while others wait is served by the next look', async (t) => {
  const s = new Stage()
  const first = s.reached(1, 5)
  await s.pass(30)
  s.stored.set(1, 5)
  const second = s.reached(1, 5)
  await s.pass(2 * LIMITS.indexing.pollMs)
  t.strictSame(await Promise.all([first, second]), [true, true])
  t.equal(s.refreshes, 1, 'one refresh for both')
  t.equal(s.watch.reached([{ shard: 1, offset: 5 }], 0), true)
})

t.test('an own shard tells by itself; refreshes keep their distance', async (t) => {
  const s = new Stage()
  const ends: boolean[] = []
  for (let offset = 1; offset <= 4; offset++) {
    void s.reached(0, offset).then((is) => ends.push(is))
    s.applied.set(0, offset)
    s.watch.applied()
    await turns()
    s.clock.advance(20)
    await turns()
  }
  t.equal(s.refreshes, 1)
  await s.pass(LIMITS.indexing.refreshGapMs)
  t.strictSame(ends, [true, true, true, true])
  t.equal(s.refreshes, 2)
})

t.test('what comes into the index during a refresh is seen after the next one', async (t) => {
  const s = new Stage()
  s.applied.set(0, 5)
  s.during = () => void s.applied.set(0, 6)
  const first = s.reached(0, 5)
  await s.pass(10)
  t.equal(await first, true)
  t.equal(s.refreshes, 1)
  const second = s.watch.reached([{ shard: 0, offset: 6 }], 1_000)
  t.not(second, true, 'no search that begins now need find it')
  await s.pass(LIMITS.indexing.refreshGapMs + 10)
  t.equal(await second, true)
  t.equal(s.refreshes, 2)
})

t.test('what fails is tried again; nobody is told too much', async (t) => {
  const s = new Stage()
  s.isAway = true
  s.applied.set(0, 5)
  const own = s.reached(0, 5)
  const other = s.reached(1, 5)
  await s.pass(1_000)
  t.equal(s.watch.waiting, 2)
  t.ok(s.refreshes <= 1_000 / LIMITS.indexing.refreshGapMs + 1, `${s.refreshes} refreshes`)
  s.isAway = false
  s.stored.set(1, 5)
  await s.pass(500)
  t.strictSame(await Promise.all([own, other]), [true, true])
})

t.test('a refresh of the generation before says nothing of the next one', async (t) => {
  const s = new Stage()
  s.applied.set(0, 5)
  s.during = () => {
    s.applied.set(0, 0)
    s.live = 2
  }
  const waiting = s.reached(0, 5, 300)
  await s.pass(310)
  t.equal(await waiting, false)
  s.live = null
  const none = s.reached(0, 0, 0)
  await s.pass(10)
  t.equal(await none, false, 'none can be read')
})

t.test('an offset that moves costs whom it wakes, not all who wait', async (t) => {
  const s = new Stage(400)
  const last = 399
  const ends: boolean[] = []
  const wait = (lacking: number, offset: number): void => {
    const positions = Array.from({ length: 400 }, (_, shard) => ({ shard, offset: 5 }))
    positions[lacking] = { shard: lacking, offset }
    void Promise.resolve(s.watch.reached(positions, 5_000)).then((is) => ends.push(is))
  }
  for (let shard = 0; shard < last; shard++) s.applied.set(shard, 5)
  s.applied.set(last, 4)
  for (let i = 0; i < 1_000; i++) wait(last, 6 + i)
  for (let i = 0; i < 3; i++) wait(7, 6)
  const arrivedLooks = s.looks
  t.ok(arrivedLooks < 3 * 400 * 1_003, `${arrivedLooks} looks when they come`)
  s.applied.set(7, 6)
  s.watch.applied()
  // Those of shard 7 lack the last one as well.
  s.applied.set(last, 7)
  s.watch.applied()
  const looks = s.looks - arrivedLooks
  t.ok(looks < 10_000, `${looks} looks for two that move and five who wake`)
  const beforeLooks = s.looks
  for (let at = 0; at < 500; at += LIMITS.indexing.pollMs) await s.pass(LIMITS.indexing.pollMs)
  t.equal(ends.length, 5)
  t.ok(s.looks - beforeLooks < 10_000, `${s.looks - beforeLooks} looks in half a second of rest`)
  await s.pass(5_000)
  t.equal(ends.filter(Boolean).length, 5)
  t.equal(ends.length, 1_003)
  t.equal(s.watch.waiting, 0)
})

t.test('offsets of many shards of others are read side by side', async (t) => {
  const s = new Stage(40)
  for (let shard = 1; shard < 40; shard++) s.stored.set(shard, 5)
  const positions = Array.from({ length: 40 }, (_, shard) => ({ shard, offset: 5 }))
  s.applied.set(0, 5)
  const reached = s.watch.reached(positions, 1_000)
  await s.pass(20)
  t.equal(await reached, true)
  t.equal(s.reads, 39)
})

t.test('a generation that is read again after none was begins with nothing', async (t) => {
  const s = new Stage()
  const reached = s.reached(0, 5, 1_000)
  await s.pass(50)
  s.live = null
  await s.pass(100)
  s.live = 1
  s.applied.set(0, 5)
  s.watch.applied()
  await s.pass(100)
  t.equal(await reached, true)
  t.equal(s.watch.waiting, 0)
})

t.test(
  'who comes and goes, and offsets that move in any order: each is answered once',
  async (t) => {
    let seed = 5
    const random = (below: number): number => {
      seed = (seed * 69_069 + 1) >>> 0
      return Math.floor((seed / 2 ** 32) * below)
    }
    const s = new Stage(8)
    let answered = 0
    let wrong = 0
    let asked = 0
    for (let shard = 2; shard < 8; shard++) s.applied.set(shard, 0)
    for (let step = 0; step < 400; step++) {
      for (let i = random(4); i > 0; i--) {
        const positions = Array.from({ length: 1 + random(12) }, () => ({
          shard: random(8),
          offset: Math.floor(step / 4) + random(20),
        }))
        asked++
        void Promise.resolve(s.watch.reached(positions, random(600))).then((is) => {
          answered++
          const lacks = ({ shard, offset }: { shard: number; offset: number }): boolean =>
            (s.applied.get(shard) ?? s.stored.get(shard) ?? 0) < offset
          if (is && positions.some(lacks)) wrong++
        })
      }
      const shard = random(8)
      const offsets = shard === 1 ? s.stored : s.applied
      offsets.set(shard, Math.max(offsets.get(shard)!, Math.floor(step / 4) + random(24)))
      s.watch.applied()
      await s.pass(10)
    }
    for (let shard = 0; shard < 8; shard++) (shard === 1 ? s.stored : s.applied).set(shard, 1_000)
    s.watch.applied()
    await s.pass(1_000)
    t.equal(wrong, 0)
    t.equal(answered, asked)
    t.equal(s.watch.waiting, 0)
    t.equal(s.clock.timers, 0)
  },
)

t.test('a refresh is not made for those who have gone', async (t) => {
  const s = new Stage()
  s.applied.set(0, 1)
  t.equal(await Promise.all([s.reached(0, 1), s.pass(50)]).then(([is]) => is), true)
  s.applied.set(0, 2)
  const gone = s.reached(0, 2, LIMITS.indexing.refreshGapMs / 4)
  await s.pass(2 * LIMITS.indexing.refreshGapMs)
  t.equal(await gone, false)
  t.equal(s.refreshes, 1)
})

t.test('an offset that is slow to read is asked for once', async (t) => {
  const s = new Stage()
  s.reading = () => new Promise(() => undefined)
  const waiting = s.reached(1, 5)
  await s.pass(6 * LIMITS.indexing.pollMs)
  t.equal(s.reads, 1)
  await s.pass(LIMITS.indexing.consistencyWaitMs)
  t.equal(await waiting, false)
})

t.test('what was read of a generation says nothing of the next', async (t) => {
  const s = new Stage()
  let end = (): void => undefined
  s.reading = () => new Promise((resolve) => (end = resolve))
  s.stored.set(1, 9)
  const waiting = s.reached(1, 5)
  await s.pass(20)
  s.live = 2
  s.stored.set(1, 0)
  s.reading = () => Promise.resolve()
  s.watch.applied()
  end()
  await s.pass(LIMITS.indexing.consistencyWaitMs + LIMITS.indexing.pollMs)
  t.equal(await waiting, false, 'the next one has nothing')
})

t.test('a refresh that ends late takes nothing back', async (t) => {
  const s = new Stage()
  const ends: (() => void)[] = []
  s.refreshing = () => new Promise((resolve) => void ends.push(resolve))
  s.applied.set(0, 1)
  const first = s.reached(0, 1)
  await s.pass(20)
  s.applied.set(0, 2)
  const second = s.reached(0, 2)
  await s.pass(2 * LIMITS.indexing.refreshGapMs)
  t.equal(ends.length, 2)
  ends[1]!()
  await s.pass(10)
  t.equal(await second, true)
  ends[0]!()
  await s.pass(10)
  t.equal(await first, true)
  t.equal(s.watch.reached([{ shard: 0, offset: 2 }], 0), true)
})

t.test('records are waited for in shards that have any', async (t) => {
  const s = new Stage()
  t.equal(await s.watch.recorded([{ shard: -2, offset: 5 }], 1_000), true)
  t.same(s.askedFlushed, [])
  const [is] = await Promise.all([
    s.watch.recorded([{ shard: 0, offset: 5 }], 1_000),
    s.pass(1_200),
  ])
  t.equal(is, false)
})

t.test('of those who have gone nothing is left, whatever they have waited for', async (t) => {
  for (const how of ['offset', 'due', 'refresh', 'refreshed'] as const) {
    const s = new Stage()
    let end = (): void => undefined
    s.refreshing = () => new Promise((resolve) => (end = resolve))
    if (how !== 'offset') s.applied.set(0, 5)
    const waiting = s.reached(0, 5, 200)
    if (how.startsWith('refresh')) await s.pass(20)
    const { refreshes } = s
    if (how !== 'refreshed') {
      // Another generation is read, and has nothing yet: all who wait begin again in it.
      s.live = 2
      s.applied.set(0, 0)
      s.watch.applied()
      end()
    }
    await s.pass(400)
    t.equal(await waiting, false)
    end()
    await turns()
    s.applied.set(0, 6)
    const further = s.reached(0, 7, 300)
    s.watch.applied()
    await s.pass(2 * LIMITS.indexing.refreshGapMs)
    t.equal(s.refreshes, refreshes, `${how}: nobody wants one`)
    await s.pass(300)
    t.equal(await further, false)
    t.equal(s.watch.waiting, 0)
    s.refreshing = () => Promise.resolve()
    const next = s.reached(0, 6)
    await s.pass(2 * LIMITS.indexing.refreshGapMs)
    t.equal(await next, true)
  }
})
