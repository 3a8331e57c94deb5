// The one suite that every graph index driver passes: the memory twin, SQLite, Elasticsearch. The
// port is storage/search.ts. Its heart is a property (search-property.ts). Source: ARCHITECTURE 5
// and 7, CONTRACT 1.4, PROTOCOL 3.13.

import type { Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import { FULL_ACCESS } from '../../protocol/graph/planning.ts'
import { planNavigations } from '../../protocol/graph/navigation.ts'
import type { Fill, GraphReader, IndexWrite } from '../search.ts'
import { NOW } from './search-terms.ts'
import { ask, library, OPTIONS, planOf, shelf, TIMEOUT_MS, type MakeIndex } from './search-index.ts'
import { actorIds, SCHEMA, shelfIds, type Doc } from './search-nodes.ts'
import { searchCustom } from './custom/search-custom.ts'
import { searchPhrases } from './phrases/search-phrases.ts'
import { searchKeeping } from './search-keeping.ts'
import { searchLinks } from './links/search-links.ts'
import { property } from './search-property.ts'

const [ONE, TWO] = actorIds as [string, string]
const [SHELF, SHELF_TWO] = shelfIds as [string, string]

async function names(reader: GraphReader): Promise<unknown> {
  const answer = await ask(reader, [{ edge: 'libraries', node: { fields: ['name'] } }])
  return (answer['libraries'] as Doc[]).map(({ name }) => name)
}

export function searchConformance(suite: Test, make: MakeIndex): void {
  void suite.test('offsets move with the writes', (t) => offsets(t, make))
  void suite.test('versions only go forward', (t) => versions(t, make))
  void suite.test('child ids of different actors never mix', (t) => sameIds(t, make))
  void suite.test('time and size are bounded', (t) => bounds(t, make))
  void suite.test('nested lists keep their order, cut or not', (t) => nestedOrder(t, make))
  void suite.test('a filter that nothing meets finds nothing', (t) => unmeetable(t, make))
  void suite.test('how far shards are filled is kept', (t) => fills(t, make))
  void suite.test('a semi-join with two ways in lets all through', (t) => eitherWay(t, make))
  void suite.test('a number is found in lists of any length', (t) => numberLists(t, make))
  void suite.test('an empty text is a text like others', (t) => emptyText(t, make))
  searchCustom(suite, make)
  searchKeeping(suite, make)
  searchLinks(suite, make)
  searchPhrases(suite, make)
  searchProperty(suite, make)
}

/** The heart of it alone, for drivers that can be made to work in other ways. */
export function searchProperty(suite: Test, make: MakeIndex): void {
  void suite.test('any query answers what the reference answers', (t) => property(t, make))
}

/** How far shards are filled is kept with what was written, until it is over. */
async function fills(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reopen } = await make(t, OPTIONS)
  await writer.reset('one')
  t.equal(writer.fills().size, 0)
  const begun = (shard: number): Fill => ({ shard, begun: 5, after: null, step: 1 })
  await writer.apply([], [], [begun(0), begun(1), begun(12)])
  const further = { ...begun(1), after: ONE, step: 2 }
  await writer.apply([library(ONE, 1, { name: 'a' })], [{ shard: 0, offset: 5 }], [further])
  const left = [further, begun(12)]
  t.strictSame(
    [...writer.fills().values()].toSorted((a, b) => a.shard - b.shard),
    left,
  )
  t.equal(writer.offsets().get(1), undefined)
  if (reopen === null) return
  const again = await reopen(SCHEMA)
  t.strictSame(
    [...again.writer.fills().values()].toSorted((a, b) => a.shard - b.shard),
    left,
  )
  await again.writer.apply([], [{ shard: 1, offset: 5 }])
  t.strictSame([...again.writer.fills().keys()], [12])
  await again.writer.reset('two')
  t.equal(again.writer.fills().size, 0)
  t.equal((await reopen(SCHEMA)).writer.fills().size, 0)
}

