// Actors of the `system` shard in the embedded graph: those of a type with node types are shown as
// all others are, and of those without none is.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FeedStore, actorIdOf } from '../../cluster/feed/testing/feed-store.ts'
import { handbookBehaviour, vaultBehaviour } from '../../cluster/feed/testing/handbook.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import { ask, folder, open, openJournal, until } from './testing/embedded-stage.ts'
import { behaviours } from './testing/system-table.ts'

const BOOK = actorIdOf(1, 0)
const OTHER = actorIdOf(2, 1)
const SAFE = actorIdOf(3, 1)
const table = new URL('./testing/system-table.ts', import.meta.url).href
const titles = [{ edge: 'handbooks', orderBy: 'title', node: { fields: ['title'] } }]

t.test('actors of the system shard are shown, and secrets are not', async (t) => {
  const dir = folder(t)
  const journal = await openJournal(dir)
  t.teardown(() => journal.close())
  const vaults = new FeedStore(vaultBehaviour(), journal)
  await vaults.commit([SAFE, { t: 'opened', title: 'a-secret-of-the-vault' }])
  await vaults.flush()
  const books = new FeedStore(handbookBehaviour(), journal)
  for (const [shard, head] of vaults.heads) books.heads.set(shard, head)
  await books.commit([BOOK, { t: 'opened', title: 'one' }])
  await books.flush()
  const store = new FeedStore(behaviours()[0]!, journal)
  await store.commit([actorIdOf(4, 1), { t: 'opened', title: 'not of it' }])
  await store.flush()
  const types = behaviours().flatMap(({ nodeTypes }) => nodeTypes)
  const options = { types, table, others: [books] }
  const e = await open(t, dir, store, options)
  await until(() => e.index.watch.unready() === null)
  t.strictSame(await ask(e, titles), { handbooks: [{ title: 'one' }] })
  const at = await books.commit([OTHER, { t: 'opened', title: 'two' }])
  t.equal(at.shard, SYSTEM_SHARD)
  e.index.committed(at.shard, at.offset)
  const token = e.tokens.encode([at])
  const both = { handbooks: [{ title: 'one' }, { title: 'two' }] }
  t.strictSame(await ask(e, titles, token), both, 'who has written one sees it')
  t.equal(e.index.doneWith(SYSTEM_SHARD), at.offset)
  await books.flush()
  const gone = await books.commit([BOOK, { t: 'closed', notes: [] }])
  e.index.committed(gone.shard, gone.offset)
  t.strictSame(await ask(e, titles, e.tokens.encode([gone])), { handbooks: [{ title: 'two' }] })
  t.equal(e.index.counter('parked'), 0)
  e.index.rebuild()
  await until(() => e.index.read.number === 1)
  t.strictSame(await ask(e, titles), { handbooks: [{ title: 'two' }] }, 'made anew')
  await e.close()
  for (const end of ['', '-wal']) {
    const file = readFileSync(join(dir, `graph-1.sqlite${end}`), { flag: 'a+' })
    t.notOk(file.includes('a-secret-of-the-vault'), 'nothing of it is in the file')
  }
})
