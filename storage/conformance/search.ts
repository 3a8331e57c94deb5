// The one suite that every graph index driver passes: the memory twin, SQLite, Elasticsearch.
// It stands between the port's words (storage/search.ts) and the drivers. Its heart is a property:
// whatever was written, in whatever order, any query answers what the plain reference answers,
// order included. Source: ARCHITECTURE 5 and 7, CONTRACT 1.4, PROTOCOL 3.13.

import fc from 'fast-check'
import type { Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import { FULL_ACCESS, planNavigations } from '../../protocol/graph/navigation.ts'
import type { HistorySource } from '../../protocol/graph/history.ts'
import type { GraphPlan } from '../../protocol/graph/plan.ts'
import type { GraphSchema } from '../../protocol/graph/schema.ts'
import type { Maybe } from '../journal.ts'
import type { GraphReader, GraphWriter, IndexWrite } from '../search.ts'
import { NOW } from './search-filters.ts'
import {
  actorIds,
  randomWrites,
  SCHEMA,
  shelfIds,
  visitsOf,
  type Doc,
  type RandomWrite,
} from './search-nodes.ts'
import { bodyOf, randomQuery, Reference, type ReferenceNode } from './search-queries.ts'

export interface IndexUnderTest {
  readonly writer: GraphWriter
  readonly reader: GraphReader
  /** Closes both and opens them again; null when the driver keeps nothing. */
  readonly reopen: ((schema: GraphSchema) => Maybe<IndexUnderTest>) | null
  /** Random runs of the property, where a server makes each dear; many by default. */
  readonly runs?: number
}

export interface IndexOptions {
  readonly schema: GraphSchema
  readonly history: HistorySource
  /** Monotonic milliseconds of the reader. */
  readonly now: () => number
}

/** Makes an empty index; ends it with `t.teardown`. */
export type MakeIndex = (t: Test, options: IndexOptions) => Maybe<IndexUnderTest>

export const HISTORY: HistorySource = {
  *read(actorId, node) {
    for (const doc of visitsOf(actorId).toReversed()) {
      yield { node, id: String(doc['visitId']), doc }
    }
  },
}

const OPTIONS: IndexOptions = { schema: SCHEMA, history: HISTORY, now: () => 0 }
const BUDGET_MS = 1_000_000
/** Real engines may be slow, and the machine busy. */
const TIMEOUT_MS = 240_000

const [ONE, TWO] = actorIds as [string, string]
const [SHELF, SHELF_TWO] = shelfIds as [string, string]

export function planOf(body: unknown, schema = SCHEMA): GraphPlan {
  return planNavigations(body, schema, FULL_ACCESS, { nowMs: NOW, limits: LIMITS })
}

async function ask(reader: GraphReader, body: unknown): Promise<Record<string, unknown>> {
  return { ...(await reader.query(planOf(body), BUDGET_MS)) }
}

function library(actorId: string, version: number, doc: Doc | null = {}): IndexWrite {
  const full = doc && { libraryId: actorId, ...doc }
  return { node: 'library', actorId, id: actorId, version, doc: full }
}

function shelf(actorId: string, id: string, version: number, doc: Doc | null = {}): IndexWrite {
  const full = doc && { libraryId: actorId, shelfId: id, ...doc }
  return { node: 'shelf', actorId, id, version, doc: full }
}

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
  searchProperty(suite, make)
}

/** The heart of it alone, for drivers that can be made to work in other ways. */
export function searchProperty(suite: Test, make: MakeIndex): void {
  void suite.test('any query answers what the reference answers', (t) => property(t, make))
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
    { nowMs: NOW, limits: { ...LIMITS, navigationsMax: 100 } },
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
  const pages = [3, 1, 2]
  await writer.apply([library(ONE, 1)], [])
  for (const [i, bookId] of ['z', 'a', 'm'].entries()) {
    const doc = { bookId, libraryId: ONE, pages: pages[i] }
    const write = { node: 'book', actorId: ONE, id: bookId, version: i + 2, doc, place: i }
    await writer.apply([write], [])
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
}

/** What the writes leave behind, each node at the place of its first write. */
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

function remaining(writes: readonly RandomWrite[]): ReferenceNode[] {
  const last = new Map<string, RandomWrite>()
  for (const write of writes) last.set(`${write.actorId} ${write.node} ${write.id}`, write)
  const nodes: ReferenceNode[] = []
  for (const { doc, ...rest } of last.values()) if (doc !== null) nodes.push({ ...rest, doc })
  return nodes
}

interface Batching {
  /** Writes in one step. */
  readonly size: number
  /** Every so many writes an older one is sent again. */
  readonly repeatEvery: number
}

/** Writes as a projector would send them, with old ones in between that must change nothing. */
async function applyAll(
  writer: GraphWriter,
  writes: readonly RandomWrite[],
  batching: Batching,
): Promise<void> {
  const places = new Map<string, number>()
  const sent = writes.map((write, i): IndexWrite => {
    const key = `${write.actorId} ${write.node} ${write.id}`
    const place = places.get(key) ?? places.size
    places.set(key, place)
    return { ...write, version: i + 1, place }
  })
  const withOld = sent.flatMap((write, i) => {
    if (i % batching.repeatEvery !== batching.repeatEvery - 1) return [write]
    return [write, sent[Math.floor(i / 2)]!]
  })
  for (let at = 0; at < withOld.length; at += batching.size) {
    await writer.apply(withOld.slice(at, at + batching.size), [{ shard: 0, offset: at + 1 }])
  }
}

async function property(t: Test, make: MakeIndex): Promise<void> {
  t.setTimeout(TIMEOUT_MS)
  const { writer, reader, runs } = await make(t, OPTIONS)
  let answered = 0
  let found = 0
  await fc.assert(
    fc.asyncProperty(
      randomWrites,
      fc.record({
        size: fc.integer({ min: 1, max: 30 }),
        repeatEvery: fc.integer({ min: 2, max: 9 }),
      }),
      fc.array(randomQuery, { minLength: 5, maxLength: 10 }),
      async (writes, batching, queries) => {
        await writer.reset('again')
        await applyAll(writer, writes, batching)
        const reference = new Reference(remaining(writes))
        for (const query of queries) {
          const body = bodyOf(query)
          const expected = asJson(reference.answer(query))
          const answer = asJson(await ask(reader, body))
          if (!equal(answer, expected)) {
            throw new Error(
              `query ${JSON.stringify(body)}\n answered ${JSON.stringify(answer)}\n` +
                ` expected ${JSON.stringify(expected)}`,
            )
          }
          answered++
          if (JSON.stringify(expected).length > 60) found++
        }
      },
    ),
    { numRuns: Number(process.env['SEARCH_RUNS'] ?? runs ?? 250) },
  )
  t.ok(found * 5 > answered, `${found} of ${answered} queries found something`)
}

const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** The same JSON, whatever the order of members. */
function equal(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((one, i) => equal(one, b[i]))
  }
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b
  const [x, y] = [Object.entries(a), b as Record<string, unknown>]
  return (
    x.length === Object.keys(y).length &&
    x.every(([name, value]) => Object.hasOwn(y, name) && equal(value, y[name]))
  )
}
