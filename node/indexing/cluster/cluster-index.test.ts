// The graph index of members in a cluster, on the twins of journal and search engine: what is read
// must be what was committed, whoever owns what, whatever fails on the way.

import t from 'tap'
import { A, B, C, erased, noted, opened } from '../../../cluster/feed/testing/scene.ts'
import { settle } from '../../../cluster/testing/harness.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import { ClusterScene } from '../testing/cluster-scene.ts'
import { end, titles, TITLES, two } from '../testing/cluster-pair.ts'

const codeOf = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work
    return 'none'
  } catch (error) {
    return error instanceof RequestError ? error.errors[0]!.code : String(error)
  }
}

t.test('a write is seen by its token, on its owner and on others', async (t) => {
  const [s, one, other] = await two()
  const at = await s.commit([A, opened('one')], [C, opened('three')])
  t.equal(await s.reached(one, at), true)
  t.equal(await titles(s, one), 'one three')
  const more = await s.commit([B, opened('two')])
  t.equal(await s.reached(one, at, more), true)
  t.equal(await titles(s, one), 'one three two')
  t.equal(await s.reached(other, at, more), true)
  t.equal(one.index.watch.reached([at, more], 0), true, 'what was reached once costs nothing')
  await end(t, s)
})

t.test('who has slept for a day brings back nothing that was removed since', async (t) => {
  const [s, one, other] = await two()
  const at = await s.commit([A, opened('one')])
  t.equal(await s.reached(one, at), true)
  const { promise: sleep, resolve: wake } = Promise.withResolvers<void>()
  let isAsleep = false
  s.hooks.beforeBulk = async (items) => {
    // The first one has no room for it, and hears of that a day later.
    if (isAsleep) return null
    isAsleep = true
    await sleep
    return items.map(() => 'busy')
  }
  await s.commit([A, noted('n', '1')])
  t.equal(await s.until(() => isAsleep), true)
  // Nobody tells the sleeper that another has its shard.
  one.lease.stands = false
  one.shards.delete(0)
  other.shards.add(0)
  other.index.gained(0, await s.store.claim(0), s.store.heads.get(0)!)
  const removed = await s.commit([A, erased('n')])
  await s.store.flush()
  t.equal(await s.reached(other, removed), true)
  // A day later nobody knows of the removal any more.
  for (const { documents } of s.memory.state.values()) {
    for (const id of documents.keys()) if (id.endsWith(':n')) documents.delete(id)
  }
  wake()
  await s.clock.advance(2 * LIMITS.elastic.bulkMs)
  t.strictSame(s.docs(), s.store.expected())
  one.index.lost(0)
  one.lease.stands = true
  await end(t, s)
})

t.test('who may have lost a shard does not say what was never committed in it', async (t) => {
  const [s, one, other] = await two()
  const at = await s.commit([A, opened('one')])
  const own = one.shards.has(at.shard) ? one : other
  t.equal(own.index.watch.head(at.shard), at.offset)
  own.lease.stands = false
  t.equal(own.index.watch.head(at.shard), Number.POSITIVE_INFINITY)
  own.lease.stands = true
  t.equal(own.index.watch.head(at.shard), at.offset)
  await end(t, s)
})

