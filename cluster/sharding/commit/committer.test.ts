// Which groups go into which append, how many at once, and that each shard hears what became of it.

import t from 'tap'
import type { AppendOutcome, Group, LogStore } from '../../../storage/journal.ts'
import { TestClock, settle } from '../../testing/harness.ts'
import { Committer } from './committer.ts'
import type { Committing } from './committer.ts'

interface Append {
  readonly shards: readonly number[]
  readonly end: (outcomes?: readonly AppendOutcome[]) => void
  readonly fail: () => void
}

function makeCommitter(bounds: { appendsMax: number; groupsMax: number }) {
  const clock = new TestClock()
  const world = {
    clock,
    appends: [] as Append[],
    said: [] as string[],
    errors: 0,
    throttleMs: 0,
    committer: null as unknown as Committer,
    /** A shard that has so many groups open; each has two entries of five bytes. */
    shard(number: number, groups: number): Committing {
      let left = groups
      return {
        takeGroup() {
          if (left === 0) return null
          left--
          return { shard: number, count: 2, body: new Uint8Array(5) } as unknown as Group
        },
        onOutcome(outcome) {
          world.said.push(`${number} ${outcome}`)
          if (left > 0) world.committer.ready(this)
        },
        release: () => void world.said.push(`${number} released`),
      }
    },
  }
  const log = {
    ...bounds,
    append: (groups: readonly Group[]) =>
      new Promise<readonly AppendOutcome[]>((resolve, reject) => {
        world.said.push(`append ${groups.map(({ shard }) => shard).join('+')}`)
        world.appends.push({
          shards: groups.map(({ shard }) => shard),
          end: (outcomes) => resolve(outcomes ?? groups.map(() => 'committed' as const)),
          fail: () => reject(new Error('as asked')),
        })
      }),
  } as unknown as LogStore
  world.committer = new Committer({
    log,
    clock,
    throttleMs: () => world.throttleMs,
    onError: () => void world.errors++,
  })
  return world
}

const SERVER = { appendsMax: 2, groupsMax: 1 }
const EMBEDDED = { appendsMax: 1, groupsMax: 3 }

t.test('what is ready in one tick goes together, the longest waiting first', async (t) => {
  const { committer, shard, appends } = makeCommitter(EMBEDDED)
  const shards = [1, 2, 3, 4].map((number) => shard(number, 1))
  for (const one of shards) committer.ready(one)
  committer.ready(shards[0]!)
  t.same(appends, [], 'not inside the call')
  await settle()
  t.same(
    appends.map(({ shards }) => shards),
    [[1, 2, 3]],
  )
  appends[0]!.end()
  await settle()
  t.same(appends[1]!.shards, [4])
  t.notOk(committer.idle)
  appends[1]!.end()
  await settle()
  t.ok(committer.idle)
  t.equal(appends.length, 2)
})

t.test('each shard alone, so many at once; who waits longest is next', async (t) => {
  const { committer, shard, appends } = makeCommitter(SERVER)
  for (const number of [1, 2, 3, 4]) committer.ready(shard(number, 1))
  await settle()
  t.same(
    appends.map(({ shards }) => shards),
    [[1], [2]],
  )
  committer.ready(shard(5, 1))
  await settle()
  t.equal(appends.length, 2)
  appends[1]!.end()
  await settle()
  t.same(appends[2]!.shards, [3])
  appends[0]!.end()
  appends[2]!.end()
  await settle()
  t.same(
    appends.slice(3).map(({ shards }) => shards),
    [[4], [5]],
  )
})

t.test('each hears its own outcome; who has waited goes before the answers leave', async (t) => {
  const { committer, shard, appends, said } = makeCommitter(EMBEDDED)
  for (const number of [1, 2, 3]) committer.ready(shard(number, 1))
  await settle()
  committer.ready(shard(4, 1))
  await settle()
  appends[0]!.end(['committed', 'fenced', 'full'])
  await settle()
  t.same(said, [
    'append 1+2+3',
    '1 committed',
    '2 fenced',
    '3 full',
    'append 4',
    '1 released',
    '2 released',
    '3 released',
  ])
  appends[1]!.end()
  await settle()
  const { commits, groups, entries, bytes } = committer.stats
  t.same([commits, groups, entries, bytes], [2, 2, 4, 10], 'of what was committed')
})

t.test('an append that throws: nobody knows', async (t) => {
  const world = makeCommitter(SERVER)
  world.committer.ready(world.shard(1, 1))
  await settle()
  world.appends[0]!.fail()
  await settle()
  t.same(world.said.slice(1), ['1 unknown', '1 released'])
  t.equal(world.errors, 1)
  t.ok(world.committer.idle)
  world.committer.ready(world.shard(2, 1))
  await settle()
  t.same(world.appends[1]!.shards, [2], 'its place is free again')
})

t.test('who has nothing any more, or has stopped, takes no place', async (t) => {
  const { committer, shard, appends } = makeCommitter(SERVER)
  const stopped = shard(1, 1)
  committer.ready(stopped)
  committer.ready(shard(2, 0))
  committer.ready(shard(3, 1))
  committer.forget(stopped)
  await settle()
  t.same(
    appends.map(({ shards }) => shards),
    [[3]],
  )
  const none = makeCommitter(SERVER)
  none.committer.ready(none.shard(1, 0))
  await settle()
  t.same([none.appends.length, none.committer.idle], [0, true])
})

t.test('consumers are behind: the next append waits, first or later, and is counted', async (t) => {
  const world = makeCommitter(SERVER)
  const { committer, clock, appends, shard } = world
  world.throttleMs = 40
  committer.ready(shard(1, 2))
  committer.ready(shard(2, 1))
  await clock.advance(39)
  t.equal(appends.length, 0)
  await clock.advance(1)
  t.equal(appends.length, 2)
  t.equal(committer.stats.throttledMs, 40, 'once for both')
  clock.stepWall(-50_000)
  await clock.advance(7)
  appends[0]!.end()
  await settle()
  t.equal(appends.length, 2)
  t.equal(committer.stats.appendMs, 7)
  await clock.advance(40)
  t.equal(appends.length, 3)
  t.equal(committer.stats.throttledMs, 80)
})
