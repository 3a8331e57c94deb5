// What every graph index promises of phrases, case by case: what finds a node and in which order,
// that a search document goes with what it is made of, and that only what may be searched is.
// Source: CONTRACT 1.4.2.

import type { Test } from 'tap'
import { SEARCH_LIMITS } from '../../../protocol/graph/search/search-index.ts'
import { FULL_ACCESS, type GraphAccess } from '../../../protocol/graph/planning.ts'
import type { GraphReader, GraphWriter, IndexWrite } from '../../search.ts'
import { ask, library, type MakeIndex, OPTIONS, shelf } from '../search-index.ts'
import { actorIds, bookIds, type Doc, shelfIds } from '../search-nodes.ts'

const LIBRARIES = actorIds.slice(0, 9).toSorted()
const [ONE, TWO, THREE, FOUR] = LIBRARIES as [string, string, string, string]
const [SHELF, SHELF_TWO] = shelfIds as [string, string]

export function searchPhrases(suite: Test, make: MakeIndex): void {
  void suite.test('a phrase finds by words and by keywords', (t) => ways(t, make))
  void suite.test('hits go by rank, then by id', (t) => ranks(t, make))
  void suite.test('no words stand one after another over two values', (t) => values(t, make))
  void suite.test('a hit over an edge goes with the node there', (t) => edges(t, make))
  void suite.test('nodes that change places are found by their own words', (t) => places(t, make))
  void suite.test('an actor with very many nodes is found by its own', (t) => many(t, make))
  void suite.test('a search looks where its caller may', (t) => access(t, make))
  void suite.test('hits come page by page', (t) => pages(t, make))
}

/** Libraries that a phrase finds, in order, as places in `LIBRARIES`. */
async function found(reader: GraphReader, phrase: string, may?: GraphAccess): Promise<number[]> {
  const answer = await ask(reader, [{ edge: 'libraries', phrase }], may)
  const counted = await ask(reader, [{ edge: 'libraries', phrase, count: true }], may)
  const nodes = answer['libraries'] as Doc[]
  if (counted['libraries'] !== nodes.length) throw new Error('another count')
  return nodes.map(({ libraryId }) => LIBRARIES.indexOf(libraryId as string))
}

/** Writes nodes of one library; where places are asked for, with all that it holds. */
async function put(writer: GraphWriter, version: number, nodes: readonly Doc[]): Promise<void> {
  const actorId = nodes[0]!['libraryId'] as string
  const writes = nodes.map((doc, place): IndexWrite => {
    const { node, id } = idOf(doc)
    return { node, actorId, id, version, doc, ...(writer.placed && { place }) }
  })
  const others = writes.slice(1).map(({ node, id, doc }) => ({ node, id, doc: doc! }))
  const fits = nodes.length <= SEARCH_LIMITS.searchNodesMax
  if (writer.placed && fits) writes[0] = { ...writes[0]!, whole: others }
  await writer.apply(writes, [{ shard: 0, offset: version }])
}

function idOf(doc: Doc): { readonly node: string; readonly id: string } {
  if (doc['bookId'] !== undefined) return { node: 'book', id: doc['bookId'] as string }
  if (doc['shelfId'] !== undefined) return { node: 'shelf', id: doc['shelfId'] as string }
  return { node: 'library', id: doc['libraryId'] as string }
}

async function ways(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  await put(writer, 1, [{ libraryId: ONE, name: 'SO-1001', motto: 'Café zum Bären, Größe XL' }])
  await put(writer, 1, [{ libraryId: TWO, name: 'Größe', motto: 'Set of 3 white mugs' }])
  await put(writer, 1, [{ libraryId: THREE, name: 'so 12', dynamic: { x: 4711 } }])
  const expected: readonly (readonly [string, readonly number[]])[] = [
    ['cafe', [0]],
    ['CAFÉ baren', [0]],
    ['cafe\u0301', [0]],
    ['grosse', [0]],
    // The keyword folds case alone.
    ['GRÖSSE', [0]],
    ['größe', [1, 0]],
    ['so-1001', [0]],
    ['so-10*', [0]],
    ['so-100', []],
    ['1001', []],
    ['mug', []],
    ['mug*', [1]],
    ['xl', []],
    ['"xl"', [0]],
    ['white xl', [1]],
    ['"set of 3"', [1]],
    ['"of set"', []],
    ['"3 white mu"*', [1]],
    ["'so 12'", [2]],
    ['so 12', []],
    ['4711', [2]],
    ['471*', [2]],
    ['zz', []],
    ['- &', []],
  ]
  for (const [phrase, hits] of expected) t.same(await found(reader, phrase), hits, phrase)
}

