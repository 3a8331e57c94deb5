// A changed definition of a custom field lays the cluster's index out anew, and an index of another
// definition gets nothing of this one. Source: PROTOCOL 3.13.5.

import t from 'tap'
import type { Dimensions, FieldDef } from '../../protocol/graph/node-type.ts'
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

t.test('nodes within others stay, without the fields that are defined otherwise', async (t) => {
  const engine = new MemorySearchEngine({ nowMs: () => 0 })
  const generationsOf = (source: string, names: Dimensions['names']): Generations => {
    const of = { name: 'custom', custom: true, source: ['dynamic', source] } as const
    const dimensions = { names, of: 'text' } as const
    const fields: FieldDef[] = [
      { name: 'id', type: 'text' },
      { name: 'dynamic', type: 'dynamic' },
      { ...of, type: 'text' },
      { ...of, name: 'title', type: 'dynamic', dimensions },
    ]
    const plain = { idField: 'id', edges: [], fields }
    const schema = graphSchema([
      { ...plain, name: 'note', set: 'notes', storage: { kind: 'row' } },
      {
        ...plain,
        name: 'word',
        set: 'words',
        storage: { kind: 'embedded', node: 'note', member: 'words' },
      },
    ])
    return new Generations({ engine, prefix: 'y-', layout: layoutOf(schema), store: 's' })
  }
  const first = generationsOf('a', ['locale'])
  await first.make(1)
  const [theirs] = [...(await first.find()).values()]
  const names = (generations: Generations): unknown => {
    const { type, embedded, members, properties } = generations
      .layoutFor(theirs!)
      .nodes.get('note')!
    const { words } = properties
    return {
      type: type.fields.map(({ name }) => name),
      embedded: embedded.map(({ fields }) => fields.map(({ name }) => name)),
      members: members.find(({ name }) => name === 'words')!.members.map(({ name }) => name),
      words: Object.keys((words as { properties: object }).properties),
    }
  }
  const all = ['id', 'dynamic', 'custom', 'title']
  const those = (some: string[]): unknown => ({
    ...{ type: some, embedded: [some], members: some, words: some },
  })
  t.strictSame(names(first), those(all))
  t.strictSame(names(generationsOf('b', ['locale'])), those(['id', 'dynamic']))
  t.strictSame(names(generationsOf('a', ['channel'])), those(['id', 'dynamic', 'custom']))
})
