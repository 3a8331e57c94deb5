// What the owner of the configuration pushes, and who waits until it is here. Source: PROTOCOL 3.0
// "The system shard".

import t from 'tap'
import { LIMITS } from '../config/limits.ts'
import type { Behaviour } from '../protocol/behaviour.ts'
import type { Entry } from '../protocol/entry/entry.ts'
import type { Journal } from '../storage/journal.ts'
import { SystemFollower } from './system-follower.ts'
import { SystemMaps } from './system-view.ts'
import { TestClock, settle } from './testing/harness.ts'

const setting = {
  type: 'setting',
  evolve: () => ({ value: 1, deleted: false }),
} as unknown as Behaviour

function entry(q: string): Entry {
  const fixed = { y: 'setting', v: 0, n: 1, m: 'm', l: 0 as const, t: 0, c: 0, b: 'me' }
  return { ...fixed, p: q, q, r: [{ t: 'put' }], a: { type: 'put', success: true } }
}

/** A follower that has what lies up to offset 7, of a log in which nothing more is found. */
function scene() {
  const clock = new TestClock()
  const maps = new SystemMaps(new Map([['setting', setting]]))
  maps.offset = 7
  let reads = 0
  const warned: string[] = []
  const read = () => {
    reads++
    return Promise.reject(new Error('away'))
  }
  const warn = (_: object, text: string) => void warned.push(text)
  const log = { debug: () => 0, info: () => 0, warn, error: () => 0 }
  const journal = { identity: {}, log: { read } } as unknown as Journal
  const follower = new SystemFollower({ journal, maps, clock, log })
  return { clock, maps, follower, warned, reads: () => reads }
}

t.test('what is pushed is taken where it goes on, and read where it does not', async (t) => {
  const { maps, follower, reads, warned } = scene()
  follower.take([entry('a'), entry('b')], 7)
  t.equal(maps.offset, 8)
  t.equal(maps.get('setting', 'a'), null, 'it was there already')
  t.ok(maps.get('setting', 'b'))
  follower.take([entry('c')], 9)
  t.equal(maps.offset, 9)
  t.equal(reads(), 0)
  follower.take([entry('d')], 11)
  t.equal(maps.offset, 9, 'one is missing before it')
  t.equal(reads(), 1)
  await settle()
  t.equal(warned.length, 1)
})

t.test('who waits for an offset goes on with it, and not for ever', async (t) => {
  const { clock, follower } = scene()
  t.equal(follower.reached(7), null)
  const told: string[] = []
  for (const offset of [8, 9, 10]) {
    void follower.reached(offset)!.then(() => told.push(`${offset}`))
  }
  follower.take([entry('a')], 8)
  await settle()
  t.same(told, ['8'])
  follower.take([entry('b')], 9)
  await settle()
  t.same(told, ['8', '9'])
  await clock.advance(LIMITS.cluster.systemFollowMs - 1)
  t.same(told, ['8', '9'])
  await clock.advance(1)
  t.same(told, ['8', '9', '10'])
})
