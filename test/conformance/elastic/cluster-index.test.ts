// A member's graph index on a real Elasticsearch: what is written is read, a document that its
// mapping refuses parks its actor, an index that is deleted comes back. An engine that stops is in
// test/cluster/index.faults.ts; faults that a server can't be made to have are on the twin
// (node/indexing/cluster/cluster-index.test.ts).

import t, { type Test } from 'tap'
import { A, B, C, erased, noted, opened } from '../../../cluster/feed/testing/scene.ts'
import { engine } from '../../harness/engines.ts'
import { until } from '../../harness/patience.ts'
import { IndexScene } from './index-scene.ts'

t.setTimeout(290_000)

async function sharedScene(t: Test, name: string): Promise<IndexScene | null> {
  const address = await engine('elasticsearch')
  if ('skipped' in address) {
    t.pass(address.skipped, { skip: address.skipped })
    return null
  }
  const s = new IndexScene(address, name)
  await s.start(t)
  return s
}

t.test('what is committed is read by its token; what is refused is parked', async (t) => {
  t.setTimeout(280_000)
  const s = await sharedScene(t, 'parked')
  if (s === null) return
  const at = await s.commit([A, opened('one'), noted('n', 'x')], [C, opened('three')])
  const other = await s.commit([B, opened('two')])
  t.equal(await s.reached(at, other), true)
  t.equal(await s.titles(), 'one three two')

  const refused = await s.commit([A, opened('refused')], [C, opened('third')])
  t.equal(await s.reached(refused), true)
  t.equal(await s.titles(), 'one third two')
  const [row] = await s.store.journal.derived.parked(0, 'index-1')
  t.match(Buffer.from(row!.body).toString(), /failed to parse field \[size\]/)

  await s.commit([A, opened('first'), erased('n')])
  await s.store.flush()
  s.index.retryParked()
  await until('the actor returns', () => s.index.numbers.parked === 0, 60_000)
  t.equal(await s.reached(await s.commit([A, noted('m', 'y')])), true)
  t.equal(await s.titles(), 'first third two')
  t.strictSame(await s.store.journal.derived.parked(0, 'index-1'), [])
})

t.test('an index that is deleted comes back from the journal', async (t) => {
  t.setTimeout(280_000)
  const s = await sharedScene(t, 'deleted')
  if (s === null) return
  t.equal(await s.reached(await s.commit([A, opened('one'), noted('n', 'x')])), true)
  await s.store.flush()
  await s.client.deleteIndex(`${s.prefix}note-1`, { timeoutMs: 60_000 })
  await until('a successor is read', () => s.index.watch.generation === 2, 120_000)
  t.equal(await s.titles(), 'one')
  const aliases = (await s.client.indexes(s.prefix, { timeoutMs: 60_000 }))
    .filter((index) => index.aliases.includes(`${s.prefix}notebook`))
    .map(({ name }) => name)
  t.strictSame(aliases, [`${s.prefix}notebook-2`], 'the alias has moved')
})
