// Bounds of a node's document in the search engine: terms by their bytes, the actor's other nodes
// by their size, and members of elements apart from the node's own. Source: layout.ts, PROTOCOL
// 3.13.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { NodeType } from '../../protocol/graph/node-type.ts'
import { graphSchema } from '../../protocol/graph/schema.ts'
import { SCHEMA } from '../conformance/search-nodes.ts'
import { refusalOf } from '../memory/search-query.ts'
import { docOf, sourceOf, type Own } from './document.ts'
import { layoutOf, OWN } from './layout.ts'
import { keyOf, valueOf } from './members.ts'

const layout = layoutOf(SCHEMA).nodes.get('library')!
const ACTOR = '0190b000-0000-7000-8000-000000000001'

const write = (doc: Record<string, unknown>) => ({
  ...{ node: 'library', actorId: ACTOR, id: ACTOR, version: 1, place: 0 },
  doc: { libraryId: ACTOR, ...doc },
})

t.test('no text makes a term that the engine refuses, whatever its characters', async (t) => {
  for (const character of ['x', 'é', '漢', '😀']) {
    const text = character.repeat(40_000)
    const doc = {
      name: text,
      tags: [text, 'a'],
      address: { city: text },
      notes: [{ noteId: '1', body: text }],
      dynamic: { [text]: text, list: [text], x: { [text]: { y: text } } },
    }
    const one = write(doc)
    const source = JSON.parse(sourceOf(one, layout, 0)) as Record<string, unknown>
    t.equal(refusalOf(source, layout.properties), null, character)
    t.strictSame(docOf(source), one.doc, character)
  }
})

t.test("an actor's other nodes are in its own document, up to a size", async (t) => {
  const bare = JSON.stringify([['1', { shelfId: '1', label: '' }]]).length
  const of = (lengths: readonly number[]): Own => {
    const whole = lengths.map((length, i) => {
      const [node, id] = [i === 0 ? 'shelf' : 'book', '1']
      return { node, id, doc: { shelfId: '1', label: 'x'.repeat(length) } }
    })
    const source = JSON.parse(sourceOf({ ...write({}), whole }, layout, 0)) as { [OWN]: Own }
    return source[OWN]
  }
  const room = LIMITS.storage.indexWholeCharsMax - bare
  const full = of([room])
  t.equal(full.nodes, 1)
  t.equal(full.whole!['shelf']!.length, LIMITS.storage.indexWholeCharsMax)
  for (const lengths of [[room + 1], [room, 0], [0, room], [room / 2, room / 2]]) {
    const own = of(lengths)
    t.equal(own.nodes, undefined, 'all of them or none: with none they are searched for')
    t.equal(own.whole, undefined)
  }
  const both = of([1, 2])
  t.equal(both.nodes, 2)
  t.strictSame(Object.keys(both.whole!), ['shelf', 'book'])
  t.match(of([]), { nodes: 0, whole: {} }, 'an actor that has none says so')
})

t.test('what elements hold is not taken for what their holder holds', async (t) => {
  const types: readonly NodeType[] = [
    {
      ...{ name: 'box', set: 'boxes', idField: 'boxId', edges: [] },
      storage: { kind: 'row' },
      fields: [
        { name: 'boxId', type: 'text' },
        { name: 'dynamic', type: 'dynamic' },
      ],
    },
    {
      ...{ name: 'slip', set: 'slips', idField: 'slipId', edges: [] },
      storage: { kind: 'embedded', node: 'box', member: 'slips' },
      fields: [
        { name: 'slipId', type: 'text' },
        { name: 'dynamic', type: 'dynamic' },
      ],
    },
  ]
  const box = layoutOf(graphSchema(types)).nodes.get('box')!
  const slips = [null, 7, { slipId: '1', dynamic: { x: 2, y: 3 } }]
  const doc = { boxId: 'b', dynamic: { x: 1 }, slips }
  const one = { node: 'box', actorId: ACTOR, id: 'b', version: 1, doc }
  const source = JSON.parse(sourceOf(one, box, 0)) as { [OWN]: Own; slips: unknown }
  t.strictSame(source[OWN].members, {
    [keyOf('O', ['dynamic'])]: 'o',
    [keyOf('S', ['dynamic', 'x'])]: valueOf(1),
  })
  t.strictSame(source.slips, [slips[2]], 'what is no node is none')
})