async function offsets(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader, reopen } = await make(t, OPTIONS)
  t.equal(writer.generation(), null, 'a new index belongs to no store')
  t.same([...writer.offsets()], [])
  await writer.reset('one')
  t.equal(writer.generation(), 'one')
  await writer.apply([library(ONE, 1, { name: 'a' })], [{ shard: 3, offset: 7 }])
  await writer.apply(
    [],
    [
      { shard: 3, offset: 8 },
      { shard: -1, offset: 2 },
    ],
  )
  t.same(Object.fromEntries(writer.offsets()), { 3: 8, '-1': 2 })
  await t.rejects(
    async () => {
      await writer.apply(
        [library(TWO, 1, { name: 'b' }), { ...library(TWO, 1), node: 'visit' }],
        [{ shard: 3, offset: 9 }],
      )
    },
    { message: /visit has no rows/ },
    'a node type without rows is our own mistake',
  )
  t.equal(writer.offsets().get(3), 8, 'what failed moved nothing')
  if (reopen !== null) t.same(await names(reader), ['a'], 'nor wrote anything')

  if (reopen !== null) {
    const again = await reopen(SCHEMA)
    t.equal(again.writer.generation(), 'one')
    t.same(Object.fromEntries(again.writer.offsets()), { 3: 8, '-1': 2 })
    t.same(await names(again.reader), ['a'])
    await again.writer.reset('two')
    t.same([...again.writer.offsets()], [])
    t.same(await names(again.reader), [], 'a reset index is empty')
    await again.writer.apply([library(ONE, 1, { name: 'c' })], [])
    t.same(await names(again.reader), ['c'], 'and has forgotten all versions')
  }
}

async function versions(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  await writer.apply([library(ONE, 5, { name: 'five' })], [])
  await writer.apply([library(ONE, 4, { name: 'four' })], [])
  t.same(await names(reader), ['five'], 'an older write changes nothing')
  await writer.apply([library(ONE, 5, { name: 'five' })], [])
  t.same(await names(reader), ['five'], 'the same write again is harmless')
  await writer.apply([library(ONE, 4, null)], [])
  t.same(await names(reader), ['five'], 'an older removal changes nothing')
  await writer.apply([library(ONE, 6, null)], [])
  t.same(await names(reader), [])
  const count = [{ edge: 'libraries', count: true }]
  t.same(await ask(reader, count), { libraries: 0 })
  await writer.apply([library(ONE, 5, { name: 'five' })], [])
  t.same(await names(reader), [], "an older write can't bring a removed node back")
  await writer.apply([library(TWO, 2, null), library(TWO, 1, { name: 'late' })], [])
  t.same(await names(reader), [], 'nor one that came only after its removal')
  await writer.apply([library(ONE, 7, { name: 'seven' }), library(ONE, 8, { name: 'eight' })], [])
  t.same(await names(reader), ['eight'], 'a node may be written twice in one step')
  t.same(await ask(reader, count), { libraries: 1 })
  const missing = [{ edge: 'libraries', filter: 'motto == nothing', count: true }]
  t.same(await ask(reader, missing), { libraries: 1 }, 'a removed node misses nothing')
}

async function sameIds(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  const book = (actorId: string, title: string): IndexWrite => {
    const doc = { bookId: 'b', libraryId: actorId, shelfId: SHELF, title }
    return { node: 'book', actorId, id: 'b', version: 1, doc }
  }
  await writer.apply(
    [
      library(ONE, 1, { name: 'one' }),
      shelf(ONE, SHELF, 1, { label: 'of one' }),
      book(ONE, 'in one'),
      library(TWO, 1, { name: 'two' }),
      shelf(TWO, SHELF, 1, { label: 'of two' }),
      book(TWO, 'in two'),
    ],
    [],
  )
  const body = [
    {
      edge: 'libraries',
      orderBy: 'name',
      node: {
        fields: ['name'],
        navigate: [
          {
            edge: 'shelves',
            node: {
              fields: ['label'],
              navigate: [{ edge: 'books', node: { fields: ['title'] } }],
            },
          },
        ],
      },
    },
  ]
  const nested = (name: string): Doc => ({
    name,
    shelves: [{ label: `of ${name}`, books: [{ title: `in ${name}` }] }],
  })
  t.same(await ask(reader, body), { libraries: [nested('one'), nested('two')] })
  await writer.apply([shelf(ONE, SHELF, 2, null)], [])
  t.same((await ask(reader, body))['libraries'], [{ name: 'one', shelves: [] }, nested('two')])

  await writer.apply([library(TWO, 2, { name: 'two', twinId: ONE })], [])
  const own = { edge: 'ownShelves', node: { fields: ['label'] } }
  const twins = [
    { edge: 'libraries', filter: "name == 'two'", node: { navigate: [own] } },
    {
      edge: 'libraries',
      alias: 'gated',
      node: { fields: ['name'], navigate: [{ edge: 'ownShelves', require: 'some' }] },
    },
  ]
  t.same(await ask(reader, twins), { libraries: [{ ownShelves: [] }], gated: [] })
  await writer.apply([library(TWO, 3, { name: 'two', twinId: TWO })], [])
  t.same(await ask(reader, twins), {
    libraries: [{ ownShelves: [{ label: 'of two' }] }],
    gated: [{ name: 'two' }],
  })
}

