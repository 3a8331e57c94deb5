// Links whose ends are missing: they lead nowhere, and not to each other. It stands beside the
// suite of graph indexes. Source: CONTRACT 1.4 "Edges".

import type { Test } from 'tap'
import type { IndexWrite } from '../../search.ts'
import { ask, library, OPTIONS, shelf, type MakeIndex } from '../search-index.ts'
import { actorIds, shelfIds, type Doc } from '../search-nodes.ts'

const [ONE, TWO] = actorIds as [string, string]
const [SHELF, SHELF_TWO] = shelfIds as [string, string]

const of = (node: string, id: string, doc: Doc): IndexWrite => {
  const ids = { [`${node}Id`]: id, libraryId: ONE }
  return { node, actorId: ONE, id, version: 1, doc: { ...ids, ...doc } }
}

export function searchLinks(suite: Test, make: MakeIndex): void {
  void suite.test('links without an end lead nowhere', (t) => linksToNowhere(t, make))
  void suite.test('what a document holds is led to by the edge', (t) => heldNodes(t, make))
}

async function linksToNowhere(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  const notes = [
    { noteId: 'there', libraryId: ONE, body: 'there' },
    { noteId: 'none', libraryId: ONE },
    { noteId: 'null', libraryId: ONE, body: null },
  ]
  await writer.apply(
    [
      library(ONE, 1, { name: 'a', notes }),
      library(TWO, 1, { name: 'b' }),
      shelf(ONE, SHELF, 1, { label: 'l' }),
      shelf(ONE, SHELF_TWO, 1, { label: 'nowhere' }),
      of('loan', 'there', { label: 'l', isbn: 'there' }),
      of('loan', 'none', { label: 'l' }),
      of('loan', 'null', { label: 'l', isbn: null }),
      of('loan', 'only null', { label: 'nowhere', isbn: null }),
      of('loan', 'only none', { label: 'nowhere' }),
      of('loan', 'from none', { isbn: 'there' }),
      of('book', 'there', { isbn: 'there' }),
      of('book', 'none', {}),
      of('book', 'null', { isbn: null }),
    ],
    [],
  )
  const books = { edge: 'lentBooks', node: { fields: ['bookId'] } }
  const lent = (more: object): Promise<Doc> =>
    ask(reader, [
      {
        edge: 'shelves',
        orderBy: 'label',
        node: { fields: ['label'], navigate: [{ ...books, ...more }] },
      },
    ])
  const found = { label: 'l', lentBooks: [{ bookId: 'there' }] }
  t.strictSame(await lent({}), { shelves: [found, { label: 'nowhere', lentBooks: [] }] })
  t.strictSame(await lent({ count: true }), {
    shelves: [
      { label: 'l', lentBooks: { count: 1, nodes: found.lentBooks } },
      { label: 'nowhere', lentBooks: { count: 0, nodes: [] } },
    ],
  })
  t.strictSame(await lent({ require: 'some' }), { shelves: [found] })
  t.strictSame(await lent({ require: 'none' }), { shelves: [{ label: 'nowhere', lentBooks: [] }] })
  const toNotes = { edge: 'lentNotes', node: { fields: ['noteId'] } }
  const libraries = { edge: 'libraries', orderBy: 'name', node: { navigate: [toNotes] } }
  t.strictSame(await ask(reader, [libraries]), {
    libraries: [{ lentNotes: [{ noteId: 'there' }] }, { lentNotes: [] }],
  })
}

/** An edge goes by equal values, also to nodes that lie in the document of its beginning. */
async function heldNodes(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  const note = (noteId: string, more: object): Doc => ({ noteId, libraryId: ONE, ...more })
  const notes = [
    note('b', { weight: 2 }),
    note('of another', { libraryId: TWO, weight: 2 }),
    note('of none', { libraryId: undefined, weight: 2 }),
    note('a', { weight: 2 }),
    note('light', { weight: 1 }),
  ]
  await writer.apply([library(ONE, 1, { name: 'a', notes }), library(TWO, 1, { name: 'b' })], [])
  const nested = async (more: object): Promise<unknown> => {
    const edge = { edge: 'notes', filter: 'weight == 2', node: { fields: ['noteId'] }, ...more }
    const node = { navigate: [edge, { ...edge, alias: 'all', count: true }] }
    const answer = await ask(reader, [{ edge: 'libraries', orderBy: 'name', node }])
    return answer['libraries']
  }
  const all = { count: 2, nodes: [{ noteId: 'b' }, { noteId: 'a' }] }
  const none = { notes: [], all: { count: 0, nodes: [] } }
  t.strictSame(await nested({}), [{ notes: all.nodes, all }, none])
  const sorted = [{ noteId: 'a' }, { noteId: 'b' }]
  t.strictSame(await nested({ orderBy: 'weight' }), [
    { notes: sorted, all: { count: 2, nodes: sorted } },
    none,
  ])
  const one = [{ noteId: 'b' }]
  t.strictSame(await nested({ limit: 1 }), [
    { notes: one, notesHasMore: true, all: { count: 2, nodes: one }, allHasMore: true },
    none,
  ])
}
