// The cluster's index while the schema changes: what is read goes on until its successor is full.
// Source: PROTOCOL 3.13.8.

import t from 'tap'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import type { FieldDef } from '../../../protocol/graph/node-type.ts'
import { A, B, opened } from '../../../cluster/feed/testing/scene.ts'
import { end, titles, two } from '../testing/cluster-pair.ts'
import { ClusterScene } from '../testing/cluster-scene.ts'

t.test('a field at run time: the old index serves until its successor is full', async (t) => {
  const scene = new ClusterScene()
  const { behaviour } = scene
  const [notebook, ...others] = behaviour.nodeTypes
  const fields = notebook!.fields.filter(({ name }) => name !== 'size')
  scene.behaviour = { ...behaviour, nodeTypes: [{ ...notebook!, fields }, ...others] }
  const [s, one, other] = await two(scene)
  const at = await s.commit([A, opened('one')])
  const then = await s.commit([B, opened('two')])
  await s.store.flush()
  t.equal(await s.reached(one, at, then), true)
  const sizes = [{ edge: 'notebooks', orderBy: 'title', node: { fields: ['title', 'size'] } }]
  await t.rejects(s.ask(one, sizes), /no field size/)
  const before = one.index.served
  one.schema.change(behaviour.nodeTypes)
  t.equal(one.index.served, before, 'nothing is taken away')
  t.equal(await titles(s, one), 'one two')
  await s.clock.advance(10_000)
  t.strictSame(s.generations(), [1, 2])
  t.equal(one.index.watch.generation, 1, 'shard 1 is not in the successor yet')
  t.equal(one.index.served, before)
  const late = await s.commit([B, opened('too')])
  t.equal(await s.reached(other, late), true)
  t.equal(await titles(s, other), 'one too')
  other.schema.change(behaviour.nodeTypes)
  for (const member of [one, other]) {
    t.equal(await s.until(() => member.index.watch.generation === 2), true)
    t.equal(member.index.served, member.schema.current)
    const two = [
      { title: 'one', size: 0 },
      { title: 'too', size: 0 },
    ]
    t.strictSame(await s.ask(member, sizes), { notebooks: two })
  }
  await end(t, s)
})

t.test('types that lie as they did are served at once, by the index that is there', async (t) => {
  const [s, one] = await two()
  const [notebook, ...others] = one.schema.current.types
  const [id, ...fields] = notebook!.fields
  one.schema.change([{ ...notebook!, fields: [{ ...id!, values: ['a'] }, ...fields] }, ...others])
  t.equal(one.index.served, one.schema.current)
  await s.clock.advance(10_000)
  t.strictSame(s.generations(), [1])
  await end(t, s)
})

t.test(
  'who starts while a successor is filled reads and writes the live one as it is',
  async (t) => {
    const scene = new ClusterScene()
    const { behaviour } = scene
    const [notebook, ...others] = behaviour.nodeTypes
    const defined = (source: string, ...names: string[]): Behaviour => {
      const label: FieldDef = { name: 'label', type: 'text', custom: true, source: [source] }
      const fields = names.map((name) => ({ path: [name], keyword: false }))
      const type = { ...notebook!, fields: [...notebook!.fields, label] }
      return { ...behaviour, nodeTypes: [{ ...type, search: { fields, edges: [] } }, ...others] }
    }
    const [before, after] = [defined('title', 'title'), defined('notebookId', 'label', 'title')]
    scene.behaviour = before
    const [s, one, other] = await two(scene)
    const at = await s.commit([A, opened('one')])
    await s.commit([B, opened('two')])
    one.schema.change(after.nodeTypes)
    await s.clock.advance(10_000)
    t.strictSame(s.generations(), [1, 2])
    scene.behaviour = after
    const late = await s.start()
    t.equal(await s.until(() => late.index.watch.generation === 1), true)
    t.strictSame(
      late.index.served.types.map(({ fields }) => fields),
      one.index.served.types.map(({ fields }) => fields),
    )
    t.not(late.index.served, late.schema.current)
    await s.store.flush()
    await s.gives(late, at.shard)
    const then = await s.commit([A, opened('too')])
    t.equal(await s.reached(late, then), true)
    const labels = [{ edge: 'notebooks', orderBy: 'label', node: { fields: ['label'] } }]
    for (const member of [one, other, late]) {
      const both = [{ label: 'too' }, { label: 'two' }]
      t.strictSame(await s.ask(member, labels), { notebooks: both }, 'as it was defined')
    }
    other.schema.change(after.nodeTypes)
    for (const member of [one, other, late]) {
      t.equal(await s.until(() => member.index.watch.generation === 2), true)
      t.equal(member.index.served, member.schema.current)
    }
    t.strictSame(await s.ask(late, labels), {
      notebooks: [A, B].toSorted().map((label) => ({ label })),
    })
    t.strictSame(s.warnings, [])
    await s.close()
  },
)

t.test(
  'what phrases find of an index that another program has made is not looked into',
  async (t) => {
    const scene = new ClusterScene()
    const { behaviour } = scene
    const [notebook, ...others] = behaviour.nodeTypes
    const found = (name: string, ...more: FieldDef[]): Behaviour => {
      const search = { fields: [{ path: [name], keyword: false }], edges: [] }
      const type = { ...notebook!, fields: [...notebook!.fields, ...more], search }
      return { ...behaviour, nodeTypes: [type, ...others] }
    }
    scene.behaviour = found('notebookId')
    const [s, one] = await two(scene)
    const at = await s.commit([A, opened('one')])
    await s.store.flush()
    t.equal(await s.reached(one, at), true)
    // Its own column is that of the title, and it has one field more.
    scene.behaviour = found('title', { name: 'more', type: 'text' })
    const late = await s.start()
    t.equal(await s.until(() => late.index.watch.generation === 1), true)
    const phrase = [{ edge: 'notebooks', phrase: 'one', node: { fields: ['title'] } }]
    await t.rejects(s.ask(late, phrase), /made anew/)
    t.equal(await titles(s, late), 'one', 'all else goes on')
    await end(t, s)
  },
)
