// The graph index of members in a cluster, on the twins of journal and search engine: what is read
// must be what was committed, whoever owns what, whatever fails on the way.

import t from 'tap'
import { A, B, C, erased, noted, opened } from '../../cluster/feed/testing/scene.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import { ClusterScene, type TestMember } from './testing/cluster-scene.ts'

const TITLES = [{ edge: 'notebooks', orderBy: 'title', node: { fields: ['title'] } }]

async function titles(s: ClusterScene, member: TestMember): Promise<string> {
  const { notebooks } = await s.ask(member, TITLES)
  return (notebooks as { title: string }[]).map(({ title }) => title).join(' ')
}

t.test('a write is seen by its token, on its owner and on others', async (t) => {
  const s = new ClusterScene()
  const one = s.start(SYSTEM_SHARD, 0)
  const two = s.start(1)
  t.ok(await s.until(() => one.index.watch.unready() === null && two.index.watch.life > 0))
  const at = await s.commit([A, opened('one')], [C, opened('three')])
  t.equal(await s.reached(one, at), true)
  t.equal(await titles(s, one), 'one three')
  const other = await s.commit([B, opened('two')])
  t.equal(await s.reached(one, at, other), true)
  t.equal(await titles(s, one), 'one three two')
  t.equal(await s.reached(two, at, other), true)
  t.strictSame(s.warnings, [])
  await s.close()
})
