// Node types and random nodes for the graph index's conformance suite: libraries with shelves and
// books, in every form of storage, linked inside and across actors. It stands beside the suite;
// values are few and nasty, so that nodes meet in comparisons.

import fc from 'fast-check'
import type { EdgeDef, FieldDef, FieldType, NodeType } from '../../protocol/graph/node-type.ts'
import { graphSchema } from '../../protocol/graph/schema.ts'

const field = (name: string, type: FieldType): FieldDef => ({ name, type })
const key = (name: string, type: FieldType): FieldDef => ({ name, type, indexed: true })
const edge = (
  name: string,
  node: string,
  cardinality: EdgeDef['cardinality'],
  by: string,
): EdgeDef => ({ name, node, cardinality, from: by, to: by, sameActor: true })
const across = (
  name: string,
  node: string,
  cardinality: EdgeDef['cardinality'],
  [from, to]: readonly [string, string],
): EdgeDef => ({ name, node, cardinality, from, to, sameActor: false })

export const LIBRARY: NodeType = {
  name: 'library',
  set: 'libraries',
  idField: 'libraryId',
  root: true,
  storage: { kind: 'row' },
  fields: [
    key('libraryId', 'uuid'),
    key('name', 'text'),
    { name: 'kind', type: 'enum', values: ['small', 'large'], indexed: true },
    key('area', 'number'),
    key('openedAt', 'instant'),
    field('checkedAt', 'instant'),
    field('closesOn', 'date'),
    field('isPublic', 'boolean'),
    field('tags', '[text]'),
    { name: 'address', type: 'object', members: [field('city', 'text'), field('floor', 'number')] },
    field('motto', 'text'),
    field('rating', 'number'),
    field('dynamic', 'dynamic'),
    field('raw', 'value'),
    field('twinId', 'uuid'),
    key('cityCode', 'text'),
  ],
  edges: [
    edge('shelves', 'shelf', 'many', 'libraryId'),
    edge('books', 'book', 'many', 'libraryId'),
    edge('notes', 'note', 'many', 'libraryId'),
    edge('visits', 'visit', 'many', 'libraryId'),
    // Leads somewhere only from a library that is its own twin.
    { ...edge('ownShelves', 'shelf', 'many', 'libraryId'), from: 'twinId' },
    edge('unknown', 'nowhere', 'many', 'libraryId'),
    across('city', 'city', 'single', ['cityCode', 'code']),
    across('twin', 'library', 'single', ['twinId', 'libraryId']),
    across('twinOf', 'library', 'many', ['libraryId', 'twinId']),
    across('twinShelves', 'shelf', 'many', ['twinId', 'libraryId']),
  ],
}

const SHELF: NodeType = {
  name: 'shelf',
  set: 'shelves',
  idField: 'shelfId',
  position: 'place',
  storage: { kind: 'row' },
  fields: [
    key('shelfId', 'uuid'),
    key('libraryId', 'uuid'),
    key('label', 'text'),
    field('width', 'number'),
    field('builtAt', 'instant'),
    field('dynamic', 'dynamic'),
  ],
  edges: [
    edge('library', 'library', 'single', 'libraryId'),
    edge('books', 'book', 'many', 'shelfId'),
    edge('notes', 'note', 'many', 'shelfId'),
  ],
}

const BOOK: NodeType = {
  name: 'book',
  set: 'books',
  idField: 'bookId',
  storage: { kind: 'row' },
  fields: [
    field('bookId', 'text'),
    key('libraryId', 'uuid'),
    key('shelfId', 'uuid'),
    key('isbn', 'text'),
    field('pages', 'number'),
    field('isLent', 'boolean'),
    field('title', 'text'),
  ],
  edges: [
    edge('library', 'library', 'single', 'libraryId'),
    edge('shelf', 'shelf', 'single', 'shelfId'),
    edge('leaves', 'leaf', 'many', 'bookId'),
  ],
}

const LEAF: NodeType = {
  name: 'leaf',
  set: 'leaves',
  idField: 'leafId',
  storage: { kind: 'embedded', node: 'book', member: 'leaves' },
  fields: [
    field('leafId', 'text'),
    field('bookId', 'text'),
    field('libraryId', 'uuid'),
    field('number', 'number'),
    field('text', 'text'),
    field('dynamic', 'dynamic'),
  ],
  edges: [
    edge('book', 'book', 'single', 'bookId'),
    edge('library', 'library', 'single', 'libraryId'),
  ],
}

