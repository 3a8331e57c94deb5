// Watching the feed of other members over a wire that loses, doubles and delays, while shards move:
// what a watcher has not heard it has been told of, and what it has heard is all there was. Source:
// PROTOCOL 3.18.

import fc from 'fast-check'
import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import type { AnyEntry } from '../../../protocol/entry/entry.ts'
import { TestClock } from '../../testing/harness.ts'
import type { FeedEntry } from '../log-follower.ts'
import { Coverage } from './coverage.ts'
import type { Covered } from './coverage.ts'
import { FeedWatch } from './feed-watch.ts'
import type { FeedWatchOptions } from './feed-watch.ts'
import type { FedNotice, FedPart, WatchNotice } from './watch-notices.ts'

const SHARDS = 3
const STREAM = 'numbers'
const LOG = { debug() {}, info() {}, warn() {}, error() {} }

/** Followers of one member's shards, from the head. */
class Followers {
  readonly #offsets = new Map<number, number>()
  readonly #owned = new Map<number, number>()
  #take: ((taken: FeedEntry) => void) | null = null

  begin(options: { readonly take: (taken: FeedEntry) => unknown }) {
    this.#take = (taken) => void options.take(taken)
    for (const [shard, head] of this.#owned) this.#offsets.set(shard, head)
    return {
      offset: (shard: number) => this.#offsets.get(shard) ?? null,
      positions: () => this.#offsets.entries(),
    }
  }

  async end(): Promise<void> {
    this.#take = null
    this.#offsets.clear()
  }

  get isFollowing(): boolean {
    return this.#take !== null
  }

  gained(shard: number, head: number): void {
    this.#owned.set(shard, head)
    if (this.#take !== null) this.#offsets.set(shard, head)
  }

  lost(shard: number): void {
    this.#owned.delete(shard)
    this.#offsets.delete(shard)
  }

  committed(shard: number, offset: number): void {
    this.#owned.set(shard, offset)
    this.#take?.({ shard, offset, entry: { n: offset } as AnyEntry, bytes: 100 })
    if (this.#take !== null) this.#offsets.set(shard, offset)
  }
}

interface Interest {
  readonly every: number
}

/** What becomes of one notice on its way. */
type Fate = 'comes' | 'lost' | 'doubled' | 'late'

function cluster(names: readonly string[]) {
  const clock = new TestClock()
  const heads = new Map<number, number>()
  const owners = new Map<number, string>()
  const members = new Map<string, { watch: FeedWatch; followers: Followers; took: Covered[] }>()
  let fate: () => Fate = () => 'comes'
  const late: (() => void)[] = []
  for (const name of names) {
    const followers = new Followers()
    const took: Covered[] = []
    const watch = new FeedWatch({
      clock,
      log: LOG,
      followers: followers as unknown as FeedWatchOptions['followers'],
      wire: {
        others: () => names.filter((other) => other !== name),
        tell(to, notice) {
          const sent = structuredClone(notice)
          for (const one of to) deliver(name, one, sent)
        },
      },
    })
    watch.add({
      name: STREAM,
      matcher: (interest) => {
        const { every } = interest as Interest
        return ({ offset }) => (offset % every === 0 ? [offset] : [])
      },
      take: (covered) => void took.push(covered),
    })
    members.set(name, { watch, followers, took })
  }
  function deliver(from: string, to: string, notice: WatchNotice | FedNotice): void {
    const hear = (): void => members.get(to)!.watch.hear(notice, from)
    const what = fate()
    if (what === 'late') late.push(hear)
    else if (what !== 'lost') hear()
    if (what === 'doubled') hear()
  }
  for (let shard = 0; shard < SHARDS; shard++) {
    heads.set(shard, 0)
    const owner = names[shard % names.length]!
    owners.set(shard, owner)
    members.get(owner)!.followers.gained(shard, 0)
  }
  return {
    ...{ clock, heads, members },
    setFate: (next: () => Fate) => void (fate = next),
    comeLate: () => {
      for (const hear of late.splice(0)) hear()
    },
    commit(shard: number): void {
      const offset = heads.get(shard)! + 1
      heads.set(shard, offset)
      members.get(owners.get(shard)!)!.followers.committed(shard, offset)
    },
    move(shard: number, to: string): void {
      members.get(owners.get(shard)!)!.followers.lost(shard)
      owners.set(shard, to)
      members.get(to)!.followers.gained(shard, heads.get(shard)!)
    },
    async stop() {
      for (const { watch } of members.values()) await watch.stop()
    },
  }
}

/** Why what a watcher took of a shard is not all there was, or was told to be missing. */
function faultOf(took: readonly Covered[], every: number): string | null {
  let at: number | null = null
  for (const { from, to, items, gap } of took) {
    if (at !== null && from < at) return `${from} was covered already, up to ${at}`
    if (at !== null && from > at !== gap) return `from ${from} behind ${at}, gap: ${gap}`
    at = to
    const wanted: number[] = []
    for (let offset = from + 1; offset <= to; offset++)
      if (offset % every === 0) wanted.push(offset)
    const got = items.map(([offset, value]) => (offset === value ? offset : -1))
    const [had, has] = [got.join(), wanted.join()]
    if (had !== has) return `(${from}, ${to}] has ${has}, not ${had}`
  }
  return null
}

const STEP = fc.oneof(
  { weight: 6, arbitrary: fc.record({ commit: fc.nat(SHARDS - 1) }) },
  { weight: 1, arbitrary: fc.record({ move: fc.nat(SHARDS - 1), to: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ pass: fc.constantFrom(1, 15, 400, 1_100) }) },
  { weight: 1, arbitrary: fc.constant({ late: true as const }) },
)
const FATES = fc.array(fc.constantFrom<Fate>('comes', 'comes', 'comes', 'lost', 'doubled', 'late'))

t.test('nothing is lost unseen, and nothing comes twice', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(STEP, { minLength: 5, maxLength: 60 }),
      FATES,
      fc.integer({ min: 1, max: 3 }),
      async (steps, fates, every) => {
        const names = ['a', 'b', 'c']
        const all = cluster(names)
        let next = 0
        all.setFate(() => fates[next++ % Math.max(1, fates.length)] ?? 'comes')
        const { watch, took } = all.members.get('a')!
        void watch.want(STREAM, { every } satisfies Interest)
        for (const step of steps) {
          if ('commit' in step) all.commit(step.commit)
          else if ('move' in step) all.move(step.move, names[step.to]!)
          else if ('pass' in step) await all.clock.advance(step.pass)
          else all.comeLate()
        }
        all.setFate(() => 'comes')
        all.comeLate()
        await all.clock.advance(2 * LIMITS.feed.watchEveryMs + 1)
        for (let shard = 0; shard < SHARDS; shard++) {
          const fault = faultOf(
            took.filter((covered) => covered.shard === shard),
            every,
          )
          if (fault !== null) throw new Error(`shard ${shard}: ${fault}`)
          const heard = watch.covered(STREAM, shard)!.to
          if (heard !== all.heads.get(shard)) throw new Error(`shard ${shard}: behind, ${heard}`)
        }
        await all.stop()
      },
    ),
    { numRuns: 150 },
  )
  t.pass()
})