async function ranks(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  await put(writer, 1, [
    { libraryId: ONE },
    { libraryId: ONE, shelfId: SHELF, label: 'white', dynamic: { y: 'heart' } },
  ])
  await put(writer, 1, [{ libraryId: TWO, motto: 'heart', address: { city: 'white' } }])
  await put(writer, 1, [{ libraryId: THREE, motto: 'a white heart' }])
  await put(writer, 1, [{ libraryId: FOUR, name: 'White', motto: 'heart white' }])
  t.same(await found(reader, 'white heart'), [2, 1, 3, 0])
  t.same(await found(reader, 'white'), [3, 1, 2, 0])
  t.same(await found(reader, 'white*'), [1, 2, 3, 0])
  t.same(await found(reader, 'white hea*'), [1, 2, 3, 0])
  t.same(await found(reader, 'whit* heart'), [1, 2, 3, 0])
  const limited = await ask(reader, [{ edge: 'libraries', phrase: 'white heart', limit: 1 }])
  t.same(limited, { libraries: [{ libraryId: THREE }], librariesHasMore: true })
  const filter = `libraryId != '${THREE}'`
  const filtered = await ask(reader, [{ edge: 'libraries', phrase: 'white', filter, count: true }])
  t.same(filtered, { libraries: 3 })
}

async function values(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  await put(writer, 1, [{ libraryId: ONE, tags: ['white', 'heart mug'] }])
  t.same(await found(reader, '"white heart"'), [])
  t.same(await found(reader, 'white heart'), [0])
  t.same(await found(reader, '"heart mug"'), [0])
  for (const [version, x, hits] of [
    [2, true, []],
    [3, 'true', [0]],
    [4, true, []],
    [5, 12, [0]],
    [6, [12], []],
  ] as const) {
    await put(writer, version, [{ libraryId: ONE, dynamic: { x } }])
    t.same(await found(reader, '"true"'), x === 'true' ? hits : [], `${typeof x} as a word`)
    t.same(await found(reader, '"12"'), x === 'true' ? [] : hits, `${typeof x} as a number`)
  }
}

async function edges(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  const own = {
    libraryId: ONE,
    motto: 'north',
    notes: [{ noteId: '1', libraryId: ONE, body: 'ink' }],
  }
  const shelved = (label: string): Doc => ({ libraryId: ONE, shelfId: SHELF, label })
  const book: Doc = { libraryId: ONE, bookId: bookIds[0], title: 'tall tales' }
  await put(writer, 1, [own, shelved('red'), book])
  for (const phrase of ['red', 'north red', 'tales', 'ink north', '"tall tales" red']) {
    t.same(await found(reader, phrase), [0], phrase)
  }
  await put(writer, 2, [own, shelved('blue'), book])
  t.same(await found(reader, 'red'), [])
  t.same(await found(reader, 'blue'), [0])
  // One that comes by itself where there are transactions.
  if (!writer.placed) {
    await writer.apply([shelf(ONE, SHELF_TWO, 3, { label: 'green' })], [])
    t.same(await found(reader, 'green tales'), [0])
    await writer.apply([shelf(ONE, SHELF_TWO, 4, null)], [])
    t.same(await found(reader, 'green'), [])
    await writer.apply([library(ONE, 5, null)], [])
    t.same(await found(reader, 'blue'), [])
  }
  const nested = [
    {
      edge: 'books',
      phrase: 'tales',
      node: { fields: ['title'], navigate: [{ edge: 'library' }] },
    },
    { edge: 'shelves', phrase: 'blue', alias: 'none', filter: "label == 'red'" },
    { edge: 'notes', phrase: 'ink' },
  ]
  const answer = await ask(reader, nested)
  t.same((answer['books'] as Doc[])[0]!['title'], 'tall tales')
  t.same(answer['none'], [])
  t.equal((answer['notes'] as Doc[]).length, writer.placed ? 1 : 0)
}

