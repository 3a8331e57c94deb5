// Followers of the feed that are no index: what they take, in which order, and where they go on
// after a failure, a restart, a loss of their shard, a log that was trimmed.

import t, { type Test } from 'tap'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import type { ActorRecord } from '../../protocol/behaviour.ts'
import { decodeEntry, type Entry, splitEntries } from '../../protocol/entry/entry.ts'
import type { LogRow } from '../../storage/journal.ts'
import type { CommittedEntry } from '../committed-entry.ts'
import { type FeedEntry, type LogFollowerOptions, UntakableEntry } from './log-follower.ts'
import { LogFollowers } from './log-followers.ts'
import { actorIdOf, FeedStore } from './testing/feed-store.ts'
import { notebookBehaviour } from './testing/notebook.ts'

const A = actorIdOf(1, 0)
const B = actorIdOf(2, 1)

interface Scene {
  readonly store: FeedStore
  readonly followers: LogFollowers
  /** `shard:offset` of what was taken. */
  readonly taken: string[]
  readonly failures: string[]
  readonly gaps: string[]
  readonly parked: string[]
  readonly kept: Map<number, number>
  reads: number
  writes(actorId: string, ...titles: string[]): Promise<void>
  begin(options?: Partial<LogFollowerOptions>): ReturnType<LogFollowers['begin']>
}

function scene(t: Test): Scene {
  const store = new FeedStore(notebookBehaviour({ fold: false, project: false }), {
    shards: 2,
    generation: 'g',
  })
  const { log, derived } = store.journal
  const clock = {
    after: (_ms: number, run: () => void) => {
      const soon = setImmediate(run)
      return () => clearImmediate(soon)
    },
    defer: (run: () => void) => void setImmediate(run),
  }
  const read: typeof log.read = (...asked) => {
    s.reads++
    return log.read(...asked)
  }
  const s: Scene = {
    store,
    followers: new LogFollowers({ log: { read }, derived, clock }),
    taken: [],
    failures: [],
    gaps: [],
    parked: [],
    kept: new Map(),
    reads: 0,
    async writes(actorId, ...titles) {
      const entries = titles.map((title): [string, ActorRecord] => [
        actorId,
        { t: 'opened', title },
      ])
      const { shard, offset } = await store.commit(...entries)
      const first = offset - titles.length + 1
      const [{ body }] = (await log.read(shard, first - 1, 1)) as [LogRow]
      const group = splitEntries(body).map((bytes, i): CommittedEntry => {
        return {
          entry: decodeEntry(bytes) as unknown as Entry,
          bytes,
          state: titles[i],
          stateBytes: 10,
        }
      })
      s.followers.committed(shard, { first, entries: group, body })
    },
    begin: (options) =>
      s.followers.begin({
        take: ({ shard, offset }) => void s.taken.push(`${shard}:${offset}`),
        takesFresh: false,
        offsets: {
          load: (shard) => s.kept.get(shard) ?? null,
          save: (shard, offset) => void s.kept.set(shard, offset),
        },
        park: ({ shard, offset }, reason) => void s.parked.push(`${shard}:${offset} ${reason}`),
        onGap: ({ shard, trimmedTo }) => void s.gaps.push(`${shard} up to ${trimmedTo}`),
        onFailure: (error) => void s.failures.push((error as Error).message),
        ...options,
      }),
  }
  t.teardown(() => s.followers.close())
  return s
}

async function until(isSo: () => boolean): Promise<void> {
  const endsAtMs = performance.now() + 10_000
  while (!isSo()) {
    if (performance.now() > endsAtMs) throw new Error('it never came')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

async function settled(): Promise<void> {
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve))
}