async function bounds(t: Test, make: MakeIndex): Promise<void> {
  t.setTimeout(TIMEOUT_MS)
  let nowMs = 0
  const { writer, reader } = await make(t, { ...OPTIONS, now: () => nowMs++ })
  await writer.reset('one')
  const writes: IndexWrite[] = []
  for (let i = 0; i < 700; i++) {
    const id = `0190b000-0000-7000-8000-${i.toString(16).padStart(12, '0')}`
    writes.push(library(id, 1, { area: i }), shelf(id, SHELF, 1), shelf(id, SHELF_TWO, 1))
  }
  await writer.apply(writes, [])
  const count = [{ edge: 'libraries', filter: 'rating == 1', count: true }]
  t.same(await ask(reader, count), { libraries: 0 })
  const late = await codeOf(() => reader.query(planOf(count), 2))
  t.equal(late, 'UNAVAILABLE', 'a query stops when its time is over, also one that finds nothing')
  t.same(await ask(reader, count), { libraries: 0 }, 'and the next one is answered')

  const deep = (levels: number): unknown => ({
    fields: ['libraryId'],
    navigate:
      levels === 0
        ? []
        : [{ edge: 'shelves', node: { navigate: [{ edge: 'library', node: deep(levels - 1) }] } }],
  })
  const wide = [{ edge: 'libraries', limit: 700, node: deep(3) }]
  t.equal(Object.keys(await ask(reader, wide)).length, 1)
  const many = planNavigations(
    [1, 2, 3, 4, 5, 6, 7].map((i) => ({ ...wide[0], alias: `a${i}`, limit: 1_000, node: deep(3) })),
    SCHEMA,
    FULL_ACCESS,
    { nowMs: NOW, limits: { ...LIMITS.graph, navigationsMax: 100 } },
  )
  t.equal(
    await codeOf(() => reader.query(many, 1e9)),
    'INVALID_QUERY',
    'an answer has a largest size',
  )
}

async function codeOf(run: () => unknown): Promise<string | null> {
  try {
    await run()
    return null
  } catch (error) {
    if (error instanceof RequestError) return error.errors[0]!.code
    throw error
  }
}

async function nestedOrder(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  const pages = { z: 3, a: 1, m: 2 }
  await writer.apply([library(ONE, 1)], [])
  let version = 1
  const book = (bookId: 'z' | 'a' | 'm', place: number): IndexWrite => {
    const doc = { bookId, libraryId: ONE, pages: pages[bookId] }
    const write = { node: 'book', actorId: ONE, id: bookId, version: ++version, doc }
    return writer.placed ? { ...write, place } : write
  }
  for (const [i, bookId] of (['z', 'a', 'm'] as const).entries()) {
    await writer.apply([book(bookId, i)], [])
  }
  const list = async (more: Doc): Promise<string> => {
    const books = { edge: 'books', node: { fields: ['bookId'] }, ...more }
    const { libraries } = await ask(reader, [
      { edge: 'libraries', node: { fields: [], navigate: [books] } },
    ])
    const [one] = libraries as Doc[]
    const ids = (one!['books'] as Doc[]).map(({ bookId }) => bookId).join('')
    return one!['booksHasMore'] === true ? `${ids}+` : ids
  }
  t.equal(await list({}), 'zam', 'as they were made')
  t.equal(await list({ limit: 2 }), 'za+')
  t.equal(await list({ limit: 3 }), 'zam')
  t.equal(await list({ orderBy: 'pages' }), 'amz')
  t.equal(await list({ orderBy: 'pages desc', limit: 1 }), 'z+')
  t.equal(await list({ orderBy: 'bookId', limit: 2 }), 'am+')

  const removed = (): IndexWrite => ({ ...book('z', 0), doc: null })
  await writer.apply([removed()], [])
  t.equal(await list({ filter: `libraryId == "${ONE}"` }), 'am', 'it is not found by its actor')
  await writer.apply([book('z', 3)], [])
  t.equal(await list({}), 'amz', 'what was removed comes again behind the others')
  t.equal(await list({ limit: 2 }), 'am+')
  const again = [book('a', 2), book('m', 0), book('z', 1)]
  await writer.apply(
    again.map((write, i) => ({ ...write, place: [2, 0, 1][i]! })),
    [],
  )
  t.equal(await list({}), 'mza', 'as they are placed')
  await writer.apply([removed(), book('z', 3), book('m', 0)], [])
  t.equal(await list({}), 'maz', 'gone and there again in one step')
  await writer.apply([{ ...book('a', 9), version: 1, place: 9 }], [])
  t.equal(await list({}), 'maz', 'a place of an older write counts for nothing')
}

