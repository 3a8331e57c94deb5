// What metadata says of search: a field is found by phrase where the node's index names it, and a
// caller is told of what they may see alone. Source: CONTRACT 1.4, 1.4.1.

import t from 'tap'
import { type GraphMeta, metaOf } from './meta.ts'
import type { NodeType } from './node-type.ts'
import { FULL_ACCESS } from './planning.ts'
import { graphSchema } from './schema.ts'

const note: NodeType = {
  name: 'note',
  set: 'notes',
  idField: 'id',
  storage: { kind: 'row' },
  edges: [],
  fields: [
    { name: 'id', type: 'uuid' },
    { name: 'number', type: 'text' },
    { name: 'size', type: 'number' },
    {
      name: 'address',
      type: 'object',
      members: [
        { name: 'city', type: 'text' },
        { name: 'country', type: 'text' },
      ],
    },
    { name: 'dynamic', type: 'dynamic' },
    { name: 'other', type: 'dynamic' },
  ],
  search: {
    fields: [
      { path: ['number'], keyword: true },
      { path: ['address', 'city'], keyword: false },
      { path: ['dynamic', 'a'], keyword: true },
      { path: ['dynamic', 'b'], keyword: false },
      { path: ['other', 'a'], keyword: true },
    ],
    edges: [],
  },
}

/** `name` found by words, `name!` as a whole. */
function told({ nodes }: GraphMeta): string {
  return nodes[0]!.fields
    .filter(({ searchIndexed }) => searchIndexed)
    .map(({ name, keyword }) => name + (keyword ? '!' : ''))
    .join(' ')
}

t.test('fields that the search index names', async (t) => {
  const { search: _, ...plain } = note
  t.equal(told(metaOf(graphSchema([note]), FULL_ACCESS)), 'number! address.city dynamic other!')
  t.equal(told(metaOf(graphSchema([plain]), FULL_ACCESS)), '')
})

t.test('who may not read a member is not told that it is found', async (t) => {
  const only = (...names: string[]) => ({
    ...FULL_ACCESS,
    mayField: (_: string, path: readonly string[]) => names.includes(path.join('.')),
  })
  const meta = metaOf(graphSchema([note]), only('number', 'dynamic', 'dynamic.a'))
  t.equal(told(meta), 'number! dynamic!')
  t.strictSame(
    meta.nodes[0]!.fields.map(({ name }) => name),
    ['number', 'dynamic'],
  )
})
