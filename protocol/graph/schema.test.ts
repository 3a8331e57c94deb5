// Edges that leave the actor: what they may go by, and over which links.

import t from 'tap'
import type { EdgeDef, FieldType, NodeType } from './node-type.ts'
import { edgeMistake, graphSchema } from './schema.ts'

const nodeType = (name: string, fields: Record<string, FieldType>, more = {}): NodeType => ({
  name,
  set: `${name}s`,
  idField: 'id',
  fields: [
    { name: 'id', type: 'uuid' },
    ...Object.entries(fields).map(([field, type]) => ({ name: field, type })),
  ],
  edges: [],
  storage: { kind: 'row' },
  ...more,
})
const edge = (from: string, to: string, more: Partial<EdgeDef> = {}): EdgeDef => ({
  name: 'e',
  node: 'b',
  cardinality: 'many',
  from,
  to,
  sameActor: false,
  ...more,
})
const a = nodeType('a', { text: 'text', n: 'number', at: 'instant', day: 'date', yes: 'boolean' })
const b = nodeType('b', {
  kind: 'enum',
  n: 'number',
  at: 'instant',
  list: '[text]',
  any: 'dynamic',
})
const link = nodeType('link', { one: 'text', other: 'number' })
const through = { node: 'link', from: 'one', to: 'other' }

t.test('both ends are of one kind', async (t) => {
  const mistake = (from: string, to: string): string | null =>
    edgeMistake(edge(from, to), { from: a, to: b })
  for (const [from, to] of [
    ['text', 'kind'],
    ['id', 'kind'],
    ['day', 'id'],
    ['n', 'n'],
    ['at', 'at'],
    ['hidden', 'kind'],
  ] as const) {
    t.equal(mistake(from, to), null, `${from} and ${to}`)
  }
  t.equal(mistake('text', 'n'), 'a.text is never equal to b.n')
  t.equal(mistake('day', 'at'), 'a.day is never equal to b.at')
  t.equal(mistake('text', 'list'), 'no edge goes by b.list')
  t.equal(mistake('text', 'any'), 'no edge goes by b.any')
})

t.test('a link has rows, and leaves the actor', async (t) => {
  const over = edge('text', 'n', { through })
  t.equal(edgeMistake(over, { from: a, to: b, link }), null)
  t.match(edgeMistake({ ...over, from: 'n' }, { from: a, to: b, link }), /a.n is never equal/)
  t.match(edgeMistake({ ...over, to: 'at' }, { from: a, to: b, link }), /link.other is never equal/)
  const within = { ...over, sameActor: true }
  t.match(edgeMistake(within, { from: a, to: b, link }), /leaves the actor/)
  const inner = { ...link, storage: { kind: 'embedded', node: 'a', member: 'links' } } as const
  t.match(edgeMistake(over, { from: a, to: b, link: inner }), /no rows/)
  const past = { ...b, storage: { kind: 'history', parent: 'a', parentField: 'id' } } as const
  t.match(edgeMistake(over, { from: a, to: past, link }), /read from records/)
})

t.test('the schema refuses what does not fit, and leaves out what is not there', async (t) => {
  const over = edge('text', 'n', { through })
  const withEdge = (one: EdgeDef): NodeType => ({ ...a, edges: [one] })
  t.ok(
    graphSchema([withEdge(over), b, link])
      .nodes.get('a')!
      .edges.has('e'),
  )
  t.notOk(
    graphSchema([withEdge(over), b])
      .nodes.get('a')!
      .edges.has('e'),
    'no links yet',
  )
  t.throws(() => graphSchema([withEdge(edge('text', 'n')), b]), /the edge e of a: a.text is never/)
})
