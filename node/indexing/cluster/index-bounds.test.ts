// How long the log waits for the graph index of a cluster, case by case: an index that is away or
// stands still is made anew once its part of the log is gone, never gone on with a hole in it, and
// one that gets on is waited for. Two members, their journal and the search engine are twins.

import t, { type Test } from 'tap'
import { actorIdOf } from '../../../cluster/feed/testing/feed-store.ts'
import { noted, erased, opened } from '../../../cluster/feed/testing/scene.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import { ClusterScene, type TestMember } from '../testing/cluster-scene.ts'

overrideLimits({ 'feed.projectorBatchEntries': 20, 'feed.refillReadsTogether': 4 })
overrideLimits({ 'feed.refillStepMs': 0, 'feed.refillKeptMs': 0 })

/** Here a test trims, not the time. */
const A_WHILE = 20_000
const ACTORS = 100

const idOf = (i: number): string => actorIdOf(i, i % 2)

async function two(): Promise<[ClusterScene, TestMember, TestMember]> {
  const s = new ClusterScene()
  const members = [await s.start(SYSTEM_SHARD, 0), await s.start(1)] as const
  const isReady = await s.until(() => members.every(({ index }) => index.watch.generation > 0))
  if (!isReady) throw new Error(`the index is not ready: ${s.warnings.join('; ')}`)
  return [s, ...members]
}

/** Actors of both shards, in the index, their derived rows written. */
async function full(): Promise<[ClusterScene, TestMember, TestMember]> {
  const [s, one, other] = await two()
  for (let i = 0; i < ACTORS; i++) await s.commit([idOf(i), opened(`${i}`), noted('n', 'x')])
  await s.store.flush()
  if (!(await s.until(() => s.isCaughtUp))) throw new Error(`it stays behind: ${s.tell()}`)
  return [s, one, other]
}

/** As the trimmer does where nothing is old or too much: what the index lacks stays. */
async function trim(s: ClusterScene, isTooMuch = false): Promise<void> {
  await s.store.flush()
  for (const { index, shards } of s.members) {
    for (const shard of shards) {
      const flushed = (await s.store.journal.derived.consumer(shard, 'flush')) ?? 0
      const upTo = isTooMuch ? flushed : Math.min(flushed, index.doneWith(shard))
      await s.store.journal.log.trim!(shard, await s.store.epoch(shard), upTo)
    }
  }
}

/** The engine loses all, and the members what they have in memory of the log. */
async function lose(s: ClusterScene): Promise<void> {
  s.memory.state.clear()
  for (const member of s.members) await s.gives(member, ...member.shards)
}

const beginOf = async (s: ClusterScene, shard: number): Promise<number> => {
  const [first] = await s.store.journal.log.read(shard, 0, 1)
  return first === undefined ? s.store.heads.get(shard)! : first.offset - first.count
}

async function isWhole(t: Test, s: ClusterScene, generation: number): Promise<void> {
  await s.store.flush()
  const isRead = (): boolean =>
    s.isCaughtUp && s.members.every(({ index }) => index.watch.generation === generation)
  t.equal(await s.until(isRead), true, `generation ${generation} is read: ${s.tell()}`)
  t.strictSame(s.docs(), s.store.expected())
}

t.test('an index that follows needs nothing of the log', async (t) => {
  const [s, one] = await full()
  t.equal(one.index.doneWith(0), s.store.heads.get(0))
  t.equal(one.index.doneWith(SYSTEM_SHARD), 0, 'nothing is in it')
  t.equal(one.index.doneWith(2), Number.POSITIVE_INFINITY, 'there is no such shard')
  await s.clock.advance(A_WHILE)
  await trim(s)
  t.equal(await beginOf(s, 0), s.store.heads.get(0), 'however old it is')
  await s.commit([idOf(0), erased('n')])
  await isWhole(t, s, 1)
  await s.close()
})

t.test('an engine that is away is waited for, and catches up', async (t) => {
  const [s, one] = await full()
  await trim(s)
  const at = s.store.heads.get(0)!
  s.hooks.beforeBulk = () => 'away'
  await s.commit([idOf(0), erased('n')])
  await s.clock.advance(A_WHILE)
  await trim(s)
  t.equal(await beginOf(s, 0), at, 'what it lacks is there')
  t.equal(one.index.doneWith(0), at)
  s.hooks.beforeBulk = undefined
  await isWhole(t, s, 1)
  await s.close()
})

