// A member that could not read the configuration for a while takes a request once it has read that
// nothing is new, not before (PROTOCOL 3.0 "The system shard").

import t from 'tap'
import { LIMITS } from '../config/limits.ts'
import type { Journal, LogRow } from '../storage/journal.ts'
import { SystemFollower } from './system-follower.ts'
import { SystemMaps } from './system-view.ts'
import { TestClock } from './testing/harness.ts'

type Read = () => Promise<readonly LogRow[]>

/** A follower with nothing in its log but what a test says. */
function scene() {
  const clock = new TestClock()
  const maps = new SystemMaps(new Map())
  maps.offset = 7
  const reads = { count: 0, next: (): ReturnType<Read> => Promise.resolve([]) }
  const read: Read = () => {
    reads.count++
    return reads.next()
  }
  const log = { debug: () => 0, info: () => 0, warn: () => 0, error: () => 0 }
  const journal = { log: { read } } as unknown as Journal
  const follower = new SystemFollower({ journal, maps, clock, log })
  return { clock, maps, reads, follower }
}

t.test('fresh: nothing is read', async (t) => {
  const { follower, reads } = scene()
  await follower.read()
  t.equal(reads.count, 1)
  t.ok(await follower.stands())
  t.equal(reads.count, 1)
})

t.test('after a while without a CPU: read again, and nothing is new', async (t) => {
  const { clock, follower, reads } = scene()
  await follower.read()
  await clock.advance(LIMITS.systemStaleMs + 1)
  t.notOk(follower.isFresh)
  t.ok(await follower.stands())
  t.equal(reads.count, 2)
})

t.test('a read that began before it says too little', async (t) => {
  const { clock, follower, reads } = scene()
  let answer = (): void => undefined
  reads.next = () => new Promise((resolve) => (answer = () => resolve([])))
  void follower.read()
  await clock.advance(LIMITS.systemStaleMs + 1)
  const stands = follower.stands()
  reads.next = () => Promise.resolve([])
  answer()
  t.ok(await stands)
  t.equal(reads.count, 2)
})

t.test('what is new may have changed what was decided', async (t) => {
  const { maps, follower, reads } = scene()
  reads.next = () => {
    maps.offset++
    return Promise.resolve([])
  }
  t.notOk(await follower.stands())
})

t.test('it can not be read, or not in time, or too many wait', async (t) => {
  const { clock, follower, reads } = scene()
  reads.next = () => Promise.reject(new Error('away'))
  t.notOk(await follower.stands())
  reads.next = () => new Promise(() => undefined)
  const ended: boolean[] = []
  for (let i = 0; i < LIMITS.systemAskingMax; i++) {
    void follower.stands().then((stands) => ended.push(stands))
  }
  t.notOk(await follower.stands())
  await clock.advance(LIMITS.systemFollowMs - 1)
  t.same(ended, [])
  await clock.advance(1)
  t.equal(ended.length, LIMITS.systemAskingMax)
  t.notOk(ended.includes(true))
})
