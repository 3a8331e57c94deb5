// The embedded graph whole: LMDB and SQLite in a temporary folder, the index's thread and the
// reader thread as they run in a node.

import { appendFileSync, readdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FeedStore, actorIdOf } from '../../cluster/feed/testing/feed-store.ts'
import { LIMITS } from '../../config/limits.ts'
import type { NodeType } from '../../protocol/graph/node-type.ts'
import { ask, folder, open, openJournal, ready, until } from './testing/embedded-stage.ts'
import { behaviours } from './testing/notebook-table.ts'

const A = actorIdOf(1, 0)
const B = actorIdOf(2, 1)
const notes = [{ edge: 'notes', orderBy: 'text', node: { fields: ['text'] } }]

t.test('a write is seen with its token, over all threads', async (t) => {
  const dir = folder(t)
  const journal = await openJournal(dir)
  t.teardown(() => journal.close())
  const e = await open(t, dir, new FeedStore(behaviours()[0]!, journal))
  await ready(e)
  for (let i = 0; i < 20; i++) {
    const records = [{ t: 'noted', id: `n${i}`, text: `text ${i}` }]
    const first = i < 2 ? [{ t: 'opened', title: `t${i}` }] : []
    const position = await e.store.commit([i % 2 === 0 ? A : B, ...first, ...records])
    e.index.committed(position.shard, position.offset)
    const token = e.tokens.encode([position])
    const body = [{ edge: 'notes', filter: `text == 'text ${i}'`, count: true }]
    // Now and then so many at once that no thread is idle.
    const length = i % 5 === 0 ? LIMITS.graph.plansAheadMax + 8 : 1
    const asks = Array.from({ length }, () => ask(e, body, token))
    for (const answer of await Promise.all(asks)) t.strictSame(answer, { notes: 1 })
  }
  await e.store.flush()
  const body = [
    {
      edge: 'notebooks',
      filter: `title == 't1'`,
      node: {
        fields: ['size'],
        navigate: [{ edge: 'history', limit: 1, node: { fields: ['version'] } }],
      },
    },
  ]
  t.strictSame(await ask(e, body), {
    notebooks: [{ size: 10, history: [{ version: 11 }], historyHasMore: true }],
  })
  t.equal(e.index.progress.counter('entries'), 20)
  t.equal(e.index.lag().entries, 0)
})

t.test('a restart goes on where the index was, without a rebuild', async (t) => {
  const dir = folder(t)
  const journal = await openJournal(dir)
  t.teardown(() => journal.close())
  const store = new FeedStore(behaviours()[0]!, journal)
  const first = await open(t, dir, store)
  await store.commit([A, { t: 'opened', title: 'x' }, { t: 'noted', id: 'n', text: 'one' }])
  first.index.committed(0, 1)
  t.equal(await first.index.watch.reached([{ shard: 0, offset: 1 }], 20_000), true)
  await first.close()
  await store.commit([A, { t: 'noted', id: 'm', text: 'two' }])
  await store.flush()
  const second = await open(t, dir, store)
  await ready(second)
  t.strictSame(await ask(second, notes), { notes: [{ text: 'one' }, { text: 'two' }] })
  t.equal(second.index.progress.counter('resets'), 0)
  t.equal(second.index.progress.counter('entries'), 1)
})

t.test('a lost or damaged index is made again from the journal', async (t) => {
  const dir = folder(t)
  const journal = await openJournal(dir)
  t.teardown(() => journal.close())
  const store = new FeedStore(behaviours()[0]!, journal)
  await store.commit([A, { t: 'opened', title: 'x' }, { t: 'noted', id: 'n', text: 'one' }])
  await store.flush()
  const first = await open(t, dir, store)
  await ready(first)
  await first.close()
  const file = join(
    dir,
    readdirSync(dir).find((name) => name.endsWith('.sqlite'))!,
  )
  truncateSync(file, 0)
  appendFileSync(file, 'this is no database')
  const second = await open(t, dir, store)
  await ready(second)
  t.strictSame(await ask(second, notes), { notes: [{ text: 'one' }] })
  await second.close()
  writeFileSync(file, '')
  const third = await open(t, dir, store)
  await ready(third)
  t.strictSame(await ask(third, notes), { notes: [{ text: 'one' }] }, 'an empty one, too')
})

t.test('an actor that can not be shown gets its row in the journal', async (t) => {
  const dir = folder(t)
  const journal = await openJournal(dir)
  t.teardown(() => journal.close())
  const store = new FeedStore(behaviours()[0]!, journal)
  const e = await open(t, dir, store)
  await store.commit([A, { t: 'opened', title: 'x' }], [A, { t: 'unfoldable' }])
  e.index.committed(0, 2)
  t.equal(await e.index.watch.reached([{ shard: 0, offset: 2 }], 20_000), true)
  const parked = await journal.derived.parked(0, 'index')
  t.match(parked, [{ actorId: A }])
  t.equal(e.index.progress.counter('parked'), 1)
})

t.test('a field that comes at run time reaches plans, all threads and the index', async (t) => {
  const dir = folder(t)
  const journal = await openJournal(dir)
  t.teardown(() => journal.close())
  const store = new FeedStore(behaviours()[0]!, journal)
  await store.commit([A, { t: 'opened', title: 'x' }, { t: 'noted', id: 'n', text: 'one' }])
  await store.flush()
  const types = behaviours()[0]!.nodeTypes
  const [notebook, ...rest] = types
  const fields = notebook!.fields.filter(({ name }) => name !== 'size')
  const e = await open(t, dir, store, { types: [{ ...notebook!, fields }, ...rest] })
  await ready(e)
  const sizes = [{ edge: 'notebooks', node: { fields: ['title', 'size'] } }]
  await t.rejects(ask(e, sizes), /no field size/)
  t.strictSame(await ask(e, notes), { notes: [{ text: 'one' }] })
  e.schema.change(types)
  t.strictSame(await ask(e, notes), { notes: [{ text: 'one' }] }, 'what was there stays')
  await t.rejects(ask(e, sizes), /has been given just now/)
  await until(() => e.index.read.version === e.schema.current)
  const asks = Array.from({ length: 2 * LIMITS.graph.plansAheadMax }, () => ask(e, sizes))
  for (const answer of await Promise.all(asks)) {
    t.strictSame(answer, { notebooks: [{ title: 'x', size: 1 }] })
  }
  t.equal(e.index.restarts, 0, 'nothing has failed')
  const before = e.index.watch.generation
  const [first, ...others] = fieldsOf(types)
  e.schema.change([{ ...notebook!, fields: [{ ...first!, values: ['a'] }, ...others] }, ...rest])
  t.strictSame(await ask(e, sizes), { notebooks: [{ title: 'x', size: 1 }] })
  t.equal(e.index.watch.generation, before, 'what is laid out alike stays')
})

const fieldsOf = (types: readonly NodeType[]) => types[0]!.fields