t.test(
  'who subscribes is answered when all that live know, at the latest after a second',
  async (t) => {
    const all = cluster(['a', 'b', 'c'])
    const { watch, took } = all.members.get('a')!
    await watch.want(STREAM, { every: 1 })
    all.commit(1)
    all.commit(2)
    await all.clock.advance(LIMITS.feed.watchGatherMs)
    const items = took.flatMap((covered) =>
      covered.items.map(([offset]) => [covered.shard, offset]),
    )
    t.strictSame(items, [
      [1, 1],
      [2, 1],
    ])
    all.setFate(() => 'lost')
    const known = { is: false }
    void watch.want(STREAM, { every: 2 }).then(() => (known.is = true))
    await all.clock.advance(LIMITS.feed.watchKnownMs - 1)
    t.equal(known.is, false)
    await all.clock.advance(1)
    t.equal(known.is, true)
    await all.stop()
  },
)

t.test('nobody is followed for who has ended, said so or not', async (t) => {
  const all = cluster(['a', 'b'])
  const { watch } = all.members.get('a')!
  const { followers } = all.members.get('b')!
  await watch.want(STREAM, { every: 1 })
  t.equal(followers.isFollowing, true)
  await watch.want(STREAM, null)
  t.equal(followers.isFollowing, false)
  await watch.want(STREAM, { every: 1 })
  await watch.stop()
  await all.clock.advance(LIMITS.feed.watchLeaseMs - 1)
  t.equal(followers.isFollowing, true, 'its lease stands')
  await all.clock.advance(LIMITS.feed.watchEveryMs + 1)
  t.equal(followers.isFollowing, false)
  await all.stop()
})