t.test('one that was away for longer is filled anew, and that is told', async (t) => {
  const [s, one, other] = await full()
  s.hooks.beforeBulk = () => 'away'
  await s.commit([idOf(0), erased('n')])
  await s.clock.advance(A_WHILE)
  await trim(s, true)
  // What it has itself in memory it could still go on with; who begins anew has only the log.
  await s.gives(one, 0)
  t.equal(await s.until(() => one.index.numbers.feed.gone > 0), true, 'while it is away')
  t.match(s.warnings.at(-1), /another one is filled: .*the log of shard 0 no longer reaches down/)
  t.equal(one.index.doneWith(0), Number.POSITIVE_INFINITY, 'it does not hold the log any more')
  t.equal(one.index.watch.unready(), null, 'what it has is still read')
  s.hooks.beforeBulk = undefined
  await isWhole(t, s, 2)
  t.equal(other.index.watch.generation, 2)
  t.ok(one.index.numbers.feed.actors >= ACTORS / 2)
  await s.close()
})

t.test('after a quiet weekend an engine loses all: what fills it is waited for', async (t) => {
  const [s, one] = await full()
  await s.clock.advance(A_WHILE)
  await trim(s)
  await lose(s)
  s.hooks.beforeBulk = () => (one.index.numbers.feed.actors > 0 ? 'away' : null)
  t.equal(await s.until(() => one.index.numbers.feed.actors > 0), true)
  // Its beginning is all that is old: what comes now it needs.
  const begun = one.index.doneWith(0)
  t.equal(begun, ACTORS / 2)
  for (let i = 0; i < 10; i++) await s.commit([idOf(2 * i), noted('m', `${i}`)])
  await s.commit([idOf(0), erased('n')])
  await s.clock.advance(A_WHILE)
  await trim(s)
  t.equal(await beginOf(s, 0), begun)
  t.equal(one.index.watch.generation, 0)
  s.hooks.beforeBulk = undefined
  await isWhole(t, s, 2)
  t.strictSame(s.generations(), [2], 'filled once')
  await s.close()
})

t.test('a refill that stands still for too long is given up, and ends all the same', async (t) => {
  const [s, one] = await full()
  await trim(s)
  await lose(s)
  s.hooks.beforeBulk = () => (one.index.numbers.feed.actors > 0 ? 'away' : null)
  t.equal(await s.until(() => one.index.numbers.feed.actors > 0), true)
  for (let i = 0; i < 4; i++) await s.commit([idOf(i), erased('n')])
  await s.clock.advance(A_WHILE)
  await trim(s, true)
  await s.gives(one, 0)
  s.hooks.beforeBulk = undefined
  await isWhole(t, s, 3)
  await s.close()
})

t.test(
  'a member that starts while the engine is away holds the log as long as others',
  async (t) => {
    const s = new ClusterScene()
    s.hooks.beforeOther = () => 'away'
    for (let i = 0; i < ACTORS; i++)
      await s.store.commit([idOf(i), opened(`${i}`), noted('n', 'x')])
    const one = await s.start(SYSTEM_SHARD, 0, 1)
    await s.clock.advance(A_WHILE)
    t.equal(one.index.isAway, true)
    await trim(s)
    t.equal(await beginOf(s, 0), 0)
    await s.clock.advance(A_WHILE)
    await trim(s, true)
    await s.commit([idOf(0), erased('n')])
    s.hooks.beforeOther = undefined
    await isWhole(t, s, 1)
    await s.close()
  },
)

t.test('a shard that is being filled goes on with another owner', async (t) => {
  const [s, , other] = await full()
  await trim(s)
  await lose(s)
  let documents = 0
  /** Of shard 0. */
  const count = (items: readonly { readonly id: string }[]): void =>
    void (documents += items.filter(({ id }) => id.slice(0, 36).endsWith('0000')).length)
  s.hooks.beforeBulk = (items) => {
    if (documents >= ACTORS / 2) return 'away'
    count(items)
    return null
  }
  t.equal(await s.until(() => documents >= ACTORS / 2), true)
  await s.clock.advance(A_WHILE)
  await s.gives(other, 0)
  await s.commit([idOf(0), erased('n')], [idOf(2), noted('m', 'y')])
  const before = documents
  documents = 0
  s.hooks.beforeBulk = (items) => {
    count(items)
    return null
  }
  await isWhole(t, s, 2)
  const all = before + documents
  t.ok(all <= ACTORS + 20 + 4, `${all} documents of ${ACTORS}, ${before} by the owner before`)
  await s.close()
})
