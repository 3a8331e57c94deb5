// Queries while the schema changes: what they are told, and that a plan is of one version. Source:
// PROTOCOL 3.13.8.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { type SchemaVersion } from './live-schema.ts'
import { A, ask, refusal, stage, type Stage } from './testing/graph-stage.ts'

const titles = [{ edge: 'notebooks', node: { fields: ['title'] } }]

/** The notebook with a field more, or without one. */
function changed(s: Stage, { more, less }: { more?: string; less?: string }): SchemaVersion {
  const [notebook, ...rest] = s.schema.current.types
  const fields = notebook!.fields.filter(({ name }) => name !== less)
  if (more !== undefined) fields.push({ name: more, type: 'text' })
  return s.schema.change([{ ...notebook!, fields }, ...rest])
}

const fieldsOf = async (s: Stage): Promise<string[]> => {
  const meta = await ask(s, { method: 'GET', path: '/resources/graph/meta' })
  const { nodes } = meta as { nodes: { name: string; fields: { name: string }[] }[] }
  return nodes.find(({ name }) => name === 'notebook')!.fields.map(({ name }) => name)
}

t.test(
  'a field that the index has not yet is told to be on its way, and comes with it',
  async (t) => {
    const s = await stage(t)
    await s.store.commit([A, { t: 'opened', title: 'one' }])
    await s.follow()
    const body = [{ edge: 'notebooks', node: { fields: ['title', 'colour'] } }]
    t.equal(await refusal(s, { body }), '400 INVALID_QUERY', 'nobody knows it')
    const next = changed(s, { more: 'colour' })
    t.equal(await refusal(s, { body }), '503 INDEX_BEHIND')
    t.equal(await refusal(s, { body, scope: 'graph/notebook:query' }), '403 FORBIDDEN_FIELD')
    const other = [{ edge: 'notebooks', node: { fields: ['color'] } }]
    t.equal(await refusal(s, { body: other }), '400 INVALID_QUERY', 'no version knows it')
    t.strictSame(await ask(s, { body: titles }), { notebooks: [{ title: 'one' }] })
    t.notOk((await fieldsOf(s)).includes('colour'))
    s.served = next
    t.strictSame(await ask(s, { body }), { notebooks: [{ title: 'one', colour: null }] })
    t.ok((await fieldsOf(s)).includes('colour'))
  },
)

t.test('no plan outlives the version that it was made on', async (t) => {
  const s = await stage(t)
  await s.store.commit([A, { t: 'opened', title: 'one' }])
  await s.follow()
  const q = JSON.stringify([{ edge: 'notebooks', node: { fields: ['size'] } }])
  t.strictSame(await ask(s, { method: 'GET', q }), { notebooks: [{ size: 0 }] })
  s.served = changed(s, { less: 'size' })
  t.equal(await refusal(s, { method: 'GET', q }), '400 INVALID_QUERY')
})

t.test('a plan whose version has gone before its turn is made again, a few times', async (t) => {
  const s = await stage(t)
  await s.store.commit([A, { t: 'opened', title: 'one' }])
  await s.follow()
  s.beforeTurn = () => {
    if (s.ran === 1) s.served = changed(s, { more: 'colour' })
  }
  t.strictSame(await ask(s, { body: titles }), { notebooks: [{ title: 'one' }] })
  t.equal(s.ran, 2)
  const size = [{ edge: 'notebooks', node: { fields: ['size'] } }]
  s.beforeTurn = () => void (s.served = changed(s, { less: 'size' }))
  t.equal(await refusal(s, { body: size }), '400 INVALID_QUERY', 'the next version lacks the field')
  s.ran = 0
  s.beforeTurn = () => void (s.served = changed(s, { more: `c${s.schema.current.number}` }))
  t.equal(await refusal(s, { body: titles }), '503 UNAVAILABLE')
  t.equal(s.ran, LIMITS.graph.planTriesMax)
})