const NOTE: NodeType = {
  name: 'note',
  set: 'notes',
  idField: 'noteId',
  storage: { kind: 'embedded', node: 'library', member: 'notes' },
  fields: [
    field('noteId', 'text'),
    field('libraryId', 'uuid'),
    field('shelfId', 'uuid'),
    field('cityCode', 'text'),
    field('body', 'text'),
    field('weight', 'number'),
    field('writtenAt', 'instant'),
  ],
  edges: [
    edge('library', 'library', 'single', 'libraryId'),
    edge('shelf', 'shelf', 'single', 'shelfId'),
    across('city', 'city', 'single', ['cityCode', 'code']),
  ],
}

const CITY: NodeType = {
  name: 'city',
  set: 'cities',
  idField: 'cityId',
  root: true,
  storage: { kind: 'row' },
  fields: [field('cityId', 'uuid'), key('code', 'text'), field('dynamic', 'dynamic')],
  edges: [
    across('libraries', 'library', 'many', ['code', 'cityCode']),
    across('notes', 'note', 'many', ['code', 'cityCode']),
  ],
}

const VISIT: NodeType = {
  name: 'visit',
  set: 'visits',
  idField: 'visitId',
  storage: { kind: 'history', parent: 'library', parentField: 'libraryId' },
  fields: [
    field('visitId', 'text'),
    field('libraryId', 'uuid'),
    field('mood', 'text'),
    field('minutes', 'number'),
  ],
  edges: [edge('library', 'library', 'single', 'libraryId')],
}

export const NODE_TYPES: readonly NodeType[] = [LIBRARY, SHELF, BOOK, LEAF, NOTE, CITY, VISIT]
export const SCHEMA = graphSchema(NODE_TYPES)

export const TEXTS = [
  'a', 'A', 'ab', 'b', 'B', 'z', 'é', '\uE000', '\uFFFD', '😀', '😀b', '', ' ', "it's", 'say "x"',
  'back\\slash', '50%', 'a_c', 'now', '1', 'true', '2026-01-01',
] // prettier-ignore
export const NUMBERS = [0, 1, -1, 2.5, 0.1, 0.2, 0.3, 10, 99.99, 1_000_000_000_000, 0.0001]
export const INSTANTS = [
  '1969-12-31T23:59:59.500Z',
  '2026-01-01T00:00:00.000Z',
  '2026-01-01T00:00:00.001Z',
  '2026-01-31T12:00:00.000Z',
  '2026-03-01T00:00:00.000Z',
]
export const DATES = ['2025-12-31', '2026-01-01', '2026-01-02', '2026-02-28', '2026-03-01']
export const MEMBERS = [
  'x',
  'y',
  'x\u0000y',
  'x\u0001',
  'a"b',
  "it's",
  'b\\c',
  'd.e',
  '[0]',
  'é😀',
  '',
]
export const CODES = ['N', 'S', '\uE000', '😀']
export const PLACES = [1, 2, 3, 10]

/** UUIDs of actors and of children; child ids are few, so actors share them. */
export const actorIds = Array.from({ length: 12 }, (_, i) => uuid(0xa, i))
export const shelfIds = Array.from({ length: 5 }, (_, i) => uuid(0xb, i))
export const bookIds = ['1', '2', '10', 'B', 'b', '😀', '\uE000']

function uuid(kind: number, i: number): string {
  // Neither rising nor falling with i.
  const place = ((i * 7 + 3) % 16).toString(16)
  return `0190a${place}00-0000-7000-8000-00000000${kind.toString(16)}0${i.toString(16).padStart(2, '0')}`
}

export type Doc = Record<string, unknown>

const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null | undefined> =>
  fc.oneof(
    { weight: 6, arbitrary: value },
    { weight: 1, arbitrary: fc.constantFrom(null, undefined) },
  )
const some = <T>(values: readonly T[]): fc.Arbitrary<T | null | undefined> =>
  maybe(fc.constantFrom(...values))

const anyJson: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(...TEXTS, ...INSTANTS.slice(0, 2)),
  fc.constantFrom<unknown>(...NUMBERS, true, false, null),
  fc.array(fc.constantFrom<unknown>('a', '1', 1, 2.5, true, false, null, 'é'), { maxLength: 3 }),
  fc.record({ x: fc.constantFrom<unknown>('a', 1, null) }),
)
const dynamic = maybe(fc.dictionary(fc.constantFrom(...MEMBERS), anyJson, { maxKeys: 4 }))

