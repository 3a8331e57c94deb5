// Actors of the `system` shard in the cluster's graph: shown as all others are, by whoever owns the
// shard, in a generation of before too; of types without node types none is.

import t, { type Test } from 'tap'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import { actorIdOf, FeedStore } from '../../../cluster/feed/testing/feed-store.ts'
import { handbookBehaviour, vaultBehaviour } from '../../../cluster/feed/testing/handbook.ts'
import { ClusterScene } from '../testing/cluster-scene.ts'

const BOOK = actorIdOf(1, 0)
const OTHER = actorIdOf(2, 1)
const opened = (title: string) => ({ t: 'opened', title })
/** The first generation is read. */
async function isRead(t: Test, s: ClusterScene): Promise<void> {
  const isLive = (): boolean => s.members.every(({ index }) => index.watch.generation === 1)
  t.ok(await s.until(isLive), s.tell())
}

const titles = [{ edge: 'handbooks', orderBy: 'title', node: { fields: ['title'] } }]

t.test('actors of the system shard are shown on all members', async (t) => {
  const s = new ClusterScene({ behaviour: handbookBehaviour() })
  const one = await s.start(SYSTEM_SHARD)
  const other = await s.start(0, 1)
  await isRead(t, s)
  const at = await s.commit([BOOK, opened('one')])
  t.equal(at.shard, SYSTEM_SHARD)
  for (const member of [one, other]) {
    t.equal(await s.reached(member, at), true, 'its position is waited for')
    t.strictSame(await s.ask(member, titles), { handbooks: [{ title: 'one' }] })
  }
  t.equal(one.index.watch.head(SYSTEM_SHARD), 1)
  t.equal(one.index.doneWith(SYSTEM_SHARD), 1, 'the log waits for it')
  await s.store.flush()
  await s.gives(other, SYSTEM_SHARD)
  const then = await s.commit([OTHER, opened('two')])
  t.equal(await s.reached(one, then), true)
  t.strictSame(await s.ask(one, titles), { handbooks: [{ title: 'one' }, { title: 'two' }] })
  await s.store.flush()
  t.strictSame(s.docs(), s.store.expected())
  await s.close()
})

t.test('they are found when the log no longer reaches down to them', async (t) => {
  const s = new ClusterScene({ behaviour: handbookBehaviour() })
  await s.store.commit([BOOK, opened('one')], [OTHER, opened('two')])
  await s.store.flush()
  await s.store.snapshot(BOOK)
  await s.store.trim()
  const one = await s.start(SYSTEM_SHARD, 0, 1)
  t.ok(await s.until(() => one.index.watch.unready() === null), s.tell())
  t.strictSame(await s.ask(one, titles), { handbooks: [{ title: 'one' }, { title: 'two' }] })
  await s.close()
})

t.test('what has no node types leaves no trace', async (t) => {
  const vault = vaultBehaviour()
  const s = new ClusterScene({ behaviour: handbookBehaviour(), others: [vault] })
  const vaults = new FeedStore(vault, s.store.journal)
  const secret = await vaults.commit([BOOK, opened('a secret')])
  await vaults.flush()
  s.store.heads.set(SYSTEM_SHARD, secret.offset)
  const one = await s.start(SYSTEM_SHARD, 0, 1)
  await isRead(t, s)
  t.equal(await s.reached(one, secret), true)
  const at = await s.commit([OTHER, opened('one')])
  t.equal(await s.reached(one, at), true)
  await s.store.flush()
  t.strictSame(s.docs(), s.store.expected())
  t.equal(one.index.numbers.parked, 0)
  t.notOk(JSON.stringify([...s.memory.state]).includes('a secret'))
  t.strictSame(s.warnings, [])
  await s.close()
})

t.test(
  'asked for: another generation is filled, and takes over with all that was there',
  async (t) => {
    const s = new ClusterScene()
    const one = await s.start(SYSTEM_SHARD, 0)
    const other = await s.start(1)
    await isRead(t, s)
    const at = await s.commit([BOOK, opened('one')])
    t.equal(await s.reached(one, at), true)
    await s.store.flush()
    t.match(await other.index.rebuild.rebuildProgress(), { state: 'idle', startedAt: null })
    await s.during(other.index.rebuild.rebuild())
    const { startedAt } = await other.index.rebuild.rebuildProgress()
    t.equal(startedAt, s.clock.nowMs(), 'it is under way at once')
    await s.during(other.index.rebuild.rebuild())
    let seen = 0
    const ask = [{ edge: 'notebooks', node: { fields: ['title'] } }]
    const isOver = async (): Promise<boolean> => {
      for (const member of [one, other]) {
        t.strictSame(await s.ask(member, ask), { notebooks: [{ title: 'one' }] }, 'it is read')
        const { state, done, total } = await member.index.rebuild.rebuildProgress()
        if (state !== 'idle') seen++
        t.ok(done <= total, `${done} of ${total}`)
      }
      return one.index.watch.generation === 2 && other.index.watch.generation === 2
    }
    t.ok(await s.until(isOver), s.tell())
    t.ok(seen > 0)
    await s.clock.advance(10_000)
    t.equal(one.index.watch.generation, 2, 'once')
    t.match(await other.index.rebuild.rebuildProgress(), { state: 'idle', done: 0, total: 0 })
    await s.close()
  },
)

t.test('a member without a shard can not ask for it, and says so', async (t) => {
  const s = new ClusterScene()
  const one = await s.start(SYSTEM_SHARD, 0, 1)
  const idle = await s.start()
  t.ok(await s.until(() => one.index.watch.unready() === null))
  await t.rejects(s.during(idle.index.rebuild.rebuild()), { errors: [{ code: 'UNAVAILABLE' }] })
  await s.close()
})