async function places(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  const shelves = ['red', 'green', 'blue'].map((label, i) => ({
    libraryId: ONE,
    shelfId: shelfIds[i]!,
    label,
  }))
  await put(writer, 1, [{ libraryId: ONE }, ...shelves])
  const turned = [shelves[2]!, shelves[0]!, shelves[1]!]
  const writes = [{ libraryId: ONE }, ...turned].map((doc: Doc, place): IndexWrite => {
    return { ...idOf(doc), actorId: ONE, version: 2, doc, place }
  })
  const whole = turned.map((doc) => ({ ...idOf(doc), doc }))
  if (writer.placed) writes[0] = { ...writes[0]!, whole }
  await writer.apply(writes, [{ shard: 0, offset: 2 }])
  for (const { label, shelfId } of shelves) {
    const answer = await ask(reader, [{ edge: 'shelves', phrase: label }])
    t.same(answer, { shelves: [{ shelfId }] }, label)
  }
}

async function many(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  const count = SEARCH_LIMITS.searchNodesMax
  const books = Array.from({ length: count }, (_, i): Doc => {
    return { libraryId: ONE, bookId: `${i}`, title: i === 7 ? 'comet' : 'dust' }
  })
  const own = { libraryId: ONE, motto: 'north' }
  await put(writer, 1, [own, ...books.slice(1)])
  t.same(await found(reader, 'comet'), [0])
  await put(writer, 2, [own, ...books])
  t.same(await found(reader, 'comet'), [])
  t.same(await found(reader, 'north'), [0])
  const answer = await ask(reader, [{ edge: 'books', phrase: 'comet', count: true }])
  t.same(answer, { books: 1 })
}

async function access(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  await put(writer, 1, [
    { libraryId: ONE, name: 'white', motto: 'red' },
    { libraryId: ONE, shelfId: SHELF, label: 'blue' },
  ])
  const granted: GraphAccess = {
    ...FULL_ACCESS,
    mayFilter: (node, [member]) => node !== 'library' || member !== 'motto',
  }
  t.same(await found(reader, 'red'), [0])
  t.same(await found(reader, 'red', granted), [])
  t.same(await found(reader, 'white blue', granted), [0])
  // Who sees some shelves only is told nothing by any.
  const operand = { kind: 'field', path: ['label'], type: 'text' } as const
  const some = { kind: 'in', as: 'text', operand, values: ['blue'] } as const
  const partly: GraphAccess = {
    ...FULL_ACCESS,
    sees: ({ name }) => (name === 'shelf' ? some : true),
  }
  t.same(await found(reader, 'blue', partly), [])
  t.same(await found(reader, 'white red', partly), [0])
  const none: GraphAccess = { ...FULL_ACCESS, mayFilter: () => false }
  await t.rejects(found(reader, 'white', none), { errors: [{ code: 'FORBIDDEN_FIELD' }] })
}

async function pages(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  for (const [i, libraryId] of LIBRARIES.entries()) {
    const own = i % 3 === 0 ? { motto: 'white heart' } : { motto: 'heart', tags: ['white'] }
    const edge = { libraryId, shelfId: SHELF, label: 'white', dynamic: { y: 'heart' } }
    await put(writer, 1, i === 1 ? [{ libraryId }, edge] : [{ libraryId, ...own }])
  }
  const all = await found(reader, 'white heart')
  t.same(all, [0, 3, 6, 2, 4, 5, 7, 8, 1])
  const seen: number[] = []
  for (let after: unknown; seen.length < all.length;) {
    const page = { edge: 'libraries', phrase: 'white heart', limit: 2, cursor: 'last' }
    const answer = await ask(reader, [{ ...page, ...(after !== undefined && { after }) }])
    const nodes = answer['libraries'] as Doc[]
    seen.push(...nodes.map(({ libraryId }) => LIBRARIES.indexOf(libraryId as string)))
    after = answer['librariesCursor']
    if (after === undefined) break
  }
  t.same(seen, all)
}