const libraryDoc = fc.record<Doc>({
  name: some(TEXTS),
  kind: some(['small', 'large']),
  area: some(NUMBERS),
  openedAt: some(INSTANTS),
  checkedAt: some(INSTANTS),
  closesOn: some(DATES),
  isPublic: some([true, false]),
  tags: maybe(fc.uniqueArray(fc.constantFrom(...TEXTS), { maxLength: 3 })),
  address: maybe(fc.record({ city: some(TEXTS), floor: some(NUMBERS) })),
  motto: some(TEXTS),
  rating: some(NUMBERS),
  dynamic,
  raw: anyJson,
  twinId: some(actorIds),
  cityCode: some(CODES),
  notes: maybe(
    fc.uniqueArray(
      fc.record<Doc>({
        noteId: fc.constantFrom(...bookIds),
        shelfId: some(shelfIds),
        cityCode: some(CODES),
        body: some(TEXTS),
        weight: some(NUMBERS),
        writtenAt: some(INSTANTS),
      }),
      { selector: (note) => note['noteId'], maxLength: 3 },
    ),
  ),
})

const shelfDoc = fc.record<Doc>({
  label: some(TEXTS),
  width: some(NUMBERS),
  builtAt: some(INSTANTS),
  dynamic,
  place: some(PLACES),
})

const bookDoc = fc.record<Doc>({
  shelfId: some(shelfIds),
  isbn: some(TEXTS),
  pages: some(NUMBERS),
  isLent: some([true, false]),
  title: some(TEXTS),
  leaves: maybe(
    fc.array(fc.record<Doc>({ number: some(NUMBERS), text: some(TEXTS), dynamic }), {
      maxLength: 3,
    }),
  ),
})

const cityDoc = fc.record<Doc>({ code: some(CODES), dynamic })

/** One node to write or remove. */
export interface RandomWrite {
  readonly node: string
  readonly actorId: string
  readonly id: string
  readonly doc: Doc | null
}

const libraries = actorIds.slice(0, 9)
const cities = actorIds.slice(9)

const write = (
  node: string,
  place: { actors: readonly string[]; ids: readonly string[] | null },
  doc: fc.Arbitrary<Doc>,
  finish: (doc: Doc, actorId: string, id: string) => Doc,
): fc.Arbitrary<RandomWrite> =>
  fc
    .record({
      actorId: fc.constantFrom(...place.actors),
      child: fc.constantFrom(...(place.ids ?? [''])),
      doc: fc.option(doc, { freq: 8 }),
    })
    .map(({ actorId, child, doc: made }) => {
      const id = place.ids === null ? actorId : child
      return { node, actorId, id, doc: made === null ? null : finish(made, actorId, id) }
    })

/** Writes in any order; the later of two for one node is the newer. */
export const randomWrites: fc.Arbitrary<RandomWrite[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: write('library', { actors: libraries, ids: null }, libraryDoc, (doc, id) => ({
        ...doc,
        libraryId: id,
        ...(Array.isArray(doc['notes']) && {
          notes: (doc['notes'] as Doc[]).map((note) => ({ ...note, libraryId: id })),
        }),
      })),
    },
    {
      weight: 4,
      arbitrary: write(
        'shelf',
        { actors: libraries, ids: shelfIds },
        shelfDoc,
        (doc, actor, id) => ({
          ...doc,
          shelfId: id,
          libraryId: actor,
        }),
      ),
    },
    {
      weight: 4,
      arbitrary: write('book', { actors: libraries, ids: bookIds }, bookDoc, (doc, actor, id) => ({
        ...doc,
        bookId: id,
        libraryId: actor,
        ...(Array.isArray(doc['leaves']) && {
          leaves: (doc['leaves'] as Doc[]).map((leaf, i) => ({
            ...leaf,
            leafId: `${id}/${i}`,
            bookId: id,
            libraryId: actor,
          })),
        }),
      })),
    },
    {
      weight: 1,
      arbitrary: write('city', { actors: cities, ids: null }, cityDoc, (doc, id) => ({
        ...doc,
        cityId: id,
      })),
    },
  ),
  { minLength: 1, maxLength: 60 },
)

/** Visits of an actor, oldest first: the same ones always. */
export function visitsOf(actorId: string): Doc[] {
  const n = actorIds.indexOf(actorId)
  return Array.from({ length: (n * 5) % 7 }, (_, i) => ({
    visitId: `v${i}`,
    libraryId: actorId,
    mood: TEXTS[(n + i * 3) % 5],
    minutes: NUMBERS[(n * 2 + i) % 4],
  }))
}
