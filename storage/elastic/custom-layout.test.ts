// A changed definition of a custom field lays the cluster's index out anew, and an index of another
// definition gets nothing of this one. Source: PROTOCOL 3.13.5.

import t from 'tap'
import type { FieldDef } from '../../protocol/graph/node-type.ts'
import { graphSchema } from '../../protocol/graph/schema.ts'
import { customLayouts } from '../conformance/custom/search-custom.ts'
import { SCHEMA } from '../conformance/search-nodes.ts'
import { MemorySearchEngine } from '../memory/search-engine.ts'
import { Generations } from './generations.ts'
import { layoutOf } from './layout.ts'

t.test('a definition is part of the layout', async (t) => {
  customLayouts(t, (schema) => layoutOf(schema).fingerprint, SCHEMA)
})

t.test('a generation of another definition does without the field', async (t) => {
  const engine = new MemorySearchEngine({ nowMs: () => 0 })
  const generationsOf = (source: string): Generations => {
    const season: FieldDef = {
      name: 'season',
      type: 'text',
      custom: true,
      source: ['dynamic', source],
    }
    const fields: FieldDef[] = [
      { name: 'id', type: 'uuid' },
      { name: 'dynamic', type: 'dynamic' },
      season,
    ]
    const schema = graphSchema([
      { name: 'note', set: 'notes', idField: 'id', storage: { kind: 'row' }, fields, edges: [] },
    ])
    return new Generations({ engine, prefix: 'x-', layout: layoutOf(schema), store: 's' })
  }
  await generationsOf('a').make(1)
  const [theirs] = [...(await generationsOf('b').find()).values()]
  const names = (generations: Generations): unknown => {
    const note = generations.layoutFor(theirs!).nodes.get('note')!
    return [note.type.fields.map(({ name }) => name), note.members.map(({ name }) => name)]
  }
  t.strictSame(names(generationsOf('b')), [
    ['id', 'dynamic'],
    ['id', 'dynamic'],
  ])
  const all = ['id', 'dynamic', 'season']
  t.strictSame(names(generationsOf('a')), [all, all])
})