t.test(
  'one that keeps offsets goes on where it was; one that keeps none, at the head',
  async (t) => {
    const s = scene(t)
    await s.writes(A, 'a', 'b', 'c')
    s.kept.set(0, 1)
    s.followers.gained(0, 3)
    s.followers.gained(1, 0)
    const kept = s.begin()
    const live: string[] = []
    const head = s.begin({
      offsets: null,
      take: ({ shard, offset }) => void live.push(`${shard}:${offset}`),
    })
    await until(() => s.kept.get(0) === 3)
    t.strictSame(s.taken, ['0:2', '0:3'])
    t.equal(kept.doneWith(0), 3)
    t.equal(head.doneWith(0), Number.POSITIVE_INFINITY, 'the log need not wait for it')
    t.equal(s.followers.doneWith(0), 3)
    const { reads } = s
    await s.writes(B, 'd')
    await until(() => s.taken.length === 3 && live.length === 1)
    t.equal(s.reads, reads, 'what has just been committed is not read again')
    t.strictSame(live, ['1:1'])
    t.equal(head.offset(1), 1)
  },
)

t.test('what it can not take now comes again, and nothing overtakes it', async (t) => {
  const s = scene(t)
  s.followers.gained(0, 0)
  let away = 3
  s.begin({
    take: ({ shard, offset }) => {
      if (offset === 2 && away-- > 0) throw new Error('away')
      s.taken.push(`${shard}:${offset}`)
    },
  })
  await s.writes(A, 'a', 'b', 'c')
  await until(() => s.taken.length === 3)
  t.strictSame(s.taken, ['0:1', '0:2', '0:3'])
  t.strictSame(s.failures, ['away', 'away', 'away'])
})

t.test('what it can never take is parked before the offset passes it', async (t) => {
  const s = scene(t)
  s.followers.gained(0, 0)
  let full = true
  s.begin({
    take: ({ shard, offset }) => {
      if (offset === 2) throw new UntakableEntry('no such topic')
      s.taken.push(`${shard}:${offset}`)
    },
    park: ({ shard, offset }, reason) => {
      if (full) throw new Error('no room')
      s.parked.push(`${shard}:${offset} ${reason}`)
    },
  })
  await s.writes(A, 'a', 'b', 'c')
  await until(() => s.failures.length > 1)
  t.strictSame(s.taken, ['0:1'])
  t.notOk((s.kept.get(0) ?? 0) > 1)
  full = false
  await until(() => s.kept.get(0) === 3)
  t.strictSame(s.parked, ['0:2 no such topic'])
  t.strictSame(s.taken, ['0:1', '0:3'])
})

t.test('a lost shard ends with the entry that is being taken, and comes back', async (t) => {
  const s = scene(t)
  s.followers.gained(0, 0)
  let isLost = false
  s.begin({
    take: ({ shard, offset }) => {
      s.taken.push(`${shard}:${offset}`)
      if (!isLost) s.followers.lost(0)
      isLost = true
    },
  })
  await until(() => s.kept.get(0) === 0)
  await s.writes(A, 'a', 'b')
  await settled()
  t.strictSame(s.taken, ['0:1'])
  s.followers.gained(0, 2)
  await until(() => s.kept.get(0) === 2)
  t.strictSame(s.taken, ['0:1', '0:2'], 'what was taken was kept, and it goes on behind')
})

t.test('a shard that is gained again without a loss misses nothing', async (t) => {
  const s = scene(t)
  s.followers.gained(0, 0)
  const follower = s.begin({ offsets: null })
  follower.pause()
  await s.writes(A, 'a', 'b')
  s.followers.gained(0, 2)
  await settled()
  t.strictSame(s.taken, [], 'a paused one takes nothing')
  follower.resume()
  await until(() => s.taken.length === 2)
  t.strictSame(s.taken, ['0:1', '0:2'])
})

t.test('a log that was trimmed above its offset is told, and it goes on behind', async (t) => {
  const s = scene(t)
  await s.writes(A, 'a', 'b')
  await s.store.flush()
  await s.store.trim()
  await s.writes(A, 'c')
  s.kept.set(0, 0)
  s.followers.gained(0, 3)
  s.begin()
  await until(() => s.kept.get(0) === 3)
  t.strictSame(s.gaps, ['0 up to 2'])
  t.strictSame(s.taken, ['0:3'])
  await s.store.flush()
  await s.store.trim()
  s.kept.set(0, 1)
  s.begin()
  await until(() => s.gaps.length === 2)
  t.strictSame(s.gaps, ['0 up to 2', '0 up to 3'], 'nothing of it is left')
})