t.test('what is not in the index in time is said so, and comes later', async (t) => {
  const [s, one] = await two()
  s.hooks.beforeBulk = () => 'away'
  const at = await s.commit([A, opened('one')])
  t.equal(await s.reached(one, at), false)
  t.equal(await titles(s, one), '', 'what is there is still read')
  s.hooks.beforeBulk = undefined
  t.equal(await s.reached(one, at), true)
  t.equal(await titles(s, one), 'one')
  await end(t, s, /can't be used now/)
})

t.test('a list keeps its order when one in its middle goes', async (t) => {
  const [s] = await two()
  await s.commit([A, opened('one'), noted('c', 'x'), noted('a', 'y'), noted('b', 'z')])
  t.equal(await s.until(() => s.isCaughtUp), true)
  t.strictSame(s.order(A, 'note'), [
    [0, 'c'],
    [1, 'a'],
    [2, 'b'],
  ])
  await s.commit([A, erased('c')])
  t.equal(await s.until(() => s.isCaughtUp), true)
  await s.commit([A, noted('aa', 'w')])
  t.equal(await s.until(() => s.isCaughtUp), true)
  t.strictSame(s.order(A, 'note'), [
    [0, 'a'],
    [1, 'b'],
    [2, 'aa'],
  ])
  await end(t, s)
})

t.test('a bulk without a refresh is not seen yet, and not said to be', async (t) => {
  const [s, one] = await two()
  s.hooks.beforeOther = () => 'away'
  const at = await s.commit([A, opened('one')])
  t.equal(await s.until(() => one.index.applied(0) === at.offset), true)
  const waiting = s.reached(one, at)
  t.equal(await waiting, false, 'no refresh, no promise')
  s.hooks.beforeOther = undefined
  t.equal(await s.reached(one, at), true)
  await end(t, s, /looked after/)
})

t.test('an engine that is away: writes go on, queries are told, then it catches up', async (t) => {
  const [s, one] = await two()
  const at = await s.commit([A, opened('zero')])
  t.equal(await s.reached(one, at), true)
  s.hooks.beforeBulk = () => 'away'
  s.hooks.beforeSearch = () => 'away'
  s.hooks.beforeOther = () => 'away'
  for (let i = 0; i < 40; i++) await s.commit([A, opened(`${i}`)], [C, opened(`c${i}`)])
  await s.commit([B, opened('b'), noted('n', 'x')])
  await s.store.flush()
  await s.clock.advance(60_000)
  t.equal(await codeOf(s.ask(one, TITLES)), 'UNAVAILABLE')
  t.equal(one.index.isAway, true)
  t.equal(one.index.lag().entries, 80)
  let items = 0
  s.hooks.beforeSearch = undefined
  s.hooks.beforeOther = undefined
  s.hooks.beforeBulk = (some) => {
    items += some.length
    return null
  }
  t.equal(await s.until(() => !one.index.isAway), true)
  await end(t, s, /can't be used now|looked after/)
  t.ok(items <= 4, `newest state only: ${items} documents for 81 entries`)
})

t.test('items that have to wait are sent again, others are not', async (t) => {
  const [s, one] = await two()
  const sent: number[] = []
  s.hooks.beforeBulk = (items) => {
    sent.push(items.length)
    return sent.length < 3 ? items.map((_, i) => (i % 2 === 0 ? null : 'busy')) : null
  }
  const at = await s.commit([A, opened('one'), noted('a', 'x'), noted('b', 'y'), noted('c', 'z')])
  t.equal(await s.reached(one, at), true)
  t.strictSame(sent, [4, 2, 1])
  await end(t, s)
})

t.test('what the index refuses is parked and listed; the others go on', async (t) => {
  const [s, one] = await two()
  s.hooks.beforeBulk = (items) =>
    items.map(({ id }) => (id.startsWith(A) ? { refused: 'mapping: no' } : null))
  const at = await s.commit([A, opened('one')], [C, opened('three')])
  t.equal(await s.reached(one, at), true)
  t.equal(await titles(s, one), 'three')
  t.equal(one.index.numbers.parked, 1)
  const rows = await s.store.journal.derived.parked(0, 'index-1')
  t.equal(rows.length, 1)
  t.match(Buffer.from(rows[0]!.body).toString(), /mapping: no/)
  s.hooks.beforeBulk = undefined
  await s.commit([A, noted('n', 'x')])
  await s.store.flush()
  one.index.retryParked()
  t.equal(await s.until(() => one.index.numbers.parked === 0), true)
  t.strictSame(await s.store.journal.derived.parked(0, 'index-1'), [])
  await end(t, s, /parked/)
})

t.test('a shard that moves is followed where its owner had come to', async (t) => {
  const [s, one, other] = await two()
  await s.commit([A, opened('one'), noted('n', 'x')])
  t.equal(await s.until(() => s.isCaughtUp), true)
  s.hooks.beforeBulk = () => 'away'
  await s.commit([A, noted('n', 'y')], [C, opened('three')])
  await s.store.flush()
  await s.gives(other, 0)
  s.hooks.beforeBulk = undefined
  const at = await s.commit([A, erased('n')])
  t.equal(await s.reached(one, at), true)
  t.equal(await titles(s, one), 'one three')
  await end(t, s, /can't be used now/)
})

t.test('a late bulk of the owner before changes nothing, after a removal either', async (t) => {
  const [s, , other] = await two()
  await s.commit([A, opened('one'), noted('n', 'x')])
  t.equal(await s.until(() => s.isCaughtUp), true)
  const late = Promise.withResolvers<void>()
  s.hooks.beforeBulk = () => ({ when: late.promise })
  await s.commit([A, noted('n', 'old'), opened('old')])
  t.equal(await s.until(() => s.warnings.length > 0), true, 'its bulk is on the way')
  s.hooks.beforeBulk = undefined
  await s.store.flush()
  await s.gives(other, 0)
  await s.commit([A, erased('n'), opened('new')])
  t.equal(await s.until(() => s.isCaughtUp), true)
  await s.clock.advance(120_000)
  late.resolve()
  await settle()
  await end(t, s, /can't be used now/)
})

t.test('an index that is lost is filled anew, beside nothing', async (t) => {
  const [s, one] = await two()
  await s.commit([A, opened('one')], [C, opened('three')])
  await s.store.flush()
  await s.store.snapshot(A)
  t.equal(await s.until(() => s.isCaughtUp), true)
  s.memory.state.clear()
  t.equal(await s.until(() => one.index.watch.unready() !== null), true, 'it is not read meanwhile')
  await s.store.trim()
  t.equal(await s.until(() => one.index.watch.unready() === null), true)
  t.strictSame(s.generations(), [2])
  await end(t, s, /made anew/)
})

t.test('a hole in the log: a successor is filled while the old one is read', async (t) => {
  const [s, one, other] = await two()
  await s.commit([A, opened('one'), noted('n', 'x')])
  t.equal(await s.until(() => s.isCaughtUp), true)
  s.hooks.beforeBulk = () => 'away'
  await s.commit([A, erased('n')])
  await s.store.flush()
  await s.store.trim()
  await s.gives(other, 0)
  let unready = 0
  s.hooks.beforeBulk = undefined
  t.equal(
    await s.until(() => {
      if (one.index.watch.unready() !== null) unready++
      return one.index.watch.generation === 2 && other.index.watch.generation === 2
    }),
    true,
  )
  t.equal(unready, 0, 'it could be read all the time')
  await s.clock.advance(2 * LIMITS.indexing.graceMs)
  t.strictSame(s.generations(), [2], 'the old one goes')
  await end(t, s, /can't be used now|made anew/)
})

t.test(
  'what goes while a shard is filled from its actors goes from the index as well',
  async (t) => {
    const s = new ClusterScene()
    await s.store.commit([A, opened('one'), noted('n', 'x')], [C, opened('three')])
    await s.store.flush()
    await s.store.trim()
    await s.start(SYSTEM_SHARD, 0, 1)
    // The first attempt is in the index, and nobody knows.
    let attempts = 0
    s.hooks.afterBulk = () => {
      attempts++
      return 'away'
    }
    t.equal(await s.until(() => attempts > 0), true)
    await s.commit([A, erased('n')])
    await s.store.flush()
    s.hooks.afterBulk = undefined
    await end(t, s, /can't be used now/)
  },
)

t.test('an index that is ahead of the log is not believed', async (t) => {
  const [s, one] = await two()
  await s.commit([A, opened('one')])
  t.equal(await s.until(() => s.isCaughtUp), true)
  const epoch = await s.store.epoch(1)
  const row = { kind: 'consumer', consumer: 'index-1', offset: 99 } as const
  await s.store.journal.derived.write(1, epoch, [row])
  await s.gives(one, 1)
  t.equal(await s.until(() => one.index.watch.generation === 2), true)
  await end(t, s, /the log ends at 0/)
})

t.test('other node types: a successor for them, the live one as far as it goes', async (t) => {
  const [s, one, other] = await two()
  await s.commit([A, opened('one')])
  await s.commit([B, opened('two')])
  await s.store.flush()
  t.equal(await s.until(() => s.isCaughtUp), true)
  // A newer version, which has one field more.
  const [notebook, ...others] = s.behaviour.nodeTypes
  const fields = [...notebook!.fields, { name: 'colour', type: 'text' } as const]
  s.behaviour = { ...s.behaviour, nodeTypes: [{ ...notebook!, fields }, ...others] }
  const newer = await s.start()
  await s.gives(newer, 0)
  const at = await s.commit([A, opened('more')])
  await s.store.flush()
  t.equal(await s.reached(other, at), true, 'it writes for those of the old version')
  t.equal(await titles(s, other), 'more two')
  t.equal(await titles(s, newer), 'more two')
  t.equal(newer.index.watch.generation, 1, 'who is in charge has the old version')
  await s.gives(newer, SYSTEM_SHARD)
  await s.clock.advance(10_000)
  t.equal(newer.index.watch.generation, 1, 'shard 1 is not in the successor yet')
  t.strictSame(s.generations(), [1, 2])
  await s.gives(newer, 1)
  t.equal(await s.until(() => newer.index.watch.generation === 2), true)
  await s.commit([B, opened('too')])
  t.equal(await s.until(() => one.index.watch.generation === 2), true)
  await end(t, s)
})

t.test('a query that meets a lost index is told to come back', async (t) => {
  const [s, one] = await two()
  s.memory.state.delete('test-note-1')
  const notes = [{ edge: 'notes', node: { fields: ['text'] } }]
  t.equal(await codeOf(s.ask(one, notes)), 'UNAVAILABLE')
  await end(t, s)
})

t.test('history is read from the journal, page by page', async (t) => {
  const [s, one] = await two()
  for (let i = 0; i < 70; i++) await s.commit([A, opened(`${i}`)])
  await s.store.flush()
  t.equal(await s.until(() => s.isCaughtUp), true)
  await s.clock.advance(2_000)
  const history = { edge: 'history', limit: 500, node: { fields: ['version'] } }
  const { notebooks } = await s.ask(one, [{ edge: 'notebooks', node: { navigate: [history] } }])
  const [notebook] = notebooks as { history: { version: number }[] }[]
  t.strictSame(
    notebook!.history.map(({ version }) => version),
    Array.from({ length: 70 }, (_, i) => 70 - i),
  )
  await s.commit([A, { t: 'closed', notes: [] }])
  await s.store.flush()
  const of = [{ edge: 'notebookRecords', filter: `notebookId == '${A}'`, count: true }]
  t.strictSame(await s.ask(one, of), { notebookRecords: 0 }, 'of a deleted actor none')
  await end(t, s)
})
