// Waiting for the graph index of a cluster, without a cluster: what requests that wait cost while
// the index stands still, and what is left of them.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { IndexWaiting } from './index-waiting.ts'
import { ManualClock } from './testing/manual-clock.ts'

const turns = async (): Promise<void> => {
  for (let i = 0; i < 8; i++) await new Promise((resolve) => setImmediate(resolve))
}

/** Shard 0 is our own, shard 1 another's. */
class Stage {
  readonly clock = new ManualClock()
  live: number | null = 1
  readonly applied = new Map([[0, 0]])
  readonly stored = new Map([[1, 0]])
  reads = 0
  refreshes = 0
  isAway = false
  /** Runs while a refresh is under way. */
  during: () => void = () => undefined
  readonly watch = new IndexWaiting({
    clock: this.clock,
    live: () => this.live,
    applied: (shard) => this.applied.get(shard) ?? null,
    stored: (_generation, shard) => {
      this.reads++
      return this.isAway
        ? Promise.reject(new Error('away'))
        : Promise.resolve(this.stored.get(shard) ?? null)
    },
    refresh: () => {
      this.refreshes++
      this.during()
      return this.isAway ? Promise.reject(new Error('away')) : Promise.resolve()
    },
    follows: (shard) => shard >= 0 && shard < 2,
    head: () => null,
    flushed: () => Promise.resolve(0),
  })

  /** Time passes in steps of 10 ms. */
  async pass(ms: number): Promise<void> {
    for (let at = 0; at < ms; at += 10) {
      await turns()
      this.clock.advance(10)
    }
    await turns()
  }

  reached(shard: number, offset: number, waitMs: number = LIMITS.consistencyWaitMs) {
    return Promise.resolve(this.watch.reached([{ shard, offset }], waitMs))
  }
}

t.test('10,000 that wait while the index stands still: one look for all', async (t) => {
  const s = new Stage()
  const half = LIMITS.consistencyWaitersMax / 2
  const own = Array.from({ length: half }, () => s.reached(0, 5))
  const others = Array.from({ length: half }, () => s.reached(1, 5))
  t.equal(s.watch.waiting, LIMITS.consistencyWaitersMax)
  t.throws(() => s.watch.reached([{ shard: 0, offset: 5 }], 1), { errors: [{ code: 'TOO_BUSY' }] })
  await s.pass(LIMITS.consistencyWaitMs + LIMITS.indexPollMs)
  t.strictSame(new Set(await Promise.all([...own, ...others])), new Set([false]))
  t.ok(s.reads <= LIMITS.consistencyWaitMs / LIMITS.indexPollMs + 1, `${s.reads} reads`)
  t.equal(s.refreshes, 0, 'nothing new is there to be seen')
  t.equal(s.watch.waiting, 0)
  t.equal(s.clock.timers, 0, 'nobody looks any more')
})

t.test('what they leave behind is nothing: the heap of a process of its own', async (t) => {
  const file = new URL('testing/waiting-heap.ts', import.meta.url).pathname
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', file])
  const { requests, heldBytes } = JSON.parse(stdout) as { requests: number; heldBytes: number }
  t.equal(requests, 10_000)
  t.ok(heldBytes < 4 * 1024 * 1024, `${heldBytes} bytes after ${requests} requests`)
})

t.test('whoever comes while others wait is served by the next look', async (t) => {
  const s = new Stage()
  const first = s.reached(1, 5)
  await s.pass(30)
  s.stored.set(1, 5)
  const second = s.reached(1, 5)
  await s.pass(2 * LIMITS.indexPollMs)
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
  await s.pass(LIMITS.indexRefreshGapMs)
  t.strictSame(ends, [true, true, true, true])
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
  t.ok(s.refreshes <= 1_000 / LIMITS.indexRefreshGapMs + 1, `${s.refreshes} refreshes`)
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