t.test('rows above the head, which may not be durable yet, are waited for', async (t) => {
  const s = scene(t)
  await s.store.commit([A, { t: 'opened', title: 'a' }])
  await s.store.commit([A, { t: 'opened', title: 'b' }])
  s.kept.set(0, 0)
  s.followers.gained(0, 1)
  s.begin()
  await until(() => s.taken.length > 0)
  await settled()
  t.strictSame(s.taken, ['0:1'])
  s.followers.gained(0, 2)
  await until(() => s.taken.length === 2)
})

t.test(
  'an offset that can not be kept is kept later, and what was taken stays taken',
  async (t) => {
    const s = scene(t)
    s.followers.gained(0, 0)
    let fails = 2
    s.begin({
      offsets: {
        load: () => 0,
        save: (shard, offset) => {
          if (fails-- > 0) throw new Error('store away')
          s.kept.set(shard, offset)
        },
      },
    })
    await s.writes(A, 'a')
    await until(() => s.kept.get(0) === 1)
    t.strictSame(s.failures, ['store away', 'store away'])
    t.strictSame(s.taken, ['0:1'])
  },
)

t.test('one that is ended takes nothing more, and there are not too many', async (t) => {
  const s = scene(t)
  t.teardown(overrideLimits({ 'feed.followersMax': 1 }))
  s.followers.gained(0, 0)
  const follower = s.begin()
  t.throws(() => s.begin(), /followers of the feed are ended/)
  await s.followers.end(follower)
  await s.writes(A, 'a')
  await settled()
  t.strictSame(s.taken, [])
  s.begin()
})

t.test('what was committed here a moment ago comes as the runtime has it', async (t) => {
  const s = scene(t)
  t.teardown(overrideLimits({ 'feed.followerFreshBytesMax': 1_000 }))
  await s.writes(A, 'before')
  s.followers.gained(0, 1)
  const states: unknown[] = []
  const plain: unknown[] = []
  let away = 2
  s.begin({
    offsets: null,
    takesFresh: true,
    take: ({ offset, fresh, entry }) => {
      if (offset === 3 && away-- > 0) throw new Error('away')
      if (fresh && fresh.entry !== entry) throw new Error('it is another entry')
      states.push(fresh?.state)
    },
  })
  s.begin({ offsets: null, take: ({ fresh }) => void plain.push(fresh) })
  await s.writes(A, 'a', 'b')
  await s.writes(A, 'c')
  await until(() => states.length === 3 && plain.length === 3)
  t.strictSame(states, ['a', 'b', 'c'], 'also what comes again')
  t.strictSame(plain, [null, null, null], 'who does not want it has it from the log')
  await s.writes(A, ...Array.from({ length: 20 }, (_, i) => `large ${i}`))
  await until(() => states.length === 23)
  t.ok(
    states.slice(3).every((state) => state === undefined),
    'what has no room is read',
  )
  for (let i = 24; i < 50; i++) {
    await s.writes(A, String(i))
    await until(() => states.length === i)
    t.equal(states.at(-1), String(i), 'what was taken leaves room')
  }
})

t.test('back-pressure: the next entry comes when the one before is done', async (t) => {
  const s = scene(t)
  s.followers.gained(0, 0)
  let release = (): void => undefined
  const seen: FeedEntry[] = []
  s.begin({
    take: (entry) => {
      seen.push(entry)
      return new Promise<void>((resolve) => (release = resolve))
    },
  })
  await s.writes(A, 'a', 'b')
  await until(() => seen.length === 1)
  await settled()
  t.equal(seen.length, 1)
  t.match(seen[0], { shard: 0, offset: 1, entry: { p: A } })
  release()
  await until(() => seen.length === 2)
  release()
})