t.test('an older interest that comes late changes nothing', async (t) => {
  const all = cluster(['a', 'b'])
  const { watch, took } = all.members.get('a')!
  all.setFate(() => 'late')
  void watch.want(STREAM, { every: 100 })
  all.setFate(() => 'comes')
  await watch.want(STREAM, { every: 1 })
  all.comeLate()
  all.commit(1)
  await all.clock.advance(LIMITS.feed.watchGatherMs)
  t.strictSame(took.at(-1)?.items, [[1, 1]])
  await all.stop()
})

t.test(
  'an owner that had lost its shard for a moment claims nothing of what came then',
  async (t) => {
    for (const lost of [false, true]) {
      const all = cluster(['a', 'b', 'c'])
      const { watch, took } = all.members.get('a')!
      await watch.want(STREAM, { every: 1 })
      all.commit(1)
      all.move(1, 'c')
      all.commit(1)
      all.setFate(() => (lost ? 'lost' : 'comes'))
      await all.clock.advance(LIMITS.feed.watchGatherMs)
      all.setFate(() => 'comes')
      all.move(1, 'b')
      all.commit(1)
      await all.clock.advance(LIMITS.feed.watchGatherMs)
      t.equal(
        faultOf(
          took.filter(({ shard }) => shard === 1),
          1,
        ),
        null,
      )
      t.match(took.at(-1), { from: 2, to: 3, items: [[3, 3]], gap: lost })
      await all.stop()
    }
  },
)

t.test('parts that overlap are cut, and what is behind is nothing new', async (t) => {
  const coverage = new Coverage()
  const part = (from: number, to: number): FedPart => {
    const items = Array.from({ length: to - from }, (_, i) => [from + i + 1, 'x'] as const)
    return { shard: 1, from, to, items }
  }
  t.match(coverage.take(part(3, 5), 1, 0), { from: 3, to: 5, gap: false })
  t.strictSame(coverage.take(part(4, 7), 1, 0), {
    ...{ shard: 1, from: 5, to: 7, gap: false, number: 1 },
    items: [
      [6, 'x'],
      [7, 'x'],
    ],
  })
  t.equal(coverage.take(part(4, 7), 1, 0), null)
  t.equal(coverage.take(part(3, 4), 2, 9), null)
  t.strictSame(coverage.of(1), { to: 7, atMs: 0, number: 1 }, 'an older part says nothing')
  t.match(coverage.take(part(8, 9), 2, 9), { from: 8, to: 9, gap: true, number: 2 })
  t.match(coverage.take(part(9, 10), 1, 9), { gap: false, number: 1 })
  t.match(coverage.of(1), { number: 1 }, 'what is newest was matched by an older interest')
})

t.test('what has no room on its way is told as a gap', async (t) => {
  const restore = overrideLimits({ 'feed.watchBytesMax': 3, 'feed.watchBatchBytes': 100 })
  t.teardown(restore)
  const all = cluster(['a', 'b'])
  const { watch, took } = all.members.get('a')!
  await watch.want(STREAM, { every: 1 })
  for (let i = 0; i < 5; i++) all.commit(1)
  await all.clock.advance(LIMITS.feed.watchGatherMs)
  t.match(took.at(-1), { from: 0, to: 5, gap: true })
  t.equal(took.at(-1)!.items.length, 3)
  t.equal(watch.counts.gaps, 1)
  t.equal(all.members.get('b')!.watch.counts.dropped, 2)
  await all.stop()
})