async function unmeetable(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  const notes = [{ noteId: '1', libraryId: ONE, weight: 1 }]
  await writer.apply([library(ONE, 1, { name: 'a', notes }), shelf(ONE, SHELF, 1)], [])
  for (const filter of ['weight in []', 'not (weight in [])']) {
    const found = filter.startsWith('not') ? [{ noteId: '1' }] : []
    const nested = { edge: 'notes', filter, node: { fields: ['noteId'] } }
    const body = [{ edge: 'libraries', node: { navigate: [nested] } }]
    t.same(await ask(reader, body), { libraries: [{ notes: found }] }, filter)
  }
  const none = [{ edge: 'libraries', filter: 'name in []', count: true }]
  t.same(await ask(reader, none), { libraries: 0 })
}

/** SQLite 3.51 stops at the first such node when an index serves each side of the OR. */
async function eitherWay(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  const writes = actorIds.flatMap((id, i): IndexWrite[] => [
    library(id, 1, { name: String(i) }),
    shelf(id, SHELF, 1, { label: ['a', 'b', 'c'][i % 3], builtAt: '2026-03-01T00:00:00.000Z' }),
  ])
  await writer.apply(writes, [])
  const semiJoins: [filter: string, matches: (i: number) => boolean][] = [
    ["label == 'a' or label == 'b'", (i) => i % 3 !== 2],
    ["label in ['a'] or label in ['c', 'd']", (i) => i % 3 !== 1],
    ["builtAt in ['2026-03-01T00:00:00.000Z', 2026-03-01, 2026-01-01]", () => true],
  ]
  for (const [filter, matches] of semiJoins) {
    const semiJoin = { edge: 'shelves', filter, require: 'some' }
    const body = { edge: 'libraries', node: { fields: ['name'], navigate: [semiJoin] } }
    const { libraries } = await ask(reader, [body])
    const found = (libraries as Doc[]).map(({ name }) => Number(name)).toSorted((a, b) => a - b)
    t.same(found, actorIds.map((_, i) => i).filter(matches), filter)
  }
}

async function numberLists(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  for (const number of [1_152_921_504_606_847_232, 9_007_199_254_740_994, 0.1 + 0.2, 1e300, -0]) {
    const dynamic = { x: number, y: [number] }
    await writer.apply([library(ONE, 1, { area: number, rating: number, dynamic })], [])
    const literal = number.toString()
    const others = Array.from({ length: 20 }, (_, i) => String(i + 1))
    for (const values of [[literal], [...others, literal]]) {
      for (const field of ["dynamic->'x' in", "dynamic->'y' anyof", 'area in', 'rating in']) {
        const filter = `${field} [${values.join(', ')}]`
        const body = [{ edge: 'libraries', filter, count: true }]
        t.same(await ask(reader, body), { libraries: 1 }, filter)
      }
    }
  }
}

async function emptyText(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  await writer.apply([library(ONE, 1, { name: '', motto: '' }), library(TWO, 1, { name: 'a' })], [])
  const counts: [filter: string, libraries: number][] = [
    ["name startsWith ''", 2],
    ["name endsWith ''", 2],
    ["name contains ''", 2],
    ['name startsWith motto', 1],
    ['name endsWith motto', 1],
    ["name startsWith 'a'", 1],
    ["not (name endsWith 'a')", 1],
  ]
  for (const [filter, libraries] of counts) {
    t.same(await ask(reader, [{ edge: 'libraries', filter, count: true }]), { libraries }, filter)
  }
}
